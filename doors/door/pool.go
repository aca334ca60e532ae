package door

import (
	"context"
	"sync"

	"github.com/atomredis/atomredis/resp"
)

// Pool has several clients for one peer with concurrent requests. Any goroutine may call its methods.
type Pool struct {
	first *Client // its end ends all clients
	most  int

	mu   sync.Mutex // protects what follows
	idle []*Client
	made int // number of clients, including first
}

// NewPool returns a pool of up to most clients: c and forks of it. Call Auth, SetName and Select before. All clients
// end with c; from now on the caller may use c only for Done and Close.
func NewPool(c *Client, most int) *Pool {
	return &Pool{first: c, most: most, idle: []*Client{c}, made: 1}
}

// Get returns a client for exclusive use until Put. The error is ErrTooManyClients if all are in use.
func (p *Pool) Get() (*Client, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.idle); n > 0 {
		c := p.idle[n-1]
		p.idle = p.idle[:n-1]
		return c, nil
	}
	if p.made >= p.most {
		return nil, ErrTooManyClients
	}
	s, err := p.first.s.Fork()
	if err != nil {
		return nil, err
	}
	p.made++
	return &Client{s}, nil
}

// Put gives a client back. If it was killed, all clients end.
func (p *Pool) Put(c *Client) {
	select {
	case <-c.Done():
		p.first.Close()
	default:
		p.mu.Lock()
		p.idle = append(p.idle, c)
		p.mu.Unlock()
	}
}

// Drop ends a client instead of giving it back. The others go on.
func (p *Pool) Drop(c *Client) {
	c.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.made--
}

// Permitted is Client.Permitted with one of the clients.
func (p *Pool) Permitted(args ...any) error {
	c, err := p.Get()
	if err != nil {
		return err
	}
	defer p.Put(c)
	return c.Permitted(args...)
}

// Do is Client.Do with one of the clients.
func (p *Pool) Do(ctx context.Context, args ...any) (resp.Reply, error) {
	c, err := p.Get()
	if err != nil {
		return resp.Reply{}, err
	}
	defer p.Put(c)
	return c.Do(ctx, args...)
}
