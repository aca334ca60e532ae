package text

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// dumped returns the words in their order.
func dumped(s *Synonyms) (words []string) {
	for word, groups := range s.All {
		if len(groups) > 0 {
			words = append(words, word)
		}
	}
	return words
}

// The orders are those of a Redis.
func TestSynonymsAreInTheOrderOfRedis(t *testing.T) {
	s := &Synonyms{}
	for _, c := range []struct {
		group       string
		words, want []string
	}{
		{"g1", []string{"boy", "child"}, []string{"child", "boy"}},
		{"g1", []string{"baby"}, []string{"baby", "child", "boy"}},
		{"g2", []string{"runs", "walks"}, []string{"runs", "baby", "child", "boy", "walks"}},
	} {
		require.Empty(t, s.Update(c.group, c.words...))
		require.Equal(t, c.want, dumped(s))
	}
}

func TestTheOrderHasEachWordOnce(t *testing.T) {
	s := &Synonyms{}
	var words []string
	for i := range 300 {
		word := fmt.Sprint("w", i)
		words = append(words, word)
		old := s.Clone()
		before := dumped(old)
		require.Empty(t, s.Update("g", word, word))
		require.Equal(t, before, dumped(old), "a copy is independent")
		got := dumped(s)
		slices.Sort(got)
		require.Equal(t, slices.Sorted(slices.Values(words)), got)
	}
}
