package perperignite

import (
	"context"
	le "encoding/binary"
	"errors"
	"time"

	"github.com/atomredis/atomredis/doors/door"
	"github.com/atomredis/atomredis/internal/protocols/perper/binary"
	"github.com/atomredis/atomredis/internal/protocols/perper/event"
	"github.com/atomredis/atomredis/internal/protocols/perper/keys"
	"github.com/atomredis/atomredis/internal/wire/ignite"
)

// watch is a continuous query: it sends the changes of a cache to the peer until the peer closes it.
type watch struct {
	p       *peer
	id      int64
	sub     *door.Subscription
	page    int           // changes per message
	most    time.Duration // after this time fewer changes are sent; 0 means never
	expired bool          // whether the peer wants expired entries
	end     context.CancelFunc
	ended   chan struct{} // closed when the query has ended
}

// opNotification is the code of messages with changes.
const opNotification = 2007

// The kinds of changes on the wire.
var kinds = map[event.Kind]byte{event.Created: 0, event.Updated: 1, event.Removed: 2, event.Expired: 3}

// watch opens a continuous query.
func (r *request) watch() error {
	w := &watch{p: r.p, page: pageOf(max(r.Int32(), 1)), ended: make(chan struct{})}
	if ms := r.Int64(); ms > 0 {
		w.most = time.Duration(min(ms, int64(time.Hour/time.Millisecond))) * time.Millisecond
	}
	w.expired = r.Bool()
	filter := r.Object()
	if r.Err() == nil && binary.Code(filter[0]) != binary.Null {
		return errFilter("Continuous queries", filter)
	}
	switch p := r.p; {
	case r.end() != nil:
		return r.end()
	case !p.wire.Hello().Version.AtLeast(4):
		return &failure{ignite.StatusFailed, "Continuous queries need a client of version 1.4 or later"}
	case p.full():
		return p.errMany()
	}
	return w.open(r)
}

// open subscribes to the changes, and answers with the id of the query.
func (w *watch) open(r *request) error {
	p := w.p
	if _, err := r.onCache("PERPER.LEN"); err != nil {
		return err
	}
	known, _ := p.door.caches.Load(r.cache)
	name, _ := known.(string)
	ctx, cancel := context.WithCancel(p.conn.Context())
	var err error
	if w.sub, err = p.conn.Client.Subscribe(ctx, keys.Events(name)); err == nil {
		_, err = r.onCache("PERPER.LEN") // the cache may have been destroyed before the subscription
	}
	if err != nil {
		cancel()
		if w.sub != nil {
			w.sub.Close()
		}
		return err
	}
	p.lastCursor++
	w.id, w.end = p.lastCursor, cancel
	p.watches[w.id] = w
	p.door.watches.Add(1)
	r.appendInt64(w.id)
	owner, owned := p.door.owner(name)
	p.then = func() {
		p.conn.Go(func() {
			defer close(w.ended)
			w.run(ctx)
		})
		if t := p.door.Host.Topology(); owned && (len(t.Members) > 1 || t.Shards != 0) {
			p.conn.Go(func() { w.follow(ctx, name, owner) })
		}
	}
	return nil
}

// ownerAge is how long a query may go on at a server that does not change its cache any more.
const ownerAge = time.Second

// follow disconnects the peer when another server executes the commands on the cache: the changes are published there. A client
// that connects again opens its queries again.
func (w *watch) follow(ctx context.Context, cache string, owner nodeID) {
	tick := time.NewTicker(ownerAge)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if now, known := w.p.door.owner(cache); known && now != owner {
			w.p.conn.Close()
			return
		}
	}
}

// unwatch closes a continuous query. After it no changes are sent.
func (p *peer) unwatch(id int64, w *watch) {
	delete(p.watches, id)
	p.door.watches.Add(-1)
	w.end()
	<-w.ended
}

// run sends changes.
func (w *watch) run(ctx context.Context) {
	defer w.sub.Close()
	var page []byte
	n := 0
	first := time.Time{} // when the oldest change of the page came
	for {
		e, err := w.next(ctx, first)
		destroyed := err == nil && e.Kind == event.Destroyed
		switch {
		case ctx.Err() != nil:
			return
		case err == nil && !destroyed:
			if n++; n == 1 {
				first = time.Now()
			}
			page = appendChange(page, &e)
			if n < w.page && len(page) < maxPageBytes {
				continue
			}
		case err != nil && !errors.Is(err, context.DeadlineExceeded):
			if errors.Is(err, door.ErrSlow) {
				w.p.door.Host.Log().Warn("a thin client of Ignite that does not read is disconnected",
					"peer", w.p.conn.RemoteAddr().String())
			}
			w.p.conn.Close()
			return
		}
		if n > 0 && w.send(n, page) != nil || destroyed {
			return
		}
		page, n, first = page[:0], 0, time.Time{}
	}
}

// next waits for a change that the peer wants. The error is context.DeadlineExceeded when the page that began at begun
// must be sent.
func (w *watch) next(ctx context.Context, begun time.Time) (e event.Event, err error) {
	if w.most > 0 && !begun.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, begun.Add(w.most))
		defer cancel()
	}
	for {
		m, err := w.sub.Next(ctx)
		if err != nil {
			return e, err
		}
		e, err = event.Parse([]byte(m.Payload))
		if err == nil && (e.Kind != event.Expired || w.expired) { // other clients may publish anything
			return e, nil
		}
	}
}

// appendChange appends a change: the key, the old value, and the value. A removed entry has its old value as the value.
func appendChange(dst []byte, e *event.Event) []byte {
	value := e.Value
	if len(value) == 0 {
		value = e.Old
	}
	for _, object := range [][]byte{e.Key, e.Old, value} {
		if len(object) == 0 {
			dst = binary.AppendNull(dst)
		} else {
			dst = binary.AppendWrapped(dst, object)
		}
	}
	return append(dst, kinds[e.Kind])
}

// send sends n changes.
func (w *watch) send(n int, changes []byte) error {
	body := append(le.LittleEndian.AppendUint32(nil, uint32(n)), changes...)
	err := w.p.outbox.add(0, func(dst []byte) []byte {
		return ignite.AppendNotification(dst, w.id, opNotification, body)
	})
	if err == nil {
		err = w.p.outbox.flush()
	}
	return err
}
