package journal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/atomredis/atomredis/persist/disk"
)

// The format of segments. All numbers are little-endian.
//
//	segment  header, records
//	header   magic (8), version (4), LSN of the first record (8), salt (4), seed of the segment before (4), CRC of what precedes (4)
//	record   CRC (4), length of the payload, the highest bit set for a mark (4), low half of the LSN xor seed (4), payload
//	payload  time in ms since 1970 (8), commands; or, of a mark, the LSN before which everything is synced (8)
//
// Zeros may follow the last record, see prepareSize. A segment ends where the next one begins; after the end of the
// last one there are only zeros.
//
// The seed of the segment before ties a segment to its journal; it is 0 if there is none. In version 1 the salt takes
// its place too.
//
// The checksums are CRC-32C. The CRC of a header is the seed of its segment: the CRCs of the records start from it.
// Because of the random salt, neither data stored by a client nor old content of a disk block passes for a record.
const (
	magic        = "atomjrnl"
	version      = 2
	oldVersion   = 1
	headerSize   = 32
	recordHeader = 12
	minPayload   = 8
	markBit      = 1 << 31
	markSize     = recordHeader + minPayload
	maxPayload   = markBit - 1

	prefix        = "journal-"
	tempSuffix    = ".tmp"
	damagedSuffix = ".damaged"
)

// DirName is the name of the directory of a journal's segments.
const DirName = "journal"

// window is how many bytes of a segment are read at once.
const window = 256 << 10

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// segment is a file of the journal.
type segment struct {
	start uint64 // LSN of its first record
	// length of the header and the records, in bytes; for the last segment, the file's length until it has been read
	size     int64
	seed     uint32 // 0 until it has been read
	before   uint32 // seed of the segment that it continues; 0 for the first one, after a break, and until it has been read
	modified int64  // when the file was last written, in ms since 1970; 0 if unknown
}

// end returns the LSN after the last record.
func (s segment) end() uint64 { return s.start + uint64(max(s.size-headerSize, 0)) }

func segmentName(start uint64) string { return fmt.Sprintf("%s%016x", prefix, start) }

func segmentPath(fs disk.FS, dir string, start uint64) string {
	return fs.PathJoin(dir, segmentName(start))
}

// list returns the segments in a directory in the order of their LSNs, and the paths of temporary files that a crash
// has left.
func list(fs disk.FS, dir string) (segments []segment, temps []string, err error) {
	names, err := fs.List(dir)
	if err != nil {
		return nil, nil, fmt.Errorf("list %s: %w", dir, err)
	}
	for _, name := range names {
		digits, ok := strings.CutPrefix(name, prefix)
		if !ok {
			continue
		}
		if strings.HasSuffix(digits, tempSuffix) {
			temps = append(temps, fs.PathJoin(dir, name))
			continue
		}
		start, err := strconv.ParseUint(digits, 16, 64)
		if err != nil || segmentName(start) != name {
			continue
		}
		info, err := fs.Stat(fs.PathJoin(dir, name))
		if err != nil {
			return nil, nil, fmt.Errorf("segment %s: %w", fs.PathJoin(dir, name), err)
		}
		segments = append(segments, segment{start: start, size: info.Size(), modified: info.ModTime().UnixMilli()})
	}
	slices.SortFunc(segments, func(a, b segment) int {
		if a.start < b.start {
			return -1
		}
		return 1
	})
	for i := 1; i < len(segments); i++ {
		s := &segments[i-1]
		s.size = min(s.size, headerSize+int64(segments[i].start-s.start))
	}
	return segments, temps, nil
}

// create durably creates an empty segment, replacing one of the same name. before is the seed of the one that it
// follows, 0 if there is none. It returns the file, for WriteAt, and the seed for its records.
func create(fs disk.FS, dir string, start uint64, before uint32) (disk.File, uint32, error) {
	path := segmentPath(fs, dir, start)
	header, seed := encodeHeader(start, rand.Uint32(), before)
	for seed == 0 { // 0 means no seed
		header, seed = encodeHeader(start, rand.Uint32(), before)
	}
	file, err := fs.Create(path)
	if err != nil {
		return nil, 0, fmt.Errorf("create %s: %w", path, err)
	}
	if err := writeAll(file, header); err != nil {
		file.Close()
		return nil, 0, fmt.Errorf("write %s: %w", path, err)
	}
	if err := file.Sync(); err != nil {
		file.Close()
		return nil, 0, fmt.Errorf("sync %s: %w", path, err)
	}
	if err := file.Close(); err != nil {
		return nil, 0, fmt.Errorf("close %s: %w", path, err)
	}
	if err := syncDir(fs, dir); err != nil {
		return nil, 0, err
	}
	file, err = openForWriting(fs, dir, start)
	return file, seed, err
}

// openForWriting opens an existing segment for WriteAt.
func openForWriting(fs disk.FS, dir string, start uint64) (disk.File, error) {
	path := segmentPath(fs, dir, start)
	file, err := fs.OpenReadWrite(path)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	return file, nil
}

func writeAll(w io.Writer, b []byte) error {
	n, err := w.Write(b)
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	return err
}

func writeAt(w io.WriterAt, b []byte, off int64) error {
	n, err := w.WriteAt(b, off)
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	return err
}

// syncDir makes creations, renames and removals in a directory durable.
func syncDir(fs disk.FS, dir string) error {
	d, err := fs.OpenDir(dir)
	if err != nil {
		return fmt.Errorf("open directory %s: %w", dir, err)
	}
	if err := d.Sync(); err != nil {
		d.Close()
		return fmt.Errorf("sync directory %s: %w", dir, err)
	}
	return d.Close()
}

// syncSegment makes a segment of an earlier process durable. Data that may be unsynced is rewritten: after a failed
// sync the system may have it only in memory and consider it written.
func syncSegment(fs disk.FS, dir string, s segment, synced uint64) error {
	file, err := openForWriting(fs, dir, s.start)
	if err != nil {
		return err
	}
	err = rewrite(file, headerSize+int64(max(synced, s.start)-s.start), s.size)
	if err == nil {
		err = file.Sync()
	}
	if err != nil {
		file.Close()
		return fmt.Errorf("sync %s: %w", segmentPath(fs, dir, s.start), err)
	}
	if err := file.Close(); err != nil {
		return err
	}
	return syncDir(fs, dir)
}

// rewrite rewrites a file's content between two offsets.
func rewrite(file disk.File, from, to int64) error {
	b := make([]byte, min(window, max(to-from, 0)))
	for ; from < to; from += int64(len(b)) {
		b = b[:min(int64(len(b)), to-from)]
		if n, err := file.ReadAt(b, from); n < len(b) {
			return err
		}
		if err := writeAt(file, b, from); err != nil {
			return err
		}
	}
	return nil
}

// remove durably removes segments, the oldest first.
func remove(fs disk.FS, dir string, segments []segment) error {
	if len(segments) == 0 {
		return nil
	}
	for _, s := range segments {
		path := segmentPath(fs, dir, s.start)
		if err := fs.Remove(path); err != nil {
			return fmt.Errorf("remove %s: %w", path, err)
		}
	}
	return syncDir(fs, dir)
}

// obsolete returns the number of segments, from the first on, with only records before an LSN, according to the start
// of the next one.
func obsolete(segments []segment, before uint64) int {
	n := 0
	for n+1 < len(segments) && segments[n+1].start <= before {
		n++
	}
	return n
}

// cut durably truncates a segment to size: at any instant the file has either length.
func cut(fs disk.FS, dir string, start uint64, size int64) error {
	path := segmentPath(fs, dir, start)
	if err := copyPrefix(fs, path, path+tempSuffix, size); err != nil {
		_ = fs.Remove(path + tempSuffix) // it takes room if the disk is full
		return fmt.Errorf("cut %s: %w", path, err)
	}
	if err := fs.Rename(path+tempSuffix, path); err != nil {
		return fmt.Errorf("cut %s: %w", path, err)
	}
	return syncDir(fs, dir)
}

func copyPrefix(fs disk.FS, from, to string, size int64) error {
	in, err := fs.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := fs.Create(to)
	if err != nil {
		return err
	}
	n, err := io.Copy(struct{ io.Writer }{out}, io.NewSectionReader(in, 0, size))
	if err == nil && n < size {
		err = io.ErrUnexpectedEOF
	}
	if err == nil {
		err = out.Sync()
	}
	return errors.Join(err, out.Close())
}

// encodeHeader returns the header of a segment that follows one with the seed before, and its own seed.
func encodeHeader(start uint64, salt, before uint32) ([]byte, uint32) {
	b := make([]byte, 0, headerSize)
	b = append(b, magic...)
	b = binary.LittleEndian.AppendUint32(b, version)
	b = binary.LittleEndian.AppendUint64(b, start)
	b = binary.LittleEndian.AppendUint32(b, salt)
	b = binary.LittleEndian.AppendUint32(b, before)
	seed := crc32.Checksum(b, castagnoli)
	return binary.LittleEndian.AppendUint32(b, seed), seed
}

// header is the decoded header of a segment.
type header struct {
	version uint32
	seed    uint32
	before  uint32 // seed of the segment before; 0 if none or unknown
}

// decodeHeader decodes the header of a segment that should begin at start; reason is not empty if it is another.
func decodeHeader(b []byte, start uint64) (h header, reason string) {
	h.seed = binary.LittleEndian.Uint32(b[headerSize-4:])
	h.version = binary.LittleEndian.Uint32(b[8:])
	switch {
	case string(b[:len(magic)]) != magic:
		return header{}, "not a segment of a journal"
	case crc32.Checksum(b[:headerSize-4], castagnoli) != h.seed:
		return header{}, "wrong checksum of the header"
	case h.version != version && h.version != oldVersion:
		return header{}, fmt.Sprintf("unknown version %d", h.version)
	case binary.LittleEndian.Uint64(b[12:]) != start:
		return header{}, fmt.Sprintf("the header is that of the segment that begins at %d",
			binary.LittleEndian.Uint64(b[12:]))
	}
	if h.version != oldVersion {
		h.before = binary.LittleEndian.Uint32(b[24:])
	}
	return h, ""
}

// appendRecord appends an unsealed record for n bytes of commands to dst. The commands may also be appended later.
func appendRecord(dst []byte, now int64, n int, commands []byte) []byte {
	var head [recordHeader + minPayload]byte
	binary.LittleEndian.PutUint32(head[4:], uint32(minPayload+n))
	binary.LittleEndian.PutUint64(head[recordHeader:], uint64(now))
	return append(append(dst, head[:]...), commands...)
}

// appendMark appends an unsealed mark to dst; seal fills in its position.
func appendMark(dst []byte) []byte {
	var mark [markSize]byte
	binary.LittleEndian.PutUint32(mark[4:], minPayload|markBit)
	return append(dst, mark[:]...)
}

// seal completes the records in batch, which begins at LSN lsn in a segment with this seed. The last one continues in
// long. synced is the position for marks.
func seal(batch, long []byte, lsn uint64, seed uint32, synced uint64) {
	for len(batch) > 0 {
		length := binary.LittleEndian.Uint32(batch[4:])
		n := recordHeader + int(length&^markBit)
		binary.LittleEndian.PutUint32(batch[8:], uint32(lsn)^seed)
		if length&markBit != 0 {
			binary.LittleEndian.PutUint64(batch[recordHeader:], synced)
		}
		crc := crc32.Update(seed, castagnoli, batch[4:min(n, len(batch))])
		if n > len(batch) {
			binary.LittleEndian.PutUint32(batch, crc32.Update(crc, castagnoli, long))
			return
		}
		binary.LittleEndian.PutUint32(batch, crc)
		batch = batch[n:]
		lsn += uint64(n)
	}
}

// record is a decoded record.
type record struct {
	lsn      uint64
	next     int64 // offset after it
	mark     bool
	synced   uint64 // of a mark
	now      int64  // of commands
	commands []byte // valid until the next one is read, or for good if long
}

// reader reads a segment.
type reader struct {
	segment
	head header
	file disk.File
	buf  []byte // bytes of the file, starting at offset
	off  int64
}

// openReader opens a segment. reason is not empty if it has no sound header. The reader is nil if opening the file
// fails.
func openReader(fs disk.FS, dir string, s segment) (r *reader, reason string, err error) {
	file, err := fs.Open(segmentPath(fs, dir, s.start))
	if err != nil {
		return nil, "", err
	}
	r = &reader{segment: s, file: file}
	if s.size < headerSize {
		return r, "incomplete header", nil
	}
	b, err := r.at(0, headerSize)
	if err != nil {
		return r, "", err
	}
	r.head, reason = decodeHeader(b, s.start)
	return r, reason, nil
}

func (r *reader) close() { r.file.Close() }

// at returns n bytes of the file, which must exist, valid until the next call.
func (r *reader) at(off int64, n int) ([]byte, error) {
	if off < r.off || off+int64(n) > r.off+int64(len(r.buf)) {
		if err := r.fill(off, int(min(int64(max(n, window)), r.size-off))); err != nil {
			// Perhaps only later bytes are unreadable.
			if err := r.fill(off, n); err != nil {
				return nil, err
			}
		}
	}
	return r.buf[off-r.off:][:n], nil
}

func (r *reader) fill(off int64, n int) error {
	r.buf = slices.Grow(r.buf[:0], n)[:n]
	r.off = off
	if got, err := r.file.ReadAt(r.buf, off); got < n {
		r.buf = r.buf[:0]
		if err == nil || err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return err
	}
	return nil
}

// record reads the record at an offset. reason is not empty if there is no sound one.
func (r *reader) record(off int64) (rec record, reason string, err error) {
	rest := r.size - off
	if rest < recordHeader+minPayload {
		return rec, "incomplete record", nil
	}
	b, err := r.at(off, recordHeader)
	if err != nil {
		return rec, "", err
	}
	rec.lsn = r.start + uint64(off-headerSize)
	length := binary.LittleEndian.Uint32(b[4:])
	rec.mark = length&markBit != 0
	length &^= markBit
	switch {
	case binary.LittleEndian.Uint32(b[8:]) != uint32(rec.lsn)^r.head.seed:
		return rec, "no record", nil
	case length < minPayload || rec.mark && length != minPayload:
		return rec, "impossible length of a record", nil
	case int64(length) > rest-recordHeader:
		return rec, "incomplete record", nil
	}
	b, err = r.at(off, recordHeader+int(length))
	if err != nil {
		return rec, "", err
	}
	if crc32.Update(r.head.seed, castagnoli, b[4:]) != binary.LittleEndian.Uint32(b) {
		return rec, "wrong checksum of a record", nil
	}
	rec.next = off + int64(len(b))
	if rec.mark {
		rec.synced = binary.LittleEndian.Uint64(b[recordHeader:])
	} else {
		rec.now = int64(binary.LittleEndian.Uint64(b[recordHeader:]))
		if rec.commands = b[recordHeader+minPayload:]; len(rec.commands) >= LongRecord {
			r.buf = nil // it holds nothing else
		}
	}
	return rec, "", nil
}

// zeros reports whether the file has only zeros from an offset on.
func (r *reader) zeros(off int64) (bool, error) {
	end, err := r.used(off)
	return end == off, err
}

// used returns the offset after the last byte that is not zero, or off if there are only zeros from there on.
func (r *reader) used(off int64) (end int64, err error) {
	for end = off; off < r.size; {
		b, err := r.at(off, int(min(window, r.size-off)))
		if err != nil {
			return end, err
		}
		if rest := bytes.TrimRight(b, "\x00"); len(rest) > 0 {
			end = off + int64(len(rest))
		}
		off += int64(len(b))
	}
	return end, nil
}

// sector is what a disk writes as a whole, in bytes.
const sector = 512

// maxCorrected is the longest record in which a wrong byte is searched for, in bytes. In a longer one, which has more
// sums of records with one wrong byte, it could be found by chance.
const maxCorrected = 4096

// whole reports whether the unsound record at an offset was once written as a whole, so that it is damaged and not torn.
// A torn record lacks its end, or sectors, and has zeros there, because a segment has only zeros ahead. So a record
// without these is damaged. So is one with a single wrong byte, unless that belongs to an end of zeros.
func (r *reader) whole(off int64) (bool, error) {
	if r.size-off < recordHeader+minPayload {
		return false, nil
	}
	b, err := r.at(off, recordHeader)
	if err != nil {
		return false, err
	}
	head := [recordHeader]byte(b)
	position := uint32(r.start+uint64(off-headerSize)) ^ r.head.seed
	length := binary.LittleEndian.Uint32(head[4:])
	if binary.LittleEndian.Uint32(head[8:]) != position {
		binary.LittleEndian.PutUint32(head[8:], position)
		return r.sums(off, head, length)
	}
	if n, ok := r.fits(off, length); ok {
		b, err := r.at(off, n)
		if err != nil {
			return false, err
		}
		if allWritten(b, off) || n <= maxCorrected && oneWrong(b, r.head.seed) {
			return true, nil
		}
	}
	// The length may be wrong: up to the next record, or to the end of what was written, the checksum may be right.
	end, err := r.used(off)
	if err != nil {
		return false, err
	}
	next, ok, err := r.find(off+1, func(uint32) bool { return true })
	if err != nil {
		return false, err
	}
	if ok {
		end = headerSize + int64(next.lsn-r.start)
	}
	for zeros := range int64(minPayload + 1) { // the record may end with some
		length := uint32(end + zeros - off - recordHeader)
		for _, length := range []uint32{length, length | markBit} {
			if sound, err := r.sums(off, head, length); sound || err != nil {
				return sound, err
			}
		}
	}
	return false, nil
}

// allWritten reports whether the record at an offset has something in its last byte and in each sector.
func allWritten(record []byte, off int64) bool {
	if record[len(record)-1] == 0 {
		return false
	}
	for first := int(sector - off%sector); len(record) > 0; first = sector {
		part := record[:min(first, len(record))]
		if len(bytes.TrimRight(part, "\x00")) == 0 {
			return false
		}
		record = record[len(part):]
	}
	return true
}

// oneWrong reports whether the checksum of a record would be right if one byte were another, other than the first of the
// zeros at its end.
func oneWrong(record []byte, seed uint32) bool {
	wrong := binary.LittleEndian.Uint32(record) ^ crc32.Update(seed, castagnoli, record[4:])
	if (bits.Len32(wrong)-1)/8 == bits.TrailingZeros32(wrong)/8 {
		return true // a byte of the checksum itself
	}
	end := len(bytes.TrimRight(record, "\x00"))
	for value := range 256 {
		// What the checksum changes by if the byte at i does: a checksum is linear.
		change := castagnoli[value]
		for i := len(record) - 1; i >= 4; i-- {
			if change == wrong && i < end {
				return true
			}
			change = castagnoli[byte(change)] ^ change>>8
		}
	}
	return false
}

// fits returns the length in bytes of the record at an offset with a length field; ok is false if it cannot be there.
func (r *reader) fits(off int64, length uint32) (n int, ok bool) {
	n = recordHeader + int(length&^markBit)
	return n, length&^markBit >= minPayload && int64(n) <= r.size-off
}

// sums reports whether the record at an offset has the right checksum with another head and another length.
func (r *reader) sums(off int64, head [recordHeader]byte, length uint32) (bool, error) {
	n, ok := r.fits(off, length)
	if !ok {
		return false, nil
	}
	b, err := r.at(off, n)
	if err != nil {
		return false, err
	}
	binary.LittleEndian.PutUint32(head[4:], length)
	crc := crc32.Update(crc32.Update(r.head.seed, castagnoli, head[4:]), castagnoli, b[recordHeader:])
	return crc == binary.LittleEndian.Uint32(head[:]), nil
}

// find returns the first sound record at or after an offset for whose header accept returns true; ok is false if there
// is none. Because of the seed, headers without a sound record practically do not occur, so this takes linear time.
func (r *reader) find(off int64, accept func(length uint32) bool) (rec record, ok bool, err error) {
	for ; r.size-off >= recordHeader+minPayload; off++ {
		b, err := r.at(off, recordHeader)
		if err != nil {
			return rec, false, err
		}
		lsn := r.start + uint64(off-headerSize)
		if binary.LittleEndian.Uint32(b[8:]) != uint32(lsn)^r.head.seed || !accept(binary.LittleEndian.Uint32(b[4:])) {
			continue
		}
		rec, reason, err := r.record(off)
		if err != nil || reason == "" {
			return rec, err == nil, err
		}
	}
	return rec, false, nil
}

// syncedAfter returns the highest LSN in a mark at or after an offset, 0 if there is none.
func (r *reader) syncedAfter(off int64) (uint64, error) {
	var synced uint64
	for {
		rec, ok, err := r.find(off, func(length uint32) bool { return length == minPayload|markBit })
		if err != nil || !ok {
			return synced, err
		}
		synced = max(synced, rec.synced)
		off = rec.next
	}
}

// count returns the number of sound records of commands at or after an offset. Unreadable ones do not count.
func (r *reader) count(off int64) int {
	n := 0
	for {
		rec, ok, err := r.find(off, func(uint32) bool { return true })
		if err != nil || !ok {
			return n
		}
		if !rec.mark {
			n++
		}
		off = rec.next
	}
}
