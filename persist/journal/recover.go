package journal

import (
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/atomredis/atomredis/persist/disk"
)

// DamageError says that synced data of the journal is missing or wrong. An unsynced end is no damage.
type DamageError struct {
	File   string
	Offset int64 // bytes; start of the first bad record
	Reason string
	Err    error // of the file system, if that is the cause
}

func (e *DamageError) Error() string {
	return fmt.Sprintf("the journal is damaged: %s at offset %d: %s", e.File, e.Offset, e.Reason)
}

func (e *DamageError) Unwrap() error { return e.Err }

// Start is the position from which to read a journal, as noted by a store.
type Start struct {
	// LSN is the position up to which the store has everything.
	LSN uint64
	// Seed is the seed of the segment with the record at LSN; 0 if no segment need exist.
	Seed uint32
}

// Report has the findings about a journal.
type Report struct {
	// End is the LSN after the last sound record, or the start of reading if that is later.
	End uint64
	// Segments is the number of segments read, and Bytes the size of their sound part. Records of commands begin at or
	// after the start.
	Segments int
	Bytes    int64
	Records  int
	// Missing is the minimum number of synced bytes that are missing.
	Missing uint64
	// Cut is the part that no longer belongs to the journal, or must be removed before it can be read.
	Cut Cut
}

// Cut is the part of a journal, starting at an offset in a file, that is or would be cut off: Bytes is 0 if there is
// none. Records is the number of its sound records of commands, including those before the start of reading.
type Cut struct {
	File    string
	Offset  int64
	Bytes   int64
	Records int
}

// Replay calls fn with the records in dir that begin at from.LSN or later, in order, with their LSN and the arguments
// of Append. commands is valid until fn returns. It stops with the first error of fn, which it returns unchanged.
//
// Afterwards it removes segments with only records before from, and a torn end that was never synced. If synced data is
// missing or wrong, the error is a *DamageError and nothing is changed.
func Replay(
	fs disk.FS, dir string, from Start, log *slog.Logger, fn func(lsn uint64, now int64, commands []byte) error,
) (Report, error) {
	report, _, _, err := replayed(fs, dir, from, log, retainNothing, fn)
	return report, err
}

// retain returns the last of the segments before the start that are kept for readers; first is the one that follows them.
type retain func(obsolete []segment, first segment) []segment

func retainNothing([]segment, segment) []segment { return nil }

// replayed is Replay, and returns the remaining segments: those that are kept for readers, and the others.
func replayed(
	fs disk.FS, dir string, from Start, log *slog.Logger, keep retain, fn func(lsn uint64, now int64, commands []byte) error,
) (Report, []segment, []segment, error) {
	f, err := inspect(fs, dir, from, fn)
	if err == nil {
		log = orDiscard(log)
		if err = f.finish(log, keep); disk.Full(err) {
			// The start of the next segment shows where this one ends; until there is one, the next start sees the
			// same.
			log.Warn("the disk is full: cannot truncate the end of the journal", "error", err.Error())
			err = nil
		}
	}
	return f.report, f.kept, f.segments, err
}

// readDurable calls fn with the records from one LSN up to another, before which everything is durable, and returns the
// LSN after the last. The segments may be in use.
func readDurable(
	fs disk.FS, dir string, segments []segment, from, end uint64, fn func(lsn uint64, now int64, commands []byte) error,
) (next uint64, err error) {
	if from >= end {
		return from, nil
	}
	if len(segments) == 0 || from < segments[0].start {
		return from, ErrReleased
	}
	next = from
	for _, s := range segments[obsolete(segments, from):] {
		if s.start >= end {
			break
		}
		s.size = min(s.size, headerSize+int64(end-s.start))
		if next, err = readSegment(fs, dir, s, next, fn); err != nil {
			return next, err
		}
	}
	return next, nil
}

// readSegment calls fn with the records of a sound segment that begin at LSN from or later, and returns the LSN after
// the last.
func readSegment(
	fs disk.FS, dir string, s segment, from uint64, fn func(lsn uint64, now int64, commands []byte) error,
) (next uint64, err error) {
	path := segmentPath(fs, dir, s.start)
	r, reason, err := openReader(fs, dir, s)
	if r == nil {
		if errors.Is(err, os.ErrNotExist) {
			err = ErrReleased
		}
		return from, err
	}
	defer r.close()
	off, rec := int64(headerSize), record{}
	if at := off + int64(from-min(from, s.start)); err == nil && reason == "" && at > off && at < s.size {
		// The bytes before a record need not be read: the seed distinguishes a record from bytes that only look like
		// one.
		if first, other, failed := r.record(at); failed == nil && other == "" {
			off, rec = at, first
		}
	}
	for err == nil && reason == "" && off < s.size {
		if rec.next <= off { // else it has already been read
			if rec, reason, err = r.record(off); err != nil || reason != "" {
				break
			}
		}
		if !rec.mark && rec.lsn >= from {
			if err := fn(rec.lsn, rec.now, rec.commands); err != nil {
				return rec.lsn, err
			}
		}
		off = rec.next
	}
	next = max(from, s.start+uint64(off-headerSize))
	if err != nil {
		reason = "cannot be read: " + err.Error()
	}
	if reason != "" {
		return next, &DamageError{File: path, Offset: off, Reason: reason, Err: err}
	}
	return next, nil
}

// Verify reads the journal as Replay does, and changes nothing. fn may be nil. If the error is a *DamageError, Cut in the
// report is the part that Repair would cut off.
func Verify(fs disk.FS, dir string, from Start, fn func(lsn uint64, now int64, commands []byte) error) (Report, error) {
	f, err := inspect(fs, dir, from, fn)
	return f.report, err
}

// Exists reports whether the directory dir has, or has lost, a segment of a journal. There need be no such directory.
func Exists(fs disk.FS, dir string) (bool, error) {
	segments, _, err := list(fs, dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return false, nil
	case err != nil || len(segments) > 0:
		return err == nil, err
	}
	p, err := readPositions(fs, dir)
	return p.segment, err
}

// Repair cuts off a damaged journal at the first damage, so that it can be replayed. The rest is kept in files whose
// names end in .damaged. Missing segments are no longer expected, except the one with from.Seed: if segment is false,
// no segment has that position, and the store must forget it.
func Repair(fs disk.FS, dir string, from Start, log *slog.Logger) (report Report, segment bool, err error) {
	log = orDiscard(log)
	f, err := inspect(fs, dir, from, nil)
	if err != nil && f.unknown {
		log.Warn("the end of the journal is unknown; keeping all records that are there", "reason", err.Error())
		if err := writePositions(fs, dir, positions{exists: true}); err != nil {
			return f.report, false, err
		}
		f, err = inspect(fs, dir, from, nil)
	}
	if err == nil {
		return f.report, from.Seed != 0, f.finish(log, retainNothing)
	}
	damage, ok := errors.AsType[*DamageError](err)
	if !ok {
		return f.report, false, err
	}
	// Starting from the end, so that a crash leaves no gap.
	for i := len(f.segments) - 1; i >= f.bad; i-- {
		path := segmentPath(fs, dir, f.segments[i].start)
		if i == f.bad && f.offset >= headerSize {
			if err := fs.Remove(path + damagedSuffix); err != nil && !errors.Is(err, os.ErrNotExist) {
				return f.report, false, fmt.Errorf("remove %s: %w", path+damagedSuffix, err)
			}
			err = fs.Link(path, path+damagedSuffix)
		} else {
			err = fs.Rename(path, path+damagedSuffix)
		}
		if err != nil {
			return f.report, false, fmt.Errorf("set %s aside: %w", path, err)
		}
	}
	if err := syncDir(fs, dir); err != nil && !errors.Is(err, os.ErrNotExist) {
		return f.report, false, err
	}
	if f.bad < len(f.segments) && f.offset >= headerSize {
		if err := cut(fs, dir, f.segments[f.bad].start, f.offset); err != nil {
			return f.report, false, err
		}
	}
	// The note of missing data is removed last.
	if err := writePositions(fs, dir, positions{exists: true}); err != nil {
		return f.report, false, err
	}
	c := f.report.Cut
	log.Warn("journal repaired; records behind the damage are kept in .damaged files", "reason", damage.Reason, "file", c.File,
		"offset", c.Offset,
		"bytes", c.Bytes, "records", c.Records, "missing", f.report.Missing)
	return f.report, f.keeps(from), nil
}

// keeps reports whether the sound part begins with the segment that the store names, and reaches its position.
func (f *findings) keeps(from Start) bool {
	position := uint64(0)
	switch {
	case f.bad < len(f.segments) && f.offset >= headerSize:
		position = f.segments[f.bad].start + uint64(f.offset-headerSize)
	case f.bad > 0:
		position = f.segments[f.bad-1].end()
	default:
		return false
	}
	return from.Seed != 0 && f.segments[0].seed == from.Seed && position >= from.LSN
}

func orDiscard(log *slog.Logger) *slog.Logger {
	if log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return log
}

// findings is the result of inspect. The segments from bad on are not sound; the first of them is sound up to offset,
// unless that is within its header.
type findings struct {
	fs       disk.FS
	dir      string
	from     Start
	known    positions
	unknown  bool // the file of positions is damaged or missing
	temps    []string
	obsolete []segment // without records at or after the start
	kept     []segment // those of them that finish has kept
	segments []segment // the others
	bad      int
	offset   int64
	report   Report
}

// inspect reads the journal from a position on, and changes nothing. fn may be nil. The error is a *DamageError if
// there is damage.
func inspect(fs disk.FS, dir string, from Start, fn func(lsn uint64, now int64, commands []byte) error) (*findings,
	error) {
	f := &findings{fs: fs, dir: dir, from: from, report: Report{End: from.LSN}}
	all, temps, err := list(fs, dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return f, err
	}
	n := obsolete(all, from.LSN)
	if from.Seed == 0 && n == len(all)-1 && all[n].start < from.LSN && all[n].end() <= from.LSN {
		n++
	}
	f.temps, f.obsolete, f.segments = temps, all[:n], all[n:]
	f.bad = len(f.segments)
	if f.known, err = readPositions(fs, dir); err == nil && !f.known.exists && from.Seed != 0 {
		err = f.noPositions()
	}
	if err != nil {
		f.unknown = errors.As(err, new(*DamageError))
		return f, err
	}
	position := from.LSN
	for i, s := range f.segments {
		if i == 0 && s.start > position || i > 0 && s.start != position {
			return f, f.missing(i, position, s.start)
		}
		size, err := f.read(i, fn)
		if err != nil {
			return f, err
		}
		f.segments[i].size = size
		f.report.Bytes += size
		position = f.segments[i].end()
		f.report.End = max(from.LSN, position)
	}
	if f.lacks(position) {
		return f, f.missing(len(f.segments), position, f.known.synced)
	}
	// The length of the last file alone did not show this.
	if n := len(f.segments); n > 0 && from.Seed == 0 && f.bad == n && f.segments[n-1].start < from.LSN &&
		position <= from.LSN {
		f.obsolete, f.segments, f.bad = all, nil, 0
	}
	return f, nil
}

// lacks reports whether segments are missing after the existing ones, which end at a position: the last one begun, a
// synced one, or the one that the store names.
func (f *findings) lacks(position uint64) bool {
	n := len(f.segments)
	if f.from.Seed != 0 && (n == 0 || position < f.from.LSN) || f.known.synced > max(position, f.from.LSN) {
		return true
	}
	return f.known.segment && f.known.start >= f.from.LSN && (n == 0 || f.segments[n-1].start < f.known.start)
}

// read reads a segment, and returns the offset up to which it is sound. Only the last segment may have an unsound end.
func (f *findings) read(i int, fn func(lsn uint64, now int64, commands []byte) error) (int64, error) {
	s := f.segments[i]
	last := i == len(f.segments)-1
	path := segmentPath(f.fs, f.dir, s.start)
	r, reason, err := openReader(f.fs, f.dir, s)
	if r == nil {
		return 0, fmt.Errorf("open %s: %w", path, err)
	}
	defer r.close()
	if err != nil {
		return 0, f.damage(i, 0, path, 0, "cannot be read: "+err.Error(), err)
	}
	f.report.Segments++
	if reason != "" {
		// The header is synced before anything is written after it, and before the segment counts as begun.
		begun := f.known.segment && f.known.start == s.start || i == 0 && f.from.Seed != 0
		if last && s.size <= headerSize && !begun {
			f.cutFrom(i, 0, path, 0)
			return 0, nil
		}
		return 0, f.damage(i, 0, path, 0, reason, nil)
	}
	f.segments[i].seed, f.segments[i].before = r.head.seed, r.head.before
	if !f.known.exists && r.head.version != oldVersion && s.size > headerSize {
		f.unknown = true
		return 0, f.noPositions()
	}
	if reason := f.stray(i, r.head); reason != "" {
		return 0, f.damage(i, 0, path, 0, reason, nil)
	}
	from := f.from.LSN
	for off := int64(headerSize); off < s.size; {
		rec, reason, err := r.record(off)
		if err != nil {
			return 0, f.damage(i, off, path, off, "cannot be read: "+err.Error(), err)
		}
		if reason != "" {
			return off, f.end(i, off, r, path, reason)
		}
		if next := s.start + uint64(rec.next-headerSize); rec.lsn < from && from < next {
			return 0, f.damage(i, off, path, off, fmt.Sprintf("the data set was saved at position %d, within a record", from),
				nil)
		}
		if !rec.mark && rec.lsn >= from {
			f.report.Records++
			if fn != nil {
				if err := fn(rec.lsn, rec.now, rec.commands); err != nil {
					return 0, err
				}
			}
		}
		off = rec.next
	}
	return s.size, nil
}

// stray returns the reason why a segment does not belong to this journal, "" if it does.
func (f *findings) stray(i int, h header) string {
	switch s := f.segments[i]; {
	case i == 0 && f.from.Seed != 0 && h.seed != f.from.Seed:
		return "the segment is not the one in which the data set continues"
	case f.known.segment && f.known.start == s.start && h.seed != f.known.seed:
		return "the segment is not the one that was begun here"
	case i > 0 && h.before != 0 && h.before != f.segments[i-1].seed:
		return "the segment does not follow the one before it"
	}
	return ""
}

// end decides the meaning of a missing record at an offset of segment i: the segment's end, a torn tail, or damage.
// Unsynced pages reach the disk in any order, so sound records may follow a torn one. If a later mark, or the file of
// positions, confirms this offset as synced, it is damage. So is a record that was written as a whole: a crash does not
// change what it leaves.
func (f *findings) end(i int, off int64, r *reader, path, reason string) error {
	unused, err := r.zeros(off)
	if unused {
		return nil // lacks checks whether there should be more
	}
	if i < len(f.segments)-1 {
		return f.damage(i, off, path, off, reason, err) // it was synced before the next one was created
	}
	synced, whole := f.known.synced, false
	if err == nil {
		var marked uint64
		marked, err = r.syncedAfter(off)
		synced = max(synced, marked)
	}
	if err == nil {
		whole, err = r.whole(off)
	}
	if err != nil {
		return f.damage(i, off, path, off, "cannot be read: "+err.Error(), err)
	}
	if synced > r.start+uint64(off-headerSize) {
		return f.damage(i, off, path, off, reason+fmt.Sprintf(", though everything up to position %d was synced", synced),
			nil)
	}
	if whole {
		return f.damage(i, off, path, off, reason+", though all of it was written", nil)
	}
	f.cutFrom(i, off, path, off)
	return nil
}

func (f *findings) noPositions() error {
	return f.damage(len(f.segments), 0, positionsPath(f.fs, f.dir), 0,
		"the file that says where the journal ends is missing", nil)
}

// missing returns the damage for the gap between position, where segment i should continue, and end.
func (f *findings) missing(i int, position, end uint64) error {
	n := len(f.segments)
	file, offset, reason := segmentPath(f.fs, f.dir, position), int64(0), "the segment is missing"
	switch {
	case i > 0 && i < n:
		reason += ", or the one before has another length"
	case i > 0 && f.known.start == f.segments[i-1].start:
		last := f.segments[i-1]
		file, offset, reason = segmentPath(f.fs, f.dir, last.start), last.size, "the end of the segment is missing"
	}
	if end > position {
		f.report.Missing = end - position
		reason += fmt.Sprintf(": %d bytes had been synced from position %d on", end-position, position)
	}
	return f.damage(i, 0, file, offset, reason, nil)
}

// damage records that the segments from i on are not sound, the first of them from an offset on, and returns the error.
// The file and the offset where the damage shows may differ.
func (f *findings) damage(i int, off int64, file string, fileOffset int64, reason string, err error) error {
	f.cutFrom(i, off, file, fileOffset)
	f.report.Bytes += off
	if i < len(f.segments) && off >= headerSize {
		f.report.End = max(f.report.End, f.segments[i].start+uint64(off-headerSize))
	}
	return &DamageError{File: file, Offset: fileOffset, Reason: reason, Err: err}
}

func (f *findings) cutFrom(i int, off int64, file string, fileOffset int64) {
	f.bad, f.offset = i, off
	c := Cut{File: file, Offset: fileOffset}
	for _, s := range f.segments[i:] {
		c.Bytes += s.size - off
		if r, reason, err := openReader(f.fs, f.dir, s); r != nil {
			if err == nil && reason == "" {
				c.Records += r.count(max(off, headerSize))
			}
			r.close()
		}
		off = 0
	}
	f.report.Cut = c
}

// finish removes from an undamaged journal what no longer belongs to it; kept and segments then have the rest.
func (f *findings) finish(log *slog.Logger, keep retain) error {
	for _, path := range f.temps {
		if err := f.fs.Remove(path); err != nil {
			return fmt.Errorf("remove %s: %w", path, err)
		}
	}
	if len(f.segments) > 0 {
		f.kept = keep(f.obsolete, f.segments[0])
	}
	if err := remove(f.fs, f.dir, f.obsolete[:len(f.obsolete)-len(f.kept)]); err != nil {
		return err
	}
	if f.bad == len(f.segments) {
		return nil
	}
	c := f.report.Cut
	log.Warn("the end of the journal was never synced; truncating it", "file", c.File, "offset", c.Offset, "bytes",
		c.Bytes)
	torn := f.segments[f.bad]
	if f.offset < headerSize {
		f.segments = f.segments[:f.bad]
		return remove(f.fs, f.dir, []segment{torn})
	}
	return cut(f.fs, f.dir, torn.start, f.offset)
}
