// Package args reads the words of a command: keywords, numbers, counted lists. Errors have the reference's words
// after a colon, as in "Bad arguments for LIMIT: Expected an argument, but none provided".
package args

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/atomredis/atomredis/internal/search/query"
)

// Problem is an error in one word. The zero value is no problem.
type Problem uint8

// The problems.
const (
	None Problem = iota
	Missing
	NotConvertible
	OutOfBounds
)

// String returns the words of the reference.
func (p Problem) String() string {
	return [...]string{"", "Expected an argument, but none provided", "Could not convert argument to expected type",
		"Value is outside acceptable bounds"}[p]
}

// For returns the error for a problem with the words after a keyword, nil if there is none.
func (p Problem) For(keyword string) error {
	if p == None {
		return nil
	}
	return Errorf(query.BadArguments, "Bad arguments for %s: %s", keyword, p)
}

// Errorf returns an error that a client gets.
func Errorf(code query.Code, format string, a ...any) error {
	return &query.Error{Code: code, Text: fmt.Sprintf(format, a...)}
}

// Reader reads words one by one. A copy of a Reader reads on its own.
type Reader struct {
	words []string
	at    int
}

// New returns a reader of words.
func New(words ...string) Reader { return Reader{words: words} }

// Len returns how many words are left.
func (r *Reader) Len() int { return len(r.words) - r.at }

// Done reports whether no word is left.
func (r *Reader) Done() bool { return r.at == len(r.words) }

// At returns how many words have been read: the position of the next one.
func (r *Reader) At() int { return r.at }

// Rest returns the words that are left. The slice is not to be changed.
func (r *Reader) Rest() []string { return r.words[r.at:] }

// Peek returns the next word without reading it.
func (r *Reader) Peek() (string, bool) {
	if r.Done() {
		return "", false
	}
	return r.words[r.at], true
}

// Next reads a word.
func (r *Reader) Next() (string, bool) {
	s, ok := r.Peek()
	if ok {
		r.at++
	}
	return s, ok
}

// Match reads the next word if it is a keyword, in any case.
func (r *Reader) Match(keyword string) bool {
	s, ok := r.Peek()
	if !ok || !strings.EqualFold(s, keyword) {
		return false
	}
	r.at++
	return true
}

// Text reads a word.
func (r *Reader) Text() (string, Problem) {
	s, ok := r.Next()
	if !ok {
		return "", Missing
	}
	return s, None
}

// Int reads an integer between bounds; 3.0 counts as one. On a problem the word stays unread.
func (r *Reader) Int(least, most int64) (int64, Problem) {
	return r.whole(least, most, false)
}

// IntOf is Int for any number; it drops the fraction.
func (r *Reader) IntOf(least, most int64) (int64, Problem) {
	return r.whole(least, most, true)
}

func (r *Reader) whole(least, most int64, cut bool) (int64, Problem) {
	s, ok := r.Peek()
	if !ok {
		return 0, Missing
	}
	n, err := strconv.ParseInt(strings.TrimLeft(s, " \t\n\v\f\r"), 10, 64)
	if err != nil || n == math.MaxInt64 || n == math.MinInt64 {
		f, ok := float(s)
		if !ok || f < -1<<63 || f >= 1<<63 || !cut && f != math.Trunc(f) {
			return 0, NotConvertible
		}
		n = int64(f)
	}
	if n < least || n > most {
		return 0, OutOfBounds
	}
	r.at++
	return n, None
}

// Count reads a non-negative integer of 32 bits.
func (r *Reader) Count() (int, Problem) {
	n, problem := r.Int(0, min(math.MaxUint32, math.MaxInt))
	return int(n), problem
}

// Double reads a finite number.
func (r *Reader) Double() (float64, Problem) {
	s, ok := r.Peek()
	if !ok {
		return 0, Missing
	}
	f, ok := float(s)
	if !ok {
		return 0, NotConvertible
	}
	r.at++
	return f, None
}

// float parses a finite number.
func float(s string) (float64, bool) {
	if s == "" {
		return 0, true // as in the reference: strtod accepts the empty word
	}
	s = strings.TrimLeft(s, " \t\n\v\f\r")
	if strings.ContainsAny(s, "_pP") {
		return 0, false
	}
	f, err := strconv.ParseFloat(s, 64)
	return f, err == nil && !math.IsInf(f, 0) && !math.IsNaN(f)
}

// Take reads n words as a reader of their own.
func (r *Reader) Take(n int) (Reader, Problem) {
	if n > r.Len() {
		return Reader{}, Missing
	}
	part := New(r.words[r.at : r.at+n]...)
	r.at += n
	return part, None
}

// List reads a count and so many words.
func (r *Reader) List() (Reader, Problem) {
	n, problem := r.Count()
	if problem != None {
		return Reader{}, problem
	}
	return r.Take(n)
}

// Unknown returns the error for the next word, which is no option. There must be a next word.
func (r *Reader) Unknown(where string) error {
	return Errorf(query.UnknownArgument, "Unknown argument `%s` at position %d for %s", r.words[r.at], r.at, where)
}
