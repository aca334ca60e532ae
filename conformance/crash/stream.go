package crash

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// streamID is the ID of an entry.
type streamID struct{ ms, seq uint64 }

func (a streamID) compare(b streamID) int {
	return cmp.Or(cmp.Compare(a.ms, b.ms), cmp.Compare(a.seq, b.seq))
}
func (a streamID) after(b streamID) bool { return a.compare(b) > 0 }
func (a streamID) String() string        { return fmt.Sprintf("%d-%d", a.ms, a.seq) }

// parseID reads a complete ID; for any other text it returns 0-0.
func parseID(s string) streamID {
	ms, seq, _ := strings.Cut(s, "-")
	a, errMs := strconv.ParseUint(ms, 10, 64)
	b, errSeq := strconv.ParseUint(seq, 10, 64)
	if errMs != nil || errSeq != nil {
		return streamID{}
	}
	return streamID{a, b}
}

type entry struct {
	id     streamID
	fields string // joined by NUL
}

// stream is the content of a stream as XRANGE, XINFO and XPENDING show it.
type stream struct {
	entries       []entry
	last, deleted streamID
	added         int
	groups        map[string]*group
}

type group struct {
	last      streamID
	consumers map[string]bool
	pending   map[streamID]pending
}

type pending struct {
	consumer string
	count    int
}

func (s *stream) clone() *stream {
	t := *s
	t.entries = slices.Clone(s.entries)
	t.groups = map[string]*group{}
	for name, g := range s.groups {
		t.groups[name] = &group{g.last, maps.Clone(g.consumers), maps.Clone(g.pending)}
	}
	return &t
}

func (g *group) equal(h *group) bool {
	return g.last == h.last && maps.Equal(g.consumers, h.consumers) && maps.Equal(g.pending, h.pending)
}

func (s *stream) equal(t *stream) bool {
	if s == nil || t == nil {
		return s == t
	}
	return s.last == t.last && s.deleted == t.deleted && s.added == t.added && slices.Equal(s.entries, t.entries) &&
		maps.EqualFunc(s.groups, t.groups, (*group).equal)
}

func (s *stream) difference(t *stream) string {
	var b strings.Builder
	if s.last != t.last || s.deleted != t.deleted || s.added != t.added {
		fmt.Fprintf(&b, "; last, deleted, added: expected %s %s %d, found %s %s %d", s.last, s.deleted, s.added, t.last,
			t.deleted,
			t.added)
	}
	for i := range max(len(s.entries), len(t.entries)) {
		if i >= len(s.entries) || i >= len(t.entries) || s.entries[i] != t.entries[i] {
			fmt.Fprintf(&b, "; from entry %d on: expected %v, found %v", i,
				s.entries[min(i, len(s.entries)):min(i+3, len(s.entries))],
				t.entries[min(i, len(t.entries)):min(i+3, len(t.entries))])
			break
		}
	}
	for name, g := range s.groups {
		h := t.groups[name]
		if h == nil {
			fmt.Fprintf(&b, "; group %s is missing", name)
			continue
		}
		if g.last != h.last || !maps.Equal(g.consumers, h.consumers) {
			fmt.Fprintf(&b, "; group %s: expected %s %v, found %s %v", name, g.last, g.consumers, h.last, h.consumers)
		}
		shown := 0
		for _, id := range slices.SortedFunc(maps.Keys(g.pending), streamID.compare) {
			if h.pending[id] != g.pending[id] && shown < 5 {
				shown++
				fmt.Fprintf(&b, "; pending %s: expected %v, found %v", id, g.pending[id], h.pending[id])
			}
		}
		for _, id := range slices.SortedFunc(maps.Keys(h.pending), streamID.compare) {
			if _, ok := g.pending[id]; !ok && shown < 10 {
				shown++
				fmt.Fprintf(&b, "; unexpectedly pending %s: %v", id, h.pending[id])
			}
		}
	}
	return b.String()
}

// find returns the index of an entry, or where it would be.
func (s *stream) find(id streamID) (int, bool) {
	return slices.BinarySearchFunc(s.entries, id, func(e entry, id streamID) int { return e.id.compare(id) })
}

// limit is the clause MAXLEN [=|~] n of XADD and XTRIM.
type limit struct {
	given, approximate bool
	n                  int
}

// takeLimit reads the clause at args[i] and returns the index after it.
func takeLimit(args []string, i int) (limit, int) {
	if args[i] != "MAXLEN" {
		return limit{}, i
	}
	l := limit{given: true, approximate: args[i+1] == "~"}
	if args[i+1] == "~" || args[i+1] == "=" {
		i++
	}
	l.n, _ = strconv.Atoi(args[i+1])
	return l, i + 2
}

// trim trims the stream. How much an approximate limit trims is the server's choice: the reply to the XLEN after it
// shows it, or otherwise the stream found in the end.
func (s *stream) trim(l limit, c *call, p place) {
	if !l.given {
		return
	}
	n := min(l.n, len(s.entries))
	if l.approximate {
		rest := len(s.entries)
		if c.reply != nil {
			rest, _ = strconv.Atoi(c.reply.Text)
		} else if f := c.found.data[p]; f != nil && f.stream != nil {
			rest = len(f.stream.entries)
		}
		n = max(n, min(rest, len(s.entries)))
	}
	s.entries = slices.Clone(s.entries[len(s.entries)-n:])
}

func xadd(m model, c *call) {
	p := c.place(1)
	s := m.open(p, "stream").stream
	l, i := takeLimit(c.args, 2)
	id := parseID(c.args[i])
	if c.args[i] == "*" {
		if c.reply != nil {
			id = parseID(c.reply.Text)
		} else if f := c.found.data[p]; f != nil && f.stream != nil {
			id = f.stream.last
		}
	}
	if !id.after(s.last) {
		return // refused, or for * a wrong reply, which then shows as a difference
	}
	s.entries = append(s.entries, entry{id, strings.Join(c.args[i+1:], "\x00")})
	s.last = id
	s.added++
	s.trim(l, c, p)
}

func xtrim(m model, c *call) {
	p := c.place(1)
	l, _ := takeLimit(c.args, 2)
	m.peek(p, "stream").stream.trim(l, c, p)
}

func xdel(m model, c *call) {
	s := m.peek(c.place(1), "stream").stream
	for _, arg := range c.args[2:] {
		s.remove(parseID(arg))
	}
}

// remove deletes an entry if it is there.
func (s *stream) remove(id streamID) {
	if i, ok := s.find(id); ok {
		s.entries = slices.Delete(s.entries, i, i+1)
		if id.after(s.deleted) {
			s.deleted = id
		}
	}
}

// needed reports whether a group still has to acknowledge an entry.
func (s *stream) needed(id streamID) bool {
	for _, g := range s.groups {
		if _, waits := g.pending[id]; waits || id.after(g.last) {
			return true
		}
	}
	return false
}

// forget removes an entry from the pending entries of all groups.
func (s *stream) forget(id streamID) {
	for _, g := range s.groups {
		delete(g.pending, id)
	}
}

// xdelex models XDELEX key KEEPREF|DELREF|ACKED IDS n id ….
func xdelex(m model, c *call) {
	s := m.peek(c.place(1), "stream").stream
	for _, arg := range c.args[5:] {
		id := parseID(arg)
		if c.args[2] == "DELREF" {
			s.forget(id)
		}
		if c.args[2] != "ACKED" || !s.needed(id) {
			s.remove(id)
		}
	}
}

// xackdel models XACKDEL key group KEEPREF|DELREF|ACKED IDS n id ….
func xackdel(m model, c *call) {
	s := m.peek(c.place(1), "stream").stream
	g := s.groups[c.args[2]]
	if g == nil {
		return
	}
	for _, arg := range c.args[6:] {
		id := parseID(arg)
		if _, waits := g.pending[id]; !waits {
			continue
		}
		delete(g.pending, id)
		if c.args[3] == "DELREF" {
			s.forget(id)
		}
		if c.args[3] != "ACKED" || !s.needed(id) {
			s.remove(id)
		}
	}
}

// xgroup models XGROUP CREATE key group 0 MKSTREAM and XGROUP CREATECONSUMER key group consumer.
func xgroup(m model, c *call) {
	s := m.open(c.place(2), "stream").stream
	if c.args[1] == "CREATE" {
		s.groups[c.args[3]] = &group{consumers: map[string]bool{}, pending: map[streamID]pending{}}
		return
	}
	s.groups[c.args[3]].consumers[c.args[4]] = true
}

// xreadgroup models XREADGROUP GROUP group consumer COUNT n STREAMS key >.
func xreadgroup(m model, c *call) {
	s := m.peek(c.place(7), "stream").stream
	g := s.groups[c.args[2]]
	if g == nil {
		return
	}
	i, found := s.find(g.last)
	if found {
		i++
	}
	for _, e := range s.entries[i:min(i+c.int(5), len(s.entries))] {
		g.pending[e.id] = pending{c.args[3], 1}
		g.last = e.id
	}
}

func xack(m model, c *call) {
	if g := m.peek(c.place(1), "stream").stream.groups[c.args[2]]; g != nil {
		for _, id := range c.args[3:] {
			delete(g.pending, parseID(id))
		}
	}
}

// xautoclaim models XAUTOCLAIM key group consumer 0 0-0 COUNT n, on streams that keep their pending entries.
func xautoclaim(m model, c *call) {
	if g := m.peek(c.place(1), "stream").stream.groups[c.args[2]]; g != nil {
		ids := slices.SortedFunc(maps.Keys(g.pending), streamID.compare)
		g.claim(c.args[3], ids[:min(c.int(7), len(ids))])
	}
}

// xclaim models XCLAIM key group consumer 0 id ….
func xclaim(m model, c *call) {
	if g := m.peek(c.place(1), "stream").stream.groups[c.args[2]]; g != nil {
		for _, id := range c.args[5:] {
			g.claim(c.args[3], []streamID{parseID(id)})
		}
	}
}

func (g *group) claim(consumer string, ids []streamID) {
	for _, id := range ids {
		if p, ok := g.pending[id]; ok {
			g.pending[id] = pending{consumer, p.count + 1}
		}
	}
}
