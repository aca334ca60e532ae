package text

// Stopwords is a set of words that are not indexed. The nil set is empty.
type Stopwords struct {
	words []string // in the order in which they were given, folded
	set   map[string]struct{}
	// lengths has for each first byte the lengths of the words as bits, so that most words need no look into the map.
	lengths [256]uint64
}

// English is the default set of an index.
var English = NewStopwords("a", "is", "the", "an", "and", "are", "as", "at", "be", "but", "by", "for", "if", "in", "into", "it", "no",
	"not", "of", "on", "or", "such", "that", "their", "then", "there", "these", "they", "this", "to", "was", "will", "with")

// NewStopwords returns the set of some words, which are folded.
func NewStopwords(words ...string) *Stopwords {
	s := &Stopwords{set: make(map[string]struct{}, len(words))}
	for _, word := range words {
		word = Fold(word)
		if _, ok := s.set[word]; ok {
			continue
		}
		s.set[word] = struct{}{}
		s.words = append(s.words, word)
		if word != "" {
			s.lengths[word[0]] |= lengthBit(len(word))
		}
	}
	return s
}

// Words returns the words of the set in the order of NewStopwords. The slice must not be changed.
func (s *Stopwords) Words() []string {
	if s == nil {
		return nil
	}
	return s.words
}

// Has reports whether a folded word is in the set.
func (s *Stopwords) Has(word []byte) bool {
	if s == nil || len(word) == 0 || s.lengths[word[0]]&lengthBit(len(word)) == 0 {
		return false
	}
	_, ok := s.set[string(word)]
	return ok
}

// HasString reports whether a word is in the set, whatever its case.
func (s *Stopwords) HasString(word string) bool {
	if s == nil || len(s.set) == 0 {
		return false
	}
	_, ok := s.set[Fold(word)]
	return ok
}

// lengthBit returns the bit of a length; the last bit stands for all greater lengths.
func lengthBit(n int) uint64 { return 1 << min(n, 63) }
