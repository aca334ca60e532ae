package raft

import (
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math"
	"sort"

	consensus "github.com/hashicorp/raft"

	"github.com/atomredis/atomredis/persist/journal"
)

// A reader reads the entries that this server has executed, or that are committed if it leads. A place is the index of an
// entry, which is the same on all servers, and a checksum of the entry: by Raft, what precedes the same entry is the same too.
// The place of a state has a checksum of index and term alone: the log may not have its entry, as after a copy of the data.

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// markOf returns the mark of the places in an entry and after it.
func markOf(l *consensus.Log) uint32 {
	return crc32.Update(markOfState(l.Index, l.Term), castagnoli, l.Data)
}

// markOfState returns the mark of the place after an entry that the log does not have.
func markOfState(index, term uint64) uint32 {
	b := binary.BigEndian.AppendUint64(nil, index)
	return crc32.Checksum(binary.BigEndian.AppendUint64(b, term), castagnoli)
}

// present returns the state up to which entries may be read.
func (n *Node) present() state {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.at
}

// Places implements journal.Journal. The oldest one is after the first entry of the log, which has its checksum.
func (n *Node) Places() (oldest, end journal.Place, err error) {
	at := n.present()
	end = placeAfter(at)
	var l consensus.Log
	first, err := n.log.FirstIndex()
	if err != nil {
		return oldest, end, err
	}
	if first == 0 || first > at.index {
		return end, end, nil
	}
	switch err := n.log.GetLog(first, &l); {
	case errors.Is(err, consensus.ErrLogNotFound): // released meanwhile
		return end, end, nil
	case err != nil:
		return oldest, end, err
	}
	return journal.Place{Mark: markOf(&l), LSN: first}, end, nil
}

// End implements journal.Journal.
func (n *Node) End() (journal.Place, error) { return placeAfter(n.present()), nil }

// placeAfter returns the place after the last entry of a state.
func placeAfter(s state) journal.Place {
	return journal.Place{Mark: markOfState(s.index, s.term), LSN: s.index}
}

// Here implements journal.Journal.
func (n *Node) Here() (settle func(ctx context.Context) (journal.Place, error)) {
	c := n.cut()
	if c == nil {
		return nil
	}
	return func(ctx context.Context) (journal.Place, error) {
		if err := n.Sync(ctx); err != nil {
			return journal.Place{}, err
		}
		s, err := n.await(c)
		return placeAfter(s), err
	}
}

// Follow implements journal.Journal. A follower may not have the entries before a place yet that another server has given; the
// reader then waits for them, and finds out later whether the place belongs to the journal.
func (n *Node) Follow(from journal.Place) (journal.Reader, error) {
	r := &entryReader{n: n, at: from}
	if from.LSN > n.present().index && n.leading.Load() {
		return nil, journal.ErrForeign
	}
	if _, err := r.verify(); err != nil {
		return nil, err
	}
	return r, nil
}

// entryReader is the Reader of a Node.
type entryReader struct {
	n        *Node
	at       journal.Place
	verified bool // at belongs to the log
	records  []byte
	mark     uint32 // of the entry with records
	read     uint32 // how much of the entry precedes records
}

// verify finds out whether the place belongs to the log; ok is false if the server does not have it yet.
func (r *entryReader) verify() (ok bool, err error) {
	at := r.n.present()
	if r.verified || r.at.LSN > at.index {
		return r.verified, nil
	}
	var l consensus.Log
	switch err := r.n.log.GetLog(r.at.LSN, &l); {
	case err == nil:
		if r.at.Within == 0 && r.at.Mark == markOfState(l.Index, l.Term) {
			break
		}
		if r.at.Mark != markOf(&l) || !r.enter(&l) {
			return false, journal.ErrForeign
		}
	case !errors.Is(err, consensus.ErrLogNotFound):
		return false, err
	default:
		r.n.mu.Lock()
		stored := r.n.stored
		r.n.mu.Unlock()
		if !r.precedes(at) && !r.precedes(stored) {
			return false, journal.ErrReleased
		}
	}
	r.verified = true
	return true, nil
}

// precedes reports whether the place is that of a state.
func (r *entryReader) precedes(s state) bool {
	return r.at.LSN == s.index && r.at.Within == 0 && r.at.Mark == markOfState(s.index, s.term)
}

// enter goes to the place within an entry; it reports false if no record begins there.
func (r *entryReader) enter(l *consensus.Log) bool {
	if r.at.Within == 0 {
		return true
	}
	if !r.open(l) {
		return false
	}
	for r.read < r.at.Within {
		if _, _, err := r.next(); err != nil || len(r.records) == 0 {
			return false
		}
	}
	return r.read == r.at.Within
}

// open begins with the records of an entry; it reports false if the entry has none that were executed.
func (r *entryReader) open(l *consensus.Log) bool {
	r.records, r.read, r.mark = nil, 0, markOf(l)
	if l.Type != consensus.LogCommand {
		return false
	}
	term, records, err := splitEntry(l.Data)
	if err != nil || term != l.Term {
		return false
	}
	r.records = records
	return true
}

// next takes a record.
func (r *entryReader) next() (now int64, commands []byte, err error) {
	if len(r.records) < recordHeader {
		return 0, nil, errEntry
	}
	n := uint64(binary.BigEndian.Uint32(r.records[8:]))
	if n > uint64(len(r.records)-recordHeader) {
		return 0, nil, errEntry
	}
	now, commands = int64(binary.BigEndian.Uint64(r.records)), r.records[recordHeader:][:n:n]
	r.records = r.records[recordHeader+n:]
	r.read += uint32(recordHeader + n)
	return now, commands, nil
}

// Next implements journal.Reader.
func (r *entryReader) Next() (e journal.Entry, ok bool, err error) {
	if ok, err := r.verify(); !ok {
		return e, false, err
	}
	for len(r.records) == 0 {
		if r.at.LSN >= r.n.present().index {
			return e, false, nil
		}
		var l consensus.Log
		switch err := r.n.log.GetLog(r.at.LSN+1, &l); {
		case errors.Is(err, consensus.ErrLogNotFound):
			return e, false, journal.ErrReleased
		case err != nil:
			return e, false, err
		}
		if r.open(&l); len(r.records) == 0 {
			r.at = journal.Place{Mark: r.mark, LSN: l.Index}
		}
	}
	index := r.at.LSN
	if r.at.Within == 0 && r.read == 0 {
		index++ // the entry begins after the present place
	}
	now, commands, err := r.next()
	if err != nil {
		return e, false, err
	}
	r.at = journal.Place{Mark: r.mark, LSN: index, Within: r.read}
	if len(r.records) == 0 {
		r.at.Within = 0
	}
	return journal.Entry{After: r.at, Now: now, Commands: commands}, true, nil
}

// Close implements journal.Reader.
func (r *entryReader) Close() {}

// Break implements journal.Journal. There is nothing to do: data without records comes as a copy, which replaces the log.
func (n *Node) Break(int64) {}

// Retain implements journal.Journal.
func (n *Node) Retain(r journal.Retention) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.retention = r
}

// Retained implements journal.Journal. The log keeps what servers need that were offline for a while, and what readers do,
// together.
func (n *Node) Retained() int64 { return 0 }

// kept returns the first entry that a checkpoint with all entries up to an index leaves in the log, for readers and for other
// servers, which need those from others on.
func (n *Node) kept(index, others uint64, now int64) uint64 {
	n.mu.Lock()
	r := n.retention
	n.mu.Unlock()
	if r == (journal.Retention{}) {
		return others
	}
	if r.FromBytes > 0 { // the entry of the place is kept too: it proves the place
		others = min(others, max(r.From, n.log.Before(index+1, math.MaxUint64, r.FromBytes)))
	}
	if r.Bytes == 0 && r.Age == 0 {
		return others
	}
	if r.Bytes == 0 {
		r.Bytes = math.MaxInt64
	}
	first := n.log.Before(index+1, math.MaxUint64, r.Bytes)
	if r.Age > 0 && first <= index {
		first += uint64(sort.Search(int(index+1-first), func(i int) bool {
			var l consensus.Log
			return n.log.GetLog(first+uint64(i), &l) != nil || l.AppendedAt.IsZero() || now-l.AppendedAt.UnixMilli() <= r.Age
		}))
	}
	return min(first, others)
}
