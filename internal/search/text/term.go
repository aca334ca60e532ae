package text

// Prefixes of terms that are not words of a document. A word cannot begin with one of them unless it is escaped.
const (
	Stem  = "+" // the stem of a word
	Sound = "<" // the code of its sound
	Group = "~" // a group of synonyms
)

// The least length in bytes of a word that has a stem or a code in the index, unless the configuration says otherwise.
const (
	MinStem  = 4
	MinSound = 3
)

// IsAdded reports whether a term is a stem, a sound or a group instead of a word.
func IsAdded(term string) bool {
	return term != "" && (term[:1] == Stem || term[:1] == Sound || term[:1] == Group)
}
