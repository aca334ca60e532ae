package objects

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/atomredis/atomredis/persist/journal"
)

// Latest is the instant of Find for all that the archive has.
var Latest = time.UnixMilli(math.MaxInt64)

// Point is the data of an archive at an instant. It implements archive.Source.
type Point struct {
	ctx     context.Context
	store   Store
	to      int64    // in ms since 1970
	without []string // names of bases that are not used
	chain   string
	base    base
	steps   []piece
	group   bool

	// Progress is called with the bytes of the archive that are read, of all that must be. It may be nil.
	Progress func(done, total int64)
	done     int64

	// Known after Records:
	Count   int64 // records
	Reached int64 // the time of the last one, or of the base, in ms since 1970
}

// times shows a time in ms since 1970.
func times(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.999Z07:00") }

// Find returns the data of an archive at an instant: that of the last base before it and the records that follow, until the first
// one that is later than the instant. It fails if the archive does not have all of these, or does not know that it has. without has
// the names of bases that are not used, because they are damaged.
func Find(ctx context.Context, s Store, to time.Time, without ...string) (*Point, error) {
	p := &Point{ctx: ctx, store: s, to: to.UnixMilli(), without: without}
	chains, err := chainsOf(ctx, s)
	if err != nil {
		return nil, err
	}
	first := int64(math.MaxInt64)
	for i := len(chains) - 1; i >= 0; i-- {
		volume, oldest, err := p.baseIn(chains[i])
		if err != nil {
			return nil, err
		}
		first = min(first, oldest)
		if p.base.Name == "" {
			continue
		}
		if err := p.follow(volume); err != nil {
			return nil, err
		}
		p.Reached = p.base.time
		return p, nil
	}
	if first == math.MaxInt64 {
		return nil, fmt.Errorf("there is no archive with a base in %s", s)
	}
	return nil, fmt.Errorf("the archive begins at %s", times(first))
}

// baseIn finds the last base of a chain that is not later than the instant; volume is the one before the base's. oldest is the time
// of the oldest base if none is found.
func (p *Point) baseIn(chain string) (volume string, oldest int64, err error) {
	oldest = math.MaxInt64
	volumes, err := p.store.Folders(p.ctx, chain)
	if err != nil {
		return "", 0, err
	}
	for i := len(volumes) - 1; i >= 0; i-- {
		for o, err := range p.store.List(p.ctx, chain+"/"+volumes[i]+"/"+basePrefix, "") {
			if err != nil {
				return "", 0, err
			}
			b, ok := parseBase(o)
			if !ok || slices.Contains(p.without, b.Name) {
				continue
			}
			oldest = min(oldest, b.time)
			if b.time <= p.to && (p.base.Name == "" || b.time > p.base.time) {
				p.base, p.chain = b, chain
			}
		}
		if p.base.Name != "" {
			return volumes[max(i-1, 0)], oldest, nil
		}
	}
	return "", oldest, nil
}

// follow finds the pieces that lead from the base to the instant.
func (p *Point) follow(volume string) error {
	later := func(s *piece) bool { return s.first > p.to }
	c, err := read(p.ctx, p.store, p.chain, volume, func(s *piece) bool { return later(s) && order(s.from, p.base.at) > 0 })
	if err != nil {
		return err
	}
	steps, end, gap := path(c.pieces, p.base.at)
	if gap != nil { // pieces of two leaders may be in another order
		if c, err = read(p.ctx, p.store, p.chain, volume, nil); err != nil {
			return err
		}
		steps, end, gap = path(c.pieces, p.base.at)
	}
	p.steps = steps
	through := p.base.time
	for _, s := range steps {
		through = max(through, s.through)
	}
	switch {
	case slices.ContainsFunc(steps, func(s piece) bool { return later(&s) }):
		return nil
	case gap != nil:
		return fmt.Errorf("a piece of the archive is missing in %s, between the positions %s and %s: until %s everything is there", p.chain,
			end, gap.from, times(through))
	case p.to == Latest.UnixMilli() || through >= p.to || order(c.reach.place, end) == 0 && c.reach.time >= p.to:
		return nil
	}
	if order(c.reach.place, end) == 0 {
		through = max(through, c.reach.time)
	}
	return fmt.Errorf("the archive reaches to %s: nothing later can be restored, and latest is all that there is", times(through))
}

// object is an object that is being read.
type object struct {
	*blockReader
	io.Closer
}

// object opens an object.
func (p *Point) object(o Object) (*object, error) {
	r, err := p.store.Get(p.ctx, o.Name)
	if err != nil {
		return nil, err
	}
	b, err := newBlockReader(o.Name, seen{r, p})
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return &object{b, r}, nil
}

// seen reports the progress of reading.
type seen struct {
	io.Reader
	of *Point
}

// Read implements io.Reader.
func (s seen) Read(b []byte) (int, error) {
	n, err := s.Reader.Read(b)
	s.of.done += int64(n)
	if s.of.Progress != nil && n > 0 {
		total := s.of.base.Size
		for _, step := range s.of.steps {
			total += step.Size
		}
		s.of.Progress(s.of.done, total)
	}
	return n, err
}

// Name implements archive.Source.
func (p *Point) Name() string { return p.store.String() + "/" + p.base.Name }

// OfGroup implements archive.Source.
func (p *Point) OfGroup() bool { return p.group }

// BaseTime returns the time of the base.
func (p *Point) BaseTime() time.Time { return time.UnixMilli(p.base.time) }

// BaseName returns the name of the base.
func (p *Point) BaseName() string { return p.base.Name }

// Base implements archive.Source.
func (p *Point) Base() (io.ReadCloser, error) {
	r, err := p.object(p.base.Object)
	if err != nil {
		return nil, err
	}
	p.group = r.header.Group
	return r, nil
}

// Records implements archive.Source.
func (p *Point) Records(do func(now int64, commands []byte) error) error {
	at := cursor{at: p.base.at}
	for i := range p.steps {
		more, err := p.step(&at, &p.steps[i], do)
		if damage := new(DamageError); errors.As(err, &damage) {
			return fmt.Errorf("%w; everything until %s can be restored", err, times(p.Reached))
		}
		if err != nil || !more {
			return err
		}
	}
	return nil
}

// cursor is a place up to which records are read.
type cursor struct {
	at    journal.Place
	exact bool // it is the place after a record: then the next one continues the same place
}

// step reads a piece; more is false after the instant.
func (p *Point) step(at *cursor, s *piece, do func(now int64, commands []byte) error) (more bool, err error) {
	r, err := p.object(s.Object)
	if err != nil {
		return false, err
	}
	defer r.Close()
	return r.records(at, s, func(e *journal.Entry) (bool, error) {
		if e.Now > p.to {
			return false, nil
		}
		p.Count++
		p.Reached = max(p.Reached, e.Now)
		return true, do(e.Now, e.Commands)
	})
}

// records calls do with the records of a piece after a cursor, which it moves, until do returns false.
func (o *object) records(at *cursor, s *piece, do func(e *journal.Entry) (bool, error)) (more bool, err error) {
	met := !at.exact || s.from == at.at
	var buf []byte
	last := s.from
	for {
		e, err := o.record(&buf)
		if err == io.EOF {
			if last != s.to {
				return false, o.damage("it does not end where its name says")
			}
			return true, nil
		}
		if err != nil {
			return false, err
		}
		last = e.After
		if order(e.After, at.at) <= 0 {
			met = met || e.After == at.at
			continue
		}
		if !met {
			return false, fmt.Errorf("%s contradicts the piece before it: more than one server has written to the archive", o.name)
		}
		if more, err := do(&e); err != nil || !more {
			return false, err
		}
		at.at, at.exact = e.After, true
	}
}
