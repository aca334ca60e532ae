package stats

import (
	"bytes"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
)

// Errors counts error replies, in total and by their codes.
type Errors struct {
	total atomic.Int64

	mu     sync.Mutex // protects byCode
	byCode map[string]int64
}

const (
	maxErrorCode  = 31  // length in bytes of the longest code
	maxErrorCodes = 128 // how many codes are counted separately; scripts can make any number
	otherErrors   = "OTHER"
)

// Count counts an error reply, which begins with its code.
func (s *Errors) Count(reply []byte) {
	s.total.Add(1)
	code := []byte("ERR")
	if n := bytes.IndexByte(reply[:min(len(reply), maxErrorCode+1)], ' '); n >= 0 {
		code = reply[:n]
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byCode == nil {
		s.byCode = map[string]int64{}
	}
	if _, known := s.byCode[string(code)]; !known && len(s.byCode) >= maxErrorCodes {
		code = []byte(otherErrors)
	}
	s.byCode[string(code)]++
}

// Replies returns how many error replies there were.
func (s *Errors) Replies() int64 { return s.total.Load() }

// Each calls fn with each code and its count, in the order of the codes.
func (s *Errors) Each(fn func(code string, n int64)) {
	s.mu.Lock()
	counts := maps.Clone(s.byCode)
	s.mu.Unlock()
	for _, code := range slices.Sorted(maps.Keys(counts)) {
		fn(code, counts[code])
	}
}

// Reset sets the counters to zero.
func (s *Errors) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.total.Store(0)
	s.byCode = nil
}
