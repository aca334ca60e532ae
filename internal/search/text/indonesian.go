package text

import (
	"strings"

	"github.com/blevesearch/snowballstem"
)

// This file has the stems of Indonesian and Malay by the rules of F. Z. Tala's "A Study of Stemming Effects on Information
// Retrieval in Bahasa Indonesia", as Snowball reads them.

// affixation is a word while its affixes are removed.
type affixation struct {
	word     string
	measure  int // vowels, less one for each removed affix; a word with fewer than three keeps its affixes
	prefixed prefixKind
}

// prefixKind is the removed prefix, which excludes some suffixes.
type prefixKind uint8

const (
	noPrefix prefixKind = iota
	diPrefix            // di, meng, ter and their forms
	perPrefix
	kePrefix // ke, peng and their forms
	berPrefix
)

// indonesian is the Stem of the language.
func indonesian(env *snowballstem.Env) bool {
	a := affixation{word: env.Current()}
	for _, c := range []byte(a.word) {
		if isVowel(c) {
			a.measure++
		}
	}
	if a.measure > 2 {
		a.cutSuffix("kah", "lah", "pun")
	}
	if a.measure > 2 {
		a.cutSuffix("nya", "ku", "mu")
	}
	if a.measure > 2 {
		a.derivation()
	}
	env.SetCurrent(a.word)
	return true
}

// derivation removes derivational prefixes and the suffix.
func (a *affixation) derivation() {
	if !a.firstPrefix() {
		a.secondPrefix()
		if a.measure > 2 {
			a.suffix()
		}
		return
	}
	if a.measure > 2 && a.suffix() && a.measure > 2 {
		a.secondPrefix()
	}
}

func isVowel(c byte) bool { return strings.IndexByte("aeiou", c) >= 0 }

// vowelAt reports whether the word has a vowel at a place.
func (a *affixation) vowelAt(i int) bool { return i < len(a.word) && isVowel(a.word[i]) }

// cutSuffix removes the first of the suffixes that the word has.
func (a *affixation) cutSuffix(suffixes ...string) {
	for _, s := range suffixes {
		if strings.HasSuffix(a.word, s) {
			a.word = strings.TrimSuffix(a.word, s)
			a.measure--
			return
		}
	}
}

// replace replaces the first n letters by others.
func (a *affixation) replace(n int, by string, kind prefixKind) {
	a.word = by + a.word[n:]
	a.measure--
	a.prefixed = kind
}

// firstPrefix removes a prefix of the first order.
func (a *affixation) firstPrefix() bool {
	for _, p := range []struct {
		prefix string
		kind   prefixKind
	}{{"meng", diPrefix}, {"peng", kePrefix}, {"men", diPrefix}, {"pen", kePrefix}, {"mem", diPrefix}, {"pem", kePrefix}, {"ter", diPrefix},
		{"di", diPrefix}, {"me", diPrefix}, {"ke", kePrefix}} {
		if !strings.HasPrefix(a.word, p.prefix) {
			continue
		}
		n := len(p.prefix)
		switch last := p.prefix[n-1]; {
		case last == 'n' && strings.HasPrefix(a.word[n:], "y") && a.vowelAt(n+1):
			a.replace(n+1, "s", p.kind)
		case last == 'm' && a.vowelAt(n):
			a.replace(n, "p", p.kind)
		default:
			a.replace(n, "", p.kind)
		}
		return true
	}
	return false
}

// secondPrefix removes a prefix of the second order.
func (a *affixation) secondPrefix() {
	w := a.word
	switch {
	case strings.HasPrefix(w, "per"):
		a.replace(3, "", perPrefix)
	case strings.HasPrefix(w, "pelajar"):
		a.replace(3, "", noPrefix)
	case strings.HasPrefix(w, "pe"):
		a.replace(2, "", perPrefix)
	case strings.HasPrefix(w, "ber"), strings.HasPrefix(w, "belajar"):
		a.replace(3, "", berPrefix)
	case strings.HasPrefix(w, "be") && len(w) >= 5 && !isVowel(w[2]) && w[3:5] == "er":
		a.replace(2, "", berPrefix)
	}
}

// suffix removes a derivational suffix that goes with the removed prefix.
func (a *affixation) suffix() bool {
	n := 0
	switch w := a.word; {
	case strings.HasSuffix(w, "kan") && a.prefixed != kePrefix && a.prefixed != perPrefix:
		n = 3
	case strings.HasSuffix(w, "an") && a.prefixed != diPrefix:
		n = 2
	case strings.HasSuffix(w, "i") && a.prefixed <= perPrefix && !strings.HasSuffix(w, "si"):
		n = 1
	default:
		return false
	}
	a.word = a.word[:len(a.word)-n]
	a.measure--
	return true
}
