// Package archive is the contract between a server and its archive: a place outside the server to which everything is copied that
// is needed to bring back the data of any second. Package archive/objects implements it and registers itself, so that programs
// that store nothing do not link it.
package archive

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/persist/disk"
	"github.com/atomredis/atomredis/persist/journal"
)

// Settings are the directives of the archive.
type Settings struct {
	URL          string        // the archive; "" means that there is none
	Interval     time.Duration // the longest time for which records wait before they are uploaded
	BaseInterval time.Duration // the time between two copies of all data
	Retention    time.Duration // how far back the archive must reach; 0 is for ever
}

// Options are what an Archiver needs of its server.
type Options struct {
	Settings func() Settings
	Clock    engine.Clock
	FS       disk.FS // for an archive that is a directory
	Log      *slog.Logger
	// Records returns the journal; nil while there is none to read.
	Records func() journal.Journal
	// Base writes all data of one instant as an RDB file. It calls at with a guard over everything at that instant, and fails
	// with its error.
	Base func(ctx context.Context, w io.Writer, at func(g *engine.Guard) error) error
	// Group reports whether the server belongs to a group, and Leads whether it is the one that archives: the leader.
	Group func() bool
	Leads func() bool
	// Witness says that the server is a witness of its group: it has no data, and its journal has none.
	Witness bool
	// Lazy reports whether nobody syncs the journal for long (appendfsync no). Then the archiver does.
	Lazy func() bool
	// Keep is called when the journal is needed only from another LSN on.
	Keep func(lsn uint64)
}

// State is what an Archiver is doing.
type State string

// The states.
const (
	Off       State = "off"
	Starting  State = "starting"  // it looks for the end of the archive
	Base      State = "base"      // it uploads the first copy of all data
	Running   State = "running"   // everything is uploaded soon after it happens
	Following State = "following" // the leader of the group archives
	Waiting   State = "waiting"   // another server writes to the archive
	Failing   State = "failing"   // the last upload has failed, and is repeated
	Witness   State = "witness"   // the server has no data; the others of its group archive
)

// Status is the visible state of an Archiver.
type Status struct {
	State    State
	Position journal.Place // up to which the journal is in the archive; zero if that is not known
	Time     time.Time     // up to which the archive is complete; zero if that is not known
	// Lag is the age of the oldest change that is not in the archive; 0 if there is none.
	Lag time.Duration
	// LagBytes is the length of the journal that is not in the archive; in a group it counts entries of the log. -1 is unknown.
	LagBytes int64
	BaseTime time.Time // of the last base; zero if that is not known
	// Since the start: copies of all data, pieces of the journal, uploaded bytes, failed attempts, and how often the journal was
	// no longer there when it was to be uploaded.
	Bases, Pieces, Bytes, Failures, Gaps int64
	LastError                            error // of the last failure, nil after a success
}

// Info calls text and number with the fields of INFO.
func (s Status) Info(text func(name, value string), number func(name string, n int64)) {
	text("archive_state", string(s.State))
	if s.State == Off {
		return
	}
	text("archive_position", s.Position.String())
	number("archive_reached", seconds(s.Time))
	number("archive_base_time", seconds(s.BaseTime))
	number("archive_lag_seconds", int64(s.Lag.Seconds()))
	number("archive_lag", s.LagBytes)
	number("archive_bases", s.Bases)
	number("archive_pieces", s.Pieces)
	number("archive_bytes", s.Bytes)
	number("archive_failures", s.Failures)
	number("archive_gaps", s.Gaps)
	if s.LastError != nil {
		text("archive_last_error", strings.NewReplacer("\r", " ", "\n", " ").Replace(s.LastError.Error()))
	}
}

// seconds returns a time in seconds since 1970; 0 if it is not known.
func seconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}

// Archiver copies the data of a server to its archive. Any goroutine may call its methods.
type Archiver interface {
	// Start begins, once the server's data has been read.
	Start()
	// Changed is called after a change of the settings.
	Changed()
	// Status returns the present state.
	Status() Status
	// Stop ends a base that is being made, and prevents new ones: they need the server.
	Stop()
	// Close uploads what is left, for a few seconds at most, and ends the archiver. The journal must still be open.
	Close()
}

// Source is the data of a past instant, which a server without data begins with.
type Source interface {
	// Name says where the data comes from.
	Name() string
	// OfGroup reports whether a group of servers has written the records. It is known after Base.
	OfGroup() bool
	// Base returns an RDB file with the data of an earlier instant.
	Base() (io.ReadCloser, error)
	// Records calls do with the later records up to the instant.
	Records(do func(now int64, commands []byte) error) error
}

// ErrNone is the error of Check in a program without archives.
var ErrNone = errors.New(`this program has no archives; one with import _ "github.com/atomredis/atomredis" has them`)

// Implementation implements functions of this package.
type Implementation struct {
	// New returns an Archiver, which does nothing before Start.
	New func(o Options) Archiver
	// Check returns an error for text that does not name an archive.
	Check func(url string) error
}

var registered Implementation

// Register sets the program's implementation. Its package calls it in an init function.
func Register(i Implementation) { registered = i }

// New returns an Archiver; in a program without archives, and at a witness, it does nothing.
func New(o Options) Archiver {
	switch {
	case registered.New == nil:
		return none{}
	case o.Witness:
		return witness{none{}, o}
	}
	return registered.New(o)
}

// none is the Archiver of a program without archives.
type none struct{}

func (none) Start()         {}
func (none) Changed()       {}
func (none) Stop()          {}
func (none) Close()         {}
func (none) Status() Status { return Status{State: Off} }

// witness is the Archiver of a witness, which neither reads nor writes the archive, but says so.
type witness struct {
	none
	o Options
}

// Start implements Archiver.
func (w witness) Start() {
	if w.o.Settings().URL != "" {
		w.o.Log.Info("a witness has no data to archive; the other servers of the group archive theirs")
	}
}

// Changed implements Archiver.
func (w witness) Changed() { w.Start() }

// Status implements Archiver.
func (w witness) Status() Status {
	if w.o.Settings().URL == "" {
		return w.none.Status()
	}
	return Status{State: Witness}
}

// Check returns an error if a URL does not name an archive.
func Check(url string) error {
	if registered.Check == nil {
		return ErrNone
	}
	return registered.Check(url)
}
