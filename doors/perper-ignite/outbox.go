package perperignite

import (
	"math"
	"sync"

	"github.com/atomredis/atomredis/doors/door"
	"github.com/atomredis/atomredis/internal/wire/ignite"
)

// outbox queues the messages to a peer, in order. Each is sent when its position is durable; the peer's next requests
// are executed meanwhile. Several goroutines may use it.
type outbox struct {
	conn *door.Conn
	wire *ignite.Conn

	mu      sync.Mutex // protects what follows
	changed sync.Cond  // signals free space, the end of sending, or err
	waiting []byte     // messages
	marks   []mark     // positions for which messages wait, in order; the last mark is at the end of waiting
	size    int        // bytes that wait or are being sent
	spare   []byte     // the last sent buffer, for reuse
	sending bool       // a goroutine is sending
	err     error      // the reason why sending has ended
}

// mark has the position that door.Client.Settle must return before the messages up to end are sent.
type mark struct {
	end      int
	position uint64
}

const (
	// sendAt is how many bytes of answers may wait for answers to further received requests.
	sendAt = 64 << 10
	// maxUnsent is how many bytes may wait for the peer or the disk before add blocks.
	maxUnsent = 1 << 20
)

func newOutbox(conn *door.Conn, wire *ignite.Conn) *outbox {
	o := &outbox{conn: conn, wire: wire}
	o.changed.L = &o.mu
	return o
}

// add queues the messages that appendTo appends, to be sent after a position is durable. It blocks while too many bytes
// wait. An error says that the peer is gone, or that its client has ended.
func (o *outbox) add(position uint64, appendTo func(dst []byte) []byte) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.err == nil && o.size >= maxUnsent {
		o.start()
		o.changed.Wait()
	}
	if o.err != nil {
		return o.err
	}
	before := len(o.waiting)
	o.waiting = appendTo(o.waiting)
	o.size += len(o.waiting) - before
	if last := len(o.marks) - 1; last >= 0 && o.marks[last].position >= position {
		o.marks[last].end = len(o.waiting)
	} else {
		o.marks = append(o.marks, mark{len(o.waiting), position})
	}
	return nil
}

// flush sends the waiting messages, unless they must wait for the disk, or another goroutine is sending, which then
// sends them too.
func (o *outbox) flush() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.sending && len(o.marks) > 0 && o.marks[0].position == 0 {
		o.sending = true
		o.send(0)
		o.sending = false
	}
	o.start()
	return o.err
}

// full reports whether the waiting messages should be sent although more will follow soon.
func (o *outbox) full() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.size >= sendAt
}

// start sends all waiting messages on a goroutine, unless one is sending already. mu must be locked.
func (o *outbox) start() {
	if o.sending || len(o.waiting) == 0 || o.err != nil {
		return
	}
	o.sending = true
	o.conn.Go(func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.send(math.MaxUint64)
		o.sending = false
		o.changed.Broadcast()
	})
}

// send sends messages for positions up to most, until none are left. mu must be locked; send unlocks it while it waits.
func (o *outbox) send(most uint64) {
	settled := uint64(0)
	for o.err == nil && len(o.marks) > 0 && o.marks[0].position <= most {
		if first := o.marks[0].position; first > settled {
			o.mu.Unlock()
			now, err := o.conn.Client.Settle(first)
			o.mu.Lock()
			if settled = now; err != nil {
				o.fail(err)
			}
			continue
		}
		messages := o.take(min(settled, most))
		o.mu.Unlock()
		err := o.wire.Write(messages)
		o.mu.Lock()
		if o.size -= len(messages); cap(messages) <= 2*sendAt {
			o.spare = messages
		}
		o.changed.Broadcast()
		if err != nil {
			o.fail(err)
		}
	}
}

// take removes and returns the messages for positions up to settled, which are the first ones. mu must be locked.
func (o *outbox) take(settled uint64) []byte {
	n := 0
	for n < len(o.marks) && o.marks[n].position <= settled {
		n++
	}
	end := o.marks[n-1].end
	messages := o.waiting[:end]
	o.waiting, o.spare = append(o.spare[:0], o.waiting[end:]...), nil
	o.marks = o.marks[:copy(o.marks, o.marks[n:])]
	for i := range o.marks {
		o.marks[i].end -= end
	}
	return messages
}

// fail ends the outbox and the connection. mu must be locked.
func (o *outbox) fail(err error) {
	if o.err == nil {
		o.err = err
		o.conn.Close()
	}
	o.changed.Broadcast()
}

// drain returns when all waiting messages were sent, or the outbox has failed.
func (o *outbox) drain() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.err == nil && (o.sending || len(o.marks) > 0) {
		o.start()
		o.changed.Wait()
	}
}

// close ends the outbox when its connection ends.
func (o *outbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.fail(door.ErrClosed)
}
