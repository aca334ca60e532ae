package labels

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFindIsAsALookAtAllKeys compares the index with a map of labels.
func TestFindIsAsALookAtAllKeys(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var x Index
	all := map[Key][]Label{}
	name := func() string { return fmt.Sprint("n", rnd.IntN(4)) }
	value := func() string { return fmt.Sprint("v", rnd.IntN(4)) }
	for range 20_000 {
		key := Key{uint32(rnd.IntN(2)), fmt.Sprint("k", rnd.IntN(50))}
		switch rnd.IntN(10) {
		case 0:
			require.Equal(t, all[key], x.Delete(key))
			delete(all, key)
		case 1:
			if rnd.IntN(20) == 0 {
				x.DeleteSpace(key.Space)
				for k := range all {
					if k.Space == key.Space {
						delete(all, k)
					}
				}
			}
		case 2, 3, 4:
			var l []Label
			for range rnd.IntN(4) {
				l = append(l, Label{name(), value()})
			}
			x.Set(key, l)
			if delete(all, key); len(l) > 0 {
				all[key] = l
			}
		default:
			var matchers []Matcher
			for range 1 + rnd.IntN(3) {
				m := Matcher{Name: name(), Not: rnd.IntN(3) == 0}
				for range 1 + rnd.IntN(3) {
					m.Values = append(m.Values, []string{"", value()}[min(rnd.IntN(4), 1)])
				}
				matchers = append(matchers, m)
			}
			if !slices.ContainsFunc(matchers, func(m Matcher) bool { return m.Selects() }) {
				continue
			}
			var want, got []Key
			for k, l := range all {
				if !slices.ContainsFunc(matchers, func(m Matcher) bool { return !fulfils(m, l) }) {
					want = append(want, k)
				}
			}
			x.Find(matchers, func(k Key, l []Label) {
				require.Equal(t, all[k], l)
				got = append(got, k)
			})
			slices.SortFunc(want, Compare)
			slices.SortFunc(got, Compare)
			require.Equal(t, want, got, "%+v", matchers)
		}
		require.Equal(t, len(all), x.Len())
	}
	counts := func(k Key) bool { return k.Space == 0 }
	names, values := map[string]bool{}, map[string]bool{}
	for k, l := range all {
		for _, label := range l {
			if counts(k) {
				names[label.Name] = true
				if label.Name == "n1" {
					values[label.Value] = true
				}
			}
		}
	}
	require.Len(t, x.Names(counts), len(names))
	require.Len(t, x.Values("n1", counts), len(values))
}

// fulfils is another implementation of Matches.
func fulfils(m Matcher, l []Label) bool {
	var values []string
	for _, label := range l {
		if label.Name == m.Name {
			values = append(values, label.Value)
		}
	}
	if len(values) == 0 {
		values = []string{""}
	}
	found := slices.ContainsFunc(values, func(v string) bool { return slices.Contains(m.Values, v) })
	return found != m.Not
}
