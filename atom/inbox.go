package atom

import (
	"context"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// packet is an entry of a response stream, or the failure to read any.
type packet struct {
	redis.XMessage
	err error
}

func (p packet) field(name string) (string, bool) {
	text, ok := p.Values[name].(string)
	return text, ok
}

// callID names a command in the whole system: the element that was called, and the ID of the entry in its command
// stream.
type callID struct{ element, id string }

// inbox reads the response stream of an element once for all calls that wait for something in it, however many there
// are, and only while there are any.
type inbox struct {
	protocol *protocol
	key      string
	// spawn runs the reader on a goroutine that the element waits for when it closes.
	spawn func(func(context.Context))

	mu      sync.Mutex               // protects what follows
	last    string                   // ID of the last entry that was read
	reading bool                     // there is a reader
	sending int                      // calls whose command has no ID yet
	early   []packet                 // what came while there were such calls, and nobody waited for
	waiting map[callID]chan<- packet // calls by what they wait for
}

const (
	inboxBatch = 128   // entries of one read
	inboxEarly = 16384 // entries that are kept for calls whose command has no ID yet
	// inboxPackets is how many packets a call can have that it has not looked at yet: an acknowledgement and a response,
	// and some more from elements that repeat themselves.
	inboxPackets = 16
)

// begin announces a call before its command is sent, so that an answer cannot be missed.
func (b *inbox) begin() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sending++
	b.start()
}

// start makes sure that there is a reader. The caller holds mu.
func (b *inbox) start() {
	if !b.reading {
		b.reading = true
		b.spawn(b.read)
	}
}

// sent tells how the command of a call is known. Packets for it come through the channel.
func (b *inbox) sent(id callID) <-chan packet {
	b.mu.Lock()
	defer b.mu.Unlock()
	ch := make(chan packet, inboxPackets)
	b.waiting[id] = ch
	for _, p := range b.early {
		if idOf(p) == id {
			post(ch, p)
		}
	}
	b.settled()
	b.start() // it may have failed since begin
	return ch
}

// notSent ends a call whose command could not be sent.
func (b *inbox) notSent() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.settled()
}

// settled counts a call that begin has announced. The caller holds mu.
func (b *inbox) settled() {
	if b.sending--; b.sending == 0 {
		b.early = nil
	}
}

// end forgets a call.
func (b *inbox) end(id callID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.waiting, id)
}

func (b *inbox) read(ctx context.Context) {
	for {
		b.mu.Lock()
		if b.sending == 0 && len(b.waiting) == 0 {
			b.reading = false
			b.mu.Unlock()
			return
		}
		last := b.last
		b.mu.Unlock()

		found, err := b.protocol.read(ctx, []string{b.key}, []string{last}, inboxBatch, piece)

		b.mu.Lock()
		if err != nil {
			for _, ch := range b.waiting {
				post(ch, packet{err: err})
			}
			b.reading = false
			b.mu.Unlock()
			return
		}
		for _, stream := range found {
			for _, msg := range stream.Messages {
				b.deliver(packet{XMessage: msg})
			}
		}
		b.mu.Unlock()
	}
}

// deliver hands a packet to the call that it is for. The caller holds mu.
func (b *inbox) deliver(p packet) {
	b.last = p.ID
	if ch, ok := b.waiting[idOf(p)]; ok {
		post(ch, p)
	} else if b.sending > 0 {
		if len(b.early) == inboxEarly {
			b.early = b.early[1:]
		}
		b.early = append(b.early, p)
	}
}

func idOf(p packet) callID {
	element, _ := p.field("element")
	id, _ := p.field("cmd_id")
	return callID{element, id}
}

// post drops the packet if the call has more of them than any correct element sends.
func post(ch chan<- packet, p packet) {
	select {
	case ch <- p:
	default:
	}
}

// call sends a command, whose fields are given, to an element. It returns the response, or the acknowledgement if
// that is all that is wanted, or as an error the code of what did not come in time.
func (b *inbox) call(ctx context.Context, element string, fields []any, ackTimeout time.Duration,
	ackOnly bool) (packet, error) {
	b.begin()
	cmdID, err := b.protocol.add(ctx, b.protocol.client, commandKey(element), DefaultMaxLen, fields...).Result()
	if err != nil {
		b.notSent()
		return packet{}, err
	}
	id := callID{element, cmdID}
	packets := b.sent(id)
	defer b.end(id)

	missing := NoAck
	over := time.After(ackTimeout)
	for {
		select {
		case p := <-packets:
			if p.err != nil {
				return packet{}, p.err
			}
			// The specification sends the error of an unsupported command without an acknowledgement.
			if _, isResponse := p.field("err_code"); isResponse {
				return p, nil
			}
			text, isAck := p.field("timeout")
			if !isAck || missing == NoResponse {
				continue
			}
			timeout, err := parseMilliseconds(text)
			if err != nil || ackOnly {
				return p, err
			}
			missing = NoResponse
			if over = nil; timeout > 0 { // 0 is a wait without end, as for XREAD
				over = time.After(timeout)
			}
		case <-over:
			return packet{}, missing
		case <-ctx.Done():
			return packet{}, context.Cause(ctx)
		}
	}
}
