package server

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/atomredis/atomredis/command"
	"github.com/atomredis/atomredis/resp"
)

// trackingTable is the server's part in client-side caching: it knows which keys clients have read, or which prefixes
// they asked for, and tells them when such a key changes. mu is taken under guards; under it only the register of
// clients and mailboxes are locked.
type trackingTable struct {
	mu      sync.Mutex
	clients map[int64]*Session // those that track, by number
	// keys tells who read a key since it last changed. Clients that have gone or track no more stay until then: their
	// numbers are not used again. Databases make no difference.
	keys map[string]map[int64]struct{}
	// prefixes tells who wants to hear of all keys that begin so (BCAST).
	prefixes map[string]map[*Session]struct{}
}

// origin is who makes changes: a client, or what serves it while it is blocked. It is used by the goroutine that
// makes them.
type origin struct {
	session *Session
	pushed  bool     // the running command has published something to its own client; it follows the reply
	later   []byte   // other messages to the client itself; they come behind that
	changed []string // keys whose changes those who listen to prefixes are told of at the end of the command
}

// trackingState is what a client chose with CLIENT TRACKING. Its owner changes redirect and mode under the table's
// mu, so that it may read them without, and others under mu.
type trackingState struct {
	on       bool
	redirect int64 // the client that is told instead; 0 = this one
	mode     trackingFlags
	caching  bool     // CLIENT CACHING was given for the command that follows
	prefixes []string // in order
	broken   atomic.Bool
}

// trackingFlags describe how a client tracks.
type trackingFlags uint8

const (
	trackingOn trackingFlags = 1 << iota
	trackingBcast
	trackingOptIn
	trackingOptOut
	trackingNoLoop
	trackingCaching
	trackingBroken // the client that was to be told instead has gone
)

// flags returns everything that is to be known of how the client tracks.
func (t *trackingState) flags() trackingFlags {
	if !t.on {
		return 0
	}
	f := trackingOn | t.mode
	if t.caching {
		f |= trackingCaching
	}
	if t.broken.Load() {
		f |= trackingBroken
	}
	return f
}

// invalidation is one message in the forms in which clients understand it, encoded when first needed.
type invalidation struct {
	keys          []string
	all           bool // every key
	push, message []byte
}

// asPush returns the message for RESP3.
func (m *invalidation) asPush() []byte {
	if m.push == nil {
		w := resp.Writer{Proto: 3}
		w.Push(2)
		w.BulkString("invalidate")
		m.write(&w)
		m.push = w.Buf
	}
	return m.push
}

// asMessage returns the message for a subscriber in RESP2.
func (m *invalidation) asMessage() []byte {
	if m.message == nil {
		w := resp.Writer{Proto: 2}
		w.Array(3)
		w.BulkString("message")
		w.BulkString("__redis__:invalidate")
		m.write(&w)
		m.message = w.Buf
	}
	return m.message
}

func (m *invalidation) write(w *resp.Writer) {
	if m.all {
		w.Null()
		return
	}
	w.Array(len(m.keys))
	for _, key := range m.keys {
		w.BulkString(key)
	}
}

// invalidate tells everybody who tracks the key that it has changed. by is who changed it, nil if nobody did. Those
// who listen to prefixes are told of all changes of a command at once, by broadcast.
func (t *trackingTable) invalidate(by *origin, key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.prefixes) > 0 {
		if by == nil {
			t.tellListeners(nil, []string{key})
		} else {
			by.changed = append(by.changed, key)
		}
	}
	m := invalidation{keys: []string{key}}
	readers, ok := t.keys[key]
	if !ok {
		return
	}
	delete(t.keys, key)
	for id := range readers {
		if s := t.reader(id); s != nil {
			t.tellUnlessLoop(s, by, &m)
		}
	}
}

// broadcast tells those who listen to prefixes what by has changed since it was called last.
func (t *trackingTable) broadcast(by *origin) {
	if len(by.changed) == 0 {
		return
	}
	slices.Sort(by.changed)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tellListeners(by, slices.Compact(by.changed))
	clear(by.changed)
	by.changed = by.changed[:0]
}

// tellListeners sends those who listen to prefixes one message for each of these that some of the keys begin with. mu
// is held.
func (t *trackingTable) tellListeners(by *origin, keys []string) {
	for _, prefix := range slices.Sorted(maps.Keys(t.prefixes)) {
		var m invalidation
		for _, key := range keys {
			if strings.HasPrefix(key, prefix) {
				m.keys = append(m.keys, key)
			}
		}
		if len(m.keys) == 0 {
			continue
		}
		for s := range t.prefixes[prefix] {
			t.tellUnlessLoop(s, by, &m)
		}
	}
}

// reader returns the client with that number if it still tracks what it reads.
func (t *trackingTable) reader(id int64) *Session {
	if s := t.clients[id]; s != nil && s.tracking.mode&trackingBcast == 0 {
		return s
	}
	return nil
}

// invalidateAll tells everybody who tracks that all keys have gone.
func (t *trackingTable) invalidateAll(by *origin) {
	t.mu.Lock()
	defer t.mu.Unlock()
	m := invalidation{all: true}
	for _, s := range t.clients {
		t.tell(s, by, &m)
	}
	clear(t.keys)
}

// tellUnlessLoop is tell, but for a client that made the change itself and does not want to hear of that.
func (t *trackingTable) tellUnlessLoop(s *Session, by *origin, m *invalidation) {
	if by == nil || s != by.session || s.tracking.mode&trackingNoLoop == 0 {
		t.tell(s, by, m)
	}
}

// tell sends a message to a client that tracks, or to the one that it redirects to.
func (t *trackingTable) tell(s *Session, by *origin, m *invalidation) {
	target := s
	if id := s.tracking.redirect; id != 0 {
		if target = s.srv.clients.get(id); target == nil {
			s.tracking.broken.Store(true)
			if s.proto.Load() == 3 {
				w := resp.Writer{Proto: 3}
				w.Push(2)
				w.BulkString("tracking-redir-broken")
				w.Int(id)
				s.pushAfter(by, w.Buf)
			}
			return
		}
	}
	switch {
	case target.proto.Load() == 3:
		target.pushAfter(by, m.asPush())
	case s.tracking.redirect != 0 && target.subscribed():
		target.pushAfter(by, m.asMessage())
	}
	// There is no way to reach a RESP2 client otherwise.
}

// pushAfter gives the session an out-of-band message that follows the reply of the command that caused it, if that is
// the session's own; by is who carries out the command, nil if there is none.
func (s *Session) pushAfter(by *origin, message []byte) {
	if by != nil && by.session == s {
		by.later = append(by.later, message...)
		return
	}
	s.post(0, message)
}

// remember notes that s has read keys of a command.
func (t *trackingTable) remember(s *Session, cmd *command.Command, args [][]byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	cmd.EachKey(args, func(i int, _ *command.KeySpec) bool {
		readers, ok := t.keys[string(args[i])]
		if !ok {
			readers = map[int64]struct{}{}
			if t.keys == nil {
				t.keys = map[string]map[int64]struct{}{}
			}
			t.keys[string(args[i])] = readers
		}
		readers[s.id] = struct{}{}
		return true
	})
	t.shrink(&s.origin, s.srv.config.Get().TrackingTableMaxKeys)
}

// limit puts a change of the largest number of keys into effect.
func (t *trackingTable) limit(keys int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.shrink(nil, keys)
}

// shrink forgets some keys, and tells who has read them, until at most limit are left; 0 is no limit. mu is held.
func (t *trackingTable) shrink(by *origin, limit int) {
	if limit <= 0 {
		return
	}
	for key, readers := range t.keys {
		if len(t.keys) <= limit {
			return
		}
		delete(t.keys, key)
		m := invalidation{keys: []string{key}}
		for id := range readers {
			if s := t.reader(id); s != nil {
				t.tell(s, by, &m)
			}
		}
	}
}

// size returns the numbers of clients that track, of keys, of readers of keys, and of prefixes.
func (t *trackingTable) size() (clients, keys, readers, prefixes int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range t.keys {
		readers += len(r)
	}
	return len(t.clients), len(t.keys), readers, len(t.prefixes)
}

// start makes a client track, or changes how it does; prefixes come on top of those that it has.
func (t *trackingTable) start(s *Session, mode trackingFlags, redirect int64, prefixes []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	state := &s.tracking
	if t.clients == nil {
		t.clients, t.prefixes = map[int64]*Session{}, map[string]map[*Session]struct{}{}
	}
	t.clients[s.id] = s
	state.on, state.mode, state.redirect = true, mode, redirect
	state.broken.Store(false)
	if mode&trackingBcast != 0 && len(prefixes) == 0 {
		prefixes = []string{""}
	}
	for _, p := range prefixes {
		if slices.Contains(state.prefixes, p) {
			continue
		}
		state.prefixes = append(state.prefixes, p)
		if t.prefixes[p] == nil {
			t.prefixes[p] = map[*Session]struct{}{}
		}
		t.prefixes[p][s] = struct{}{}
	}
	slices.Sort(state.prefixes)
	s.srv.ks.ObserveChanges(true)
}

// stopTracking ends the client's tracking, if it tracks.
func (s *Session) stopTracking() {
	state := &s.tracking
	if !state.on {
		return
	}
	t := &s.srv.tracking
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, p := range state.prefixes {
		delete(t.prefixes[p], s)
		if len(t.prefixes[p]) == 0 {
			delete(t.prefixes, p)
		}
	}
	state.on, state.mode, state.redirect, state.caching, state.prefixes = false, 0, 0, false, nil
	state.broken.Store(false)
	delete(t.clients, s.id)
	if len(t.clients) == 0 {
		s.srv.ks.ObserveChanges(false)
		t.keys = nil // nobody would be told
	}
}

// rememberKeys notes the keys that a command of a tracking client has read. It is called under the command's guard, so
// that no change of them can be missed.
func (s *Session) rememberKeys(cmd *command.Command, args [][]byte) {
	state := &s.tracking
	// a script's commands are the ones that read
	read := cmd.Flags&command.ReadOnly != 0 && cmd.ACL&command.CatScripting == 0
	switch {
	case !read || state.mode&trackingBcast != 0:
	case state.mode&trackingOptIn != 0 && !state.caching:
	case state.mode&trackingOptOut != 0 && state.caching:
	default:
		s.srv.tracking.remember(s, cmd, args)
	}
	// CLIENT CACHING is for the next command, or transaction, that is not CLIENT itself.
	going := s.tx.active || s.ctx.NoBlock || s.ctx.Cmd != cmd // in a transaction or a script
	if !going {
		state.endCaching(cmd)
	}
}

// endCaching makes CLIENT CACHING have no effect any more after a command that was executed or, in vain, tried; nil
// is one that does not exist.
func (t *trackingState) endCaching(cmd *command.Command) {
	if cmd == nil || cmd.Parent == nil || !cmd.Parent.KeepsCaching {
		t.caching = false
	}
}

func cmdClientTracking(c *command.Ctx) {
	s := sessionOf(c)
	var mode trackingFlags
	var redirect int64
	var prefixes []string
	for o := c.Options(3); o.Next(); {
		switch {
		case o.Is("redirect") && o.More():
			if redirect != 0 {
				c.Err("ERR A client can only redirect to a single other client")
				return
			}
			var ok bool
			if redirect, ok = c.Int(o.Arg()); !ok {
				return
			}
			if serverOf(c).clients.get(redirect) == nil {
				c.Err("ERR The client ID you want redirect to does not exist")
				return
			}
		case o.Is("bcast"):
			mode |= trackingBcast
		case o.Is("optin"):
			mode |= trackingOptIn
		case o.Is("optout"):
			mode |= trackingOptOut
		case o.Is("noloop"):
			mode |= trackingNoLoop
		case o.Is("prefix") && o.More():
			prefixes = append(prefixes, string(o.Arg()))
		default:
			c.Err(command.ErrSyntax)
			return
		}
	}
	switch {
	case command.EqualFold(c.Args[2], "on"):
		if e := s.trackingConflict(mode, prefixes); e != "" {
			c.Err(e)
			return
		}
		serverOf(c).tracking.start(s, mode, redirect, prefixes)
	case command.EqualFold(c.Args[2], "off"):
		s.stopTracking()
	default:
		c.Err(command.ErrSyntax)
		return
	}
	c.W.OK()
}

// trackingConflict returns the error if options of CLIENT TRACKING ON contradict each other or what is on already.
func (s *Session) trackingConflict(mode trackingFlags, prefixes []string) command.Error {
	const optInOut = trackingOptIn | trackingOptOut
	old := s.tracking.mode
	switch {
	case mode&trackingBcast == 0 && len(prefixes) > 0:
		return "ERR PREFIX option requires BCAST mode to be enabled"
	case s.tracking.on && (old^mode)&trackingBcast != 0:
		return "ERR You can't switch BCAST mode on/off before disabling tracking for this client, and then re-enabling it with a different mode."
	case mode&trackingBcast != 0 && mode&optInOut != 0:
		return "ERR OPTIN and OPTOUT are not compatible with BCAST"
	case mode&optInOut == optInOut:
		return "ERR You can't specify both OPTIN mode and OPTOUT mode"
	case (mode|old)&optInOut == optInOut:
		return "ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, and then re-enabling it with a different mode."
	}
	for i, p := range prefixes {
		for _, q := range s.tracking.prefixes {
			if overlap(p, q) {
				return command.Error(fmt.Sprintf("ERR Prefix '%s' overlaps with an existing prefix '%s'. Prefixes for a single client "+
					"must not overlap.", p, q))
			}
		}
		for _, q := range prefixes[i+1:] {
			if overlap(p, q) {
				return command.Error(fmt.Sprintf("ERR Prefix '%s' overlaps with another provided prefix '%s'. Prefixes for a single "+
					"client must not overlap.", p, q))
			}
		}
	}
	return ""
}

// overlap reports whether some key could begin with both.
func overlap(a, b string) bool { return strings.HasPrefix(a, b) || strings.HasPrefix(b, a) }

func cmdClientCaching(c *command.Ctx) {
	t := &sessionOf(c).tracking
	if t.mode&(trackingOptIn|trackingOptOut) == 0 {
		c.Err("ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled")
		return
	}
	switch {
	case command.EqualFold(c.Args[2], "yes"):
		if t.mode&trackingOptIn == 0 {
			c.Err("ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.")
			return
		}
	case command.EqualFold(c.Args[2], "no"):
		if t.mode&trackingOptOut == 0 {
			c.Err("ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.")
			return
		}
	default:
		c.Err(command.ErrSyntax)
		return
	}
	t.caching = true
	c.W.OK()
}

func cmdClientTrackinginfo(c *command.Ctx) {
	t := &sessionOf(c).tracking
	flags := t.flags()
	names := []string{"off"}
	if flags&trackingOn != 0 {
		names = []string{"on"}
	}
	for _, f := range []struct {
		set  trackingFlags
		name string
	}{
		{trackingBcast, "bcast"},
		{trackingOptIn, "optin"}, {trackingOptIn | trackingCaching, "caching-yes"},
		{trackingOptOut, "optout"}, {trackingOptOut | trackingCaching, "caching-no"},
		{trackingNoLoop, "noloop"}, {trackingBroken, "broken_redirect"},
	} {
		if flags&f.set == f.set {
			names = append(names, f.name)
		}
	}
	c.W.Map(3)
	c.W.BulkString("flags")
	c.W.Set(len(names))
	for _, n := range names {
		c.W.BulkString(n)
	}
	c.W.BulkString("redirect")
	c.W.Int(t.redirection())
	c.W.BulkString("prefixes")
	c.W.Array(len(t.prefixes))
	for _, p := range t.prefixes {
		c.W.BulkString(p)
	}
}

func cmdClientGetredir(c *command.Ctx) { c.W.Int(sessionOf(c).tracking.redirection()) }

// redirection returns the client that is told instead: 0 if none is, -1 if the client does not track.
func (t *trackingState) redirection() int64 {
	if !t.on {
		return -1
	}
	return t.redirect
}
