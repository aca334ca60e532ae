package lsm

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/testing/testseed"
	"github.com/atomredis/atomredis/persist/store"
)

func TestAfter(t *testing.T) {
	for prefix, want := range map[string]string{"a": "b", "k\x00\x00": "k\x00\x01", "k\x00\xff": "k\x01",
		"k\xff\xff": "l"} {
		require.Equal(t, want, string(after([]byte(prefix))))
	}
}

func TestHeadsAreDecodedAsTheyWereStored(t *testing.T) {
	testseed.Check(t, func(t *rapid.T) {
		typ := engine.Type(rapid.IntRange(0, int(engine.Stream)).Draw(t, "type"))
		h := engine.Head{Type: typ, Deadline: rapid.Int64().Draw(t, "deadline"), Blessed: rapid.Bool().Draw(t, "blessed")}
		switch rapid.IntRange(0, 2).Draw(t, "kind") {
		case 0:
			h.Blob = append([]byte{}, rapid.SliceOf(rapid.Byte()).Draw(t, "blob")...)
		case 1:
			h.External = true
		default:
			h.Parts = rapid.Uint64Min(1).Draw(t, "parts")
			if typ == engine.String {
				h.Length = rapid.Uint64Min(1).Draw(t, "length")
			}
		}
		if typ.HasFields() && rapid.Bool().Draw(t, "fields expire") {
			h.FieldDeadline = rapid.Int64().Draw(t, "deadline of fields")
			if id := rapid.Uint64().Draw(t, "their parts"); h.Parts != 0 && id != h.Parts {
				h.FieldParts = id
			}
		}
		got, err := decodeHead(appendHead(nil, h))
		require.NoError(t, err)
		require.Equal(t, h, got)
	})
}

func FuzzHead(f *testing.F) {
	f.Add(appendHead(nil, engine.Head{Type: engine.Hash, Deadline: 1 << 40, Parts: 300}))
	f.Add(appendHead(nil, engine.Head{Type: engine.Hash, Parts: 300, FieldDeadline: 1 << 40, FieldParts: 301}))
	f.Add(appendHead(nil, engine.Head{Type: engine.Hash, FieldDeadline: 1, Blob: []byte("value")}))
	f.Add(appendHead(nil, engine.Head{Blob: []byte("value")}))
	f.Add(appendHead(nil, engine.Head{External: true, Deadline: -1}))
	f.Add(appendHead(nil, engine.Head{Parts: 300, Length: 5 << 20, Deadline: 7}))
	f.Add(appendHead(nil, engine.Head{Blessed: true, Deadline: 7, Blob: []byte("value")}))
	f.Fuzz(func(t *testing.T, b []byte) {
		if h, err := decodeHead(b); err == nil && !bytes.Equal(appendHead(nil, h), b) {
			t.Fatalf("%q is decoded, but stored as %q", b, appendHead(nil, h))
		}
	})
}

func FuzzMeta(f *testing.F) {
	f.Add(appendMeta(nil, store.Meta{}))
	f.Add(appendMeta(nil, store.Meta{Journal: 1 << 50, Spaces: []uint32{0, 1, 1 << 31}, NextSpace: 4, NextParts: 9,
		Saved: 1e12, Keys: 9}))
	f.Add(appendMeta(nil, store.Meta{Spaces: []uint32{1}, Extra: []byte("extra")}))
	f.Fuzz(func(t *testing.T, b []byte) {
		if m, err := decodeMeta(b); err == nil && !bytes.Equal(appendMeta(nil, m), b) {
			t.Fatalf("%q is decoded, but stored as %q", b, appendMeta(nil, m))
		}
	})
}
