package console

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/atomredis/atomredis/doors/door"
)

const (
	period     = time.Second      // between two samples of a feed
	ease       = 20               // a feed pauses for ease times the duration of its sample
	sampleTime = 10 * time.Second // limit of a sample
	sendTime   = 10 * time.Second // limit for a peer to read an event
	backlog    = 16               // unread samples, beyond which a peer is disconnected
)

// sample returns the JSON of a sample for a viewer with these parameters.
type sample func(q url.Values) []byte

// sampler takes a sample. One goroutine calls it, so it may keep state between calls.
type sampler func(ctx context.Context, c *door.Client) (sample, error)

// feedKey identifies a feed: viewers share it if they are the same user.
type feedKey struct {
	user, topic string
	db          int
}

// hub has the feeds with viewers. All viewers of a feed share each sample, which is taken with the client of one of
// them.
type hub struct {
	mu    sync.Mutex // protects what follows, and the feeds
	feeds map[feedKey]*feed
}

type feed struct {
	viewers map[*viewer]bool
	last    *event
	stop    context.CancelFunc
}

// viewer is an open page.
type viewer struct {
	session *session
	events  chan event
	drop    context.CancelCauseFunc
}

// event is a sample of a topic, or the error of taking it.
type event struct {
	topic  string
	sample sample
	err    error
}

var errSlow = errors.New("the page does not read what it has asked for")

// events sends samples of the requested topics while the page is open.
func (c *Console) events(w http.ResponseWriter, r *http.Request, s *session) error {
	q := r.URL.Query()
	db := 0
	if text := q.Get("db"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			return errRequest
		}
		db = n
	}
	names := q["topic"]
	if len(names) > len(topics) {
		return errTooMuch
	}
	for _, name := range names {
		if topics[name] == nil {
			return errRequest
		}
	}
	ctx, drop := context.WithCancelCause(r.Context())
	defer drop(nil)
	v := &viewer{s, make(chan event, backlog), drop}
	c.sessions.open(s, 1)
	defer c.sessions.open(s, -1)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	to := http.NewResponseController(w)
	for _, name := range names {
		key := feedKey{s.user, name, db}
		c.join(key, v)
		defer c.leave(key, v)
	}
	for {
		if to.SetWriteDeadline(time.Now().Add(sendTime)) != nil || to.Flush() != nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-s.client.Done():
			fmt.Fprint(w, "event: end\ndata: {}\n\n") // the user has logged out or was killed
			return nil
		case e := <-v.events:
			// The feed may have paused for longer than the last deadline.
			if to.SetWriteDeadline(time.Now().Add(sendTime)) != nil {
				return nil
			}
			var data []byte
			if e.err != nil {
				data = appendError(nil, e.err.Error())
			} else {
				data = e.sample(q)
			}
			if _, err := fmt.Fprintf(w, "event: %s\ndata: %s\n\n", e.topic, data); err != nil {
				return nil
			}
		}
	}
}

// join adds a viewer to a feed, and starts the feed for the first one.
func (c *Console) join(key feedKey, v *viewer) {
	c.hub.mu.Lock()
	defer c.hub.mu.Unlock()
	f := c.hub.feeds[key]
	if f == nil {
		ctx, stop := context.WithCancel(c.ending)
		f = &feed{viewers: map[*viewer]bool{}, stop: stop}
		c.hub.feeds[key] = f
		take := topics[key.topic]()
		c.wg.Go(func() { c.hub.run(ctx, key, f, take) })
	}
	f.viewers[v] = true
	if f.last != nil {
		v.tell(*f.last)
	}
}

// leave removes a viewer from a feed, and ends the feed with the last one.
func (c *Console) leave(key feedKey, v *viewer) {
	c.hub.mu.Lock()
	defer c.hub.mu.Unlock()
	f := c.hub.feeds[key]
	if delete(f.viewers, v); len(f.viewers) == 0 {
		delete(c.hub.feeds, key)
		f.stop()
	}
}

// tell passes an event to a viewer, or drops a viewer that does not read.
func (v *viewer) tell(e event) {
	select {
	case v.events <- e:
	default:
		v.drop(errSlow)
	}
}

// run takes samples until ctx ends.
func (h *hub) run(ctx context.Context, key feedKey, f *feed, take sampler) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		began := time.Now()
		e := event{topic: key.topic}
		e.sample, e.err = h.take(ctx, key, f, take)
		h.mu.Lock()
		f.last = &e
		for v := range f.viewers {
			v.tell(e)
		}
		h.mu.Unlock()
		timer.Reset(max(period, ease*time.Since(began)) - time.Since(began))
	}
}

// take takes a sample with a client of one of the viewers.
func (h *hub) take(ctx context.Context, key feedKey, f *feed, take sampler) (sm sample, err error) {
	h.mu.Lock()
	var s *session
	for v := range f.viewers {
		s = v.session
		break
	}
	h.mu.Unlock()
	if s == nil {
		return nil, errNoSession // the last viewer has just left
	}
	ctx, cancel := context.WithTimeout(ctx, sampleTime)
	defer cancel()
	err = s.with(ctx, key.db, func(c *door.Client) error {
		c.SetUnobserved(true) // samples must not appear in what they show
		defer c.SetUnobserved(false)
		sm, err = take(ctx, c)
		return err
	})
	return sm, err
}
