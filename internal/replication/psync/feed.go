package psync

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/replication"
	"github.com/atomredis/atomredis/internal/transfer"
)

// Client is the connection of a follower. Any goroutine may call its methods, under any lock; they do not wait.
type Client interface {
	// Send queues a copy of b.
	Send(b []byte)
	// Close closes the connection at once.
	Close()
	ID() int64
	Addr() string
}

// Follower is the state of a client as a follower; the zero value is an ordinary client. It belongs to the client's
// goroutine. Any goroutine may call Following and, if that is true, Backlog.
type Follower struct {
	Capabilities replication.Capabilities

	following atomic.Bool // since SYNC or PSYNC
	feed      *feed       // nil before that

	// Guard.Changes at the last call of Wrote, and its result.
	changes int
	wrote   replication.Written
	awaits  bool // the client has called WAIT or WAITAOF
}

// Pristine reports whether the client has sent neither SYNC, PSYNC nor an option of REPLCONF.
func (of *Follower) Pristine() bool { return !of.Following() && of.Capabilities.Pristine() }

// Following reports whether the client is a follower.
func (of *Follower) Following() bool { return of.following.Load() }

// Backlog returns how many bytes wait for the follower outside of its connection.
func (of *Follower) Backlog() int64 { return of.feed.backlog() }

// Took notes that the connection has sent n bytes.
func (of *Follower) Took(n int) {
	if of.feed != nil {
		of.feed.took(n)
	}
}

// Acknowledge records the offset up to which the follower has executed the stream, and the one that is on its disk.
func (of *Follower) Acknowledge(offset, synced int64) {
	if of.feed != nil {
		of.feed.acknowledge(offset, synced)
	}
}

// StartFollowing begins a full synchronization of the client. announce sends +FULLRESYNC with the history before it.
func (f *Followers) StartFollowing(of *Follower, client Client, announce bool) {
	of.following.Store(true)
	of.feed = f.newFeed(of, client)
	f.copyTo(of.feed, announce)
}

// GoOn begins a partial synchronization of a client that has a history up to an offset. It returns false if the backlog does
// not have the rest.
func (f *Followers) GoOn(of *Follower, client Client, id string, offset int64) bool {
	d, was := f.newFeed(of, client), of.feed
	of.feed = d // before goOn: the goroutine that sends may call Took at once
	if !f.goOn(d, id, offset) {
		of.feed = was
		f.NoPartial.Add(1)
		return false
	}
	of.following.Store(true)
	return true
}

// Leave forgets a client that is closed, as a follower and as one that waits for followers.
func (f *Followers) Leave(of *Follower) {
	if of.Following() {
		f.unfollow(of.feed)
	}
	f.forgetWaiter(of)
}

// feed sends a follower its full synchronization, and then the stream.
type feed struct {
	f       *Followers
	client  Client
	of      *Follower
	content transfer.Content
	rdbOnly bool
	open    bool // see replication.Capabilities.EOF
	foreign bool // it is a server, and not of this program

	ctx    context.Context // ends with the connection, or when giveUp closes it
	cancel context.CancelFunc
	moved  chan struct{} // the connection has sent something

	queued  atomic.Int64                    // bytes that the connection has queued
	waiting atomic.Int64                    // the length of pending
	source  atomic.Pointer[engine.Snapshot] // of the full synchronization under way

	acked, ackedAt atomic.Int64  // the acknowledged offset, and when it came, in ms since 1970
	synced         atomic.Int64  // the offset on its disk; -1 if unknown
	marked         atomic.Bool   // the mark behind an RDB file of unknown length has been sent
	loaded         chan struct{} // gets a value at the first acknowledgement after that

	// Protected by Followers.mu.
	pending   []byte // of the stream, until what comes before it has been sent
	state     replication.FollowerState
	streaming bool // it receives the stream, since the moment of the snapshot

	db int // the selected database at that moment; used by the goroutine that sends the file
}

func (f *Followers) newFeed(of *Follower, client Client) *feed {
	w := &of.Capabilities
	d := &feed{f: f, client: client, of: of, content: transfer.All, rdbOnly: w.CopyOnly, open: w.EOF,
		foreign: !w.Ours && !w.CopyOnly && w.Port.Load() != 0,
		moved:   make(chan struct{}, 1), loaded: make(chan struct{}, 1)}
	if w.Filtered {
		if d.content = 0; w.Functions {
			d.content = transfer.Functions
		}
	}
	d.synced.Store(-1)
	d.ctx, d.cancel = context.WithCancel(context.Background())
	return d
}

// follow sends a part of the stream, or keeps it until the RDB file has been sent. Followers.mu is locked.
func (d *feed) follow(b []byte) {
	if d.state == replication.FollowerOnline {
		d.client.Send(b)
		return
	}
	d.pending = append(d.pending, b...)
	d.waiting.Store(int64(len(d.pending)))
	set := d.f.config.Get()
	// As in Redis the limit is at least repl-backlog-size.
	if hard := set.Clients.OutputLimits.Replica.Hard; hard != 0 && d.backlog() > max(hard, int64(set.Replication.BacklogSize)) &&
		d.ctx.Err() == nil {
		d.giveUp("it does not read fast enough", nil)
	}
}

// backlog is Follower.Backlog.
func (d *feed) backlog() int64 {
	if d == nil {
		return 0
	}
	n := d.waiting.Load()
	if s := d.source.Load(); s != nil {
		n += s.KeptBytes()
	}
	return n
}

// giveUp closes the connection.
func (d *feed) giveUp(why string, err error) {
	d.cancel()
	args := []any{"client", d.client.ID(), "addr", d.client.Addr(), "reason", why}
	if err != nil {
		args = append(args, "error", err.Error())
	}
	d.f.log.Warn("closing the connection of a replica", args...)
	d.client.Close()
}

// acknowledge is Follower.Acknowledge.
func (d *feed) acknowledge(offset, synced int64) {
	d.acked.Store(offset)
	d.synced.Store(synced)
	d.ackedAt.Store(d.f.ks.Now())
	d.f.Count()
	if d.marked.Load() {
		select {
		case d.loaded <- struct{}{}:
		default:
		}
	}
	d.f.heard()
}

// took is Follower.Took.
func (d *feed) took(n int) {
	if n == 0 {
		return
	}
	d.f.Sent.Add(int64(n))
	d.queued.Add(-int64(n))
	d.signal()
}

func (d *feed) signal() {
	select {
	case d.moved <- struct{}{}:
	default:
	}
}

// feedWindow is how many bytes of an RDB file the connection may queue.
const feedWindow = 1 << 20

var errUnread = errors.New("the follower has not read anything for longer than repl-timeout")

// Write implements io.Writer. It sends b to the follower, and waits while the connection has a full queue.
func (d *feed) Write(b []byte) (int, error) {
	for rest := b; len(rest) > 0; {
		if err := d.await(feedWindow); err != nil {
			return 0, err
		}
		n := min(len(rest), feedWindow)
		d.queued.Add(int64(n))
		d.client.Send(rest[:n])
		rest = rest[n:]
	}
	return len(b), nil
}

// await waits until the connection has queued less than limit bytes.
func (d *feed) await(limit int64) error {
	clock := d.f.ks.Clock()
	for {
		before := d.queued.Load()
		if before < limit || d.ctx.Err() != nil {
			return d.ctx.Err()
		}
		timeout := time.Duration(d.f.config.Get().Replication.Timeout) * time.Second
		late := clock.Now().Add(timeout)
		timer := clock.AfterFunc(timeout, d.signal)
		for d.queued.Load() >= before && d.ctx.Err() == nil && clock.Now().Before(late) {
			select {
			case <-d.moved:
			case <-d.ctx.Done():
			}
		}
		timer.Stop()
		if d.queued.Load() >= before && d.ctx.Err() == nil {
			return errUnread
		}
	}
}

// lag returns the seconds since the last acknowledgement.
func (d *feed) lag() int64 {
	at := d.ackedAt.Load()
	if at == 0 {
		return 0
	}
	return max(d.f.ks.Now()-at, 0) / 1000
}

// unfollow removes a follower.
func (f *Followers) unfollow(d *feed) {
	d.cancel()
	f.mu.Lock()
	f.list = slices.DeleteFunc(f.list, func(other *feed) bool { return other == d })
	d.pending = nil
	d.waiting.Store(0)
	f.alone = f.ks.Now()
	f.mu.Unlock()
	f.Count()
}
