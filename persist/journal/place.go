package journal

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Place is a position before a record, or at the end, that a reader keeps across restarts of the server. Unlike an LSN alone
// it is refused where other records precede it: in another journal, or where records were taken back.
type Place struct {
	// Mark identifies what precedes the place: the segment of a File, the entry of a group's log.
	Mark uint32
	// LSN is the position: in a group's log the index of the entry up to which all is read.
	LSN uint64
	// Within is how much of the entry at LSN is read if that is not all of it. It is 0 in a File.
	Within uint32
}

// String returns the form that ParsePlace reads.
func (p Place) String() string {
	if p.Within != 0 {
		return fmt.Sprintf("%08x-%d.%d", p.Mark, p.LSN, p.Within)
	}
	return fmt.Sprintf("%08x-%d", p.Mark, p.LSN)
}

// ParsePlace reads the form of String.
func ParsePlace(text string) (p Place, ok bool) {
	mark, rest, found := strings.Cut(text, "-")
	if !found || len(mark) != 8 {
		return p, false
	}
	lsn, within, partly := strings.Cut(rest, ".")
	n, err := strconv.ParseUint(mark, 16, 32)
	p.Mark = uint32(n)
	if err == nil {
		p.LSN, err = strconv.ParseUint(lsn, 10, 64)
	}
	if err == nil && partly {
		n, err = strconv.ParseUint(within, 10, 32)
		p.Within = uint32(n)
	}
	return p, err == nil && p.String() == text
}

// ErrForeign is returned for a Place that does not belong to the journal.
var ErrForeign = errors.New("the position belongs to another history")

// Entry is a record as readers see it.
type Entry struct {
	After    Place  // the place after it
	Now      int64  // as Append got it
	Commands []byte // likewise; valid until the next one is read
}

// Reader reads the durable records from a Place on. It holds no lock that writers wait for while it reads a file. One goroutine at
// a time may use it.
type Reader interface {
	// Next returns the next record; ok is false if it is not durable yet. The error is ErrReleased if records in between
	// are not kept any more, or were never part of the journal.
	Next() (e Entry, ok bool, err error)
	// Close ends the reader.
	Close()
}

// Retention is how much a journal keeps for readers beyond what is needed to recover: the last records of so many bytes that
// are not older than Age. One that is 0 is no limit; if both are, nothing is kept. A segment is kept as a whole, also the one
// that exceeds Bytes: else a segment longer than Bytes would mean that nothing is kept.
type Retention struct {
	Bytes int64
	Age   int64 // ms
	// From is the LSN from which on records are kept too, as long as all that is kept has not more than FromBytes: for an archive
	// that does not have them yet. If FromBytes is 0, From means nothing.
	From      uint64
	FromBytes int64
}

// readers reports whether records are kept because of Bytes and Age.
func (r Retention) readers() bool { return r.Bytes > 0 || r.Age > 0 }

// needs reports whether records up to an LSN are kept because of From, if so many bytes are kept behind them.
func (r Retention) needs(end uint64, kept int64) bool { return end > r.From && kept < r.FromBytes }
