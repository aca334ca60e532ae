package text

import (
	"slices"
	"strings"
)

// Limits of an index's synonyms.
const (
	MaxSynonymTerms  = 1_000_000
	MaxGroupsPerTerm = 4096
)

// Synonyms are groups of words that mean the same. A word may be in several groups, and is never removed from one.
// The zero value has none.
type Synonyms struct {
	groups map[string][]string // of folded words; each group with its prefix
	order  order
}

// Update adds words to a group. If a limit would be exceeded it changes no group and returns the reason.
func (s *Synonyms) Update(group string, words ...string) (refused string) {
	term := Group + group
	added := map[string]bool{}
	for _, word := range words {
		word = Fold(word)
		s.order.access()
		groups, known := s.groups[word]
		switch {
		case !known:
			added[word] = true
		case !slices.Contains(groups, term) && len(groups) >= MaxGroupsPerTerm:
			return "Maximum group IDs per term limit reached"
		}
	}
	if len(s.groups)+len(added) > MaxSynonymTerms {
		return "Maximum synonym terms limit reached"
	}
	if s.groups == nil {
		s.groups = map[string][]string{}
	}
	for _, word := range words {
		word = strings.Clone(Fold(word))
		s.order.access()
		groups, known := s.groups[word]
		if !known {
			s.order.add(word)
		}
		if !slices.Contains(groups, term) {
			s.groups[word] = append(groups, term)
		}
	}
	return ""
}

// Groups returns the terms of a folded word's groups, in the order in which it joined them. The slice must not be
// changed.
func (s *Synonyms) Groups(word []byte) []string {
	if s == nil {
		return nil
	}
	return s.groups[string(word)]
}

// Len returns how many words are in groups.
func (s *Synonyms) Len() int {
	if s == nil {
		return 0
	}
	return len(s.groups)
}

// All calls yield for each word and its groups, whose names have the prefix Group, until yield returns false. The
// order is that of Redis after the same updates.
func (s *Synonyms) All(yield func(word string, groups []string) bool) {
	if s == nil {
		return
	}
	s.order.all(func(word string) bool { return yield(word, s.groups[word]) })
}

// Clone returns an independent copy.
func (s *Synonyms) Clone() *Synonyms {
	c := &Synonyms{groups: make(map[string][]string, s.Len())}
	if s != nil {
		for word, groups := range s.groups {
			c.groups[word] = slices.Clip(groups)
		}
		c.order = s.order.clone()
	}
	return c
}
