package listeners

import (
	"net"
	"sync"

	"github.com/atomredis/atomredis/internal/config"
)

// OpenCombined opens one listener for all endpoints. The caller accepts from it and closes it.
func (ls *Listeners) OpenCombined(set *config.Settings, endpoints []config.Endpoint) (net.Listener, error) {
	opened, err := ls.open(set, endpoints)
	switch {
	case err != nil:
		return nil, err
	case len(opened) == 0:
		return nil, errBind
	case len(opened) == 1:
		return opened[0].Listener, nil
	}
	return combine(opened), nil
}

// combined accepts the connections of several listeners.
type combined struct {
	all      []*listener
	accepted chan accepted
	closing  sync.Once
	closed   chan struct{}
	running  sync.WaitGroup
}

// accepted is a result of Accept of one listener.
type accepted struct {
	conn net.Conn
	err  error
}

// combine returns a listener that accepts the connections of all listeners in list, and closes them.
func combine(list []*listener) *combined {
	l := &combined{all: list, accepted: make(chan accepted), closed: make(chan struct{})}
	for _, one := range list {
		l.running.Go(func() { l.accept(one) })
	}
	return l
}

// accept passes on the connections of a listener.
func (l *combined) accept(from net.Listener) {
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
func (l *combined) Accept() (net.Conn, error) {
	select {
	case a := <-l.accepted:
		return a.conn, a.err
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *combined) Close() error {
	l.closing.Do(func() {
		close(l.closed)
		closeAll(l.all)
		l.running.Wait()
	})
	return nil
}

// Addr implements net.Listener: it returns the address of the first listener.
func (l *combined) Addr() net.Addr { return l.all[0].Addr() }
