package server

import (
	"bytes"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
)

// errorStats counts error replies, in all and by their codes.
type errorStats struct {
	total atomic.Int64

	mu     sync.Mutex // protects byCode
	byCode map[string]int64
}

const (
	maxErrorCode  = 31  // length in bytes of the longest code
	maxErrorCodes = 128 // how many codes are told from each other; scripts can make as many as they like
	otherErrors   = "OTHER"
)

// countError counts an error reply, which begins with its code.
func (srv *Server) countError(reply []byte) {
	s := &srv.stats.errors
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

// each calls fn with the codes that there were, in their order, and how often.
func (s *errorStats) each(fn func(code string, n int64)) {
	s.mu.Lock()
	counts := maps.Clone(s.byCode)
	s.mu.Unlock()
	for _, code := range slices.Sorted(maps.Keys(counts)) {
		fn(code, counts[code])
	}
}

func (s *errorStats) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.total.Store(0)
	s.byCode = nil
}
