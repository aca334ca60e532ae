package lsm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/cockroachdb/pebble/v2/objstorage/objstorageprovider"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/persist/store"
)

// Checkpoint implements store.Checkpoint.
type Checkpoint struct {
	store *Store
	db    *database
	err   error
	ended bool

	heads, blobs, parts, meta, metaCopy stream

	files    int // created so far
	finished []string
	key, buf []byte // reused
}

var (
	errEnded      = errors.New("the checkpoint has ended")
	errInProgress = errors.New("another checkpoint has not ended")
)

// Begin begins a checkpoint, which must end with Commit or Abort before the next one begins. A failed store is first
// reopened.
func (s *Store) Begin() (store.Checkpoint, error) {
	c, err := s.begin()
	if err != nil {
		return nil, err
	}
	return c, nil
}

func (s *Store) begin() (*Checkpoint, error) {
	if err := s.Reopen(); err != nil {
		return nil, err
	}
	if s.writing != nil {
		return nil, errInProgress
	}
	c := &Checkpoint{store: s}
	for _, st := range c.streams() {
		st.c = c
	}
	s.mu.RLock()
	c.db = s.db
	s.mu.RUnlock()
	s.writing = c
	return c, nil
}

// DropSpace implements store.Checkpoint.
func (c *Checkpoint) DropSpace(space uint32) error {
	heads, blobs := appendSpaceKey(nil, prefixHead, space), appendSpaceKey(nil, prefixBlob, space)
	c.note(c.heads.drop(heads, after(heads)))
	return c.note(c.blobs.drop(blobs, after(blobs)))
}

// PutHead implements store.Checkpoint.
func (c *Checkpoint) PutHead(space uint32, key string, h engine.Head, known, wasExternal bool) error {
	if c.err != nil {
		return c.err
	}
	if known && h.Parts == 0 && !h.External {
		return c.note(fmt.Errorf("head of key %s: the value must be given", strconv.Quote(key)))
	}
	c.buf = appendHead(c.buf[:0], h)
	c.note(c.heads.put(c.spaceKey(prefixHead, space, key), c.buf))
	switch external := h.External && h.Parts == 0; {
	case external && !known:
		c.note(c.blobs.put(c.spaceKey(prefixBlob, space, key), h.Blob))
	case !external && wasExternal:
		c.note(c.blobs.delete(c.spaceKey(prefixBlob, space, key)))
	}
	return c.err
}

// DeleteHead implements store.Checkpoint.
func (c *Checkpoint) DeleteHead(space uint32, key string, wasExternal bool) error {
	c.note(c.heads.delete(c.spaceKey(prefixHead, space, key)))
	if wasExternal {
		c.note(c.blobs.delete(c.spaceKey(prefixBlob, space, key)))
	}
	return c.err
}

// DropParts implements store.Checkpoint.
func (c *Checkpoint) DropParts(id uint64) error {
	start := appendPartsKey(nil, id)
	return c.note(c.parts.drop(start, after(start)))
}

// PutPart implements store.Checkpoint.
func (c *Checkpoint) PutPart(id uint64, name string, data []byte) error {
	return c.note(c.parts.put(c.partKey(id, name), data))
}

// DeletePart implements store.Checkpoint.
func (c *Checkpoint) DeletePart(id uint64, name string) error {
	return c.note(c.parts.delete(c.partKey(id, name)))
}

// Commit implements store.Checkpoint.
func (c *Checkpoint) Commit(m store.Meta) error {
	if c.ended {
		return errEnded
	}
	m.Spaces = slices.Clone(m.Spaces)
	record := appendMeta(nil, m)
	c.note(c.meta.put(metaKey, record))
	c.note(c.metaCopy.put(metaCopyKey, record))
	for _, st := range c.streams() {
		c.note(st.finish())
	}
	if c.err != nil {
		c.Abort()
		return fmt.Errorf("checkpoint: %w", c.err)
	}
	db, err := c.store.use()
	if err == nil {
		err = db.fence.run(func() error { return db.Ingest(context.Background(), c.finished) })
		db.users.Done()
	}
	if err != nil {
		c.err = err
		c.Abort()
		return fmt.Errorf("checkpoint: %w", err)
	}
	c.ended = true
	c.note(errEnded)
	c.store.writing = nil
	c.store.mu.Lock()
	defer c.store.mu.Unlock()
	c.store.meta, c.store.saved = m, true
	return nil
}

// Abort implements store.Checkpoint.
func (c *Checkpoint) Abort() {
	if c.ended {
		return
	}
	c.ended = true
	c.store.writing = nil
	c.note(errEnded)
	for _, st := range c.streams() {
		st.abandon()
	}
	for i := range c.files {
		// Files that cannot be removed now are removed at the next start of the store.
		_ = c.db.fence.Remove(c.path(i))
	}
}

func (c *Checkpoint) streams() []*stream {
	return []*stream{&c.heads, &c.blobs, &c.parts, &c.meta, &c.metaCopy}
}

// note records the first error, and returns it.
func (c *Checkpoint) note(err error) error {
	if c.err == nil {
		c.err = err
	}
	return c.err
}

func (c *Checkpoint) spaceKey(prefix byte, space uint32, key string) []byte {
	c.key = append(appendSpaceKey(c.key[:0], prefix, space), key...)
	return c.key
}

func (c *Checkpoint) partKey(id uint64, name string) []byte {
	c.key = append(appendPartsKey(c.key[:0], id), name...)
	return c.key
}

func (c *Checkpoint) path(file int) string {
	return c.store.o.FS.PathJoin(c.store.o.Dir, checkpointDir, fmt.Sprintf("%06d.sst", file))
}

// fileSize is the size of keys and values in bytes at which the next file begins.
const fileSize = 32 << 20

// stream is a sequence of sorted, disjoint files with a checkpoint's changes of one kind.
type stream struct {
	c    *Checkpoint
	w    *sstable.Writer // nil between files
	size int             // written to w
	last []byte          // last key written

	drops []span // not written yet, ascending and disjoint
	end   []byte // end of the last drop written
}

// span is the keys from start to before end.
type span struct{ start, end []byte }

// drop schedules the removal of a range of keys at its place in the order.
func (s *stream) drop(start, end []byte) error {
	if s.c.err != nil {
		return s.c.err
	}
	if string(start) < string(s.end) || s.last != nil && string(start) <= string(s.last) {
		return fmt.Errorf("%q is dropped out of order", start)
	}
	if n := len(s.drops); n > 0 {
		switch last := &s.drops[n-1]; {
		case string(start) < string(last.end):
			return fmt.Errorf("%q is dropped out of order", start)
		case string(start) == string(last.end):
			last.end = end
			return nil
		}
	}
	s.drops = append(s.drops, span{start, end})
	return nil
}

func (s *stream) put(key, value []byte) error {
	if err := s.before(key); err != nil {
		return err
	}
	return s.wrote(key, len(value), s.w.Set(key, value))
}

func (s *stream) delete(key []byte) error {
	if err := s.before(key); err != nil {
		return err
	}
	return s.wrote(key, 0, s.w.Delete(key))
}

// before writes the drops before a key, and begins a file if there is none.
func (s *stream) before(key []byte) error {
	if s.c.err != nil {
		return s.c.err
	}
	if s.last != nil && string(key) <= string(s.last) {
		return fmt.Errorf("%q comes after %q", key, s.last)
	}
	for len(s.drops) > 0 && string(s.drops[0].start) <= string(key) {
		if err := s.writeDrop(); err != nil {
			return err
		}
	}
	if string(key) < string(s.end) {
		return fmt.Errorf("%q is changed and dropped", key)
	}
	return s.begin()
}

func (s *stream) writeDrop() error {
	if err := s.begin(); err != nil {
		return err
	}
	d := s.drops[0]
	s.drops, s.end = s.drops[1:], d.end
	s.size += len(d.start) + len(d.end)
	return s.w.DeleteRange(d.start, d.end)
}

// wrote records that a key was written, and ends the file if it is long enough.
func (s *stream) wrote(key []byte, size int, err error) error {
	if err != nil {
		return err
	}
	s.last = append(s.last[:0], key...)
	if s.size += len(key) + size; s.size >= fileSize {
		return s.endFile()
	}
	return nil
}

// begin begins a file if there is none.
func (s *stream) begin() error {
	if s.w != nil {
		return nil
	}
	c := s.c
	f, err := c.db.fence.Create(c.path(c.files), vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	// The file is written to disk as it grows, so that the journal never waits behind it for long.
	f = vfs.NewSyncingFile(f, vfs.SyncingFileOptions{BytesPerSync: 1 << 20})
	c.finished = append(c.finished, c.path(c.files))
	c.files++
	s.w = sstable.NewWriter(objstorageprovider.NewFileWritable(f),
		c.db.options.MakeWriterOptions(0, c.db.FormatMajorVersion().MaxTableFormat()))
	s.size = 0
	return nil
}

// endFile completes the file and syncs it.
func (s *stream) endFile() error {
	w := s.w
	s.w = nil
	return w.Close()
}

// finish writes the rest.
func (s *stream) finish() error {
	if s.c.err != nil {
		return s.c.err
	}
	for len(s.drops) > 0 {
		if err := s.writeDrop(); err != nil {
			return err
		}
	}
	if s.w == nil {
		return nil
	}
	return s.endFile()
}

// abandon closes the file, which will not be used.
func (s *stream) abandon() {
	if s.w != nil {
		_ = s.endFile() // as above
	}
}
