package changes

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/background"
	"github.com/atomredis/atomredis/persist/disk"
	"github.com/atomredis/atomredis/persist/journal"
	"github.com/atomredis/atomredis/resp"
)

// A reader that begins with nothing first gets a snapshot: the commands that make the data of one instant, and then the changes
// after that instant. The snapshot is a file in the data directory, and its positions name it and an offset in it. There is one
// at a time, as it may be as large as the data: readers that begin share it, also a client that has given up waiting and asks
// again. It is replaced when the changes after it are not kept any more, as it has no use for anybody then.
const (
	snapshotDir    = "changes-snapshots"
	snapshotSuffix = ".snapshot"
	snapshotUnread = 5 * time.Minute // after that time without a reader a finished one is removed
	snapshotPrefix = "s"
	snapshotChunk  = 256 << 10 // bytes read at once
)

// ErrNoSnapshot means that the rest of a snapshot cannot be read any more.
var ErrNoSnapshot = errors.New("CHANGESGONE the snapshot is not kept any more: begin with FROM 0 again")

// Position is where a read begins: in the journal, in a snapshot or, as the zero value, before a new snapshot.
type Position struct {
	Place    journal.Place
	Snapshot string // the snapshot's name, "" in the journal
	Offset   int64  // in the snapshot
	DB       int    // the database that is selected there
	Seal     uint64 // shows that the server has made the position: see Feed.sealed
	Start    bool   // before a new snapshot
}

// String returns the form that ParsePosition reads.
func (p Position) String() string {
	switch {
	case p.Start:
		return "0"
	case p.Snapshot != "":
		return fmt.Sprintf("%s%s-%d.%d-%016x", snapshotPrefix, p.Snapshot, p.Offset, p.DB, p.Seal)
	}
	return p.Place.String()
}

// ParsePosition reads the form of String.
func ParsePosition(text string) (p Position, ok bool) {
	if text == "0" {
		return Position{Start: true}, true
	}
	rest, in := strings.CutPrefix(text, snapshotPrefix)
	if !in {
		p.Place, ok = journal.ParsePlace(text)
		return p, ok
	}
	name, at, _ := strings.Cut(rest, "-")
	at, seal, _ := strings.Cut(at, "-")
	offset, db, _ := strings.Cut(at, ".")
	n, err1 := strconv.ParseInt(offset, 10, 63)
	number, err2 := strconv.ParseUint(db, 10, 31)
	mark, err3 := strconv.ParseUint(seal, 16, 64)
	p = Position{Snapshot: name, Offset: n, DB: int(number), Seal: mark}
	return p, name != "" && errors.Join(err1, err2, err3) == nil && n >= 0 && p.String() == text
}

// sealed returns a position in a snapshot with its seal, a keyed hash. Without it a client could make up an offset within a
// value, which may look like commands for keys that the client may read.
func (f *Feed) sealed(p Position) Position {
	h := hmac.New(sha256.New, f.snapshots.key[:])
	fmt.Fprintf(h, "%s-%d.%d", p.Snapshot, p.Offset, p.DB)
	p.Seal = binary.BigEndian.Uint64(h.Sum(nil))
	return p
}

// snapshots has the snapshot of a feed.
type snapshots struct {
	key  [32]byte // of seals; positions in a snapshot do not outlive the process
	mu   sync.Mutex
	last *snapshot // nil without a snapshot
}

// snapshot is the data of one instant as commands in a file.
type snapshot struct {
	name string
	path string
	made chan struct{} // closed when the following fields are known
	err  error
	at   int64         // the instant in ms since 1970
	end  journal.Place // where the changes go on
	size int64
	// protected by snapshots.mu
	expires *time.Timer // nil until it is made
}

// Writer writes the commands that make the data of one instant; at is called under a guard over everything then, before anything
// is written. If it fails, so does the Writer.
type Writer func(ctx context.Context, w io.Writer, at func(g *engine.Guard) error) error

// Start removes what an earlier process has left, as far as that is possible, and nothing else. It is called before there are
// readers, when the journal has been read.
func (f *Feed) Start() {
	_, _ = f.Here() // the journal makes its key now, and not under a guard; if it cannot, it tries again
	names, _ := f.o.FS.List(f.dir())
	for _, name := range names {
		id, ours := strings.CutSuffix(name, snapshotSuffix)
		if b, err := hex.DecodeString(id); !ours || err != nil || len(b) != snapshotID || id != strings.ToLower(id) {
			continue
		}
		path := f.o.FS.PathJoin(f.dir(), name)
		if info, err := f.o.FS.Stat(path); err == nil && info.Mode().IsRegular() {
			_ = f.o.FS.Remove(path)
		}
	}
}

// snapshotID is the length in bytes of the ID of a snapshot.
const snapshotID = 8

func (f *Feed) dir() string { return f.o.FS.PathJoin(f.o.Dir(), snapshotDir) }

// snapshot returns the snapshot for a reader that begins. One that is not complete is always shared: however long it takes, a
// client that asks again gets it.
func (f *Feed) snapshot() (*snapshot, error) {
	s := &f.snapshots
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.last; l != nil {
		select {
		case <-l.made:
			if f.continues(l) {
				l.expires.Reset(snapshotUnread)
				return l, nil
			}
			f.remove(l)
		default:
			return l, nil
		}
	}
	var id [snapshotID]byte
	rand.Read(id[:])
	text := hex.EncodeToString(id[:])
	made := &snapshot{name: text, path: f.o.FS.PathJoin(f.dir(), text+snapshotSuffix), made: make(chan struct{})}
	s.last = made
	f.Go(func() {
		background.Work()
		err := f.make(made)
		s.mu.Lock()
		defer s.mu.Unlock()
		made.expires = time.AfterFunc(snapshotUnread, func() { f.drop(made) })
		if made.err = err; err != nil {
			f.remove(made)
		}
		close(made.made)
	})
	return made, nil
}

// continues reports whether the journal has the changes after a snapshot.
func (f *Feed) continues(s *snapshot) bool {
	j := f.records()
	if j == nil {
		return false
	}
	r, err := j.Follow(s.end)
	if err != nil {
		return false
	}
	r.Close()
	return true
}

// errBetween means that the instant of a snapshot was within an entry of the group's log.
var errBetween = errors.New("the data has only a part of an entry")

// make writes the file of a snapshot. While a follower executes an entry there is no position: then it tries again.
func (f *Feed) make(s *snapshot) (err error) {
	if f.records() == nil {
		return ErrNoJournal
	}
	if err := f.o.FS.MkdirAll(f.dir(), 0o700); err != nil {
		return err
	}
	for range snapshotTries {
		if err = f.try(s); !errors.Is(err, errBetween) {
			return err
		}
		time.Sleep(snapshotPause)
	}
	return err
}

const (
	snapshotTries = 500
	snapshotPause = 2 * time.Millisecond
)

func (f *Feed) try(s *snapshot) (err error) {
	j := f.records()
	out := &created{fs: f.o.FS, path: s.path, dir: f.dir()}
	var settle func(ctx context.Context) (journal.Place, error)
	err = f.o.Write(f.ctx, out, func(g *engine.Guard) error {
		s.at = g.Now()
		if settle = j.Here(); settle == nil {
			return errBetween
		}
		return nil
	})
	if err == nil {
		s.end, err = settle(f.ctx)
	}
	s.size = out.size
	return errors.Join(err, out.close())
}

// ErrNoRoom means that a snapshot was given up before it took the last room of the disk, which other writes need.
var ErrNoRoom = fmt.Errorf("NOROOM a snapshot of the data would leave less than %d MB of the disk free", reserve>>20)

const (
	reserve    = 256 << 20 // bytes that a snapshot leaves free
	checkEvery = 16 << 20  // after so many bytes the free room is checked
)

// created is a file that exists once something is written to it.
type created struct {
	fs        disk.FS
	dir, path string
	file      disk.File
	size      int64
	unchecked int64 // bytes that may be written before the free room is checked
}

// Write implements io.Writer.
func (c *created) Write(b []byte) (n int, err error) {
	if c.unchecked -= int64(len(b)); c.unchecked < 0 {
		if fs, ok := c.fs.(disk.Roomy); ok {
			if free, known := fs.Free(c.dir); known && free-int64(len(b)) < reserve {
				return 0, ErrNoRoom
			}
		}
		c.unchecked = checkEvery
	}
	if c.file == nil {
		if c.file, err = c.fs.Create(c.path); err != nil {
			c.file = nil
			return 0, err
		}
	}
	n, err = c.file.Write(b)
	c.size += int64(n)
	return n, err
}

func (c *created) close() error {
	if c.file == nil {
		return nil
	}
	return c.file.Close()
}

// drop removes a snapshot that is complete.
func (f *Feed) drop(s *snapshot) {
	f.snapshots.mu.Lock()
	defer f.snapshots.mu.Unlock()
	f.remove(s)
}

// remove is drop for a caller that holds mu.
func (f *Feed) remove(s *snapshot) {
	if f.snapshots.last != s {
		return
	}
	f.snapshots.last = nil
	if s.expires != nil { // else the server has ended before it was begun
		s.expires.Stop()
	}
	_ = f.o.FS.Remove(s.path) // the next start removes what is left
}

// found returns the complete snapshot with a name, which is being read; nil if it is not kept any more.
func (f *Feed) found(name string) *snapshot {
	f.snapshots.mu.Lock()
	defer f.snapshots.mu.Unlock()
	s := f.snapshots.last
	if s == nil || s.name != name || s.expires == nil {
		return nil // the positions of an incomplete one are not known yet
	}
	s.expires.Reset(snapshotUnread)
	return s
}

// begin returns the first position of a new snapshot. ok is false if ctx or the server has ended before it was made.
func (f *Feed) begin(ctx context.Context) (p Position, ok bool, err error) {
	s, err := f.snapshot()
	if err != nil {
		return p, false, err
	}
	select {
	case <-s.made:
	case <-ctx.Done():
		return p, false, nil
	}
	if s.err != nil && f.ctx.Err() != nil {
		return p, false, nil // the server's end is the reason
	}
	if s.err != nil {
		return p, false, f.explained(s.err)
	}
	return f.sealed(Position{Snapshot: s.name}), true, nil
}

// readSnapshot reads a page of a snapshot. At its end the position is in the journal.
func (f *Feed) readSnapshot(ctx context.Context, at Position, q *Query) (p Page, err error) {
	p.Next = at
	p.Rights = q.Filter.Rights()
	s := f.found(at.Snapshot)
	if s == nil || f.sealed(at).Seal != at.Seal {
		return p, ErrNoSnapshot
	}
	var file disk.File
	if s.size > 0 { // else there is no file
		if file, err = f.o.FS.Open(s.path); err != nil {
			return p, ErrNoSnapshot
		}
		defer file.Close()
	}
	c := commandsIn{file: file, at: at.Offset, end: s.size}
	d := decoder{table: f.o.Table, filter: &q.Filter}
	var pause background.Pacer
	var w resp.Writer
	until := time.Now().Add(turn)
	for ctx.Err() == nil && p.Changes < q.Count && w.Len() < q.Bytes && p.Next.Snapshot != "" {
		if p.Changes == 0 && time.Now().After(until) {
			break // another reader's turn
		}
		pause.Pause()
		args, encoded, err := c.next()
		switch {
		case errors.Is(err, io.EOF) && c.at == c.end:
			p.Next = Position{Place: s.end}
			continue
		case err != nil:
			return p, ErrNoSnapshot
		}
		db := p.Next.DB
		selected, isSelect := selects(args)
		if isSelect {
			db = selected
		}
		p.Next.Offset, p.Next.DB = c.at, db
		if c.at == c.end { // after the last change the snapshot is not needed any more
			p.Next = Position{Place: s.end}
		}
		if isSelect {
			continue
		}
		d.begin()
		if d.add(args, db, encoded); d.n == 0 {
			continue
		}
		d.end(&w, f.sealed(p.Next), s.at)
		p.Changes++
	}
	p.Encoded = w.Buf
	if p.Next.Snapshot != "" {
		p.Next = f.sealed(p.Next)
	}
	if p.Changes == 0 {
		at := p.Next
		q.From.Store(&at)
	}
	f.sent.Add(int64(p.Changes))
	return p, nil
}

// commandsIn reads commands from a file.
type commandsIn struct {
	file   disk.File
	at     int64 // offset of the next command
	end    int64
	buf    []byte // what was read from at on
	parser resp.Parser
	args   [][]byte
}

// next returns the next command, valid until the next call; the error is io.EOF at the end.
func (c *commandsIn) next() (args [][]byte, encoded []byte, err error) {
	c.parser.MaxBulk = resp.AnyBulk
	for size := snapshotChunk; ; size *= 2 {
		args, n, err := c.parser.Next(c.buf, c.args[:0])
		if err != nil {
			return nil, nil, err
		}
		if n > 0 {
			encoded = c.buf[:n]
			c.args, c.buf, c.at = args, c.buf[n:], c.at+int64(n)
			return args, encoded, nil
		}
		if c.at+int64(len(c.buf)) >= c.end {
			return nil, nil, io.EOF
		}
		size = max(size, 2*len(c.buf))
		b := make([]byte, min(int64(size), c.end-c.at))
		if n, err := c.file.ReadAt(b, c.at); n < len(b) {
			return nil, nil, errors.Join(err, io.ErrUnexpectedEOF)
		}
		c.buf, c.parser = b, resp.Parser{MaxBulk: resp.AnyBulk}
	}
}
