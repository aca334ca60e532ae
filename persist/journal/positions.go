package journal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"sync"

	"github.com/atomredis/atomredis/persist/disk"
)

// The file of positions is beside the directory of the segments, and says which segments must exist: so a missing last
// segment, a missing end, or the loss of all segments is detected. It has three slots, each on a page of its own.
//
// Two slots are written in turn, and synced, after a segment was created and before anything is written into it, and
// when the journal is closed: at any instant one of them is sound. The third is written without a sync, now and then,
// after more of the journal was synced: it survives the end of the process, and usually that of the machine. It counts
// if it has the sequence number of the newer of the other two.
//
//	slot  magic (8), sequence number (8), flags (4), seed of the segment (4), its start (8), synced (8), CRC of what precedes (4)
const (
	positionsName  = "positions"
	positionsMagic = "atomposn"
	slotSize       = 44
	slotDistance   = 4096
	progressSlot   = 2

	flagSegment = 1 << 0 // a segment was begun
	flagClosed  = 1 << 1 // the journal was closed, and ends at synced
)

func positionsPath(fs disk.FS, dir string) string { return fs.PathJoin(fs.PathDir(dir), positionsName) }

// positions is the content of the file.
type positions struct {
	exists  bool // the file exists
	seq     uint64
	segment bool   // the other fields are known
	start   uint64 // of the last segment begun
	seed    uint32 // of the last segment begun
	synced  uint64 // LSN before which everything was synced
	closed  bool
}

func (p positions) encode() []byte {
	var flags uint32
	if p.segment {
		flags |= flagSegment
	}
	if p.closed {
		flags |= flagClosed
	}
	b := append(make([]byte, 0, slotSize), positionsMagic...)
	b = binary.LittleEndian.AppendUint64(b, p.seq)
	b = binary.LittleEndian.AppendUint32(b, flags)
	b = binary.LittleEndian.AppendUint32(b, p.seed)
	b = binary.LittleEndian.AppendUint64(b, p.start)
	b = binary.LittleEndian.AppendUint64(b, p.synced)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// decodePositions decodes a slot; ok is false if it is not sound.
func decodePositions(b []byte) (p positions, ok bool) {
	if len(b) < slotSize || string(b[:len(positionsMagic)]) != positionsMagic ||
		crc32.Checksum(b[:slotSize-4], castagnoli) != binary.LittleEndian.Uint32(b[slotSize-4:]) {
		return positions{}, false
	}
	flags := binary.LittleEndian.Uint32(b[16:])
	return positions{
		exists: true, seq: binary.LittleEndian.Uint64(b[8:]), segment: flags&flagSegment != 0, closed: flags&flagClosed != 0,
		seed: binary.LittleEndian.Uint32(b[20:]), start: binary.LittleEndian.Uint64(b[24:]),
		synced: binary.LittleEndian.Uint64(b[32:]),
	}, true
}

// readPositions reads the file for the segments in dir. The error is a *DamageError if no slot is sound.
func readPositions(fs disk.FS, dir string) (positions, error) {
	path := positionsPath(fs, dir)
	file, err := fs.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return positions{}, nil
	}
	if err != nil {
		return positions{}, fmt.Errorf("open %s: %w", path, err)
	}
	defer file.Close()
	b := make([]byte, progressSlot*slotDistance+slotSize)
	n, err := file.ReadAt(b, 0)
	if err != nil && err != io.EOF {
		return positions{}, &DamageError{File: path, Reason: "cannot be read: " + err.Error(), Err: err}
	}
	slot := func(i int) (positions, bool) { return decodePositions(b[min(i*slotDistance, n):n]) }
	p, ok := slot(0)
	if other, sound := slot(1); sound && (!ok || other.seq > p.seq) {
		p, ok = other, true
	}
	if !ok {
		return positions{}, &DamageError{File: path, Reason: "it does not say any more where the journal ends"}
	}
	if progress, sound := slot(progressSlot); sound && progress.seq == p.seq {
		p.synced = max(p.synced, progress.synced)
	}
	return p, nil
}

// writePositions durably creates or replaces the file with content p.
func writePositions(fs disk.FS, dir string, p positions) error {
	path := positionsPath(fs, dir)
	temporary := path + tempSuffix
	err := func() error {
		file, err := fs.Create(temporary)
		if err != nil {
			return err
		}
		b := make([]byte, progressSlot*slotDistance+slotSize)
		copy(b, p.encode())
		if err = writeAll(file, b); err == nil {
			err = file.Sync()
		}
		if err = errors.Join(err, file.Close()); err != nil {
			return err
		}
		return fs.Rename(temporary, path)
	}()
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return syncDir(fs, fs.PathDir(path))
}

// positionsFile is the file of an open journal.
type positionsFile struct {
	path string

	mu   sync.Mutex // protects the fields below; held while the file is written
	file disk.File
	said positions
}

// openPositions opens the file for the segments in dir, and creates it if there is none.
func openPositions(fs disk.FS, dir string) (*positionsFile, error) {
	said, err := readPositions(fs, dir)
	if err != nil {
		return nil, err
	}
	path := positionsPath(fs, dir)
	if said.exists {
		err = syncDir(fs, fs.PathDir(path)) // the creator may have failed to
	} else {
		said.exists = true
		err = writePositions(fs, dir, said)
	}
	if err != nil {
		return nil, err
	}
	file, err := fs.OpenReadWrite(path)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	return &positionsFile{path: path, file: file, said: said}, nil
}

// begun durably notes that a segment exists, before which everything is synced.
func (f *positionsFile) begun(start uint64, seed uint32) error {
	return f.say(positions{segment: true, start: start, seed: seed, synced: start})
}

// closed durably notes where the journal ends.
func (f *positionsFile) closed(end uint64) error {
	f.mu.Lock()
	p := f.said
	f.mu.Unlock()
	p.synced, p.closed = end, true
	return f.say(p)
}

func (f *positionsFile) say(p positions) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	p.exists, p.seq = true, f.said.seq+1
	if err := writeAt(f.file, p.encode(), int64(p.seq%progressSlot)*slotDistance); err != nil {
		return fmt.Errorf("write %s: %w", f.path, err)
	}
	if err := f.file.Sync(); err != nil {
		return fmt.Errorf("sync %s: %w", f.path, err)
	}
	f.said = p
	return nil
}

// synced notes, without syncing, the LSN before which everything is synced. If that fails the file just says less.
func (f *positionsFile) synced(lsn uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if lsn <= f.said.synced {
		return
	}
	f.said.synced = lsn
	_ = writeAt(f.file, f.said.encode(), progressSlot*slotDistance)
}

func (f *positionsFile) close() error { return f.file.Close() }
