package session

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/clients"
	"github.com/atomredis/atomredis/internal/clients/pubsub"
)

// Register has the connected clients.
type Register struct {
	mu     sync.Mutex
	nextID int64
	byID   map[int64]*Session
	count  atomic.Int64
	memory atomic.Int64 // bytes of all clients, as counted by countMemory
	lent   atomic.Int64 // of these, bytes in memory that others own
	peaks  bufferPeaks
}

func (r *Register) add(s *Session) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byID == nil {
		r.byID = map[int64]*Session{}
	}
	r.nextID++
	s.id = r.nextID
	r.byID[s.id] = s
	r.count.Add(1)
}

func (r *Register) remove(s *Session) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.byID, s.id)
	r.count.Add(-1)
	s.uncountMemory()
}

// get returns the client with that number, or nil.
func (r *Register) get(id int64) *Session {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.byID[id]
}

// All returns the clients in order of their numbers.
func (r *Register) All() []*Session {
	r.mu.Lock()
	list := make([]*Session, 0, len(r.byID))
	for _, s := range r.byID {
		list = append(list, s)
	}
	r.mu.Unlock()
	slices.SortFunc(list, func(a, b *Session) int { return cmp.Compare(a.id, b.id) })
	return list
}

// clientInfo is the part of a session that others may read: a copy made after every batch of commands.
type clientInfo struct {
	clients.Info
	lent     int64    // of its memory, bytes that others own
	keyWait  *keyWait // if it is blocked
	forwards bool     // a copy of forwarding.allowed
	listens  bool     // a client with forwarding.always has subscriptions at a leader
}

// Sizes is the memory that clients use in bytes, including unprocessed input and unsent output.
type Sizes struct {
	Normal, Followers int64
	Streamed          int64 // the unsent output of followers
}

// Measure measures the clients.
func (r *Register) Measure(now int64) (n Sizes) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.byID {
		d := s.snapshot()
		r.peaks.note(now, &d)
		size := int64(unsafe.Sizeof(*s)) + int64(d.Input+d.InputFree+max(d.Output, d.Buffer))
		if !d.Follower {
			n.Normal += size
			continue
		}
		backlog := s.modes.follower.Backlog()
		n.Followers += size + backlog
		n.Streamed += int64(d.Output) + backlog
	}
	return n
}

// Len returns how many clients there are.
func (r *Register) Len() int64 { return r.count.Load() }

// Memory returns how many bytes all clients take, as their limit counts them.
func (r *Register) Memory() int64 { return r.memory.Load() }

// Each calls fn with the name of each client, which may be empty, and its waiter, nil if it is not blocked.
func (r *Register) Each(fn func(name string, waits *engine.Waiter)) {
	for _, s := range r.All() {
		d := s.snapshot()
		if d.keyWait == nil {
			fn(d.Name, nil)
		} else {
			fn(d.Name, &d.keyWait.waiter)
		}
	}
}

// Largest returns how many bytes the largest input and the largest output of a client had in the last seconds.
func (r *Register) Largest(now int64) (input, output int64) { return r.peaks.largest(now) }

// peakSeconds is for how long the largest buffer of a client counts.
const peakSeconds = 8

// bufferPeaks are the largest buffers that clients had in the last seconds.
type bufferPeaks struct {
	mu    sync.Mutex
	slots [peakSeconds]struct{ second, input, output int64 }
}

// note is called for each client about once a second.
func (p *bufferPeaks) note(now int64, d *clientInfo) {
	second := now / 1000
	p.mu.Lock()
	defer p.mu.Unlock()
	s := &p.slots[uint64(second)%peakSeconds]
	if s.second != second {
		s.second, s.input, s.output = second, 0, 0
	}
	s.input, s.output = max(s.input, int64(d.Input+d.InputFree)), max(s.output, int64(d.Output))
}

// largest returns how many bytes the largest input and the largest output had.
func (p *bufferPeaks) largest(now int64) (input, output int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.slots {
		if now/1000-s.second < peakSeconds {
			input, output = max(input, s.input), max(output, s.output)
		}
	}
	return input, output
}

// Occupied returns how many clients watch keys, how many have subscribed, and how many wait for keys with a timeout.
func (r *Register) Occupied() (watching, subscribed, timed int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.byID {
		d := s.snapshot()
		if d.Watched > 0 {
			watching++
		}
		if d.Subscriptions() > 0 {
			subscribed++
		}
		if d.Blocked && d.keyWait != nil && d.keyWait.deadline.Load() != 0 {
			timed++
		}
	}
	return watching, subscribed, timed
}

// publish refreshes the copy of the session's state for others.
func (s *Session) publish() {
	s.info.Lock()
	d := &s.infoData
	d.DB, d.Protocol = s.db, s.out.Proto
	d.Name, d.Library, d.LibraryVersion = s.modes.options.Name, s.modes.options.Library, s.modes.options.LibraryVersion
	d.LastCmd, d.LastActive = s.lastCmd, s.now
	d.Channels, d.Patterns, d.ShardChannels = s.modes.subs.Len(pubsub.Channel), s.modes.subs.Len(pubsub.Pattern),
		s.modes.subs.Len(pubsub.ShardChannel)
	d.Multi = -1
	switch {
	case s.tx.active:
		d.Multi = len(s.tx.queue)
	case s.tx.running > 0:
		d.Multi = s.tx.running
	}
	d.Watched = len(s.tx.watches)
	d.Input = max(len(s.in.input), s.pipeline.executing) + s.in.long.Arrived()
	d.InputFree = cap(s.in.input) - len(s.in.input) + s.in.long.Memory() - s.in.long.Arrived()
	d.Output = s.out.Len()
	s.publishBuffer(d)
	d.Blocked, d.Monitor = s.isBlocked(), s.modes.monitor
	if d.keyWait = nil; d.Blocked {
		d.keyWait = s.blocked.keyWait
	}
	d.Tracking, d.Redirect = s.modes.tracking.Flags(), max(s.modes.tracking.Redirection(), 0)
	d.Closing = s.closing
	d.NoEvict, d.NoTouch, d.ReadOnly = s.modes.options.NoEvict, s.guard.NoTouch, s.modes.options.ReadOnly
	d.Capable, d.ImportSource = s.modes.options.Redirect, s.guard.SeesExpired
	d.Follower = s.modes.follower.Following()
	d.Queued = s.tx.bytes
	d.Received, d.Calls = s.in.taken, s.calls
	s.countMemory(d)
	s.info.Unlock()
	if limit := s.shared.Limits.Clients.Load(); limit != 0 && s.shared.Clients.memory.Load() > limit {
		s.shared.evictClients(limit)
	}
}

// publishBuffer refreshes the part of that copy about the reply buffer. s.info is locked.
func (s *Session) publishBuffer(d *clientInfo) {
	d.Buffer, d.Peak = min(cap(s.out.Buf), maxReplyBuffer), s.replyBuffer.peak
}

// snapshot returns the last published copy.
func (s *Session) snapshot() clientInfo {
	s.info.Lock()
	defer s.info.Unlock()
	return s.infoData
}

// about returns the client's current description.
func (s *Session) about(now int64) clients.Info {
	d := s.snapshot().Info
	d.Account, d.Killed, d.Paused = s.account.Load(), s.dying(), s.shared.Pause.holds(s, now)
	return d
}

// WithdrawWriters ends the waits of blocked clients whose commands write, or wait for replicas. The guard holds everything.
func (r *Register) WithdrawWriters() {
	for _, s := range r.All() {
		if w := s.snapshot().keyWait; w != nil && w.cmd.AtMaster() && w.waiter.Withdraw() {
			s.post(mailRoleChanged)
		}
	}
}
