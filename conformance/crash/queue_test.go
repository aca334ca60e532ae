package crash

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestQueueSettle(t *testing.T) {
	start := time.Now()
	second := func(n int) time.Time { return start.Add(time.Duration(n) * time.Second) }
	sure, unsure, never := second(1), second(3), time.Time{}
	e := ending{killed: second(4), sure: second(2)}
	for name, c := range map[string]struct {
		queue, processing string
		// the pushes of producer 0: one by one, then 7 and 8 together
		acked    []time.Time
		taken    map[int]time.Time
		inFlight int
		err      string
	}{
		"nothing taken":               {queue: "123456", acked: []time.Time{sure, sure, sure, sure, sure, sure}},
		"lost at the end":             {queue: "12345", acked: []time.Time{sure, sure, sure, sure, sure, sure}, err: "lost"},
		"not acknowledged at the end": {queue: "12345", acked: []time.Time{sure, sure, sure, sure, sure, never}},
		"lost within the window":      {queue: "12345", acked: []time.Time{sure, sure, sure, sure, sure, unsure}},
		"lost in the middle": {queue: "12456", acked: []time.Time{sure, sure, never, never, never, never},
			err: "lost or doubled"},
		"doubled": {queue: "1233456", acked: []time.Time{sure, sure, sure}, err: "lost or doubled"},
		"half a push": {queue: "1234567", acked: []time.Time{sure, sure, sure, sure, sure, sure},
			err: "in part"},
		"a whole push": {queue: "12345678", acked: []time.Time{sure, sure, sure, sure, sure, sure}},
		"taken": {queue: "3456", acked: []time.Time{sure, sure, sure, sure, sure, sure},
			taken: map[int]time.Time{1: sure, 2: unsure}},
		"taken and there again": {queue: "123456", acked: []time.Time{sure, sure, sure, sure, sure, sure},
			taken: map[int]time.Time{1: sure}, err: "again"},
		"taken within the window and there again": {queue: "123456", acked: []time.Time{sure, sure, sure, sure, sure, sure},
			taken: map[int]time.Time{1: unsure}},
		"lost at the front": {queue: "23456", acked: []time.Time{sure, sure, sure, sure, sure, sure}, err: "neither"},
		"in flight":         {queue: "3456", acked: []time.Time{sure, sure, sure, sure, sure, sure}, inFlight: 2},
		"more than in flight": {queue: "3456", acked: []time.Time{sure, sure, sure, sure, sure, sure}, inFlight: 1,
			err: "neither"},
		"all lost":  {acked: []time.Time{sure, sure, never}, err: "neither"},
		"all taken": {acked: []time.Time{sure, sure, never}, taken: map[int]time.Time{1: sure, 2: sure}},
		"moved":     {queue: "345", processing: "12", acked: []time.Time{sure, sure, sure, sure, sure}},
		"moved twice": {queue: "345", processing: "122", acked: []time.Time{sure, sure, sure, sure, sure},
			err: "twice"},
		"moved and there too": {queue: "2345", processing: "12", acked: []time.Time{sure, sure, sure, sure, sure},
			err: "should not be"},
		"moved but never sent": {processing: "9", err: "should not be"},
	} {
		t.Run(name, func(t *testing.T) {
			q := newQueue("q", "BLPOP", 1)
			if c.processing != "" {
				q.kind = "BLMOVE"
			}
			p := &q.producers[0]
			for i := range 7 {
				acked := never
				if i < len(c.acked) {
					acked = c.acked[i]
				}
				p.pushes = append(p.pushes, pushed{min(i+1, 6) + 2*(i/6), acked})
			}
			for n, at := range c.taken {
				q.taken[element{0, n}] = at
			}
			q.inFlight = c.inFlight
			list := func(digits string) *value {
				v := newValue("list")
				for _, d := range digits {
					v.list = append(v.list, element{0, int(d - '0')}.String())
				}
				return v
			}
			_, err := q.settle(&snapshot{data: model{{0, "q:queue"}: list(c.queue), {0, "q:processing"}: list(c.processing)}}, e)
			if c.err == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, c.err)
			}
		})
	}
}

func TestConsumersSettle(t *testing.T) {
	start := time.Now()
	sure, unsure := start.Add(time.Second), start.Add(3*time.Second)
	e := ending{killed: start.Add(4 * time.Second), sure: start.Add(2 * time.Second)}
	id := func(n int) streamID { return streamID{uint64(n), 0} }
	for name, c := range map[string]struct {
		change func(w *consumers, s *stream, g *group)
		err    string
	}{
		"as acknowledged": {change: func(*consumers, *stream, *group) {}},
		"entry lost":      {change: func(_ *consumers, s *stream, _ *group) { s.entries = s.entries[:5] }, err: "lost"},
		"entry lost in between": {change: func(_ *consumers, s *stream,
			_ *group) {
			s.entries = append(s.entries[:2], s.entries[3:]...)
		},
			err: "lost or doubled"},
		"entry with another ID": {change: func(_ *consumers, s *stream, _ *group) { s.entries[5].id = id(9); s.last = id(9) },
			err: "acknowledged as"},
		"pending lost": {change: func(_ *consumers, _ *stream, g *group) { delete(g.pending, id(3)) },
			err: "delivered to c0"},
		"pending with another": {change: func(_ *consumers, _ *stream, g *group) { g.pending[id(3)] = pending{"c1", 1} },
			err: "delivered to c0"},
		"pending too often": {change: func(_ *consumers, _ *stream, g *group) { g.pending[id(3)] = pending{"c0", 2} },
			err: "delivered to c0"},
		"acknowledgment lost": {change: func(_ *consumers, _ *stream, g *group) { g.pending[id(1)] = pending{"c0", 1} },
			err: "acknowledged and"},
		"recent acknowledgment lost": {change: func(w *consumers, _ *stream, g *group) {
			w.acks[id(1)] = unsure
			g.pending[id(1)] = pending{"c0", 1}
		}},
		"delivery lost": {change: func(_ *consumers, _ *stream, g *group) {
			delete(g.pending, id(4))
			g.last = id(3)
		}, err: "delivered again"},
		"delivery in flight": {change: func(w *consumers, _ *stream, g *group) {
			w.reading[1] = 3
			g.pending[id(5)] = pending{"c1", 1}
			g.last = id(5)
		}},
		"delivery to nobody": {change: func(_ *consumers, _ *stream, g *group) { g.last = id(5) }, err: "given to nobody"},
		"delivery invented": {change: func(_ *consumers, _ *stream, g *group) {
			g.pending[id(5)] = pending{"c1", 1}
			g.last = id(5)
		}, err: "cannot have been given"},
		"all lost": {change: func(_ *consumers, s *stream, _ *group) { *s = *newValue("stream").stream },
			err: "without the group"},
	} {
		t.Run(name, func(t *testing.T) {
			// Six entries: 1 and 2 delivered and acknowledged, 3 and 4 delivered to c0.
			w := newConsumers("w")
			v := newValue("stream")
			s := v.stream
			g := &group{last: id(4), pending: map[streamID]pending{id(3): {"c0", 1}, id(4): {"c0", 1}}}
			s.groups[groupName] = g
			for n := 1; n <= 6; n++ {
				w.adds = append(w.adds, added{id(n), sure})
				s.entries = append(s.entries, entry{id(n), "n\x00" + string(rune('0'+n))})
				s.last, s.added = id(n), n
			}
			for n := 1; n <= 4; n++ {
				w.delivered[id(n)] = delivery{"c0", sure}
			}
			w.acks[id(1)], w.acks[id(2)] = sure, sure
			c.change(w, s, g)
			_, err := w.settle(&snapshot{data: model{{0, "w:stream"}: v}}, e)
			if c.err == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, c.err)
			}
		})
	}
}
