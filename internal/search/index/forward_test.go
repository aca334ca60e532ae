package index

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/atomredis/atomredis/internal/search/schema"
	"github.com/atomredis/atomredis/internal/search/value"
	"github.com/atomredis/atomredis/internal/testing/testseed"
)

// mapFields is a hash.
type mapFields map[string]string

func (m mapFields) Get(field []byte) ([]byte, bool) {
	v, ok := m[string(field)]
	return []byte(v), ok
}

// What an index tells of a document of a view is what the hash had, whatever changes afterwards; and of living
// documents with plain values it can tell.
func TestForwardHasTheValuesOfTheHashes(t *testing.T) {
	words := [][]byte{}
	for _, w := range []string{"SCHEMA", "t", "TEXT", "place", "GEO", "g", "TAG", "INDEXEMPTY", "n", "NUMERIC", "u", "TAG", "SEPARATOR", ";",
		"CASESENSITIVE", "m", "NUMERIC", "SORTABLE"} {
		words = append(words, []byte(w))
	}
	plain := map[string][]string{
		"t": {"some words", "more words here", "words"}, "place": {"1,2", "3,4"}, "g": {"red", "blue", "", "green tea", "grün"},
		"n": {"1", "-0", "1e3", "007", "2.50", "inf", "+5"}, "u": {"Red", "a,b", "x"}, "m": {"4", "5.5"},
	}
	others := map[string][]string{
		"g": {"Red", "red,blue", " red", "red,red", ",", "red,"}, "n": {"0x10", "0X1p2"}, "u": {"a;b", "x ", ";"},
	}
	testseed.Check(t, func(rt *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 4))
		def, err := schema.Parse("x", words, schema.Checks{})
		require.NoError(rt, err)
		x, b := New(def), NewBuilder(Options{})
		change := func(i int) mapFields {
			key, hash := fmt.Sprint("d:", r.IntN(30)), mapFields{}
			if r.IntN(6) == 0 {
				x.Remove(key)
				return nil
			}
			for _, f := range def.Fields {
				if list := plain[f.Path]; r.IntN(5) > 0 {
					hash[f.Path] = list[r.IntN(len(list))]
				}
				if list := others[f.Path]; len(list) > 0 && r.IntN(3) == 0 {
					hash[f.Path] = list[r.IntN(len(list))]
				}
				if f.Path == "g" && r.IntN(2) == 0 { // a tag that comes and goes
					hash["g"] = fmt.Sprint("tag", i)
				}
			}
			b.Build(x, key, &HashDocument{Hash: hash}, nil)
			x.Put(b)
			return hash
		}
		hashes := map[uint64]mapFields{}
		for i := range r.IntN(100) {
			if hash := change(i); hash != nil {
				hashes[x.docs.Last()] = hash
			}
		}
		x.View(func(v View) {
			forward, docs := v.Forward(), v.Docs()
			x.mu.RUnlock()
			defer x.mu.RLock()
			cleared := false
			for round := range 3 {
				for id := range docs.Last() + 1 {
					d := docs.Get(id)
					if d == nil || r.IntN(3) == 0 {
						continue
					}
					require.Equal(rt, !cleared && x.docs.Alive(id), forward.Current(id))
					for _, f := range def.Fields {
						want, has := hashes[id][f.Path]
						got, ok := "", false
						switch {
						case !forward.Has(f):
							continue
						case f.Name == "n" || f.Name == "m":
							var n float64
							if n, ok = forward.Number(d, f); ok {
								parsed, valid := value.ParseNumber(want)
								require.True(rt, valid, want)
								require.Equal(rt, parsed, n)
							}
						default:
							if got, ok = forward.Tag(id, d, f); ok {
								require.Equal(rt, want, got)
							}
						}
						require.False(rt, ok && !has, "%s of %v", f.Name, hashes[id])
						if has && round == 0 {
							require.Equal(rt, !slices.Contains(others[f.Name], want), ok, "%s=%q", f.Name, want)
						}
					}
				}
				for i := range r.IntN(40) {
					change(1000*(round+1) + i)
				}
				if r.IntN(8) == 0 {
					x.Clear()
					cleared = true
				}
			}
		})
	})
}

// A column is as long as its tags need, and never forgets one because it grows.
func TestAColumnOfTagsGrows(t *testing.T) {
	var c tagColumn
	set := func(number uint32) {
		*c.slot(number) = knownTag{text: strconv.Itoa(int(number)), number: number, set: true}
	}
	for number := range uint32(fewTags) {
		set(number)
	}
	require.Len(t, c.known, fewTags)
	for number := range uint32(mostTags) {
		set(number)
	}
	require.Len(t, c.known, mostTags)
	for number := range uint32(mostTags) {
		require.Equal(t, knownTag{strconv.Itoa(int(number)), number, true}, *c.slot(number))
	}
	set(mostTags)
	require.Len(t, c.known, mostTags)
	require.Equal(t, strconv.Itoa(mostTags), c.slot(0).text, "the last one with a place keeps it")
}
