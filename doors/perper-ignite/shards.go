package perperignite

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/atomredis/atomredis/doors/door"
	"github.com/atomredis/atomredis/internal/protocols/perper/binary"
	"github.com/atomredis/atomredis/internal/protocols/perper/keys"
	"github.com/atomredis/atomredis/resp"
)

// In a cluster of several shards the keys of a cache are in one slot, and the list of caches in another, so that no command
// changes both. A cache exists if its own keys say so. The door creates and destroys the cache first, and brings the list into
// line afterwards. Any further request to create the cache does that too, so it repairs the list after a crash between the two.

// errCacheID is the error for a cache whose id another cache has.
const errCacheID resp.Error = "CACHEID another cache has the same id"

// sharded reports whether the server is one of several shards.
func (d *igniteDoor) sharded() bool { return d.Host.Topology().Shards != 0 }

// createCache creates a cache with options of PERPER.CREATE.
func (r *request) createCache(name string, options ...any) error {
	d := r.p.door
	if !d.sharded() {
		_, err := r.run(append([]any{"PERPER.CREATE", name}, options...)...)
		return err
	}
	if err := r.end(); err != nil {
		return err
	}
	id, ctx := binary.Hash(name), r.p.conn.Context()
	reply, err := r.p.do("PERPER.NAME", id)
	if err != nil {
		return err
	}
	if known, err := reply.Text(); err == nil && known != name {
		return errCacheID
	}
	_, err = r.p.do(append([]any{"PERPER.CREATE", name, "UNLISTED"}, options...)...)
	if err == nil || errors.Is(err, errCacheExists) {
		err = errors.Join(err, d.list(ctx, id, name))
	}
	return err
}

// errCacheExists is the error for a cache that exists already.
const errCacheExists resp.Error = "CACHEEXISTS the cache exists already"

// destroyCache destroys the cache of the request.
func (r *request) destroyCache() error {
	d := r.p.door
	if !d.sharded() {
		_, err := r.onCache("PERPER.DESTROY")
		return err
	}
	if _, err := r.onCache("PERPER.DESTROY", "UNLISTED"); err != nil {
		return err
	}
	known, _ := d.caches.Load(r.cache)
	name, _ := known.(string)
	ctx := r.p.conn.Context()
	if _, err := d.own.do(ctx, d.Host, "HDEL", keys.Caches, strconv.Itoa(int(r.cache))); err != nil {
		return err
	}
	// Another client may have created the cache again before its entry was removed.
	reply, err := d.own.do(ctx, d.Host, "EXISTS", keys.Of(name, keys.Config))
	if err != nil {
		return err
	}
	if n, err := reply.Int(); err != nil || n == 0 {
		return err
	}
	return d.list(ctx, r.cache, name)
}

// list enters a cache that exists into the list of caches.
func (d *igniteDoor) list(ctx context.Context, id int32, name string) error {
	_, err := d.own.do(ctx, d.Host, "HSETNX", keys.Caches, strconv.Itoa(int(id)), name)
	return err
}

// ownClient is the client of the door itself. The zero value has no session.
type ownClient struct {
	mu     sync.Mutex   // protects client
	client *door.Client // nil before the first use, and after a failure
}

// ownTimeout is how long a command of the door itself may take.
const ownTimeout = 5 * time.Second

// do executes a command, and returns when everything that its reply reports is durable.
func (o *ownClient) do(ctx context.Context, h door.Host, args ...any) (resp.Reply, error) {
	ctx, cancel := context.WithTimeout(ctx, ownTimeout)
	defer cancel()
	reply, position, err := o.doAhead(ctx, h, args...)
	if position == 0 || err != nil && !errors.As(err, new(resp.Error)) {
		return reply, err
	}
	o.mu.Lock()
	c := o.client
	o.mu.Unlock()
	if c == nil {
		return reply, door.ErrClosed
	}
	if _, failed := c.Settle(position); failed != nil {
		return reply, failed
	}
	return reply, err
}

// doAhead is do without the wait; see Client.DoAhead.
func (o *ownClient) doAhead(ctx context.Context, h door.Host, args ...any) (reply resp.Reply, position uint64, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.client == nil {
		c, err := h.OwnClient()
		if err != nil {
			return reply, 0, err
		}
		o.client = &c
	}
	reply, position, err = o.client.DoAhead(ctx, args...)
	if err != nil && !errors.As(err, new(resp.Error)) {
		o.client.Close() // the leader may have been lost: the next command gets another client
		o.client = nil
	}
	return reply, position, err
}

// close ends the client.
func (o *ownClient) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.client != nil {
		o.client.Close()
		o.client = nil
	}
}
