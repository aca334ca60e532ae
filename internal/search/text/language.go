package text

import (
	"strings"
	"unicode/utf8"

	"github.com/blevesearch/snowballstem"
	"github.com/blevesearch/snowballstem/arabic"
	"github.com/blevesearch/snowballstem/danish"
	"github.com/blevesearch/snowballstem/dutch"
	"github.com/blevesearch/snowballstem/english"
	"github.com/blevesearch/snowballstem/finnish"
	"github.com/blevesearch/snowballstem/french"
	"github.com/blevesearch/snowballstem/german"
	"github.com/blevesearch/snowballstem/hungarian"
	"github.com/blevesearch/snowballstem/irish"
	"github.com/blevesearch/snowballstem/italian"
	"github.com/blevesearch/snowballstem/norwegian"
	"github.com/blevesearch/snowballstem/portuguese"
	"github.com/blevesearch/snowballstem/romanian"
	"github.com/blevesearch/snowballstem/russian"
	"github.com/blevesearch/snowballstem/spanish"
	"github.com/blevesearch/snowballstem/swedish"
	"github.com/blevesearch/snowballstem/tamil"
	"github.com/blevesearch/snowballstem/turkish"
)

// Language is one of the languages that an index, a document or a query may have. The zero value is English.
type Language uint8

// Chinese is the only language for which the Tokenizer has rules of its own.
const Chinese = Language(len(languages) - 1)

// languages has the names, and the stemmers of those languages that have one. The others are accepted and have no stems.
var languages = [...]struct {
	name string
	stem func(*snowballstem.Env) bool
}{
	{"english", english.Stem},
	{"arabic", arabic.Stem},
	{"armenian", nil},
	{"basque", nil},
	{"catalan", nil},
	{"danish", danish.Stem},
	{"dutch", dutch.Stem},
	{"finnish", finnish.Stem},
	{"french", french.Stem},
	{"german", german.Stem},
	{"greek", nil},
	{"hindi", nil},
	{"hungarian", hungarian.Stem},
	{"indonesian", indonesian},
	{"irish", irish.Stem},
	{"italian", italian.Stem},
	{"lithuanian", nil},
	{"nepali", nil},
	{"norwegian", norwegian.Stem},
	{"portuguese", portuguese.Stem},
	{"romanian", romanian.Stem},
	{"russian", russian.Stem},
	{"serbian", nil},
	{"spanish", spanish.Stem},
	{"swedish", swedish.Stem},
	{"tamil", tamil.Stem},
	{"turkish", turkish.Stem},
	{"yiddish", nil},
	{"malay", indonesian},
	{"tagalog", nil},
	{"chinese", nil},
}

// ParseLanguage returns the language of a name in any case.
func ParseLanguage(name string) (l Language, ok bool) {
	for i := range languages {
		if strings.EqualFold(languages[i].name, name) {
			return Language(i), true
		}
	}
	return 0, false
}

// String returns the name.
func (l Language) String() string { return languages[l].name }

// Stems reports whether the language has stems.
func (l Language) Stems() bool { return languages[l].stem != nil }

// Sizes of a stemmer's memory of words: how many, and the longest that it keeps.
const (
	remembered  = 1 << 12
	longestKept = 32
)

// Stemmer finds the stems of a language's words. It remembers words with their stems, because most words of a text are
// among a few thousand, and Snowball takes as long for one word as the tokenizer for fifty. A stemmer for a query
// remembers none, because clearing its memory would take longer. It is not safe for concurrent use.
type Stemmer struct {
	language Language
	forgets  bool
	env      *snowballstem.Env
	memory   []kept // nil until the first word; a word has one place, by its hash
}

// kept is a word with its stem.
type kept struct{ word, stem string }

// NewStemmer returns a stemmer for texts.
func NewStemmer(l Language) *Stemmer { return &Stemmer{language: l} }

// NewQueryStemmer returns a stemmer for the words of a query.
func NewQueryStemmer(l Language) *Stemmer { return &Stemmer{language: l, forgets: true} }

// Language returns the language of the stemmer.
func (s *Stemmer) Language() Language { return s.language }

// Stem returns the stem of a folded word. It reports false if the language has none or the word is no UTF-8.
func (s *Stemmer) Stem(word []byte) (stem string, ok bool) {
	if !s.language.Stems() || len(word) == 0 {
		return "", false
	}
	if s.forgets || len(word) > longestKept {
		return s.compute(string(word))
	}
	if s.memory == nil {
		s.memory = make([]kept, remembered)
	}
	place := &s.memory[hash(word)%remembered]
	if place.word != string(word) {
		w := string(word)
		stem, ok = s.compute(w)
		if !ok {
			return "", false
		}
		*place = kept{w, stem}
	}
	return place.stem, true
}

// maxStemmed bounds the words that Snowball sees: its time grows with the square of the length in some languages.
const maxStemmed = 1 << 10

// compute runs Snowball.
func (s *Stemmer) compute(word string) (stem string, ok bool) {
	if len(word) > maxStemmed || !utf8.ValidString(word) {
		return "", false
	}
	if s.env == nil {
		s.env = snowballstem.NewEnv("")
	}
	s.env.SetCurrent(word)
	languages[s.language].stem(s.env)
	return s.env.Current(), true
}

// hash is FNV-1a.
func hash(word []byte) uint32 {
	h := uint32(2166136261)
	for _, c := range word {
		h = (h ^ uint32(c)) * 16777619
	}
	return h
}
