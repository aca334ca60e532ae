package search

import (
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/search/catalog"
	"github.com/atomredis/atomredis/internal/search/fanout"
	"github.com/atomredis/atomredis/internal/wire/peer"
)

// FT.PROFILE on several shards: each shard measures its part, and the coordinator lists the measurements.

// profile replies to FT.PROFILE.
func (f *fan) profile(x *catalog.Index, p *profiling, of profiled) {
	var timeout *int64
	if of.q != nil {
		timeout = of.q.Timeout
	}
	w := f.c.W
	of.rest = f.c.Args[len(f.c.Args)-len(of.rest):] // the fan's copy of the arguments, because the client's are invalid by now
	f.whole(askProfile, timeout, func(answers []fanout.Answer) error {
		switch of.kind {
		case "hybrid":
			h, err := f.fused(x, of.rest, true, answers)
			if err != nil {
				return err
			}
			rows, err := h.rows()
			if err != nil {
				return err
			}
			h.writeProfiled(p, rows, h.profiles...)
		case "search":
			found, err := f.merged(of.q, answers)
			if err != nil {
				return err
			}
			beginResults(w)
			found.reply(w, of.q)
			writeProfiles(w, found.profiles...)
		default:
			a, err := f.rows(x, of.q, answers)
			if err != nil {
				return err
			}
			beginResults(w)
			if _, err := a.reply(-1); err != nil {
				w.Truncate(0)
				return err
			}
			a.from.drain()
			writeProfiles(w, a.from.profiles...)
		}
		return nil
	})
}

// drain reads the remaining parts; the measurements of the shards are in the last ones.
func (p *shardRows) drain() {
	for {
		if part, err := p.next(); part == nil || err != nil {
			return
		}
	}
}

// answerProfile runs a query on this shard and measures it.
func (s *service) answerProfile(c *command.Ctx, x *catalog.Index) (fanout.Answer, error) {
	if len(c.Args) < 4 {
		return nil, peer.ErrFrame
	}
	p, of, err := readProfile(c)
	if err == nil {
		err = of.read(c, p)
	}
	if err != nil {
		return nil, fanout.Refused(err.Error())
	}
	switch of.kind {
	case "hybrid":
		return s.beginHybrid(c, x, of.rest, p)
	case "search":
		return s.beginSearch(c, x, of.q, p)
	}
	return s.beginAggregate(c, x, of.q, p)
}
