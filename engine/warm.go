package engine

import (
	"bytes"
	"math/bits"
	"slices"
	"unsafe"

	"github.com/atomredis/atomredis/engine/dict"
	"github.com/atomredis/atomredis/engine/prefetch"
)

// Hint names data that a command will use.
type Hint struct {
	Key []byte
	// Element is a field or member of the collection; nil if unknown.
	Element []byte
}

// WarmBatch is how many keys are warmed together: about as many reads as a processor can have under way.
const WarmBatch = 16

// warmFrom is the number of keys in a shard from which keys are warmed: with fewer, the processor's cache has them
// anyway.
const warmFrom = 512

// Warm prefetches the memory of entries, and of elements of their values, that will be used. It works in steps, so that
// the processor fetches the memory of all of them in parallel, instead of waiting for each when its command runs. It
// changes nothing. There must be a hint.
func (g *Guard) Warm(db int, hints []Hint) {
	first := g.shardOfKey(hints[0].Key) // the same for all hints
	if first.dbs[db].dict.Len() < warmFrom && !slices.ContainsFunc(hints, func(h Hint) bool { return h.Element != nil }) {
		return
	}
	for len(hints) > 0 {
		n := min(len(hints), WarmBatch)
		g.warm(db, hints[:n])
		hints = hints[n:]
	}
}

// WarmKeys is Warm for the first WarmBatch keys in args, which are step arguments apart.
func (g *Guard) WarmKeys(db int, args [][]byte, step int) {
	var hints [WarmBatch]Hint
	n := 0
	for i := 0; i < len(args) && n < len(hints); i += step {
		hints[n].Key = args[i]
		n++
	}
	if n > 1 {
		g.Warm(db, hints[:n])
	}
}

// TryWarm is Guard.Warm for a caller without a guard. It does nothing if one of the shards is locked.
func (ks *Keyspace) TryWarm(db int, hints []Hint) {
	g := Guard{ks: ks}
	defer g.unlockShards()
	for i := range hints {
		if bit := ks.ShardOf(hints[i].Key); g.locked&bit == 0 {
			if !ks.shards[bits.TrailingZeros64(bit)].mu.TryLock() {
				return
			}
			g.locked |= bit
		}
	}
	g.Warm(db, hints)
}

func (g *Guard) warm(db int, hints []Hint) {
	var list prefetch.List
	var hashes [WarmBatch]dict.Hash
	var at [WarmBatch]int

	var tables [WarmBatch]*dict.Table[*Entry] // nil if the key repeats the previous one, as in many pipelines
	for i := range hints {
		key := hints[i].Key
		if i > 0 && bytes.Equal(key, hints[i-1].Key) {
			continue
		}
		t := &g.shardOfKey(key).dbs[db].dict
		hash, slot := t.Slot(key)
		tables[i], hashes[i] = t, hash
		list.Add(slot, 1)
	}
	list.Fetch()
	for i := range hints {
		if t := tables[i]; t != nil {
			n, element := t.Element(hashes[i])
			at[i] = n
			list.Add(element, 1)
		}
	}
	list.Fetch()
	var entries [WarmBatch]*Entry
	for i := range hints {
		if t := tables[i]; t == nil {
			entries[i] = entries[i-1]
		} else if at[i] >= 0 {
			entries[i] = *t.At(at[i])
			list.Add(uintptr(unsafe.Pointer(entries[i])), int(unsafe.Sizeof(Entry{})))
		}
	}
	list.Fetch()
	for i := range hints {
		if e := entries[i]; e != nil && tables[i] != nil {
			list.Add(uintptr(unsafe.Pointer(e.text)), max(int(e.keyLen)+int(e.strLen), 1))
			list.Add(uintptr(e.obj), 1)
		}
	}
	list.Fetch()

	var elements [WarmBatch]dict.Ahead
	for i := range hints {
		switch e := entries[i]; {
		case e == nil:
		case hints[i].Element != nil:
			if elements[i] = e.ahead(); elements[i] != nil {
				hash, slot := elements[i].Slot(hints[i].Element)
				hashes[i] = hash
				list.Add(slot, 1)
			}
		case tables[i] != nil:
			if long := e.long(); long != nil {
				list.Add(uintptr(unsafe.Pointer(unsafe.SliceData(long.b))), len(long.b))
			}
		}
	}
	list.Fetch()
	for i, t := range elements[:len(hints)] {
		if t != nil {
			n, element := t.Element(hashes[i])
			at[i] = n
			list.Add(element, 1)
		}
	}
	list.Fetch()
	for i, t := range elements[:len(hints)] {
		if t != nil && at[i] >= 0 {
			size := 1
			if entries[i].typ == Hash {
				size += prefetch.LineSize // a field's value follows its name
			}
			list.Add(t.Word(at[i]), size)
		}
	}
	list.Fetch()
}
