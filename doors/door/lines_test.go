package door_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/atomredis/atomredis/doors/door"
	"github.com/atomredis/atomredis/resp"
)

// The door of these tests. A line is a command, its words separated by spaces; the reply is a line of text. "AUTH user
// password" authenticates, "NAME name" names the client, "EVENTS pattern" shows messages published from then on, and "MONITOR" shows
// commands.

func init() {
	door.Register(door.Kind{
		Name: "lines", Port: 7777, TLS: true, Events: "Kg$",
		New:        func(h door.Host) (door.Door, error) { return newLines(h) },
		Directives: []door.Directive{{Name: "lines-greeting", Default: "hello", Check: checkGreeting}},
	})
	door.Register(door.Kind{
		Name: "guarded-lines", Authenticates: true,
		New: func(h door.Host) (door.Door, error) { return newLines(h) },
	})
}

func checkGreeting(value string) error {
	if value == "" {
		return errors.New("a greeting has words")
	}
	return nil
}

// lines is the door.
type lines struct {
	door.Peers
	stop  chan struct{} // a value makes Serve return
	count atomic.Int64  // lines that were read

	mu     sync.Mutex // protects what follows
	own    *door.Client
	closed bool
}

func newLines(h door.Host) (*lines, error) {
	if h.Setting("lines-greeting") == "impossible" {
		return nil, errors.New("nobody can be greeted so")
	}
	d := &lines{stop: make(chan struct{}, 1)}
	d.Peers = door.Peers{Host: h, Peer: d.peer, Refuse: func(conn net.Conn, why error) { fmt.Fprintf(conn, "-%v\n", why) }}
	return d, nil
}

// Serve implements door.Door.
func (d *lines) Serve(l net.Listener) error {
	if err := d.begin(); err != nil {
		return err
	}
	ended := make(chan error)
	go func() { ended <- d.Peers.Serve(l) }()
	select {
	case err := <-ended:
		return err
	case <-d.stop:
		l.Close()
		<-ended
		return errors.New("a peer has stopped the door")
	}
}

// begin makes the door's own client, unless the door is closed.
func (d *lines) begin() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil
	}
	own, err := d.Host.OwnClient()
	d.own = &own
	return err
}

// Close implements door.Door.
func (d *lines) Close() error {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	err := d.Peers.Close()
	if d.own == nil {
		return err // it was never served
	}
	defer d.own.Close()
	_, err = d.own.Do(context.Background(), "INCR", "doors closed")
	return err
}

// Info implements door.Door.
func (d *lines) Info(add func(field, value string)) {
	add("lines_read", strconv.FormatInt(d.count.Load(), 10))
}

// peer serves a peer: it reads lines, which another goroutine executes.
func (d *lines) peer(c *door.Conn) {
	fmt.Fprintln(c, d.Host.Setting("lines-greeting"))
	next := make(chan string)
	defer close(next)
	c.Go(func() {
		for line := range next {
			if _, err := fmt.Fprintln(c, d.answer(c, strings.Fields(line))); err != nil {
				c.Close()
			}
		}
	})
	in := bufio.NewScanner(c) // lines of up to 64 KiB
	for in.Scan() {
		c.Requested()
		d.count.Add(1)
		select {
		case next <- in.Text():
		case <-c.Context().Done():
			return
		}
	}
}

// answer executes one line and returns what to send.
func (d *lines) answer(c *door.Conn, words []string) string {
	ctx := c.Context()
	var r resp.Reply
	var err error
	switch {
	case len(words) == 0:
		return ""
	case words[0] == "STOP":
		d.stop <- struct{}{}
	case words[0] == "PANIC":
		panic("a bug")
	case words[0] == "NAME" && len(words) == 2:
		err = c.Client.SetName(ctx, words[1])
	case words[0] == "AUTH" && len(words) == 3:
		err = c.Client.Auth(ctx, words[1], words[2])
	case words[0] == "EVENTS" && len(words) == 2:
		return events(ctx, c, words[1])
	case words[0] == "MONITOR":
		return commands(ctx, c)
	default:
		r, err = c.Client.Do(ctx, words)
		if err == nil {
			return text(r)
		}
	}
	if err != nil {
		return "-" + err.Error()
	}
	return "OK"
}

// events sends messages to the peer.
func events(ctx context.Context, c *door.Conn, pattern string) string {
	s, err := c.Client.PSubscribe(ctx, pattern)
	if err != nil {
		return "-" + err.Error()
	}
	c.Go(func() {
		defer s.Close()
		for {
			m, err := s.Next(ctx)
			if err != nil {
				return
			}
			fmt.Fprintln(c, m.Channel, m.Payload)
		}
	})
	return "OK"
}

// commands sends the server's commands to the peer.
func commands(ctx context.Context, c *door.Conn) string {
	m, err := c.Client.Monitor(ctx)
	if err != nil {
		return "-" + err.Error()
	}
	c.Go(func() {
		defer m.Close()
		for {
			line, err := m.Next(ctx)
			if err != nil {
				return
			}
			fmt.Fprintln(c, line)
		}
	})
	return "OK"
}
