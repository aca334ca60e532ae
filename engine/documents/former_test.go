package documents

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/engine/delta"
)

// formerDocument is a document in form 1. The last version that wrote this form wrote testdata/form1.json.
type formerDocument struct {
	Text  string
	Blob  []byte
	Names [][]byte
	Parts [][]byte
}

func formerDocuments(t *testing.T) (all []formerDocument) {
	b, err := os.ReadFile("testdata/form1.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(b, &all))
	require.Len(t, all, 10)
	return all
}

func TestFormOneIsRead(t *testing.T) {
	for _, f := range formerDocuments(t) {
		if f.Parts == nil {
			d, err := DecodeBlob(f.Blob)
			require.NoError(t, err)
			require.Equal(t, f.Text, printed(d.Root()))
			if !d.Large() {
				again, err := DecodeBlob(d.AppendBlob(nil))
				require.NoError(t, err)
				require.Equal(t, f.Text, printed(again.Root()))
			}
			for n := 1; n < len(f.Blob); n++ {
				_, err := DecodeBlob(f.Blob[:n])
				require.Error(t, err)
			}
			continue
		}
		stored := map[string][]byte{}
		for i, name := range f.Names {
			stored[string(name)] = f.Parts[i]
		}
		epochs := &delta.Epochs{Current: 1}
		log := delta.NewLog(7, epochs)
		d := load(t, stored, log)
		check(t, d)
		require.True(t, d.Large(), "it stays so")
		require.True(t, log.Clean(), "nothing has changed")
		require.Equal(t, f.Text, printed(d.Root()))
		for name := range stored { // with one part of another form, the document is refused
			mixed := maps.Clone(stored)
			mixed[name] = append([]byte{format}, stored[name][1:]...)
			l, failed := NewLoader(), false
			for _, name := range slices.Sorted(maps.Keys(mixed)) {
				failed = failed || l.Add([]byte(name), mixed[name]) != nil
			}
			require.True(t, failed)
		}

		// The first change, some checkpoints later, rewrites all parts, and nothing of form 1 is left.
		epochs.Current += 3
		place := (*Place)(nil).Element(1)
		if d.Root().Kind() == Object {
			place = (*Place)(nil).Member("note")
		}
		for i := range 2 {
			require.True(t, d.Replace(place, Int(int64(i))))
			epochs.Current++
			for _, name := range log.Frozen().Sorted() {
				if part, ok := log.AppendFrozen(nil, name, d); ok {
					stored[name] = part
				} else {
					delete(stored, name)
				}
			}
			log.Done()
			require.True(t, log.Clean())
			for _, part := range stored {
				require.EqualValues(t, format, part[0])
			}
			again := load(t, stored, nil)
			check(t, again)
			require.Equal(t, printed(d.Root()), printed(again.Root()))
		}
	}
}
