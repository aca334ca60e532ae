package transport_test

import (
	"bytes"
	"crypto/x509"
	"iter"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/atomredis/atomredis/internal/transport"
)

// This file is a server of lines, with all methods of a transport's Host and Session. The reply to a line is the
// line itself, except for these:
//
//	data N     N bytes follow, which are the answer
//	later      is answered after a millisecond
//	all TEXT   TEXT is sent to all clients
//	held       what is sent from now on waits until the host releases it
//	block      is answered when the host unblocks it; until then Input does not return
//	quit       ends the connection, after the answer

// lineHost is the server.
type lineHost struct {
	limit     atomic.Int64 // bytes that may wait for a client; 0 means no limit
	unblocked chan struct{}
	blocked   chan struct{} // receives a value for each session that has begun to wait

	prefetched, commits atomic.Int64
	stalled, released   atomic.Bool

	mu       sync.Mutex // protects what follows
	refusal  string     // for new clients; "" if they are accepted
	sessions map[*lineSession]struct{}
	opened   int
	peers    []transport.Peer
}

func newLineHost() *lineHost {
	return &lineHost{sessions: map[*lineSession]struct{}{}, unblocked: make(chan struct{}), blocked: make(chan struct{}, 10)}
}

func (h *lineHost) Now() int64 { return time.Now().UnixMilli() }

func (h *lineHost) AfterFunc(d time.Duration, f func()) transport.Timer { return time.AfterFunc(d, f) }

func (h *lineHost) Log() *slog.Logger { return slog.New(slog.DiscardHandler) }

func (h *lineHost) KeepAlive() time.Duration { return time.Minute }

func (h *lineHost) Refuse(transport.Peer, bool) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.refusal
}

func (h *lineHost) Prefetch(batch []transport.Input) { h.prefetched.Add(int64(len(batch))) }

func (h *lineHost) Commit() { h.commits.Add(1) }

func (h *lineHost) CommitSoon() { h.commits.Add(1) }

func (h *lineHost) Stalled() bool { return h.stalled.Load() }

func (h *lineHost) Open(p transport.Peer, wake func()) transport.Session {
	s := &lineSession{host: h, wake: wake}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sessions[s] = struct{}{}
	h.opened++
	h.peers = append(h.peers, p)
	return s
}

// count returns how many sessions there are, and how many there have been.
func (h *lineHost) count() (now, ever int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.sessions), h.opened
}

// tellAll sends a line to all clients.
func (h *lineHost) tellAll(line string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for s := range h.sessions {
		s.box.Lock()
		s.news = append(s.news, line+"\n"...)
		s.box.Unlock()
		s.wake()
	}
}

// lineSession is a client.
type lineSession struct {
	host *lineHost
	wake func()

	in      []byte   // the beginning of a line
	long    []byte   // the bytes after data that have arrived; its capacity is the announced length
	pieces  [][]byte // the output
	lends   bool
	holds   bool // only the first held bytes of the output may be sent
	held    int
	due     int64 // the time of the reply to later; 0 if there is none
	closing bool

	box  sync.Mutex // protects what follows
	news []byte     // from others
}

func (s *lineSession) Input(b []byte, now int64) (requests int) {
	s.in = append(s.in, b...)
	for !s.closing {
		if s.long != nil {
			n := copy(s.long[len(s.long):cap(s.long)], s.in)
			s.in = s.in[n:]
			s.Received(n, now)
			if s.long != nil {
				break
			}
		}
		line, rest, ok := bytes.Cut(s.in, []byte("\n"))
		if !ok {
			break
		}
		s.in = rest
		s.execute(string(line), now)
		requests++
	}
	return requests
}

func (s *lineSession) execute(line string, now int64) {
	word, text, _ := strings.Cut(line, " ")
	switch word {
	case "data":
		n, _ := strconv.Atoi(text)
		s.long = make([]byte, 0, n)
		return
	case "later":
		s.due = now + 1
		return
	case "all":
		s.host.tellAll(text)
		return
	case "held":
		s.holds, s.held = true, s.Unsent()
	case "block":
		s.host.blocked <- struct{}{}
		<-s.host.unblocked
	case "quit":
		s.closing = true
	}
	s.write([]byte(line + "\n"))
}

// write appends to the output.
func (s *lineSession) write(b []byte) {
	last := len(s.pieces) - 1
	if last < 0 || s.lends && len(b) > 1000 || len(s.pieces) > 1 && len(s.pieces[last]) > 1000 {
		s.pieces = append(s.pieces, b)
		return
	}
	s.pieces[last] = append(s.pieces[last], b...)
}

func (s *lineSession) Identify(*x509.Certificate) {}

func (s *lineSession) ReadsAlone() bool { return s.closing || s.long != nil }

func (s *lineSession) Room() []byte {
	if s.long == nil || len(s.in) > 0 {
		return nil
	}
	return s.long[len(s.long):cap(s.long)]
}

func (s *lineSession) Received(n int, _ int64) {
	if s.long = s.long[:len(s.long)+n]; len(s.long) == cap(s.long) {
		s.write(s.long)
		s.long = nil
	}
}

func (s *lineSession) Advance(now int64) {
	s.box.Lock()
	if len(s.news) > 0 {
		s.write(bytes.Clone(s.news))
		s.news = s.news[:0]
	}
	s.box.Unlock()
	if s.due != 0 && s.due <= now {
		s.due = 0
		s.write([]byte("later\n"))
	}
}

func (s *lineSession) Deadline() int64 { return s.due }

func (s *lineSession) Unsent() (n int) {
	for _, p := range s.pieces {
		n += len(p)
	}
	return n
}

func (s *lineSession) Sendable() int {
	if s.holds && !s.host.released.Load() {
		return s.held
	}
	return s.Unsent()
}

func (s *lineSession) Output() []byte {
	if len(s.pieces) == 0 {
		return nil
	}
	return s.pieces[0]
}

func (s *lineSession) SetOutput(rest []byte) {
	s.held -= s.Unsent() - len(rest)
	s.pieces = append(s.pieces[:0], rest)
}

func (s *lineSession) Lend() { s.lends = true }

func (s *lineSession) Pieces(n int) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for _, p := range s.pieces {
			if p = p[:min(n, len(p))]; len(p) > 0 && !yield(p) {
				return
			}
			n -= len(p)
		}
	}
}

func (s *lineSession) Sent(n int) {
	s.held -= n
	for n > 0 {
		k := min(n, len(s.pieces[0]))
		n -= k
		if s.pieces[0] = s.pieces[0][k:]; len(s.pieces[0]) == 0 {
			s.pieces = s.pieces[1:]
		}
	}
}

func (s *lineSession) GiveUp(extra int) bool {
	if extra == 0 {
		extra = s.Unsent()
	}
	limit := int(s.host.limit.Load())
	return limit > 0 && extra > limit
}

func (s *lineSession) Expired(int64) bool { return false }

func (s *lineSession) Closing() bool { return s.closing }

func (s *lineSession) Abort() { s.closing, s.pieces = true, nil }

func (s *lineSession) Close() {
	s.host.mu.Lock()
	defer s.host.mu.Unlock()
	if _, ok := s.host.sessions[s]; !ok {
		panic("a session was closed twice")
	}
	delete(s.host.sessions, s)
}
