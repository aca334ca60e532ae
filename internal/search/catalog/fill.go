package catalog

import (
	"time"

	"github.com/atomredis/atomredis/engine"
)

// fillAtOnce is the number of keys up to which an index is filled under the guard of the command that makes it: some
// ten milliseconds.
const fillAtOnce = 4096

// fillStep is about how many keys are indexed under one guard in the background.
const fillStep = 128

// loadedPause is the pause between checks whether the keys are loaded.
const loadedPause = 20 * time.Millisecond

// Fill puts the keys that exist into an index: at once if there are few, else in steps in the background. The guard holds
// everything.
func (c *Catalog) Fill(g *engine.Guard, x *Index) {
	if x.waiting.Load() {
		return // FillWhenLoaded does it
	}
	g.OnAway(nil) // the index exists by now, so the command cannot start again
	total := g.Len(0)
	if total <= fillAtOnce && g.Complete() {
		b := c.builder()
		defer c.builders.Put(b)
		g.Each(0, func(e *engine.Entry) bool {
			c.fill(g, b, x, e)
			return true
		})
		return
	}
	s := &scan{}
	s.total.Store(int64(total))
	x.scan.Store(s)
	c.running.Go(func() { c.fillInSteps(x, s) })
}

// FillWhenLoaded is Fill for an index whose keys are being loaded after a start. It receives no changes before.
func (c *Catalog) FillWhenLoaded(x *Index) {
	s := &scan{}
	x.waiting.Store(true)
	x.scan.Store(s)
	c.running.Go(func() { c.fillInSteps(x, s) })
}

// fillInSteps waits for the keys and iterates over them as SCAN does. Update handles keys that change meanwhile;
// indexing a key twice does no harm.
func (c *Catalog) fillInSteps(x *Index, s *scan) {
	b := c.builder()
	defer c.builders.Put(b)
	var g engine.Guard
	cursor, started, began := uint64(0), false, time.Time{}
	for {
		first := false
		g.Lock(c.ks, engine.AllShards, c.ks.Now())
		ready := g.Complete()
		if ready {
			if !started {
				first, started, began = true, true, time.Now()
				s.total.Store(int64(g.Len(0)))
				x.waiting.Store(false)
			}
			cursor = g.Scan(0, cursor, fillStep, nil, func(e *engine.Entry) {
				s.done.Add(1)
				c.fill(&g, b, x, e)
			})
		}
		g.Unlock()
		if first {
			c.log.Info("filling a search index", "index", x.Name, "keys", s.total.Load())
		}
		if started && cursor == 0 {
			break
		}
		pause := time.Duration(0)
		if !ready {
			pause = loadedPause
		}
		select {
		case <-c.stop:
			return
		case <-time.After(pause):
		}
		if x.Gone() || x.scan.Load() != s {
			return
		}
	}
	x.scan.CompareAndSwap(s, nil)
	c.log.Info("a search index is filled", "index", x.Name, "keys", s.done.Load(), "took", time.Since(began).Round(time.Millisecond))
}

// fill puts a key that the index covers.
func (c *Catalog) fill(g *engine.Guard, b *builder, x *Index, e *engine.Entry) {
	def := x.Definition()
	if !def.Covers(e.Key()) {
		return
	}
	if d := b.document(e, def.Source); d != nil {
		c.safely(x, func() { b.put(g, x, e.Key(), e) })
	}
}
