package objects

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/atomredis/atomredis/persist/journal"
)

// head is the content of the object of that name.
type head struct {
	Chain string `json:"chain"` // the chain that grows
	From  string `json:"from"`  // the volume from which on its end is found
}

// reach is the content of a chain's object of that name: nothing has happened between a place and a time.
type reach struct {
	Place string `json:"place"`
	Time  string `json:"time"`
}

// getJSON reads an object; ok is false if there is none.
func getJSON(ctx context.Context, s Store, name string, into any) (ok bool, err error) {
	r, err := s.Get(ctx, name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer r.Close()
	text, err := io.ReadAll(io.LimitReader(r, 1<<16))
	if errors.Is(err, fs.ErrNotExist) { // some stores only notice now
		return false, nil
	}
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		return false, fmt.Errorf("%s: %w", name, err)
	}
	return true, nil
}

func putJSON(ctx context.Context, s Store, name string, content any) error {
	text, err := json.Marshal(content)
	if err != nil {
		return err
	}
	return s.Put(ctx, name, bytes.NewReader(text), int64(len(text)))
}

// reachOf returns a chain's reach; place and ms are zero if there is none.
func reachOf(ctx context.Context, s Store, chain string) (place journal.Place, ms int64, err error) {
	var r reach
	ok, err := getJSON(ctx, s, chain+"/"+reachName, &r)
	if !ok {
		return place, 0, err
	}
	place, valid := journal.ParsePlace(r.Place)
	ms, valid2 := parseStamp(r.Time)
	if !valid || !valid2 {
		return journal.Place{}, 0, fmt.Errorf("%s/%s: it has no place and time", chain, reachName)
	}
	return place, ms, nil
}

// isChain reports whether a folder is a chain, and when that began.
func isChain(name string) (begin time.Time, ok bool) {
	text, id, found := strings.Cut(name, "-")
	begin, err := time.Parse(chainTime, text)
	return begin, found && err == nil && len(id) == 8
}

// chainsOf returns the chains of an archive, the oldest one first.
func chainsOf(ctx context.Context, s Store) (names []string, err error) {
	folders, err := s.Folders(ctx, "")
	for _, name := range folders {
		if _, ok := isChain(name); ok {
			names = append(names, name)
		}
	}
	return names, err
}

// contents are the objects of a chain, or of a part of it.
type contents struct {
	bases  []base
	pieces []piece // by from
	reach  struct {
		place journal.Place
		time  int64
	}
}

// read lists the objects of a chain from a volume on; "" is all of it. It stops after the first piece for which until, unless that
// is nil, returns true.
func read(ctx context.Context, s Store, chain, volume string, until func(p *piece) bool) (c contents, err error) {
	after := ""
	if volume != "" {
		after = chain + "/" + volume
	}
	for o, err := range s.List(ctx, chain+"/", after) {
		if err != nil {
			return c, err
		}
		if b, ok := parseBase(o); ok {
			c.bases = append(c.bases, b)
		} else if p, ok := parsePiece(o); ok {
			if c.pieces = append(c.pieces, p); until != nil && until(&p) {
				break
			}
		}
	}
	slices.SortFunc(c.bases, func(a, b base) int { return order(a.at, b.at) })
	slices.SortStableFunc(c.pieces, func(a, b piece) int { return order(a.from, b.from) })
	c.reach.place, c.reach.time, err = reachOf(ctx, s, chain)
	return c, err
}

// path returns the pieces that lead from a place on without a gap, and the place where they end. gap is the first piece behind a
// gap, nil if there is none. Overlapping pieces, which two leaders have written, are taken as few as possible.
func path(pieces []piece, at journal.Place) (steps []piece, end journal.Place, gap *piece) {
	end = at
	for i := 0; i < len(pieces); {
		best := -1
		for ; i < len(pieces) && order(pieces[i].from, end) <= 0; i++ {
			if order(pieces[i].to, end) > 0 && (best < 0 || order(pieces[i].to, pieces[best].to) > 0) {
				best = i
			}
		}
		if best >= 0 {
			steps, end = append(steps, pieces[best]), pieces[best].to
		} else if i < len(pieces) {
			return steps, end, &pieces[i]
		}
	}
	return steps, end, nil
}

// tail is the end of a chain.
type tail struct {
	last    base
	at      journal.Place // where the next piece begins; a base may already be further
	through int64         // until when it is complete, in ms since 1970
	volumes []string      // from head.From on
}

// errNoBase means that a chain has no base.
var errNoBase = errors.New("it has no base")

// tailOf returns the end of the chain that head names.
func tailOf(ctx context.Context, s Store, h head) (t tail, err error) {
	c, err := read(ctx, s, h.Chain, h.From, nil)
	if err != nil {
		return t, err
	}
	if len(c.bases) == 0 {
		return t, errNoBase
	}
	for _, b := range c.bases {
		t.volumes = append(t.volumes, volumeOf(b.at))
	}
	t.last = c.bases[len(c.bases)-1]
	steps, end, gap := path(c.pieces, c.bases[0].at)
	t.at, t.through = end, c.bases[0].time
	for ; gap != nil; t.at = end {
		steps, end, gap = path(c.pieces, gap.from)
	}
	for _, b := range c.bases {
		if order(b.at, t.at) <= 0 {
			t.through = max(t.through, b.time)
		}
	}
	if len(steps) > 0 {
		t.through = max(t.through, steps[len(steps)-1].through)
	}
	if order(c.reach.place, t.at) == 0 {
		t.through = max(t.through, c.reach.time)
	}
	return t, nil
}
