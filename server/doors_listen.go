package server

import (
	"net"
	"sync"
)

// listenerAtAll accepts the connections of several listeners.
type listenerAtAll struct {
	all      []*listener
	accepted chan accepted
	closing  sync.Once
	closed   chan struct{}
	running  sync.WaitGroup
}

// accepted is what Accept of one of them has returned.
type accepted struct {
	conn net.Conn
	err  error
}

// listenAtAll returns a listener that has the connections of all the others, and closes them.
func listenAtAll(list []*listener) *listenerAtAll {
	l := &listenerAtAll{all: list, accepted: make(chan accepted), closed: make(chan struct{})}
	for _, one := range list {
		l.running.Go(func() { l.accept(one) })
	}
	return l
}

// accept passes on what a listener accepts.
func (l *listenerAtAll) accept(from net.Listener) {
	for {
		conn, err := from.Accept()
		select {
		case l.accepted <- accepted{conn, err}: // after an error the caller of Accept waits for a while
		case <-l.closed:
			if conn != nil {
				conn.Close()
			}
			return
		}
	}
}

// Accept implements net.Listener.
func (l *listenerAtAll) Accept() (net.Conn, error) {
	select {
	case a := <-l.accepted:
		return a.conn, a.err
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *listenerAtAll) Close() error {
	l.closing.Do(func() {
		close(l.closed)
		closeAll(l.all)
		l.running.Wait()
	})
	return nil
}

// Addr implements net.Listener: it is that of the first.
func (l *listenerAtAll) Addr() net.Addr { return l.all[0].Addr() }
