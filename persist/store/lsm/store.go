package lsm

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/persist/disk"
	"github.com/atomredis/atomredis/persist/store"
)

// Options say where a Store is.
type Options struct {
	// FS is the file system; nil is the system's.
	FS disk.FS
	// Dir is the directory. It is created, for its owner alone, if it does not exist.
	Dir string
	// Log receives events; nil discards them.
	Log *slog.Logger
	// CacheSize is the size in bytes of the cache of read blocks; 0 means 32 MiB.
	CacheSize int64
	// Failed is called, in a goroutine of its own, after the store has failed; see Store.Err. It may be nil.
	Failed func(error)

	tune func(*pebble.Options) // for tests
}

const defaultCacheSize = 32 << 20

func (o *Options) setDefaults() {
	if o.FS == nil {
		o.FS = disk.System
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.CacheSize == 0 {
		o.CacheSize = defaultCacheSize
	}
}

// Store is a data set on disk. Reading methods may be called from any goroutine. One goroutine writes: Begin, Reopen
// and the methods of a Checkpoint must not be called at the same time.
type Store struct {
	o      Options
	around disk.FS   // the original o.FS, for files beside the directory
	lock   io.Closer // of the directory
	made   made      // created by Open
	cache  *pebble.Cache

	writing *Checkpoint // the checkpoint under way

	mu     sync.RWMutex // protects the fields below; only held briefly
	db     *database
	closed bool
	meta   store.Meta
	saved  bool // there is a meta record
}

var _ store.Store = (*Store)(nil)

// The directories in a store's directory.
const (
	dataDir = store.DataDir // Pebble's
	// files of the checkpoint under way, worthless after a crash; it exists once there is a Pebble
	checkpointDir = store.CheckpointDir
)

// Open opens or creates a store. No other process may have it open.
func Open(o Options) (*Store, error) {
	o.setDefaults()
	m := willMake(o.FS, o.Dir)
	if err := disk.MakeDir(o.FS, o.Dir); err != nil {
		m.removeDirs(o.FS, o.Dir)
		return nil, fmt.Errorf("make directory %s: %w", o.Dir, err)
	}
	lock, err := lockDir(o.FS, o.Dir)
	if err != nil {
		m.removeDirs(o.FS, o.Dir)
		return nil, err
	}
	m.look(o.FS, o.Dir)
	around := o.FS
	o.FS = disk.Within(o.FS, lock)
	s := &Store{o: o, around: around, lock: lock, made: m, cache: pebble.NewCache(o.CacheSize)}
	err = finishSalvage(o.FS, o.Dir)
	if err == nil {
		err = missing(o.FS, o.Dir)
	}
	if err == nil {
		err = disk.MakeDir(o.FS, s.path(dataDir))
	}
	if err == nil {
		if err = s.open(); disk.Full(err) {
			err = s.openToRead(err)
		}
	}
	if err != nil {
		s.cache.Unref()
		m.removeFiles(o.FS, o.Dir)
		err = errors.Join(err, lock.Close())
		m.removeDirs(around, o.Dir)
		return nil, err
	}
	s.db.fence.release()
	return s, nil
}

// FS returns the file system for the content of the store's directory.
func (s *Store) FS() disk.FS { return s.o.FS }

// open opens Pebble and reads the meta record.
func (s *Store) open() error {
	if err := s.clearCheckpoint(); err != nil {
		return fmt.Errorf("remove what is left of a checkpoint: %w", err)
	}
	if err := s.removeLogs(); err != nil {
		return fmt.Errorf("remove logs: %w", err)
	}
	db, err := openDatabase(s.o.FS, s.path(dataDir), s.cache, s.o.Log, s.failed, s.o.tune)
	if err != nil {
		return err
	}
	if err := s.o.FS.MkdirAll(s.path(checkpointDir), 0o700); err != nil {
		return errors.Join(fmt.Errorf("make the directory for checkpoints: %w", err), db.close())
	}
	return s.take(db)
}

// openToRead opens Pebble read-only when there is no room for its first writes: the store has failed from the start,
// and Reopen makes it usable.
func (s *Store) openToRead(why error) error {
	db, err := openDatabase(s.o.FS, s.path(dataDir), s.cache, s.o.Log, s.failed, func(p *pebble.Options) {
		if s.o.tune != nil {
			s.o.tune(p)
		}
		p.ReadOnly = true
	})
	if err != nil {
		return errors.Join(why, err)
	}
	if err := s.take(db); err != nil {
		return err
	}
	db.fence.shut(why)
	s.o.Log.Error("the disk of the store is full; changes are refused until there is room",
		"error", why.Error())
	return nil
}

// take makes a database the store's, and reads its meta record.
func (s *Store) take(db *database) error {
	meta, saved, err := db.meta()
	if err != nil {
		return errors.Join(fmt.Errorf("read the meta record in %s: %w", s.path(dataDir), located(err)), db.close())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.db, s.meta, s.saved = db, meta, saved
	return nil
}

// path returns the path of a name in the directory.
func (s *Store) path(name string) string { return s.o.FS.PathJoin(s.o.Dir, name) }

// missing returns an error if a directory's Pebble is gone, where opening would create a new one.
func missing(fs disk.FS, dir string) error {
	data := fs.PathJoin(dir, dataDir)
	names, err := fs.List(data)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(name, "marker.manifest.") }) {
		return nil
	}
	made, err := exists(fs, fs.PathJoin(dir, checkpointDir))
	switch {
	case err != nil:
		return err
	case slices.ContainsFunc(names, func(name string) bool { return strings.HasSuffix(name, ".sst") }):
		return fmt.Errorf("the store is damaged: the file marker.manifest.* in %s, which describes the tables there, is missing", data)
	case made:
		return fmt.Errorf("the store is damaged: %s is missing or empty, but it held data before", data)
	}
	return nil
}

// clearCheckpoint removes the remains of a checkpoint after a crash.
func (s *Store) clearCheckpoint() error {
	dir := s.path(checkpointDir)
	names, err := s.o.FS.List(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for _, name := range names {
		if err := s.o.FS.RemoveAll(s.o.FS.PathJoin(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// removeLogs removes Pebble's logs, which are empty. If Pebble finds one, it flushes nothing before it opens, and
// retries that endlessly if it fails.
func (s *Store) removeLogs() error {
	names, err := s.o.FS.List(s.path(dataDir))
	if err != nil {
		return err
	}
	for _, name := range names {
		if strings.HasSuffix(name, ".log") {
			if err := s.o.FS.Remove(s.o.FS.PathJoin(s.o.Dir, dataDir, name)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Store) failed(err error) {
	if s.o.Failed != nil {
		go s.o.Failed(err)
	}
}

// Reopen makes a failed store usable again, if the disk permits. The state is that before or after the checkpoint
// during which it failed: Meta shows which. It does nothing if the store has not failed.
func (s *Store) Reopen() error {
	s.mu.RLock()
	old, closed := s.db, s.closed
	s.mu.RUnlock()
	if closed {
		return store.ErrClosed
	}
	if old.fence.Err() == nil {
		return nil
	}
	if s.writing != nil {
		s.writing.Abort()
	}
	old.fence.drain()
	if err := s.open(); err != nil {
		return fmt.Errorf("open the store anew: %w", err)
	}
	old.users.Wait()
	s.db.fence.release()
	_ = old.close() // it has already failed
	s.o.Log.Info("the store works again")
	return nil
}

// Close closes the store. No checkpoint may be under way.
func (s *Store) Close() error { return s.close(func() {}) }

// Abandon closes the store, and removes the directory, with all its content, as far as Open has created it.
func (s *Store) Abandon() error {
	err := s.close(func() { s.made.removeFiles(s.o.FS, s.o.Dir) })
	if err != store.ErrClosed {
		s.made.removeDirs(s.around, s.o.Dir)
	}
	return err
}

// close calls last while only the lock is still held.
func (s *Store) close(last func()) error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return store.ErrClosed
	}
	s.closed = true
	db := s.db
	s.mu.Unlock()
	db.users.Wait()
	err := db.close()
	s.cache.Unref()
	last()
	return errors.Join(err, s.lock.Close())
}

// Err returns why the store has failed, nil if it has not. A failed store can be read, and shows its earlier content,
// but cannot be changed until Reopen, which Begin calls.
func (s *Store) Err() error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.db.fence.Err()
}

// Meta returns the meta record of the last checkpoint; ok is false if there was none yet.
func (s *Store) Meta() (m store.Meta, ok bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.meta, s.saved
}

// use returns the database for an operation, which must call users.Done at its end.
func (s *Store) use() (*database, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return nil, store.ErrClosed
	}
	s.db.users.Add(1)
	return s.db, nil
}

// Head returns the stored head of a key; ok is false if there is none.
func (s *Store) Head(space uint32, key string) (h engine.Head, ok bool, err error) {
	db, err := s.use()
	if err != nil {
		return engine.Head{}, false, err
	}
	defer db.users.Done()
	return head(db.DB, space, key)
}

// head is Head for any reader.
func head(from pebble.Reader, space uint32, key string) (h engine.Head, ok bool, err error) {
	b, ok, err := get(from, append(appendSpaceKey(nil, prefixHead, space), key...))
	if err == nil && ok {
		h, err = decodeHead(b)
	}
	if err != nil {
		return engine.Head{}, false, fmt.Errorf("head of key %s: %w", strconv.Quote(key), located(err))
	}
	return h, ok, nil
}

// Blob returns a value that is stored whole outside its head. The caller owns it.
func (s *Store) Blob(space uint32, key string) ([]byte, error) {
	db, err := s.use()
	if err != nil {
		return nil, err
	}
	defer db.users.Done()
	b, ok, err := db.get(append(appendSpaceKey(nil, prefixBlob, space), key...))
	if err == nil && !ok {
		err = errMissing
	}
	if err != nil {
		return nil, fmt.Errorf("value of key %s: %w", strconv.Quote(key), located(err))
	}
	return b, nil
}

var errMissing = errors.New("it is not in the store")

// Part returns one part of a value; ok is false if no part has this name. The caller owns it.
func (s *Store) Part(id uint64, name []byte) (data []byte, ok bool, err error) {
	db, err := s.use()
	if err != nil {
		return nil, false, err
	}
	defer db.users.Done()
	if data, ok, err = get(db.DB, append(appendPartsKey(nil, id), name...)); err != nil {
		err = fmt.Errorf("part %s of value %d: %w", strconv.Quote(string(name)), id, located(err))
	}
	return data, ok, err
}

// Parts calls fn with the parts of a value in the byte order of their names, until fn fails. fn must not keep its
// arguments.
func (s *Store) Parts(id uint64, fn func(name, data []byte) error) error {
	db, err := s.use()
	if err != nil {
		return err
	}
	defer db.users.Done()
	return parts(db.DB, id, fn)
}

// PartsBetween calls fn with consecutive parts of a value: from the last one not after from (if there is none, from the
// first), up to to, until fn returns false; in reverse order if reverse is set. fn must not keep its arguments.
func (s *Store) PartsBetween(id uint64, from, to []byte, reverse bool, fn func(name, data []byte) bool) error {
	db, err := s.use()
	if err != nil {
		return err
	}
	defer db.users.Done()
	if err = between(db.DB, appendPartsKey(nil, id), from, to, reverse, fn); err != nil {
		err = fmt.Errorf("parts of value %d: %w", id, located(err))
	}
	return err
}

// between is PartsBetween for the parts whose keys have a prefix.
func between(r pebble.Reader, prefix, from, to []byte, reverse bool, fn func(name, data []byte) bool) error {
	it, err := r.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: after(prefix)})
	if err != nil {
		return err
	}
	behind := func(name []byte) []byte { return append(append(slices.Clone(prefix), name...), 0) }
	begin, step, last := behind(from), it.Next, func(name []byte) bool { return bytes.Compare(name, to) > 0 }
	if reverse {
		begin, step = behind(to), it.Prev
		last = func([]byte) bool { return false }
	}
	ok := it.SeekLT(begin)
	if !ok && !reverse {
		ok = it.First()
	}
	for ; ok; ok = step() {
		name := it.Key()[partsKeySize:]
		if last(name) {
			break
		}
		value, err := it.ValueAndErr()
		if err != nil {
			return errors.Join(err, it.Close())
		}
		if !fn(name, value) || reverse && bytes.Compare(name, from) <= 0 {
			break
		}
	}
	return it.Close()
}

// parts is Store.Parts.
func (d *database) parts(id uint64, fn func(name, data []byte) error) error {
	return parts(d.DB, id, fn)
}

// parts is Parts for any reader.
func parts(from pebble.Reader, id uint64, fn func(name, data []byte) error) error {
	prefix := appendPartsKey(nil, id)
	failed := error(nil)
	err := scan(from, prefix, after(prefix), func(key, value []byte) bool {
		failed = fn(key[partsKeySize:], value)
		return failed == nil
	})
	if err != nil {
		err = fmt.Errorf("parts of value %d: %w", id, located(err))
	}
	return errors.Join(failed, err)
}

// Heads calls fn for every key in a space, in the order of the keys, until fn returns false. fn must not keep key or
// h.Blob.
func (s *Store) Heads(space uint32, fn func(key []byte, h engine.Head) bool) error {
	db, err := s.use()
	if err != nil {
		return err
	}
	defer db.users.Done()
	damaged := error(nil)
	err = db.scan(appendSpaceKey(nil, prefixHead, space), func(key, value []byte) bool {
		key = key[spaceKeySize:]
		h, err := decodeHead(value)
		if err != nil {
			damaged = fmt.Errorf("head of key %s: %w", strconv.Quote(string(key)), err)
			return false
		}
		return fn(key, h)
	})
	if err != nil {
		err = fmt.Errorf("heads of space %d: %w", space, located(err))
	}
	return errors.Join(damaged, err)
}

// HeadBytes returns about how many bytes of the disk the heads take, without reading them; 0 if unknown.
func (s *Store) HeadBytes() int64 {
	db, err := s.use()
	if err != nil {
		return 0
	}
	defer db.users.Done()
	n, err := db.EstimateDiskUsage([]byte{prefixHead}, []byte{prefixHead + 1})
	if err != nil {
		return 0
	}
	return int64(n)
}

// get returns a copy of the value of a key.
func (d *database) get(key []byte) (value []byte, ok bool, err error) { return get(d.DB, key) }

// get is database.get for any reader.
func get(from pebble.Reader, key []byte) (value []byte, ok bool, err error) {
	v, closer, err := from.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	value = append(make([]byte, 0, len(v)), v...)
	return value, true, closer.Close()
}

// scan calls fn for all keys with a prefix and their values, until fn returns false.
func (d *database) scan(prefix []byte, fn func(key, value []byte) bool) error {
	return d.scanFrom(prefix, after(prefix), fn)
}

// scanFrom is scan for the keys from start to before end.
func (d *database) scanFrom(start, end []byte, fn func(key, value []byte) bool) error {
	return scan(d.DB, start, end, fn)
}

// scan is database.scanFrom for any reader.
func scan(from pebble.Reader, start, end []byte, fn func(key, value []byte) bool) error {
	it, err := from.NewIter(&pebble.IterOptions{LowerBound: start, UpperBound: end})
	if err != nil {
		return err
	}
	for ok := it.First(); ok; ok = it.Next() {
		value, err := it.ValueAndErr()
		if err != nil {
			return errors.Join(err, it.Close())
		}
		if !fn(it.Key(), value) {
			break
		}
	}
	return it.Close() // the error of the iteration, if any
}

// meta reads the meta record.
func (d *database) meta() (store.Meta, bool, error) { return d.metaAt(metaKey) }

// metaAt reads the meta record or its copy.
func (d *database) metaAt(key []byte) (store.Meta, bool, error) {
	b, ok, err := d.get(key)
	if err != nil || !ok {
		return store.Meta{}, false, err
	}
	m, err := decodeMeta(b)
	return m, true, err
}

// lockDir locks a store's directory.
func lockDir(fs disk.FS, dir string) (io.Closer, error) {
	lock, err := fs.Lock(fs.PathJoin(dir, lockFile))
	if err == nil {
		return lock, nil
	}
	if _, ok := errors.AsType[*os.PathError](err); ok {
		return nil, fmt.Errorf("lock the directory: %w", err) // the lock file cannot be created
	}
	return nil, fmt.Errorf("%w %s: %w", store.ErrInUse, dir, err)
}
