package objects

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/archive"
	"github.com/atomredis/atomredis/internal/version"
	"github.com/atomredis/atomredis/persist/journal"
)

// making is a base that is uploaded by a goroutine of its own.
type making struct {
	chain  string
	cancel context.CancelCauseFunc
	known  chan struct{} // closed when the following two are known, never if it fails before
	at     journal.Place
	time   int64 // in ms since 1970
	done   chan struct{}
	size   int64 // known when it is done, as is err
	err    error
}

// errBetween means that the keyspace has a part of an entry of the group's log.
var errBetween = errors.New("the data is between two entries of the group's log")

const (
	betweenTries = 1000
	betweenPause = 2 * time.Millisecond
)

// makeBase begins a base for a chain.
func (a *archiver) makeBase(chain string, j journal.Journal) *making {
	ctx, cancel := context.WithCancelCause(a.baseCtx)
	m := &making{chain: chain, cancel: cancel, known: make(chan struct{}), done: make(chan struct{})}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.noBases {
		cancel(nil)
		m.err = errLeft
		close(m.done)
		return m
	}
	a.bases.Go(func() {
		defer a.Changed()
		defer close(m.done)
		defer cancel(nil)
		for range betweenTries {
			if m.err = a.tryBase(ctx, m, j); !errors.Is(m.err, errBetween) {
				break
			}
			select {
			case <-time.After(betweenPause):
			case <-ctx.Done():
			}
		}
	})
	return m
}

// tryBase makes a base. It fails with errBetween before anything is written if the data is not at a position now.
func (a *archiver) tryBase(ctx context.Context, m *making, j journal.Journal) error {
	w := &baseWriter{ctx: ctx, a: a, m: m}
	err := a.o.Base(ctx, w, func(g *engine.Guard) error {
		m.time = g.Now()
		if w.settle = j.Here(); w.settle == nil {
			return errBetween
		}
		return nil
	})
	if err == nil {
		err = w.blocks.end()
	}
	return w.close(err)
}

// baseWriter uploads what is written to it. The name of the object needs the base's place, which is known once everything before
// it is durable: so the upload begins with the first write.
type baseWriter struct {
	ctx    context.Context
	a      *archiver
	m      *making
	settle func(ctx context.Context) (journal.Place, error)
	pipe   *io.PipeWriter // nil before the first write
	blocks *blockWriter
	put    chan error
}

// Write implements io.Writer.
func (w *baseWriter) Write(p []byte) (int, error) {
	if w.pipe == nil {
		if err := w.begin(); err != nil {
			return 0, err
		}
	}
	return w.blocks.Write(p)
}

func (w *baseWriter) begin() error {
	at, err := w.settle(w.ctx)
	if err != nil {
		return err
	}
	w.m.at = at
	close(w.m.known)
	out, in := io.Pipe()
	w.pipe, w.put = in, make(chan error, 1)
	go func() {
		err := w.a.store.Put(w.ctx, baseName(w.m.chain, at, w.m.time), &counted{out, &w.m.size}, -1)
		out.CloseWithError(errors.Join(err, errUploadEnded))
		w.put <- err
	}()
	w.blocks, err = newBlockWriter(in, header{Kind: "base", Server: version.Number, Group: w.a.o.Group()})
	return err
}

var errUploadEnded = errors.New("the upload has ended")

// close ends the upload: with an error nothing is stored.
func (w *baseWriter) close(err error) error {
	if w.pipe == nil {
		return err
	}
	if err != nil {
		w.pipe.CloseWithError(err)
	} else {
		w.pipe.Close()
	}
	if failed := <-w.put; failed != nil {
		return failed
	}
	return err
}

// counted counts what is read.
type counted struct {
	r io.Reader
	n *int64
}

// Read implements io.Reader.
func (c *counted) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	*c.n += int64(n)
	return n, err
}

// advanceBase begins a base when it is time, and notes one that has been made.
func (a *archiver) advanceBase(c *chain, j journal.Journal) error {
	if m := c.making; m != nil {
		a.learn(c)
		select {
		case <-m.done:
		default:
			return nil
		}
		a.learn(c)
		c.making = nil
		if m.err != nil {
			return m.err
		}
		if volume := volumeOf(m.at); c.volumes[len(c.volumes)-1] != volume {
			c.volumes = append(c.volumes[len(c.volumes)-1:], volume)
		}
		c.announce, c.pruned = true, false
		a.mu.Lock()
		c.baseTime = m.time
		a.status.Bases++
		a.status.Bytes += m.size
		a.status.BaseTime, a.status.State, a.behind = time.UnixMilli(m.time), archive.Running, time.Time{}
		if a.status.Time.Before(a.status.BaseTime) {
			a.status.Time = a.status.BaseTime
		}
		a.mu.Unlock()
		a.o.Log.Info("a base is in the archive", "archive", a.store.String(), "chain", c.name, "position", m.at.String(), "bytes", m.size)
	}
	if c.announce {
		if err := putJSON(a.req, a.store, headName, head{Chain: c.name, From: c.volumes[0]}); err != nil {
			return err
		}
		c.announce, c.looked = false, a.now()
	}
	if c.baseTime != 0 && !c.pruned {
		if err := a.prune(c); err != nil {
			return err
		}
		c.pruned = true
	}
	if c.baseTime == 0 || a.now().Sub(time.UnixMilli(c.baseTime)) >= a.set.BaseInterval {
		c.making = a.makeBase(c.name, j)
	}
	return nil
}

// learn begins a new chain's pieces at the place of its first base.
func (a *archiver) learn(c *chain) {
	select {
	case <-c.making.known:
	default:
		return
	}
	if c.known {
		return
	}
	a.mu.Lock()
	c.known, c.at, c.volumes = true, c.making.at, []string{volumeOf(c.making.at)}
	a.status.Position = c.at
	a.mu.Unlock()
	a.o.Keep(c.at.LSN)
}
