package objects

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/atomredis/atomredis/persist/journal"
)

// Chain describes what an archive has of a history without a gap.
type Chain struct {
	Name     string
	From, To int64 // the first and the last instant that can be restored, in ms since 1970; 0 if there is none
	Bases    []Base
	Pieces   int
	Bytes    int64
	Problems []error // what Check has found
	// Leftover says that there is no base: a first one was never completed.
	Leftover bool
}

// Base describes a base.
type Base struct {
	Name string
	Time int64 // in ms since 1970
	Size int64
}

// List describes the chains of an archive by the names of their objects, the oldest one first.
func List(ctx context.Context, s Store) (found []Chain, err error) {
	names, err := chainsOf(ctx, s)
	for i := 0; err == nil && i < len(names); i++ {
		var c Chain
		if c, _, err = describe(ctx, s, names[i]); err == nil {
			found = append(found, c)
		}
	}
	return found, err
}

// describe describes a chain by the names of its objects.
func describe(ctx context.Context, s Store, name string) (c Chain, all contents, err error) {
	if all, err = read(ctx, s, name, "", nil); err != nil {
		return c, all, err
	}
	c = Chain{Name: name, Pieces: len(all.pieces), Leftover: len(all.bases) == 0}
	for _, b := range all.bases {
		c.Bases = append(c.Bases, Base{b.Name, b.time, b.Size})
		c.Bytes += b.Size
	}
	for _, p := range all.pieces {
		c.Bytes += p.Size
	}
	if c.Leftover {
		return c, all, nil
	}
	at := all.bases[0].at
	c.From, c.To = all.bases[0].time, all.bases[0].time
	steps, end, gap := path(all.pieces, at)
	for _, p := range steps {
		c.To = max(c.To, p.through)
	}
	for _, b := range all.bases {
		if gap == nil && order(b.at, end) <= 0 { // the pieces before a new base may not be there yet
			c.To = max(c.To, b.time)
		}
	}
	if order(all.reach.place, end) == 0 {
		c.To = max(c.To, all.reach.time)
	}
	for gap != nil {
		c.Problems = append(c.Problems, fmt.Errorf("%s: a piece is missing between the positions %s and %s (before %s)", name, end,
			gap.from, times(gap.first)))
		_, end, gap = path(all.pieces, gap.from)
	}
	return c, all, nil
}

// Check reads a whole archive, and describes its chains with all problems. progress is called with the bytes that are read, of
// all; it may be nil.
func Check(ctx context.Context, s Store, progress func(done, total int64)) (found []Chain, err error) {
	names, err := chainsOf(ctx, s)
	if err != nil {
		return nil, err
	}
	var parts []contents
	total := int64(0)
	for _, name := range names {
		c, all, err := describe(ctx, s, name)
		if err != nil {
			return found, err
		}
		found, parts = append(found, c), append(parts, all)
		total += c.Bytes
	}
	done := int64(0)
	for i := range found {
		c := &found[i]
		for j := range parts[i].bases {
			err := verify(ctx, s, parts[i].bases[j].Object, func(o *object) error {
				_, err := io.Copy(io.Discard, o.blockReader)
				return err
			})
			c.Problems = append(c.Problems, problems(err)...)
			if done += parts[i].bases[j].Size; progress != nil {
				progress(done, total)
			}
		}
		var at cursor
		for j := range parts[i].pieces {
			p := &parts[i].pieces[j]
			if order(p.from, at.at) > 0 {
				at = cursor{at: p.from} // there is a gap before it, which is known
			}
			err := verify(ctx, s, p.Object, func(o *object) error {
				_, err := o.records(&at, p, func(*journal.Entry) (bool, error) { return true, nil })
				return err
			})
			if err != nil {
				c.Problems, at = append(c.Problems, err), cursor{at: p.to}
			}
			if done += p.Size; progress != nil {
				progress(done, total)
			}
		}
		if ctx.Err() != nil {
			return found, ctx.Err()
		}
	}
	return found, nil
}

func problems(err error) []error {
	if err == nil {
		return nil
	}
	return []error{err}
}

// verify reads an object. It is no error if the object has been deleted since it was listed: the server's retention does that, and
// the next list shows what is missing.
func verify(ctx context.Context, s Store, o Object, read func(o *object) error) error {
	r, err := s.Get(ctx, o.Name)
	if err == nil {
		var b *blockReader
		if b, err = newBlockReader(o.Name, r); err == nil {
			err = read(&object{b, r})
		}
		err = errors.Join(err, r.Close())
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
