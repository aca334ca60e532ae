package skein

import (
	"context"
	"errors"
	"io"
	"sort"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/atomredis/atomredis/doors/door"
	"github.com/atomredis/atomredis/doors/internal/rpc"
	"github.com/atomredis/atomredis/internal/protocols/skein/event"
	"github.com/atomredis/atomredis/internal/protocols/skein/keys"
	pb "github.com/atomredis/atomredis/internal/wire/skein"
)

// A stream of watches has one subscription to its application's events, which delivers them in order. Three goroutines
// serve it: one receives requests, one receives events, and one handles both and sends. A peer that does not read
// blocks only the last one. Events then accumulate in the subscription, which ends when they are too many, and ends the
// stream.
//
// Revisions decide which events a watch sends. A watch begins with the events after its creation. Before a watch is
// canceled, or a stream ends because the peer has closed its side, all events up to then are sent: a peer that has seen
// a change gets it from all watches that it cancels afterwards.

// Limits of a stream.
const (
	maxWatches = 1 << 16
	maxBounds  = 16 << 20 // bytes of the bounds of all its watches
)

// watches has the watches of a stream. One goroutine serves them.
type watches struct {
	door   *skein
	peer   *rpc.Peer
	stream pb.AppMaster_WatchServer
	app    string
	events chan event.Event
	seen   int64 // the last received revision, or that before the stream
	list   []*watch
	bounds int // bytes of the bounds of all watches
}

// watch is a watch of a stream.
type watch struct {
	id         int32
	start, end string
	kind       pb.WatchCreateRequest_EventType
	after      int64 // the revision at its creation
}

// Watch implements pb.AppMasterServer.
func (d *skein) Watch(stream pb.AppMaster_WatchServer) error {
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	w := &watches{door: d, peer: rpc.PeerOf(ctx), stream: stream, app: d.app(), events: make(chan event.Event)}
	sub, err := w.subscribe(ctx)
	if err != nil {
		return err
	}
	defer sub.Close()
	if w.seen, err = w.revision(ctx); err != nil {
		return err
	}
	d.streams.Add(1)
	defer d.streams.Add(-1)
	requests, ended := make(chan *pb.WatchRequest), make(chan error, 3)
	w.peer.Go(func() {
		if err := receive(ctx, stream, requests); err != nil {
			ended <- err
		}
	})
	w.peer.Go(func() { ended <- listen(ctx, sub, w.events) })
	w.peer.Go(func() {
		defer func() { d.watches.Add(-int64(len(w.list))) }()
		ended <- w.serve(ctx, requests)
	})
	select {
	case err := <-ended:
		return err
	case <-d.Ending():
		return rpc.ErrEnding
	}
}

// subscribe subscribes to the events of the application.
func (w *watches) subscribe(ctx context.Context) (*door.Subscription, error) {
	c, err := w.peer.Get()
	if err != nil {
		return nil, err
	}
	defer w.peer.Put(c)
	return c.Subscribe(ctx, keys.Channel(w.app, 0))
}

// revision returns the number of events so far. The events since the subscription are on their way.
func (w *watches) revision(ctx context.Context) (int64, error) {
	reply, err := w.peer.Do(ctx, "SKEIN.REVISION", w.app)
	if err != nil {
		return 0, err
	}
	return reply.Int()
}

// receive receives requests until the peer closes its side.
func receive(ctx context.Context, stream pb.AppMaster_WatchServer, requests chan<- *pb.WatchRequest) error {
	defer close(requests)
	for {
		r, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		select {
		case requests <- r:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// listen receives events while the subscription lasts. The error is door.ErrSlow if they were not read in time.
func listen(ctx context.Context, sub *door.Subscription, events chan<- event.Event) error {
	for {
		m, err := sub.Next(ctx)
		if err != nil {
			return err
		}
		e, err := event.Decode([]byte(m.Payload))
		if err != nil {
			continue // not an event: another client has published it
		}
		select {
		case events <- e:
		case <-ctx.Done():
			return ctx.Err()
		case <-sub.Done():
			for err == nil {
				_, err = sub.Next(ctx)
			}
			return err
		}
	}
}

// serve serves requests and sends events until the requests end.
func (w *watches) serve(ctx context.Context, requests <-chan *pb.WatchRequest) error {
	for {
		var err error
		select {
		case r, ok := <-requests:
			if !ok {
				return w.catchUp(ctx)
			}
			switch r := r.Request.(type) {
			case *pb.WatchRequest_Create:
				err = w.create(ctx, r.Create)
			case *pb.WatchRequest_Cancel:
				err = w.cancel(ctx, r.Cancel.GetWatchId())
			}
		case e := <-w.events:
			err = w.tell(&e)
		case <-ctx.Done():
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
	}
}

func (w *watches) create(ctx context.Context, r *pb.WatchCreateRequest) error {
	if _, ok := pb.WatchCreateRequest_EventType_name[int32(r.GetEventType())]; !ok {
		return invalid("Unknown event type %d", r.GetEventType())
	}
	w.bounds += len(r.GetStart()) + len(r.GetEnd())
	if len(w.list) == maxWatches || w.bounds > maxBounds {
		return status.Error(codes.ResourceExhausted, "too many watches")
	}
	revision, err := w.revision(ctx)
	if err != nil {
		return err
	}
	one := &watch{w.door.nextWatch.Add(1) - 1, r.GetStart(), r.GetEnd(), r.GetEventType(), revision}
	w.list = append(w.list, one)
	w.door.watches.Add(1)
	return w.stream.Send(&pb.WatchResponse{Type: pb.WatchResponse_CREATE, WatchId: one.id})
}

func (w *watches) cancel(ctx context.Context, id int32) error {
	if i := sort.Search(len(w.list), func(i int) bool { return w.list[i].id >= id }); i < len(w.list) && w.list[i].id == id {
		if err := w.catchUp(ctx); err != nil {
			return err
		}
		w.bounds -= len(w.list[i].start) + len(w.list[i].end)
		w.list = append(w.list[:i], w.list[i+1:]...)
		w.door.watches.Add(-1)
	}
	return w.stream.Send(&pb.WatchResponse{Type: pb.WatchResponse_CANCEL, WatchId: id})
}

// catchUp sends all events up to now.
func (w *watches) catchUp(ctx context.Context) error {
	revision, err := w.revision(ctx)
	for err == nil && w.seen < revision {
		select {
		case e := <-w.events:
			err = w.tell(&e)
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	return err
}

// tell sends an event to the watches that it concerns.
func (w *watches) tell(e *event.Event) error {
	w.seen = max(w.seen, e.Revision)
	switch e.Type {
	case event.Put:
		put := []*pb.KeyValue{{Key: text(string(e.Keys[0])), Value: e.Value, Owner: instance(string(e.Owner))}}
		for _, one := range w.list {
			if one.after < e.Revision && one.kind != pb.WatchCreateRequest_DELETE && keys.Contains(one.start, one.end, e.Keys[0]) {
				if err := w.send(one, pb.WatchResponse_PUT, put); err != nil {
					return err
				}
			}
		}
	case event.Delete:
		deleted := make([]*pb.KeyValue, len(e.Keys))
		for i, key := range e.Keys {
			deleted[i] = &pb.KeyValue{Key: text(string(key))}
		}
		for _, one := range w.list {
			if one.after >= e.Revision || one.kind == pb.WatchCreateRequest_PUT {
				continue
			}
			if from, to := one.within(e.Keys); from < to {
				if err := w.send(one, pb.WatchResponse_DELETE, deleted[from:to]); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// within returns the part of an ordered list of keys that is in the watch's range.
func (one *watch) within(list [][]byte) (from, to int) {
	if !keys.FromFirst(one.start) {
		from = sort.Search(len(list), func(i int) bool { return keys.Compare(list[i], one.start) >= 0 })
	}
	to = len(list)
	if one.end != "" {
		to = sort.Search(len(list), func(i int) bool { return keys.Compare(list[i], one.end) >= 0 })
	}
	return from, to
}

func (w *watches) send(one *watch, what pb.WatchResponse_Type, list []*pb.KeyValue) error {
	return w.stream.Send(&pb.WatchResponse{Type: what, WatchId: one.id, Event: list})
}
