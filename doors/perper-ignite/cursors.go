package perperignite

import (
	le "encoding/binary"
	"strconv"

	"github.com/atomredis/atomredis/internal/protocols/perper/binary"
	"github.com/atomredis/atomredis/internal/wire/ignite"
)

// cursor has the remaining rows of a query.
type cursor interface {
	// next appends the next page to a reply: the number of rows, the rows, and whether there are more. It returns the
	// last too.
	next(r *request) (more bool, err error)
	// cost returns the approximate bytes that it keeps.
	cost() int
}

// Limits of a page. maxKept limits the bytes of all cursors of a peer together; a single cursor may exceed it.
const (
	maxKept      = 64 << 20
	maxPage      = 1 << 16 // rows
	maxPageBytes = 16 << 20
	defaultPage  = 1024
)

// pageOf returns the number of rows of a page for a client that asks for n.
func pageOf(n int32) int {
	if n <= 0 {
		return defaultPage
	}
	return min(int(n), maxPage)
}

// open calls begin, appends the first page of a query to the reply, and keeps the rest.
func (r *request) open(c cursor, begin func()) error {
	p := r.p
	kept := c.cost()
	for _, other := range p.cursors {
		kept += other.cost()
	}
	if len(p.cursors) > 0 && kept > maxKept || p.full() {
		return p.errMany()
	}
	p.lastCursor++
	r.appendInt64(p.lastCursor)
	begin()
	more, err := c.next(r)
	if err == nil && more {
		p.cursors[p.lastCursor] = c
		p.door.cursors.Add(1)
	}
	return err
}

// full reports whether the peer may open no further cursor or continuous query.
func (p *peer) full() bool { return len(p.cursors)+len(p.watches) >= maxCursors }

func (p *peer) errMany() error {
	n := len(p.cursors) + len(p.watches)
	return &failure{ignite.StatusManyCursors, "Too many open cursors: " + strconv.Itoa(n)}
}

// page answers with the next page of an open cursor. It closes the cursor after the last page and after an error.
func (r *request) page() error {
	id := r.Int64()
	if err := r.end(); err != nil {
		return err
	}
	c, err := r.p.cursor(id)
	if err != nil {
		return err
	}
	more, err := c.next(r)
	if err != nil || !more {
		r.p.close(id)
	}
	return err
}

func (p *peer) cursor(id int64) (cursor, error) {
	c := p.cursors[id]
	if c == nil {
		return nil, &failure{ignite.StatusNoResource, "Failed to find resource with id: " + strconv.FormatInt(id, 10)}
	}
	return c, nil
}

func (p *peer) close(id int64) {
	delete(p.cursors, id)
	p.door.cursors.Add(-1)
}

func (r *request) closeCursor() error {
	id := r.Int64()
	if err := r.end(); err != nil {
		return err
	}
	if w := r.p.watches[id]; w != nil {
		r.p.unwatch(id, w)
		return nil
	}
	if _, err := r.p.cursor(id); err != nil {
		return err
	}
	r.p.close(id)
	return nil
}

// scanning is a cursor over the keys and values of a cache.
type scanning struct {
	cache int32
	page  int
	at    string   // cursor of PERPER.SCAN; "0" at the end
	begun bool     // the scan has begun
	found [][]byte // keys and values that are not sent yet
}

// cost implements cursor. A scan keeps little.
func (s *scanning) cost() int { return 0 }

// errFilter is the error for a query with a filter: that is an object of the client's program, which cannot run here.
func errFilter(what string, filter []byte) error {
	class := ""
	if o, err := binary.ParseObject(filter); err == nil {
		class = " (type id " + strconv.Itoa(int(o.TypeID)) + ")"
	}
	return &failure{ignite.StatusFailed, what + " with a filter are not supported: its code" + class +
		" cannot run here. Filter in the client, or ask in SQL"}
}

func (r *request) scan() error {
	filter := r.Object()
	if r.Err() == nil && binary.Code(filter[0]) != binary.Null {
		return errFilter("Scan queries", filter)
	}
	s := &scanning{cache: r.cache, page: pageOf(r.Int32()), at: "0"}
	partition := r.Int32()
	r.Bool() // whether to query only this node
	if err := r.end(); err != nil {
		return err
	}
	s.begun = partition > 0 // all keys are in the first partition
	return r.open(s, func() {})
}

// next implements cursor.
func (s *scanning) next(r *request) (more bool, err error) {
	if err := s.fill(r.p); err != nil {
		return false, err
	}
	at, n := len(r.out), 0
	r.appendInt32(0)
	for ; n < s.page && len(s.found) > 0 && len(r.out)-at < maxPageBytes; n++ {
		for _, object := range s.found[:2] {
			r.out = binary.AppendWrapped(r.out, object)
		}
		s.found = s.found[2:]
	}
	le.LittleEndian.PutUint32(r.out[at:], uint32(n))
	more = len(s.found) > 0
	r.appendBool(more)
	return more, nil
}

// fill reads rows until it has one more than a page, or all.
func (s *scanning) fill(p *peer) error {
	for len(s.found)/2 <= s.page && !(s.begun && s.at == "0") {
		reply, err := p.onCache(s.cache, "PERPER.SCAN", s.at, "COUNT", s.page+1-len(s.found)/2, raw)
		if err != nil {
			return err
		}
		parts, err := reply.Slice()
		if err != nil {
			return err
		}
		if s.at, err = parts[0].Text(); err != nil {
			return err
		}
		s.begun = true
		objects, err := parts[1].Slice()
		if err != nil {
			return err
		}
		for _, o := range objects {
			b, err := o.Bytes()
			if err != nil {
				return err
			}
			s.found = append(s.found, b)
		}
	}
	return nil
}
