package documents

import (
	"cmp"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"sort"
	"unicode/utf8"

	"github.com/atomredis/atomredis/engine/delta"
)

// A document without pages is stored whole: the format, then the value. A document with pages is stored in parts: the
// root, and every chunk of every divided container. The name of a part is two big-endian numbers: the container's id
// and the chunk's key, or 0 twice for the root. Its data is the format, followed by the root's value, or by the
// container's tag and the elements of the chunk. Values are encoded as in memory, but a divided container is a tag and
// its id in eight bytes. Chunks are stored in the order of their keys, which is also the byte order of their names.

// format is the first byte of every stored form.
const format = 2

// Errors of stored data.
var (
	errFormat  = errors.New("document: unknown stored format")
	errValue   = errors.New("document: a stored value is malformed")
	errTwice   = errors.New("document: a stored object has a member twice")
	errDepth   = errors.New("document: stored values are nested too deep")
	errName    = errors.New("document: the name of a stored part is malformed")
	errOrder   = errors.New("document: stored parts are out of order")
	errNoRoot  = errors.New("document: the root is not stored")
	errPages   = errors.New("document: stored pages belong to no container or to several")
	errNoPages = errors.New("document: a value that is stored whole refers to pages")
)

// partNameLen is the length of a part's name.
const partNameLen = 16

// partName returns the name of a part.
func partName(id, key uint64) string {
	var b [partNameLen]byte
	binary.BigEndian.PutUint64(b[:], id)
	binary.BigEndian.PutUint64(b[8:], key)
	return string(b[:])
}

func parsePart(name string) (id, key uint64, ok bool) {
	if len(name) != partNameLen {
		return 0, 0, false
	}
	b := []byte(name)
	return binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:]), true
}

// note must be called before a part changes, appears or goes.
func (d *Document) note(id, key uint64) {
	if d.parts != nil && d.parts.log != nil {
		name := partName(id, key)
		d.parts.log.Before([]byte(name), d)
		if d.parts.former != nil {
			d.noteFormer()
		}
		d.parts.log.After(name, 0)
	}
}

// Large reports whether the document must be stored in parts. A document that was large once stays so.
func (d *Document) Large() bool { return d.parts != nil }

// Track makes a Large document note changed parts in l from now on. All present parts count as changed.
func (d *Document) Track(l *delta.Log) {
	d.Attach(l)
	d.parts.former = nil // the document gets another number in the store
	d.eachPart(func(name string) { l.After(name, 0) })
}

// eachPart calls fn with the names of all parts.
func (d *Document) eachPart(fn func(name string)) {
	fn(partName(0, 0))
	for _, b := range d.parts.big {
		if !b.gone {
			for _, ch := range b.chunks {
				fn(partName(b.id, ch.key))
			}
		}
	}
}

// Attach makes a Large document note changed parts in l from now on; nil ends that.
func (d *Document) Attach(l *delta.Log) { d.parts.log = l }

// Log returns the record of changes, nil if the document has none.
func (d *Document) Log() *delta.Log {
	if d.parts == nil {
		return nil
	}
	return d.parts.log
}

// Walk calls fn with the names of about count parts from c on, the root first, and returns where to continue.
func (d *Document) Walk(c delta.Cursor, count int, fn func(name string)) (next delta.Cursor, more bool) {
	if c.Name == "" {
		c.Name = partName(0, 0)
		fn(c.Name)
		count--
	}
	id, key, _ := parsePart(c.Name) // made by this method
	big := d.parts.big
	for i := d.parts.from(id); i < len(big); i++ {
		b, k := big[i], 0
		if b.gone {
			continue
		}
		if b.id == id {
			k = sort.Search(len(b.chunks), func(k int) bool { return b.chunks[k].key > key })
		}
		for ; k < len(b.chunks); k++ {
			if count <= 0 {
				return c, true
			}
			c.Name = partName(b.id, b.chunks[k].key)
			fn(c.Name)
			count--
		}
	}
	return c, false
}

// AppendPart appends the stored form of a part to dst; ok is false if there is no such part.
func (d *Document) AppendPart(dst []byte, name string) (out []byte, ok bool) {
	id, key, ok := parsePart(name)
	if !ok {
		return dst, false
	}
	if id == 0 {
		if key != 0 || !d.Large() {
			return dst, false
		}
		return d.root.appendStored(append(dst, format), false), true
	}
	b := d.pagesOf(id)
	if b == nil {
		return dst, false
	}
	k, ok := b.find(key)
	if !ok {
		return dst, false
	}
	return b.chunks[k].appendStored(append(dst, format, byte(tagArray+btoi(b.object))), b.object), true
}

// AppendBlob appends the stored form of a document that is not Large.
func (d *Document) AppendBlob(dst []byte) []byte {
	return d.root.appendStored(append(dst, format), false)
}

// appendStored appends the elements of a chunk in their stored form.
func (ch *chunk) appendStored(dst []byte, object bool) []byte {
	if !ch.refers() {
		return append(dst, ch.enc...)
	}
	for at := 0; at < len(ch.enc); {
		it := itemAt(ch.enc, at, object)
		if i, ok := refAt(ch.enc[it.value:]); ok {
			dst = append(dst, ch.enc[it.at:it.value+1]...)
			dst = binary.LittleEndian.AppendUint64(dst, ch.refs[i].id)
		} else {
			dst = append(dst, ch.enc[it.at:it.end]...)
		}
		at = it.end
	}
	return dst
}

// refers reports whether a chunk has a divided element.
func (ch *chunk) refers() bool {
	return slices.ContainsFunc(ch.refs, func(b *pages) bool { return b != nil })
}

// DecodeBlob returns the document that AppendBlob has stored, or an error if b is not one. It does not keep b.
func DecodeBlob(b []byte) (*Document, error) {
	if len(b) > 0 && b[0] == formerFormat {
		return decodeFormer(b[1:])
	}
	if len(b) == 0 || b[0] != format {
		return nil, errFormat
	}
	r := reader{b: b[1:]}
	if err := r.value(0); err != nil {
		return nil, err
	}
	if r.at < len(r.b) {
		return nil, errValue
	}
	return &Document{root: chunk{enc: r.own(), n: 1}}, nil
}

// reader validates stored values.
type reader struct {
	b       []byte
	at      int
	deepest int // nesting of the values read, as Depth
	// refs has the offsets of references to divided containers; divided is called with their ids. Only the outermost
	// level may have them. It is nil if none are possible.
	refs    []int
	divided func(id uint64, object bool) error
}

// take consumes the next n bytes and returns their start; ok is false if there are fewer.
func (r *reader) take(n uint64) (from int, ok bool) {
	if n > uint64(len(r.b)-r.at) {
		return 0, false
	}
	from = r.at
	r.at += int(n)
	return from, true
}

// text consumes n bytes of text.
func (r *reader) text(n uint64) error {
	from, ok := r.take(n)
	if !ok || !utf8.Valid(r.b[from:r.at]) {
		return errValue
	}
	return nil
}

// number consumes a little-endian number of n bytes.
func (r *reader) number(n int) (u uint64, ok bool) {
	from, ok := r.take(uint64(n))
	if ok {
		var b [8]byte
		copy(b[:], r.b[from:r.at])
		u = binary.LittleEndian.Uint64(b[:])
	}
	return u, ok
}

// value consumes a value nested in depth others.
func (r *reader) value(depth int) error {
	from, ok := r.take(1)
	if !ok {
		return errValue
	}
	tag := r.b[from]
	switch {
	case tag >= smallInt:
		return nil
	case tag >= shortText:
		return r.text(uint64(tag - shortText))
	case tag >= tags:
		return errValue
	}
	switch tag {
	case tagText8, tagText16, tagText32:
		n, ok := r.number(1 << (tag - tagText8))
		if !ok {
			return errValue
		}
		return r.text(n)
	case tagArray, tagObject:
		return r.container(tag == tagObject, depth)
	case tagArrayRef, tagObjectRef:
		id, ok := r.number(storedRefSize - 1)
		switch {
		case !ok:
			return errValue
		case r.divided == nil:
			return errNoPages
		case depth > 0:
			return errPages
		}
		r.refs = append(r.refs, from)
		return r.divided(id, tag == tagObjectRef)
	}
	u, ok := r.number(int(fixed[tag]) - 1)
	if !ok || tag == tagUint64 && u <= math.MaxInt64 {
		return errValue
	}
	if tag >= tagDouble && tag <= tagBFloat16 {
		if f := decode(r.b[from:], nil).Float(); math.IsInf(f, 0) || math.IsNaN(f) {
			return errValue
		}
	}
	return nil
}

// container consumes the rest of a container, after its tag.
func (r *reader) container(object bool, depth int) error {
	from, ok := r.take(headSize - 1)
	if !ok {
		return errValue
	}
	size, count := head(r.b[from-1:])
	if size > len(r.b)-r.at {
		return errValue
	}
	if r.deepest = max(r.deepest, depth+1); depth+1 > formerDepth {
		return errDepth
	}
	end := r.at + size
	n, err := r.items(end, object, depth+1)
	if err == nil && (n != count || r.at != end) {
		err = errValue
	}
	return err
}

// items consumes the elements that begin before end, and returns their number.
func (r *reader) items(end int, object bool, depth int) (n int, err error) {
	var names []string
	var seen map[string]struct{}
	for ; r.at < end; n++ {
		if object {
			size, ok := r.number(1)
			if ok && size == longName {
				size, ok = r.number(4)
			}
			if !ok {
				return n, errValue
			}
			from := r.at
			if err := r.text(size); err != nil {
				return n, err
			}
			name := view(r.b[from:r.at])
			switch {
			case len(names) < manyMembers && indexOf(names, name) >= 0:
				return n, errTwice
			case len(names) < manyMembers:
				names = append(names, name)
			case seen == nil:
				seen = make(map[string]struct{}, 2*manyMembers)
				for _, name := range names {
					seen[name] = struct{}{}
				}
				fallthrough
			default:
				if _, twice := seen[name]; twice {
					return n, errTwice
				}
				seen[name] = struct{}{}
			}
		}
		if err := r.value(depth); err != nil {
			return n, err
		}
	}
	return n, nil
}

// Loader builds a Large document from its parts.
type Loader struct {
	d    *Document
	last string // the name of the last part
	root bool   // seen
	// containers has the divided containers by id. An entry is created by the first reference to it or by its first
	// chunk, whichever comes first.
	containers map[uint64]*loaded
	former     *formerParts // nil unless the parts are of form 1
}

// loaded is a divided container.
type loaded struct {
	pages   *pages
	deepest []int // nesting of the chunks' content, as Depth
	used    bool  // a value refers to it
	visited bool
}

// NewLoader returns a Loader that has no parts.
func NewLoader() *Loader {
	return &Loader{d: &Document{parts: &parts{}}, containers: map[uint64]*loaded{}}
}

// Add adds the part with the given name and data, and keeps neither. Parts come in the byte order of their names, each
// once; a part out of order, or one that belongs to no document, is an error. After an error the Loader is useless.
func (l *Loader) Add(name, data []byte) error {
	id, key, ok := parsePart(string(name))
	if !ok || id == 0 && key != 0 {
		return errName
	}
	if string(name) <= l.last { // no name is empty
		return errOrder
	}
	first := l.last == ""
	l.last = string(name)
	if len(data) > 0 && data[0] == formerFormat && (first || l.former != nil) {
		if l.former == nil {
			l.former = new(formerParts)
		}
		l.former.add(id, name, data[1:])
		return nil
	}
	if len(data) == 0 || data[0] != format || l.former != nil {
		return errFormat
	}
	ch := &chunk{n: 1, key: key}
	r := reader{b: data[1:], divided: func(id uint64, object bool) error {
		b, err := l.use(id, object)
		ch.refs = append(ch.refs, b)
		return err
	}}
	if id == 0 {
		err := r.value(0)
		if err == nil && r.at < len(r.b) {
			err = errValue
		}
		ch.enc = r.own()
		l.d.root, l.root = *ch, true
		return err
	}
	if len(r.b) < 2 || r.b[0] != tagArray && r.b[0] != tagObject {
		return errValue
	}
	object := r.b[0] == tagObject
	r.b = r.b[1:]
	n, err := r.items(len(r.b), object, 0)
	if err == nil && r.at != len(r.b) {
		err = errValue
	}
	if err != nil {
		return err
	}
	c, err := l.container(id, object)
	if err != nil {
		return err
	}
	ch.n, ch.enc = n, r.own()
	c.pages.chunks, c.deepest = append(c.pages.chunks, ch), append(c.deepest, r.deepest)
	return nil
}

// own returns a copy of the data read, with references as a chunk has them: in the order of its refs.
func (r *reader) own() []byte {
	enc := make([]byte, 0, len(r.b)-len(r.refs)*(storedRefSize-refSize))
	from := 0
	for i, at := range r.refs {
		enc = append(enc, r.b[from:at]...)
		enc = appendRef(enc, r.b[at] == tagObjectRef, i)
		from = at + storedRefSize
	}
	return append(enc, r.b[from:]...)
}

// container returns the divided container with an id, and creates it if it is new.
func (l *Loader) container(id uint64, object bool) (*loaded, error) {
	c := l.containers[id]
	if c == nil {
		c = &loaded{pages: &pages{id: id, object: object}}
		l.containers[id] = c
	}
	if id == 0 || c.pages.object != object {
		return nil, errPages
	}
	return c, nil
}

// use returns a container for the value that refers to it.
func (l *Loader) use(id uint64, object bool) (*pages, error) {
	c, err := l.container(id, object)
	if err != nil {
		return nil, err
	}
	if c.used {
		return nil, errPages
	}
	c.used = true
	return c.pages, nil
}

// Finish returns the document, which notes its changes in log.
func (l *Loader) Finish(log *delta.Log) (*Document, error) {
	if l.former != nil {
		return l.former.document(log)
	}
	d := l.d
	if !l.root {
		return nil, errNoRoot
	}
	if err := l.settle(d.root.refs, 0); err != nil {
		return nil, err
	}
	for id, c := range l.containers {
		if !c.visited {
			return nil, errPages
		}
		d.parts.ids = max(d.parts.ids, id)
		d.parts.big = append(d.parts.big, c.pages)
	}
	slices.SortFunc(d.parts.big, func(a, b *pages) int { return cmp.Compare(a.id, b.id) })
	d.parts.log = log
	return d, nil
}

// settle computes the unstored fields of containers nested in depth others.
func (l *Loader) settle(refs []*pages, depth int) error {
	for _, b := range refs {
		c := l.containers[b.id]
		c.visited = true
		if depth+1 > formerDepth {
			return errDepth
		}
		b.mem = pagesSize
		for k, ch := range b.chunks {
			if depth+1+c.deepest[k] > formerDepth {
				return errDepth
			}
			if err := l.settle(ch.refs, depth+1); err != nil {
				return err
			}
			b.count += ch.n
			b.mem += ch.memory()
		}
		b.mem += b.reindex()
		if b.mixed && b.twice() {
			return errTwice
		}
	}
	return nil
}

// twice reports whether an object repeats a name.
func (b *pages) twice() bool {
	names := make(map[string]struct{}, b.count)
	b.value().Elements(func(_ int, name string, _ Value) bool {
		names[name] = struct{}{}
		return true
	})
	return len(names) < b.count
}
