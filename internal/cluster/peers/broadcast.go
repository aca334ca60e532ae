package peers

import (
	"encoding/binary"
	"errors"
	"sync"
	"time"

	"github.com/atomredis/atomredis/internal/wire/peer"
)

// Host is what Broadcast needs of the server. Any goroutine may call its methods.
type Host interface {
	Node
	// Receivers returns the addresses of the servers that receive the messages of ordinary channels, or of shard channels.
	Receivers(shard bool) []string
	// Deliver publishes a message of another server to the clients of this one.
	Deliver(channel, message []byte, shard bool)
	// MaxMessage returns the length of the longest channel or message, in bytes.
	MaxMessage() int64
}

// Broadcast passes on what clients publish here. Ordinary messages go to all servers of the group and of the other shards,
// those of shard channels to the group alone. A receiver has a connection for each kind and gets the messages in the order
// of PUBLISH. Publishing never waits: a message that cannot be sent soon is dropped, as PUBLISH allows.
type Broadcast struct {
	host    Host
	running sync.WaitGroup
	done    chan struct{}

	mu     sync.Mutex
	closed bool
	links  map[receiver]*link
}

// message is the kind of the frames: the channel and the message, as parts.
const message peer.Kind = 'm'

// receiver is the address of a server, and the purpose of the connection to it.
type receiver struct {
	addr    string
	purpose peer.Purpose
}

// link is the connection to a receiver.
type link struct {
	receiver
	wake  chan struct{}
	queue []byte // payloads of frames, one after the other; protected by Broadcast.mu
}

const (
	// maxQueue is how many bytes may wait for a receiver before messages are dropped.
	maxQueue = 8 << 20
	// idleTimeout is after how long without messages a connection is closed.
	idleTimeout = time.Minute
)

var errTooLong = errors.New("a message is longer than proto-max-bulk-len")

// NewBroadcast returns a Broadcast that has no connections yet.
func NewBroadcast(host Host) *Broadcast {
	return &Broadcast{host: host, done: make(chan struct{}), links: map[receiver]*link{}}
}

// Send passes a message on to all its receivers.
func (b *Broadcast) Send(channel, text []byte, shard bool) {
	addrs := b.host.Receivers(shard)
	if len(addrs) == 0 {
		return
	}
	purpose := peer.Broadcast
	if shard {
		purpose = peer.BroadcastShard
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, addr := range addrs {
		to := receiver{addr, purpose}
		l := b.links[to]
		if l == nil && !b.closed {
			l = &link{receiver: to, wake: make(chan struct{}, 1)}
			b.links[to] = l
			b.running.Go(func() { b.run(l) })
		}
		if l == nil || len(l.queue) > maxQueue {
			continue
		}
		l.queue = peer.AppendPart(peer.AppendPart(l.queue, channel), text)
		select {
		case l.wake <- struct{}{}:
		default:
		}
	}
}

// run sends messages to a receiver until there has been none for idleTimeout.
func (b *Broadcast) run(l *link) {
	var conn *peer.Conn
	defer func() {
		if conn != nil {
			conn.Close()
		}
	}()
	idle := time.NewTimer(idleTimeout)
	defer idle.Stop()
	for {
		select {
		case <-l.wake:
		case <-idle.C:
			b.mu.Lock()
			if len(l.queue) == 0 {
				delete(b.links, l.receiver)
				b.mu.Unlock()
				return
			}
			b.mu.Unlock()
		case <-b.done:
			return
		}
		idle.Reset(idleTimeout)
		if conn == nil {
			conn = b.dial(l.receiver)
		}
		b.mu.Lock()
		messages := l.queue
		l.queue = nil
		b.mu.Unlock()
		if conn == nil {
			continue // the messages are dropped, with those that came during the attempt to connect
		}
		if sendAll(conn, messages) != nil {
			conn.Close()
			conn = nil
		}
	}
}

// sendAll sends queued messages.
func sendAll(conn *peer.Conn, queue []byte) error {
	conn.SetWriteDeadline(time.Now().Add(Timeout))
	for len(queue) > 0 {
		_, rest, err := peer.Part(queue)
		if err == nil {
			_, rest, err = peer.Part(rest)
		}
		if err == nil {
			err = conn.Send(message, queue[:len(queue)-len(rest)])
		}
		if err != nil {
			return err
		}
		queue = rest
	}
	return conn.Flush()
}

// dial connects to a receiver, nil if it cannot be reached.
func (b *Broadcast) dial(to receiver) *peer.Conn {
	conn, err := b.host.Dial(to.addr, to.purpose, Timeout)
	if err != nil {
		return nil
	}
	// Nothing comes back: the read ends when the receiver closes, so that the next write fails and not the one after it.
	b.running.Go(func() {
		_, _ = conn.Next()
		conn.Close()
	})
	return conn
}

// Close ends all connections and waits for their goroutines.
func (b *Broadcast) Close() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	close(b.done)
	b.running.Wait()
}

// Receive delivers the messages that another server sends. It returns when the connection ends.
func (b *Broadcast) Receive(c *peer.Conn) error {
	c.SetIdleTimeout(2 * idleTimeout)
	for {
		most := b.host.MaxMessage()
		c.SetLimit(2 * (most + binary.MaxVarintLen64))
		kind, payload, err := c.Receive()
		switch {
		case errors.Is(err, peer.ErrTooLong):
			return errTooLong
		case err != nil:
			return err
		case kind != message:
			return peer.ErrFrame
		}
		channel, rest, err := peer.Part(payload)
		if err != nil {
			return err
		}
		text, _, err := peer.Part(rest)
		if err != nil {
			return err
		}
		if int64(max(len(channel), len(text))) > most {
			return errTooLong
		}
		b.host.Deliver(channel, text, c.Purpose() == peer.BroadcastShard)
	}
}
