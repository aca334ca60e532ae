package zsets

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"

	"github.com/atomredis/atomredis/engine/delta"
)

// This file has the stored forms, in which a score is the 8 bytes of the number, little-endian. A small set is stored
// whole: the format, then score, length (unsigned varint) and bytes of every member, in the order of the set. A large
// one is stored in parts: a part's name is a member and its data the score.

// blobFormat is the first byte of a set stored whole.
const blobFormat = 1

// Errors of stored data.
var (
	errFormat     = errors.New("sorted set: unknown stored format")
	errCut        = errors.New("sorted set: stored form ends within a member")
	errScore      = errors.New("sorted set: a stored score is not a number")
	errOrder      = errors.New("sorted set: stored form is out of order")
	errTwice      = errors.New("sorted set: stored form has a member twice")
	errTooLong    = errors.New("sorted set: stored form is too long for a small set")
	errPartsOrder = errors.New("sorted set: stored members are out of order")
)

// Large reports whether the set must be stored in parts.
func (z *ZSet) Large() bool { return z.large() != nil }

// Track makes a large set note changed members in l from now on. All present members count as changed.
func (z *ZSet) Track(l *delta.Log) {
	z.Attach(l)
	members := &z.large().members
	for i := range members.Len() {
		members.Mark(i, l.Epoch())
		l.After(members.At(i).Key(), members.Len())
	}
}

// Attach makes a large set note changed members in l from now on; nil ends that.
func (z *ZSet) Attach(l *delta.Log) {
	z.large().log = l
	z.large().members.Unmark()
}

// Walk calls fn with the names of about count parts of a large set, as Scan does with its members. A name is a view.
func (z *ZSet) Walk(c delta.Cursor, count int, fn func(name string)) (next delta.Cursor, more bool) {
	c.Number = z.large().members.Scan(c.Number, count, func(m *member) { fn(m.Key()) })
	return c, c.Number != 0
}

// Log returns the record of changes, nil if the set has none.
func (z *ZSet) Log() *delta.Log {
	if l := z.large(); l != nil {
		return l.log
	}
	return nil
}

// AppendPart appends the score of a member of a large set to dst; ok is false if there is no such member.
func (z *ZSet) AppendPart(dst []byte, name string) (out []byte, ok bool) {
	m, ok := z.large().members.GetString(name)
	if !ok {
		return dst, false
	}
	return appendScore(dst, *m.score()), true
}

// AppendBlob appends the stored form of a small set to dst.
func (z *ZSet) AppendBlob(dst []byte) []byte {
	dst = append(dst, blobFormat)
	z.RangeByRank(0, z.Len()-1, false, func(member []byte, score float64) bool {
		dst = appendScore(dst, score)
		dst = append(binary.AppendUvarint(dst, uint64(len(member))), member...)
		return true
	})
	return dst
}

// DecodeBlob returns the set that AppendBlob has stored, or an error if b is not one. It does not keep b.
func DecodeBlob(b []byte) (*ZSet, error) {
	if len(b) == 0 || b[0] != blobFormat {
		return nil, errFormat
	}
	z := New()
	seen := map[string]struct{}{} // views of b
	var last []byte               // the previous member, and its score
	var lastScore float64
	for b = b[1:]; len(b) > 0; {
		if len(b) < scoreLen {
			return nil, errCut
		}
		score, err := decodeScore(b[:scoreLen])
		if err != nil {
			return nil, err
		}
		b = b[scoreLen:]
		n, w := binary.Uvarint(b)
		if w <= 0 || n > uint64(len(b)-w) {
			return nil, errCut
		}
		end := w + int(n)
		member := b[w:end]
		b = b[end:]
		if z.Len() > 0 && !ordered(last, lastScore, member, score) {
			return nil, errOrder
		}
		if !z.small.Fits(2, len(member)+maxScore) {
			return nil, errTooLong
		}
		seen[text(member)] = struct{}{}
		z.insert(member, score)
		if len(seen) != z.Len() {
			return nil, errTwice
		}
		last, lastScore = member, score
	}
	return z, nil
}

func appendScore(dst []byte, score float64) []byte {
	return binary.LittleEndian.AppendUint64(dst, math.Float64bits(score))
}

// decodeScore decodes a stored score, which must be all of b.
func decodeScore(b []byte) (float64, error) {
	if len(b) != scoreLen {
		return 0, errScore
	}
	score := math.Float64frombits(binary.LittleEndian.Uint64(b))
	if math.IsNaN(score) {
		return 0, errScore
	}
	return score, nil
}

// Loader builds a large set from its parts.
type Loader struct{ items []item }

// NewLoader returns a Loader that has no parts.
func NewLoader() *Loader { return new(Loader) }

// Add adds the part with the given name and data, and keeps neither. Parts come in the byte order of their names, each
// once; a part out of order, or an invalid score, is an error. After an error the Loader is useless.
func (l *Loader) Add(name, data []byte) error {
	if n := len(l.items); n > 0 && string(name) <= l.items[n-1].member.Key() {
		return errPartsOrder
	}
	score, err := decodeScore(data)
	if err != nil {
		return err
	}
	l.items = append(l.items, item{score, newMember(name, score)})
	return nil
}

// Finish returns the set, which notes its changes in log. The error is always nil: any members and scores are valid.
func (l *Loader) Finish(log *delta.Log) (*ZSet, error) {
	// Sorted members fill the tree densely and without searching.
	slices.SortFunc(l.items, func(a, b item) int {
		if a.less(&b) {
			return -1
		}
		return 1
	})
	large := &large{log: log}
	for _, it := range l.items {
		large.add(it.member)
	}
	return newLarge(large), nil
}

// PutPart sets a member of a large set to its stored score, without noting a change. There is no deadline.
func (z *ZSet) PutPart(name, data, _ []byte) error {
	score, err := decodeScore(data)
	if err != nil {
		return err
	}
	l := z.large()
	log := l.log
	l.log = nil
	z.setLarge(l, name, score)
	l.log = log
	return nil
}

// DropPart removes a member of a large set, without noting a change.
func (z *ZSet) DropPart(name []byte) {
	l := z.large()
	log := l.log
	l.log = nil
	z.removeLarge(l, name)
	l.log = log
}
