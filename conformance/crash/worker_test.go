package crash

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/atomredis/atomredis/internal/testing/testseed"
)

// generators returns those of linear workers, with their labels.
func generators(label string) map[string]generator {
	gens := map[string]generator{
		"transactions": &sequence{label: label}, "scripts": &sequence{label: label, script: true},
		"mixed":    &mixed{label: label},
		"expiring": &expiring{label: label}, "whole": &whole{label: label}, "special": &special{label: label},
		"fields": &fieldDeadlines{label: label}, "compared": &compared{label: label},
		"series": &series{label: label}, "documents": &documents{label: label}, "sketches": &sketches{label: label},
		"vectors": &vectorSets{label: label}, "arrays": &arrays{label: label},
		"newest":   &newest{label: label},
		"searched": &searched{label: label},
	}
	for _, kind := range []string{"list", "hash", "set", "zset"} {
		gens[kind] = &large{label: label, kind: kind, size: 1000}
	}
	return gens
}

// history makes operations as if they had been sent a while ago, without those whose outcome only a server knows.
func history(g generator, r *rand.Rand, n int, at time.Time) []*op {
	var log []*op
	for len(log) < n {
		if o := g.next(r); len(o.commands) > 1 || o.commands[0].args[0] != "SPOP" && !o.loose {
			o.sent = at
			log = append(log, o)
		}
	}
	return log
}

// snapshotOf is the snapshot of a server that has the model's data.
func snapshotOf(m model, now time.Time) *snapshot {
	s := &snapshot{data: model{}, owned: map[string][]place{}, read: window{now.UnixMilli(), now.UnixMilli()}}
	for p, v := range m {
		if v.hi != 0 && v.hi < now.UnixMilli() {
			continue
		}
		c := v.clone()
		c.lo = (v.lo + v.hi) / 2
		c.hi = c.lo
		for f, w := range c.fields {
			at := (w.from + w.to) / 2
			if c.fields[f] = (window{at, at}); at < now.UnixMilli() {
				delete(c.fields, f)
				delete(c.elems, f)
			}
		}
		if c.empty() {
			continue
		}
		s.data[p] = c
		owner, _, _ := strings.Cut(p.key, ":")
		s.owned[owner] = append(s.owned[owner], p)
	}
	return s
}

// after makes a worker that has sent the operations, and returns the state after the first k of them.
func after(log []*op, g generator, k int, e ending) (*linear, model) {
	w := newLinear("w", g, 1, 0)
	server := newLinear("w", g, 1, 0)
	for _, o := range log[:k] {
		server.execute(o, &snapshot{}, e)
	}
	w.log = log
	return w, server.model
}

// leaves reports whether the first n operations result in the snapshot, for some n of at least from.
func leaves(log []*op, g generator, from int, s *snapshot, e ending) bool {
	w, _ := after(log, g, 0, e)
	for i := 0; ; i++ {
		equal := i >= from
		for p := range w.model {
			equal = equal && same(w.model[p], s.data[p], s.read)
		}
		for p := range s.data {
			equal = equal && same(w.model[p], s.data[p], s.read)
		}
		if equal || i == len(log) {
			return equal
		}
		w.execute(log[i], s, e)
	}
}

func TestSettleAcceptsWhatWasAcknowledgedAndPartOfTheRest(t *testing.T) {
	for name := range generators("") {
		t.Run(name, func(t *testing.T) {
			testseed.Check(t, func(t *rapid.T) {
				g := generators("w")[name]
				now := time.Now()
				log := history(g, rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0)), rapid.IntRange(1, 30).Draw(t, "sent"),
					now)
				acked := rapid.IntRange(0, len(log)).Draw(t, "acked")
				kept := rapid.IntRange(0, len(log)).Draw(t, "kept")
				for _, o := range log[:acked] {
					o.acked = now
				}
				e := ending{killed: now, sure: now}
				w, held := after(log, g, kept, e)
				s := snapshotOf(held, now)
				_, err := w.settle(s, e)
				if leaves(log, g, acked, s, e) {
					require.NoError(t, err)
				} else {
					require.Less(t, kept, acked)
					require.Error(t, err)
				}
			})
		})
	}
}

func TestSettleForgivesWhatWasAcknowledgedWithinTheWindow(t *testing.T) {
	now := time.Now()
	g := &sequence{label: "w"}
	for kept := range 10 {
		g.restart(nil)
		log := history(g, rand.New(rand.NewPCG(1, 1)), 10, now)
		for i, o := range log {
			o.acked = now.Add(time.Duration(i) * time.Second)
		}
		e := ending{killed: now.Add(10 * time.Second), sure: now.Add(5 * time.Second)} // the first six are sure
		w, held := after(log, g, kept, e)
		_, err := w.settle(snapshotOf(held, now), e)
		require.Equal(t, kept >= 6, err == nil, "%d kept: %v", kept, err)
	}
}

func TestSettleNoticesTampering(t *testing.T) {
	text, list, stream := place{0, "w:text"}, place{0, "w:list"}, place{0, "w:stream"}
	for name, tamper := range map[string]func(m model){
		"lost":              func(m model) { m[list].list = m[list].list[:9] },
		"lost in between":   func(m model) { m[list].list = append(m[list].list[:4], m[list].list[5:]...) },
		"doubled":           func(m model) { m[list].list = append(m[list].list, "10") },
		"half applied":      func(m model) { m[text].text = "11" },
		"half missing":      func(m model) { m[text].text = "9" },
		"key lost":          func(m model) { delete(m, place{0, "w:zset"}) },
		"key invented":      func(m model) { m[place{3, "w:text"}] = &value{kind: "string", text: "1"} },
		"database confused": func(m model) { m[place{2, "w:text"}] = m[text]; delete(m, text) },
		"counter doubled":   func(m model) { m[place{0, "w:count"}].text = "11" },
		"set":               func(m model) { delete(m[place{0, "w:set"}].elems, "3") },
		"score":             func(m model) { m[place{0, "w:zset"}].elems["3"] = "4" },
		"field":             func(m model) { m[place{0, "w:hash"}].elems["f3"] = "4" },
		"deadline":          func(m model) { m[text].lo, m[text].hi = 9e15, 9e15 },
		"kind":              func(m model) { m[text].kind = "set" },
		"entry lost":        func(m model) { m[stream].stream.entries = m[stream].stream.entries[:9] },
		"last ID reset":     func(m model) { m[stream].stream.last = streamID{9, 0} },
	} {
		t.Run(name, func(t *testing.T) {
			now := time.Now()
			g := &sequence{label: "w"}
			log := history(g, rand.New(rand.NewPCG(1, 1)), 11, now)
			for _, o := range log[:10] {
				o.acked = now
			}
			e := ending{killed: now, sure: now}
			w, held := after(log, g, 10, e)
			tamper(held)
			_, err := w.settle(snapshotOf(held, now), e)
			require.ErrorContains(t, err, "no state after any of")
		})
	}
}

func TestExpiredKeysMustBeGoneAndOthersThere(t *testing.T) {
	at := func(lo, hi int64) *value { return &value{kind: "string", text: "v", lo: lo, hi: hi} }
	read := window{1000, 1100}
	for name, c := range map[string]struct {
		want, got *value
		same      bool
	}{
		"long gone, gone":          {at(500, 600), nil, true},
		"long gone, there":         {at(500, 600), at(550, 550), false},
		"while reading, gone":      {at(1050, 1050), nil, true},
		"while reading, there":     {at(1050, 1050), at(1050, 1050), true},
		"later, gone":              {at(5000, 5000), nil, false},
		"later, there":             {at(5000, 5010), at(5003, 5003), true},
		"later, prolonged":         {at(5000, 5010), at(5011, 5011), false},
		"later, without deadline":  {at(5000, 5010), at(0, 0), false},
		"never, with a deadline":   {at(0, 0), at(5000, 5000), false},
		"never, there":             {at(0, 0), at(0, 0), true},
		"long gone, another value": {at(500, 600), &value{kind: "string", text: "w"}, false},
	} {
		require.Equal(t, c.same, same(c.want, c.got, read), name)
	}
}
