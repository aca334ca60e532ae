package journal

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/atomredis/atomredis/persist/disk"
)

// A place in a File is marked by the seed of its segment. Clients see places, and must not learn the seed: with it they could
// make values that look like records. So the mark is a keyed hash of the seed, and the key, which is random, is in a file beside
// the directory of the segments. It is made when a place is first asked for, which a server does when it starts.
const (
	placeKeyName = "places"
	placeKeySize = 16
)

// placeKey returns the key of marks.
func (j *File) placeKey() ([]byte, error) {
	j.keying.Lock()
	defer j.keying.Unlock()
	if j.key != nil {
		return j.key, nil
	}
	path := j.o.FS.PathJoin(j.o.FS.PathDir(j.o.Dir), placeKeyName)
	key, err := readKey(j.o.FS, path)
	if errors.Is(err, os.ErrNotExist) {
		key = make([]byte, placeKeySize)
		rand.Read(key)
		err = writeKey(j.o.FS, path, key)
	}
	if err != nil {
		return nil, fmt.Errorf("the key of positions, %s: %w", path, err)
	}
	j.key = key
	return key, nil
}

var errPlaceKey = errors.New("it has another length than a key")

func readKey(fs disk.FS, path string) ([]byte, error) {
	file, err := fs.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	key, err := io.ReadAll(io.LimitReader(file, placeKeySize+1))
	if err == nil && len(key) != placeKeySize {
		err = errPlaceKey
	}
	return key, err
}

// writeKey durably creates the file: under its name it is never incomplete.
func writeKey(fs disk.FS, path string, key []byte) error {
	temporary := path + tempSuffix
	file, err := fs.Create(temporary)
	if err != nil {
		return err
	}
	err = writeAll(file, bytes.Clone(key)) // a file may change what it is given
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err == nil {
		err = fs.Rename(temporary, path)
	}
	if err == nil {
		err = syncDir(fs, fs.PathDir(path))
	}
	return err
}

// mark returns the mark of places in the segment with a seed.
func mark(key []byte, seed uint32) uint32 {
	sum := sha256.Sum256(binary.LittleEndian.AppendUint32(append(make([]byte, 0, placeKeySize+4), key...), seed))
	return binary.BigEndian.Uint32(sum[:])
}

// Places implements Journal.
func (j *File) Places() (oldest, end Place, err error) {
	key, err := j.placeKey()
	if err != nil {
		return Place{}, Place{}, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.segments) == 0 {
		return Place{}, Place{}, ErrReleased // it has failed, and is about to continue elsewhere
	}
	first := j.segments[j.unbroken()]
	return Place{Mark: mark(key, first.seed), LSN: first.start}, j.end(key), nil
}

// End implements Journal.
func (j *File) End() (Place, error) {
	key, err := j.placeKey()
	if err != nil {
		return Place{}, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.segments) == 0 {
		return Place{}, ErrReleased // see Places
	}
	return j.end(key), nil
}

// end returns the place after the last durable record. The caller holds mu, and there are segments.
func (j *File) end(key []byte) Place {
	durable := j.durable.Load()
	return Place{Mark: mark(key, j.segments[obsolete(j.segments, durable)].seed), LSN: durable}
}

// unbroken returns the index of the first segment that readers can begin with: nothing after it is a break. The caller holds
// mu, and there are segments.
func (j *File) unbroken() int {
	i := len(j.segments) - 1
	for i > 0 && j.segments[i].follows(j.segments[i-1]) {
		i--
	}
	return i
}

// Follow implements Journal.
func (j *File) Follow(from Place) (Reader, error) {
	key, err := j.placeKey()
	if err != nil {
		return nil, err
	}
	s, end, err := j.readable(from.LSN)
	switch {
	case err != nil:
		return nil, err
	case from.LSN > end || from.Within != 0:
		return nil, ErrForeign
	case from.Mark == mark(key, s.seed):
	case from.LSN == s.start && s.before != 0 && from.Mark == mark(key, s.before):
	default:
		return nil, ErrForeign
	}
	return &fileReader{j: j, key: key, at: from.LSN, known: from.LSN == s.start}, nil
}

// Here implements Journal.
func (j *File) Here() (settle func(ctx context.Context) (Place, error)) {
	lsn := j.Appended()
	return func(ctx context.Context) (Place, error) {
		key, err := j.placeKey()
		if err == nil {
			err = j.Sync(ctx)
		}
		if err != nil {
			return Place{}, err
		}
		s, end, err := j.readable(lsn)
		if err == nil && lsn > end {
			err = ErrReleased // it has failed meanwhile
		}
		return Place{Mark: mark(key, s.seed), LSN: lsn}, err
	}
}

// readable returns the segment with the record at an LSN, and the LSN up to which it may be read now.
func (j *File) readable(lsn uint64) (s segment, end uint64, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.segments) == 0 || lsn < j.segments[0].start {
		return s, 0, ErrReleased
	}
	i := obsolete(j.segments, lsn)
	s, end = j.segments[i], j.durable.Load()
	if i+1 < len(j.segments) {
		end = min(end, j.segments[i+1].start)
	}
	return s, end, nil
}

// fileReader is a Reader of a File.
type fileReader struct {
	j     *File
	key   []byte
	r     *reader // of the segment with at; nil before it is opened
	mark  uint32  // of that segment
	at    uint64  // LSN of the next record
	end   uint64  // LSN up to which the segment may be read
	known bool    // a record begins at at, or the journal ends there: a client may have made up the first place
}

// Next implements Reader.
func (f *fileReader) Next() (e Entry, ok bool, err error) {
	for {
		if f.r == nil || f.at >= f.end {
			if more, err := f.more(); !more {
				return Entry{}, false, err
			}
		}
		rec, reason, err := f.r.record(int64(f.at-f.r.start) + headerSize)
		if err != nil || reason != "" {
			return Entry{}, false, f.problem(reason, err)
		}
		f.known = true
		f.at = f.r.start + uint64(rec.next-headerSize)
		if !rec.mark {
			return Entry{After: Place{Mark: f.mark, LSN: f.at}, Now: rec.now, Commands: rec.commands}, true, nil
		}
	}
}

// more finds out what can be read at the present LSN, and opens the segment; ok is false if that is nothing.
func (f *fileReader) more() (ok bool, err error) {
	s, end, err := f.j.readable(f.at)
	if err != nil || f.at >= end {
		return false, err
	}
	if f.r == nil || f.r.start != s.start {
		if f.r != nil && !s.follows(f.r.segment) {
			return false, ErrReleased // what lies between was never a record: see Break
		}
		f.Close()
		header := s
		header.size = headerSize // nothing else is read yet
		r, reason, err := openReader(f.j.o.FS, f.j.o.Dir, header)
		if r != nil && (err != nil || reason != "") {
			r.close()
		}
		if err != nil || reason != "" {
			return false, f.problem(reason, err)
		}
		r.seed = r.head.seed
		f.r, f.mark = r, mark(f.key, s.seed)
	}
	f.r.size, f.end = headerSize+int64(end-s.start), end
	return true, nil
}

// problem returns the error for a record that cannot be read.
func (f *fileReader) problem(reason string, err error) error {
	switch {
	case errors.Is(err, os.ErrNotExist) || f.j.released(f.at):
		return ErrReleased // a file being removed may already be shorter
	case err != nil:
		reason = "cannot be read: " + err.Error()
	case !f.known:
		return ErrForeign
	}
	offset := int64(0)
	path := f.j.o.Dir
	if f.r != nil {
		offset = int64(f.at-f.r.start) + headerSize
		path = segmentPath(f.j.o.FS, f.j.o.Dir, f.r.start)
	}
	damage := &DamageError{File: path, Offset: offset, Reason: reason, Err: err}
	if err == nil && f.j.forsake(f.at) {
		f.j.o.Log.Warn("readers of changes lose the journal up to a damage, which recovery does not need", "error", damage.Error())
		return ErrReleased
	}
	return damage
}

// forsake takes the segments up to the one with an LSN from readers. It reports false if recovery needs that one. The next
// Release removes them.
func (j *File) forsake(lsn uint64) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	i := obsolete(j.segments, lsn)
	if i >= obsolete(j.segments, j.needed) {
		return false
	}
	j.segments = j.segments[i+1:]
	return true
}

// Close implements Reader.
func (f *fileReader) Close() {
	if f.r != nil {
		f.r.close()
		f.r = nil
	}
}

// follows reports whether the records of s continue those of the segment before it.
func (s segment) follows(before segment) bool {
	return s.before != 0 && s.before == before.seed && s.start >= before.start
}

// Break implements Journal.
func (j *File) Break(now int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.append(now, nil, nil) // so that no place before is the beginning of the next segment
	j.severed = j.appended.Load()
}

// Retain implements Journal.
func (j *File) Retain(r Retention) {
	j.mu.Lock()
	j.retention = r
	j.mu.Unlock()
}

// Retained implements Journal.
func (j *File) Retained() int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return sizeOf(j.segments[:obsolete(j.segments, j.needed)])
}

func sizeOf(segments []segment) (n int64) {
	for _, s := range segments {
		n += s.size
	}
	return n
}

// spared returns how many of the first n segments, which are not needed to recover, need not be kept for readers either.
func (r Retention) spared(segments []segment, n int, now int64) int {
	if r == (Retention{}) {
		return n
	}
	read := r.readers()
	for kept := int64(0); n > 0; n-- {
		s := segments[n-1]
		read = read && (r.Bytes <= 0 || kept < r.Bytes) && (r.Age <= 0 || now-s.modified <= r.Age)
		if !read && !r.needs(s.end(), kept) {
			break
		}
		kept += s.size
	}
	return n
}

// retained returns the segments in a directory that readers still need and that continue up to the first needed one.
func (j *File) retained(obsolete []segment, first segment) []segment {
	j.mu.Lock()
	r := j.retention
	j.mu.Unlock()
	from := len(obsolete)
	for next, oldest := first, r.spared(obsolete, len(obsolete), j.o.Now().UnixMilli()); from > oldest; from-- {
		s := &obsolete[from-1]
		head := *s
		head.size = min(s.size, headerSize)
		file, reason, err := openReader(j.o.FS, j.o.Dir, head)
		if file == nil {
			break
		}
		file.close()
		if s.seed, s.before = file.head.seed, file.head.before; err != nil || reason != "" || !next.follows(*s) || s.end() != next.start {
			break
		}
		next = *s
	}
	return obsolete[from:]
}
