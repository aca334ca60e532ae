package peers

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"time"
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

// receiver is the address of a server, and the question before the messages.
type receiver struct{ addr, ask string }

// link is the connection to a receiver.
type link struct {
	receiver
	wake  chan struct{}
	queue []byte // protected by Broadcast.mu
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
func (b *Broadcast) Send(channel, message []byte, shard bool) {
	addrs := b.host.Receivers(shard)
	if len(addrs) == 0 {
		return
	}
	ask := AskPublish
	if shard {
		ask = AskPublishShard
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, addr := range addrs {
		to := receiver{addr, ask}
		l := b.links[to]
		if l == nil && !b.closed {
			l = &link{receiver: to, wake: make(chan struct{}, 1)}
			b.links[to] = l
			b.running.Go(func() { b.run(l) })
		}
		if l == nil || len(l.queue) > maxQueue {
			continue
		}
		for _, part := range [][]byte{channel, message} {
			l.queue = append(binary.AppendUvarint(l.queue, uint64(len(part))), part...)
		}
		select {
		case l.wake <- struct{}{}:
		default:
		}
	}
}

// run sends messages to a receiver until there has been none for idleTimeout.
func (b *Broadcast) run(l *link) {
	var conn net.Conn
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
		conn.SetWriteDeadline(time.Now().Add(Timeout))
		if _, err := conn.Write(messages); err != nil {
			conn.Close()
			conn = nil
		}
	}
}

// dial connects to a receiver, nil if it cannot be reached.
func (b *Broadcast) dial(to receiver) net.Conn {
	conn, err := Tell(b.host, to.addr, to.ask)
	if err != nil {
		return nil
	}
	// Nothing comes back: the read ends when the receiver closes, so that the next write fails and not the one after it.
	b.running.Go(func() {
		_, _ = conn.Read(make([]byte, 1))
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

// Receive delivers the messages that another server sends behind AskPublish or AskPublishShard. rest is what was read of
// the connection already. It returns when the connection ends.
func (b *Broadcast) Receive(c net.Conn, rest io.Reader, shard bool) error {
	in := bufio.NewReader(io.MultiReader(rest, c))
	if _, err := in.Discard(1); err != nil { // the end of the question
		return err
	}
	for {
		c.SetDeadline(time.Now().Add(2 * idleTimeout))
		channel, err := b.readPart(in)
		if err != nil {
			return err
		}
		message, err := b.readPart(in)
		if err != nil {
			return err
		}
		b.host.Deliver(channel, message, shard)
	}
}

// readPart reads a channel or a message. It takes memory only for bytes that have arrived.
func (b *Broadcast) readPart(in *bufio.Reader) ([]byte, error) {
	n, err := binary.ReadUvarint(in)
	switch {
	case err != nil:
		return nil, err
	case n > uint64(b.host.MaxMessage()):
		return nil, errTooLong
	}
	part, err := io.ReadAll(io.LimitReader(in, int64(n)))
	if err == nil && len(part) < int(n) {
		err = io.ErrUnexpectedEOF
	}
	return part, err
}
