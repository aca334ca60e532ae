package lsm

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/persist/store"
)

// The first byte of a key in Pebble says what is stored. Numbers in keys are big-endian, so that they sort by value.
// Spaces and the numbers of parts are never reused after they were dropped.
const (
	prefixHead = 'k' // space, key: a head
	prefixMeta = 'm' // nothing: the store.Meta
	prefixPart = 'u' // number of the parts, name: a part, unchanged
	prefixBlob = 'v' // space, key: a value outside its head, unchanged
	prefixCopy = 'w' // nothing: a copy of the store.Meta, for Verify and Salvage
)

const (
	spaceKeySize = 1 + 4 // length of a head's or blob's key before the name
	partsKeySize = 1 + 8 // length of a part's key before the name
)

var (
	metaKey     = []byte{prefixMeta}
	metaCopyKey = []byte{prefixCopy}
)

func appendSpaceKey(dst []byte, prefix byte, space uint32) []byte {
	return binary.BigEndian.AppendUint32(append(dst, prefix), space)
}

func appendPartsKey(dst []byte, id uint64) []byte {
	return binary.BigEndian.AppendUint64(append(dst, prefixPart), id)
}

// after returns the lowest key after all keys with a prefix. No prefix consists of 0xff bytes alone.
func after(prefix []byte) []byte {
	end := slices.Clone(prefix)
	for i := len(end) - 1; ; i-- {
		if end[i]++; end[i] != 0 {
			return end[:i+1]
		}
	}
}

// A head is stored as its format, type, flags, deadline (varint, if any), number of its parts (uvarint, if any)
// followed by the length of a string (uvarint), deadline of its fields (varint, if any), number of their parts
// (uvarint, if any), and value. Versions that know no strings in parts treat the head of one as damaged, because of the
// bytes after the number.
const (
	headFormat = 1

	headDeadline = 1 << 0
	headParts    = 1 << 1
	headExternal = 1 << 2
	headFields   = 1 << 3 // fields have deadlines
	headIndex    = 1 << 4 // and these have parts
	headCount    = 1 << 5 // the number of elements is known
	headBlessed  = 1 << 6 // the key is never evicted
)

var errHead = errors.New("damaged head")

// appendHead appends the stored form of a head to dst. It includes the value unless that has parts or is external.
func appendHead(dst []byte, h engine.Head) []byte {
	var flags byte
	if h.Deadline != 0 {
		flags |= headDeadline
	}
	if h.Parts != 0 {
		flags |= headParts
	}
	if h.External {
		flags |= headExternal
	}
	if h.FieldDeadline != 0 {
		flags |= headFields
	}
	if h.FieldParts != 0 {
		flags |= headIndex
	}
	if h.Count != 0 {
		flags |= headCount
	}
	if h.Blessed {
		flags |= headBlessed
	}
	dst = append(dst, headFormat, byte(h.Type), flags)
	if h.Deadline != 0 {
		dst = binary.AppendVarint(dst, h.Deadline)
	}
	if h.Parts != 0 {
		dst = binary.AppendUvarint(dst, h.Parts)
	}
	if h.Length != 0 {
		dst = binary.AppendUvarint(dst, h.Length)
	}
	if h.Count != 0 {
		dst = binary.AppendUvarint(dst, h.Count)
	}
	if h.FieldDeadline != 0 {
		dst = binary.AppendVarint(dst, h.FieldDeadline)
	}
	if h.FieldParts != 0 {
		dst = binary.AppendUvarint(dst, h.FieldParts)
	}
	if h.Parts != 0 || h.External {
		return dst
	}
	return append(dst, h.Blob...)
}

// decodeHead reads the output of appendHead. The head's Blob shares the memory of b.
func decodeHead(b []byte) (engine.Head, error) {
	if len(b) < 3 || b[0] != headFormat || !engine.Type(b[1]).Known() {
		return engine.Head{}, errHead
	}
	flags := b[2]
	if flags >= headBlessed<<1 || flags&headParts != 0 && flags&headExternal != 0 || flags&headIndex != 0 &&
		flags&headParts == 0 ||
		flags&(headFields|headIndex) != 0 && !engine.Type(b[1]).HasFields() ||
		flags&headCount != 0 && (flags&headParts == 0 || b[1] == byte(engine.String)) {
		return engine.Head{}, errHead
	}
	h := engine.Head{Type: engine.Type(b[1]), External: flags&headExternal != 0, Blessed: flags&headBlessed != 0}
	d := decoder{b: b[3:]}
	if flags&headDeadline != 0 {
		if h.Deadline = d.varint(); h.Deadline == 0 {
			return engine.Head{}, errHead
		}
	}
	if flags&headParts != 0 {
		if h.Parts = d.uvarint(); h.Parts == 0 {
			return engine.Head{}, errHead
		}
		if h.Type == engine.String {
			if h.Length = d.uvarint(); h.Length == 0 {
				return engine.Head{}, errHead
			}
		}
	}
	if flags&headCount != 0 {
		if h.Count = d.uvarint(); h.Count == 0 {
			return engine.Head{}, errHead
		}
	}
	if flags&headFields != 0 {
		if h.FieldDeadline = d.varint(); h.FieldDeadline == 0 {
			return engine.Head{}, errHead
		}
	}
	if flags&headIndex != 0 {
		if h.FieldParts = d.uvarint(); h.FieldParts == 0 || h.FieldParts == h.Parts {
			return engine.Head{}, errHead
		}
	}
	if d.failed || (h.Parts != 0 || h.External) && len(d.b) != 0 {
		return engine.Head{}, errHead
	}
	if h.Parts == 0 && !h.External {
		h.Blob = d.b
	}
	return h, nil
}

// Older formats have no JournalSeed, and the oldest no Extra either. Only the data of a group has the group's format,
// so that versions without groups can open other data.
const (
	metaFormatOld   = 1
	metaFormatExtra = 2
	metaFormat      = 3
	metaFormatGroup = 4
)

var errMeta = errors.New("damaged meta record")

// appendMeta appends the stored form of m to dst: the format, Group if it has one, the numbers, and Extra.
func appendMeta(dst []byte, m store.Meta) []byte {
	if m.Group == nil {
		dst = append(dst, metaFormat)
	} else {
		dst = append(dst, metaFormatGroup)
		dst = binary.AppendUvarint(dst, uint64(len(m.Group)))
		dst = append(dst, m.Group...)
	}
	dst = binary.AppendUvarint(dst, m.Journal)
	dst = binary.AppendUvarint(dst, uint64(m.JournalSeed))
	dst = binary.AppendUvarint(dst, uint64(m.NextSpace))
	dst = binary.AppendUvarint(dst, m.NextParts)
	dst = binary.AppendVarint(dst, m.Saved)
	dst = binary.AppendVarint(dst, m.Keys)
	dst = binary.AppendUvarint(dst, uint64(len(m.Spaces)))
	for _, space := range m.Spaces {
		dst = binary.AppendUvarint(dst, uint64(space))
	}
	return append(dst, m.Extra...)
}

// decodeMeta reads the output of appendMeta.
func decodeMeta(b []byte) (store.Meta, error) {
	if len(b) == 0 {
		return store.Meta{}, errMeta
	}
	format := b[0]
	if format < metaFormatOld || format > metaFormatGroup {
		return store.Meta{}, fmt.Errorf("%w: format %d is unknown", errMeta, format)
	}
	d := decoder{b: b[1:]}
	var m store.Meta
	if format == metaFormatGroup {
		if m.Group = d.bytes(); len(m.Group) == 0 {
			return store.Meta{}, errMeta
		}
	}
	m.Journal = d.uvarint()
	if format >= metaFormat {
		m.JournalSeed = d.uint32()
	}
	m.NextSpace, m.NextParts, m.Saved, m.Keys = d.uint32(), d.uvarint(), d.varint(), d.varint()
	n := d.uvarint()
	if d.failed || n > uint64(len(d.b)) {
		return store.Meta{}, errMeta
	}
	if n > 0 {
		m.Spaces = make([]uint32, n)
	}
	for i := range m.Spaces {
		m.Spaces[i] = d.uint32()
	}
	if d.failed || format == metaFormatOld && len(d.b) != 0 || format == metaFormatExtra && len(d.b) == 0 {
		return store.Meta{}, errMeta
	}
	if len(d.b) > 0 {
		m.Extra = d.b
	}
	return m, nil
}

// decoder removes numbers from the front of b, accepting only their canonical form. After a failure it returns zeros.
type decoder struct {
	b      []byte
	failed bool
}

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 || n > 1 && d.b[n-1] == 0 {
		d.b, d.failed = nil, true
		return 0
	}
	d.b = d.b[n:]
	return v
}

// bytes reads bytes after their number.
func (d *decoder) bytes() []byte {
	n := d.uvarint()
	if n > uint64(len(d.b)) {
		d.b, d.failed = nil, true
		return nil
	}
	b := d.b[:n:n]
	d.b = d.b[n:]
	return b
}

func (d *decoder) uint32() uint32 {
	v := d.uvarint()
	if v > 1<<32-1 {
		d.b, d.failed = nil, true
		return 0
	}
	return uint32(v)
}

func (d *decoder) varint() int64 {
	v := d.uvarint()
	return int64(v>>1) ^ -int64(v&1)
}
