package rdb

import (
	"encoding/binary"
	"iter"
	"strconv"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/hashes"
	"github.com/atomredis/atomredis/engine/lists"
	"github.com/atomredis/atomredis/engine/zsets"
	"github.com/atomredis/atomredis/resp"
)

// SavedLen returns how many bytes Redis takes for a value in an RDB file, behind its type and key. Unlike our own
// files it has small collections, and the nodes of lists, as packed strings. compress says whether strings are
// compressed, limit is the size of a list's nodes.
func SavedLen(entry *engine.Entry, compress bool, limit lists.Limit) int {
	var n counter
	e := Encoder{w: &n, plain: !compress}
	switch entry.Type() {
	case engine.List:
		e.savedList(entry.List(), limit)
	case engine.Set:
		switch s := entry.Set(); s.Encoding() {
		case "intset":
			e.string(intsetOf(s.All()))
		case "listpack":
			e.string(listpackOf(s.All()))
		default:
			e.value(entry)
		}
	case engine.ZSet:
		if z := entry.ZSet(); z.Encoding() == "listpack" {
			e.string(listpackOf(membersAndScores(z)))
		} else {
			e.value(entry)
		}
	case engine.Hash:
		e.savedHash(entry)
	case engine.Stream:
		e.value(entry)
		for _, g := range entry.Stream().Groups() { // every consumer with the time when it was active
			n += counter(8 * len(g.Consumers()))
		}
	default:
		e.value(entry)
	}
	e.flush()
	return int(n)
}

// counter counts what is written.
type counter int

func (n *counter) Write(b []byte) (int, error) {
	*n += counter(len(b))
	return len(b), nil
}

// packedBytes are the head and the end of a listpack.
const packedBytes = 4 + 2 + 1

// sealListpack makes a listpack of its elements, whose number is n.
func sealListpack(elements []byte, n int) []byte {
	size := packedBytes + len(elements)
	pack := binary.LittleEndian.AppendUint32(make([]byte, 0, size), uint32(size))
	pack = binary.LittleEndian.AppendUint16(pack, uint16(min(n, packedUnknown)))
	return append(append(pack, elements...), packedEnd)
}

func listpackOf(elements iter.Seq[[]byte]) []byte {
	var b []byte
	n := 0
	for v := range elements {
		b = appendListpackString(b, v)
		n++
	}
	return sealListpack(b, n)
}

// intsetOf returns the integers as Redis keeps them: all as wide as the widest.
func intsetOf(members iter.Seq[[]byte]) []byte {
	width := 2
	var numbers []int64
	for member := range members {
		n, _ := strconv.ParseInt(string(member), 10, 64)
		switch {
		case n != int64(int32(n)):
			width = 8
		case n != int64(int16(n)):
			width = max(width, 4)
		}
		numbers = append(numbers, n)
	}
	b := binary.LittleEndian.AppendUint32(nil, uint32(width))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(numbers)))
	for _, n := range numbers {
		b = append(b, binary.LittleEndian.AppendUint64(nil, uint64(n))[:width]...)
	}
	return b
}

// membersAndScores iterates over both in turn, from the lowest score on.
func membersAndScores(z *zsets.ZSet) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		z.RangeByRank(0, z.Len()-1, false, func(member []byte, score float64) bool {
			if score == 0 {
				score = 0 // without a sign
			}
			return yield(member) && yield(resp.AppendFloat(nil, score))
		})
	}
}

// savedHash writes a hash. In a packed one every field has its deadline behind its value if any has one, 0 for none.
func (e *Encoder) savedHash(entry *engine.Entry) {
	h := entry.Hash()
	encoding := h.Encoding()
	if encoding == "hashtable" {
		e.value(entry)
		return
	}
	deadlines := encoding == "listpackex"
	if deadlines {
		e.millis(h.NextDeadline())
	}
	e.string(listpackOf(fieldsAndValues(h, deadlines)))
}

func fieldsAndValues(h *hashes.Hash, deadlines bool) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for field, value := range h.All() {
			if !yield(field) || !yield(value) {
				return
			}
			if !deadlines {
				continue
			}
			at, _ := h.Deadline(field)
			if !yield(strconv.AppendInt(nil, at, 10)) {
				return
			}
		}
	}
}

// nodeOverhead is what Redis supposes that an element takes beside its bytes when it looks whether a node has room
// for it.
const nodeOverhead = 8

// savedList writes a list in the nodes that Redis makes of it when its elements are pushed one behind the other.
func (e *Encoder) savedList(l *lists.List, limit lists.Limit) {
	maxBytes, maxEntries := limit.Bounds()
	var nodes [][]byte // each after its kind
	var b []byte
	n := 0
	end := func() {
		if n > 0 {
			nodes = append(nodes, []byte{containerPacked}, sealListpack(b, n))
			b, n = b[:0], 0
		}
	}
	l.Range(0, l.Len()-1, func(v []byte) bool {
		if len(v) > maxBytes {
			end()
			nodes = append(nodes, []byte{containerPlain}, append([]byte(nil), v...))
			return true
		}
		if n > 0 && (packedBytes+len(b)+len(v)+nodeOverhead > maxBytes || n >= maxEntries) {
			end()
		}
		b = appendListpackString(b, v)
		n++
		return true
	})
	end()
	e.length(uint64(len(nodes) / 2))
	for i := 0; i < len(nodes); i += 2 {
		e.length(uint64(nodes[i][0]))
		e.string(nodes[i+1])
	}
}
