package atom

import (
	"context"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// packet is an entry of a response stream, or the error of the reader.
type packet struct {
	redis.XMessage
	err error
}

func (p packet) field(name string) (string, bool) {
	text, ok := p.Values[name].(string)
	return text, ok
}

// callID identifies a command in the whole system by the called element and the ID of the entry in its command stream.
type callID struct{ element, id string }

// inbox reads the response stream of an element once for all waiting calls, and only while calls wait.
type inbox struct {
	protocol *protocol
	key      string
	// spawn starts the reader on a goroutine that Element.Close waits for.
	spawn func(func(context.Context))

	mu      sync.Mutex               // protects what follows
	last    string                   // ID of the last entry that was read
	reading bool                     // a reader is running
	sending int                      // calls whose command has no ID yet: it is being sent
	early   []packet                 // unexpected packets that came while sending > 0
	waiting map[callID]chan<- packet // waiting calls
}

const (
	inboxBatch = 128   // entries of one read
	inboxEarly = 16384 // limit of early
	// inboxPackets limits the unread packets of a call: an acknowledgement, a response, and some repetitions.
	inboxPackets = 16
)

// begin announces a call before its command is sent, so that no answer is missed.
func (b *inbox) begin() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sending++
	b.start()
}

// start ensures that a reader runs. The caller holds mu.
func (b *inbox) start() {
	if !b.reading {
		b.reading = true
		b.spawn(b.read)
	}
}

// sent registers the ID of a call's command. The packets for it come through the channel.
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
	b.start() // the reader may have failed since begin
	return ch
}

// notSent ends a call whose command could not be sent.
func (b *inbox) notSent() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.settled()
}

// settled ends the announcement of a call by begin. The caller holds mu.
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

// deliver passes a packet to the call that waits for it. The caller holds mu.
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

// post sends the packet, or drops it if the channel has more than any correct element sends.
func post(ch chan<- packet, p packet) {
	select {
	case ch <- p:
	default:
	}
}

// call sends a command with the given fields to an element. It returns the response, or the acknowledgement with
// ackOnly. If that does not come in time, the error is NoAck or NoResponse.
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
			if over = nil; timeout > 0 { // 0 waits for ever, as in XREAD
				over = time.After(timeout)
			}
		case <-over:
			return packet{}, missing
		case <-ctx.Done():
			return packet{}, context.Cause(ctx)
		}
	}
}
