package plan

import (
	"math"
	"math/bits"

	"github.com/atomredis/atomredis/engine/search/docs"
)

// Scorer is a formula for scores. The zero value is BM25STD.
type Scorer uint8

// The scorers.
const (
	BM25STD Scorer = iota
	BM25STDTanh
	BM25STDNorm
	BM25
	TFIDF
	TFIDFDocNorm
	DisMax
	DocScore
	Hamming
)

// scorers are the names of scorers, which are case-sensitive.
var scorers = [...]string{"BM25STD", "BM25STD.TANH", "BM25STD.NORM", "BM25", "TFIDF", "TFIDF.DOCNORM", "DISMAX", "DOCSCORE", "HAMMING"}

// ParseScorer returns the scorer of a name.
func ParseScorer(name string) (s Scorer, ok bool) {
	for i, n := range scorers {
		if n == name {
			return Scorer(i), true
		}
	}
	return 0, false
}

// String returns the name.
func (s Scorer) String() string { return scorers[s] }

// The constants of BM25. Redis stores them in 32 bits, which shows in the eighth digit.
const (
	k1, k1More   = float64(float32(1.2)), float64(float32(1.2) + 1)
	bStd, bPlain = 0.75, 0.5
)

// scorer scores documents.
type scorer struct {
	Scorer
	factor  int
	payload string
	average float64 // length of a document

	doc    *docs.Doc
	length float64 // k1 times the length factor of the document in BM25STD
	plain  float64 // the same for BM25, which uses only the average
	apart  distances
}

func newScorer(o Options, view docs.View) scorer {
	s := scorer{Scorer: o.Scorer, factor: o.TanhFactor, payload: o.Payload}
	if n := view.Len(); n > 0 {
		s.average = float64(view.Length()) / float64(n)
	}
	s.plain = k1 * (1 - bPlain + bPlain*s.average)
	return s
}

// score returns the score of a document at which an iterator stands, and explains it if x is not nil.
func (s *scorer) score(root iterator, d *docs.Doc, x *Explanation) float64 {
	s.doc = d
	own := float64(float32(d.Score()))
	switch s.Scorer {
	case DocScore:
		if x != nil {
			x.setf("Document's score is %.2f", own)
		}
		return own
	case Hamming:
		return s.hamming(x)
	case DisMax:
		return s.node(root, x)
	case TFIDF, TFIDFDocNorm:
		return s.tfidf(root, own, x)
	case BM25:
		sum := s.node(root, x.child())
		apart := s.apart.of(root)
		if x != nil {
			x.setf("Final BM25 : words BM25 %.2f * document score %.2f / slop %d", sum, own, apart)
		}
		return own * sum / float64(apart)
	}
	s.measure(d)
	switch s.Scorer {
	case BM25STDNorm: // the plan writes the text above
		return own * s.node(root, x.child())
	case BM25STDTanh:
		inner := x.child()
		sum := s.node(root, inner.child())
		if inner != nil {
			inner.setf("Final BM25 : words BM25 %.2f * document score %.2f", sum, own)
		}
		if x != nil {
			x.setf("Final Normalized BM25 : tanh(stretch factor 1/%d * Final BM25 %.2f)", s.factor, own*sum)
		}
		return s.stretch(own * sum)
	}
	sum := s.node(root, x.child())
	if x != nil {
		x.setf("Final BM25 : words BM25 %.2f * document score %.2f", sum, own)
	}
	return own * sum
}

// measure sets the length factor of a document for BM25STD.
func (s *scorer) measure(d *docs.Doc) {
	relative := 1.0 // the average length, if no document has text
	if s.average > 0 {
		relative = float64(d.Len) / s.average
	}
	s.doc, s.length = d, k1*(1-bStd+bStd*relative)
}

// tfidf is the score of both scorers of that name.
func (s *scorer) tfidf(root iterator, own float64, x *Explanation) float64 {
	if own == 0 {
		x.setf("Document score is 0")
		return 0
	}
	norm, what := s.doc.MaxFreq, "Document max frequency is 0"
	if s.Scorer == TFIDFDocNorm {
		norm, what = s.doc.Len, "Document length is 0"
	}
	if norm == 0 { // it has no text
		x.setf("%s", what)
		return 0
	}
	sum := s.node(root, x.child())
	apart := s.apart.of(root)
	if x != nil {
		x.setf("Final TFIDF : words TFIDF %.2f * document score %.2f / norm %d / slop %d", sum, own, norm, apart)
	}
	return own * sum / float64(norm) / float64(apart)
}

// hamming compares the payloads of query and document.
func (s *scorer) hamming(x *Explanation) float64 {
	payload, _ := s.doc.Payload()
	if payload == "" || len(payload) != len(s.payload) {
		x.setf("Payloads provided to scorer vary in length")
		return 0
	}
	n := 0
	for i := range len(payload) {
		n += bits.OnesCount8(payload[i] ^ s.payload[i])
	}
	score := 1 / float64(n+1)
	if x != nil {
		x.setf("String length is %d. Bit count is %d. Result is (1 / count + 1) = %.2f", len(s.payload), n, score)
	}
	return score
}

// node returns the contribution of an iterator's match to the score of the document.
func (s *scorer) node(it iterator, x *Explanation) float64 {
	switch it := it.(type) {
	case *timed:
		return s.node(it.iterator, x)
	case *term:
		switch {
		case it.source != ofMissing:
			return s.term(it, x)
		case it.weight != 0: // it is optional
			return s.every(it.weight, x)
		}
		return s.other(0, 1, x)
	case *union:
		sum := 0.0
		for _, i := range it.matching() {
			score := s.node(it.children[i], x.child())
			if s.Scorer == DisMax {
				sum = max(sum, score)
			} else {
				sum += score
			}
		}
		return s.group(it.weight, sum, x)
	case *intersect:
		sum := 0.0
		for _, c := range it.children {
			sum += s.node(c, x.child())
		}
		return s.group(it.weight, sum, x)
	case *optional:
		if it.matches() {
			return s.node(it.child, x)
		}
		if it.miss != 0 {
			return s.every(it.miss, x)
		}
		return s.other(0, 1, x)
	case *knn:
		if it.matches() {
			return s.node(it.filter, x)
		}
	case *all:
		return s.every(it.weight, x)
	case *not:
		return s.other(it.weight, 0, x)
	case *ranges:
		return s.other(it.weight, it.freq, x)
	case *listed:
		return s.other(it.weight, it.freq, x)
	}
	return s.other(1, 0, x)
}

// term returns the score of a term.
func (s *scorer) term(t *term, x *Explanation) float64 {
	freq := uint32(1)
	if t.source == ofText {
		freq = t.reader.Freq()
	}
	f := float64(freq)
	switch s.Scorer {
	case DisMax:
		if x != nil {
			x.setf("DISMAX %.2f = Weight %.2f * Frequency %d", t.weight*f, t.weight, freq)
		}
		return t.weight * f
	case TFIDF, TFIDFDocNorm:
		score := t.weight * f * t.log2
		if x != nil {
			x.setf("(TFIDF %.2f = Weight %.2f * TF %d * IDF %.2f)", score, t.weight, freq, t.log2)
		}
		return score
	case BM25:
		score := t.weight * t.log2 * f / (f + s.plain)
		x.setf("(%.2f = Weight %.2f * IDF %.2f * F %d / (F %d + k1 1.2 * (1 - b 0.5 + b 0.5 * Average Len %.2f)))",
			score, t.weight, t.log2, freq, freq, s.average)
		return score
	}
	return s.std(t.name, t.weight, t.idf, f, x)
}

// std returns the score of a term in BM25STD.
func (s *scorer) std(name string, weight, idf, f float64, x *Explanation) float64 {
	score := weight * idf * f * k1More / (f + s.length)
	if x != nil {
		x.setf("%s: (%.2f = Weight %.2f * IDF %.2f * (F %.2f * (k1 1.2 + 1)) / (F %.2f + k1 1.2 * (1 - b 0.75 + b 0.75 * "+
			"Doc Len %d / Average Doc Len %.2f)))", name, score, weight, idf, f, f, s.doc.Len, s.average)
	}
	return score
}

// every returns the score of a match of all documents.
func (s *scorer) every(weight float64, x *Explanation) float64 {
	switch s.Scorer {
	case BM25STD, BM25STDTanh, BM25STDNorm:
		return s.std("*", weight, 1, 1, x)
	}
	return s.other(weight, 1, x)
}

// other returns the score of a match without terms.
func (s *scorer) other(weight float64, freq uint32, x *Explanation) float64 {
	f := float64(freq)
	switch s.Scorer {
	case DisMax:
		if x != nil {
			x.setf("DISMAX %.2f = Weight %.2f * Frequency %d", weight*f, weight, freq)
		}
		return weight * f
	case TFIDF, TFIDFDocNorm:
		if x != nil {
			x.setf("(TFIDF %.2f = Weight %.2f * Frequency %d)", weight*f, weight, freq)
		}
		return weight * f
	case BM25:
		if freq == 0 {
			x.setf("Frequency 0 -> value 0")
			return 0
		}
		score := weight * f / (f + s.plain)
		if x != nil {
			x.setf("(%.2f = Weight %.2f * F %d / (F %d + k1 1.2 * (1 - b 0.5 + b 0.5 * Average Len %.2f)))", score, weight, freq, freq, s.average)
		}
		return score
	}
	x.setf("Irrelevant token -> score is 0")
	return 0
}

// group returns the score of an AND or OR.
func (s *scorer) group(weight, sum float64, x *Explanation) float64 {
	if x != nil {
		switch s.Scorer {
		case DisMax:
			x.setf("%.2f = Weight %.2f * children DISMAX %.2f", weight*sum, weight, sum)
		case TFIDF, TFIDFDocNorm:
			x.setf("(Weight %.2f * total children TFIDF %.2f)", weight, sum)
		default:
			x.setf("(Weight %.2f * children BM25 %.2f)", weight, sum)
		}
	}
	return weight * sum
}

// bounded reports whether most and words bound the score: it is at most that of the document's words, because a
// document's own score is at most 1.
func (s *scorer) bounded() bool { return s.Scorer == BM25STD || s.Scorer == BM25STDTanh }

// most returns an upper bound of the score for the word frequencies of the present match, without reading the
// document.
func (s *scorer) most(root iterator) float64 {
	return s.stretch(s.bound(root) * (1 + 1e-12)) // more than rounding can add
}

// words returns the score of a document as if its own score were the highest; it reads only the document's length.
func (s *scorer) words(root iterator, d *docs.Doc) float64 {
	s.measure(d)
	return s.stretch(s.node(root, nil))
}

// stretch converts a score of BM25STD to one of BM25STD.TANH.
func (s *scorer) stretch(score float64) float64 {
	if s.Scorer == BM25STDTanh {
		return math.Tanh(score / float64(s.factor))
	}
	return score
}

// bound is most for BM25STD: the score of a document of length 0.
func (s *scorer) bound(it iterator) float64 {
	const shortest = k1 * (1 - bStd)
	sum := 0.0
	switch it := it.(type) {
	case *timed:
		return s.bound(it.iterator)
	case *term:
		if it.source == ofMissing {
			return it.weight * k1More / (1 + shortest)
		}
		f := 1.0
		if it.source == ofText {
			f = float64(it.reader.Freq())
		}
		return it.weight * it.idf * f * k1More / (f + shortest)
	case *union:
		for _, i := range it.matching() {
			sum += s.bound(it.children[i])
		}
		return it.weight * sum
	case *intersect:
		for _, c := range it.children {
			sum += s.bound(c)
		}
		return it.weight * sum
	case *optional:
		if it.matches() {
			return s.bound(it.child)
		}
		return it.miss * k1More / (1 + shortest)
	case *knn:
		if it.matches() {
			return s.bound(it.filter)
		}
	case *all:
		return it.weight * k1More / (1 + shortest)
	}
	return 0
}
