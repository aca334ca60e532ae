// Entry IDs: their order, their text, and the forms that commands accept.

package streams

import (
	"bytes"
	"math"
	"strconv"
)

// ID names an entry: a time in milliseconds and a number within that time.
type ID struct{ Ms, Seq uint64 }

// MinID and MaxID are the ends of the ID space, "-" and "+" in commands.
var (
	MinID = ID{}
	MaxID = ID{math.MaxUint64, math.MaxUint64}
)

// Compare returns -1, 0 or 1 as id is before, equal to or after other.
func (id ID) Compare(other ID) int {
	switch {
	case id.Less(other):
		return -1
	case id == other:
		return 0
	}
	return 1
}

// Less reports whether id is before other.
func (id ID) Less(other ID) bool {
	return id.Ms < other.Ms || id.Ms == other.Ms && id.Seq < other.Seq
}

// IsZero reports whether id is 0-0, which no entry can have.
func (id ID) IsZero() bool { return id == MinID }

// Next returns the ID right after id; ok is false if id is the last one.
func (id ID) Next() (next ID, ok bool) {
	if id.Seq < math.MaxUint64 {
		return ID{id.Ms, id.Seq + 1}, true
	}
	if id.Ms < math.MaxUint64 {
		return ID{id.Ms + 1, 0}, true
	}
	return id, false
}

// Prev returns the ID right before id; ok is false if id is 0-0.
func (id ID) Prev() (prev ID, ok bool) {
	if id.Seq > 0 {
		return ID{id.Ms, id.Seq - 1}, true
	}
	if id.Ms > 0 {
		return ID{id.Ms - 1, math.MaxUint64}, true
	}
	return id, false
}

// Append appends the text of id, "ms-seq", to dst.
func (id ID) Append(dst []byte) []byte {
	dst = strconv.AppendUint(dst, id.Ms, 10)
	dst = append(dst, '-')
	return strconv.AppendUint(dst, id.Seq, 10)
}

// String returns the text of id, "ms-seq".
func (id ID) String() string { return string(id.Append(nil)) }

// ParseRangeID parses an end of a range: "ms-seq", "ms" with the given default for seq, "-" or "+".
func ParseRangeID(s []byte, defaultSeq uint64) (id ID, ok bool) {
	switch s = idText(s); {
	case len(s) == 1 && s[0] == '-':
		return MinID, true
	case len(s) == 1 && s[0] == '+':
		return MaxID, true
	}
	id, _, ok = parse(s, defaultSeq, false)
	return id, ok
}

// ParseID parses "ms-seq", or "ms" with the given default for seq.
func ParseID(s []byte, defaultSeq uint64) (id ID, ok bool) {
	id, _, ok = parse(idText(s), defaultSeq, false)
	return id, ok
}

// ParseNewID parses the forms that XADD accepts besides "*": "ms-seq", "ms" for ms-0, and "ms-*", for which autoSeq is
// true and id.Seq is zero; then the stream's NextSeq completes it.
func ParseNewID(s []byte) (id ID, autoSeq, ok bool) {
	return parse(idText(s), 0, true)
}

// maxIDText is the length of the longest text accepted as an ID.
const maxIDText = 127

// idText returns the part of s that Redis reads, which treats IDs as C strings, or nil if s is too long.
func idText(s []byte) []byte {
	if len(s) > maxIDText {
		return nil
	}
	if i := bytes.IndexByte(s, 0); i >= 0 {
		s = s[:i]
	}
	return s
}

func parse(s []byte, defaultSeq uint64, mayAuto bool) (id ID, autoSeq, ok bool) {
	ms, seq, hasSeq := bytes.Cut(s, []byte{'-'})
	if id.Ms, ok = parseNumber(ms); !ok {
		return ID{}, false, false
	}
	switch {
	case !hasSeq:
		id.Seq = defaultSeq
	case mayAuto && len(seq) == 1 && seq[0] == '*':
		autoSeq = true
	default:
		if id.Seq, ok = parseNumber(seq); !ok {
			return ID{}, false, false
		}
	}
	return id, autoSeq, true
}

// parseNumber accepts the same as Redis: an integer in canonical form if it is not negative, and otherwise any text
// that C's strtoull consumes completely. That includes leading space, signs and zeros; a negative number that is not
// canonical (such as "-01") counts down from 2^64.
func parseNumber(s []byte) (uint64, bool) {
	if len(s) > 1 && s[0] == '-' && s[1] != '0' {
		if _, err := strconv.ParseInt(string(s), 10, 64); err == nil {
			return 0, false
		}
	}
	s = bytes.TrimLeft(s, " \t\n\v\f\r")
	negative := false
	if len(s) > 0 && (s[0] == '-' || s[0] == '+') {
		negative = s[0] == '-'
		s = s[1:]
	}
	if len(s) == 0 {
		return 0, false
	}
	var n uint64
	for _, c := range s {
		d := uint64(c - '0')
		if d > 9 || n > (math.MaxUint64-d)/10 {
			return 0, false
		}
		n = n*10 + d
	}
	if negative {
		n = -n
	}
	return n, true
}
