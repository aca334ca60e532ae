// Package store is the interface of package persist to the data set on disk, with the keys, their values and the parts
// of values. Package persist/store/lsm implements it on Pebble, and registers itself: programs that store nothing on
// disk do not link Pebble.
package store

import (
	"errors"
	"log/slog"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/persist/disk"
)

// Options say where a Store is.
type Options struct {
	// FS is the file system; nil is the system's.
	FS disk.FS
	// Dir is the directory. It is created, for its owner alone, if it does not exist.
	Dir string
	// Log receives events; nil discards them.
	Log *slog.Logger
}

// Store is a data set on disk. Reading methods may be called from any goroutine. One goroutine writes: Begin and the
// methods of a Checkpoint must not be called at the same time.
type Store interface {
	engine.Source
	// FS returns the file system for the content of the store's directory.
	FS() disk.FS
	// Meta returns the meta record of the last checkpoint; ok is false if there was none yet.
	Meta() (m Meta, ok bool)
	// Heads calls fn for every key in a space, in the order of the keys, until fn returns false. fn must not keep key
	// or h.Blob.
	Heads(space uint32, fn func(key []byte, h engine.Head) bool) error
	// HeadBytes returns about how many bytes of the disk the heads take, without reading them; 0 if unknown.
	HeadBytes() int64
	// Begin begins a checkpoint, which must end with Commit or Abort before the next one begins. A failed store is
	// first reopened.
	Begin() (Checkpoint, error)
	// Err returns why the store has failed, nil if it has not. A failed store can be read, and shows its earlier
	// content, but cannot be changed until Begin succeeds.
	Err() error
	// Metrics returns the present metrics; zeros if the store is closed.
	Metrics() Metrics
	// Close closes the store. No checkpoint may be under way.
	Close() error
	// Abandon closes the store, and removes the directory, with all its content, as far as opening it has created it.
	Abandon() error
}

// Checkpoint is a change of the store under way. Calls about heads must come in ascending order of spaces and keys,
// calls about parts in ascending order of the values' numbers and the parts' names; the two kinds may be mixed in any
// order. A drop may come earlier than its place, and nothing that it drops may be put or deleted by the same
// checkpoint. Every method returns the first error so far; after an error the checkpoint can only be aborted.
//
// Its changes are invisible until Commit returns.
type Checkpoint interface {
	// DropSpace removes everything stored in a space.
	DropSpace(space uint32) error
	// PutHead stores the head of a key, and its value unless that has parts. If known is set the value is already
	// stored and only the rest of the head is new; otherwise h.Blob is the value, which is stored outside the head if
	// h.External is set. wasExternal says that an older value may be stored outside the head.
	PutHead(space uint32, key string, h engine.Head, known, wasExternal bool) error
	// DeleteHead removes a key, except for the parts of its value. wasExternal says that a value may be stored outside
	// the head.
	DeleteHead(space uint32, key string, wasExternal bool) error
	// DropParts removes all parts of a value.
	DropParts(id uint64) error
	// PutPart stores a part of a value. It does not keep data.
	PutPart(id uint64, name string, data []byte) error
	// DeletePart removes a part of a value.
	DeletePart(id uint64, name string) error
	// Commit ends the checkpoint. If it returns nil, everything is durable and readable. If it returns an error,
	// nothing is stored, unless the store has failed: then the outcome shows after it is reopened.
	Commit(m Meta) error
	// Abort ends the checkpoint as if it had never begun. It does nothing after Commit.
	Abort()
}

// Meta describes the whole data set. It is committed with every checkpoint.
type Meta struct {
	// Journal is the position from which to repeat the journal.
	Journal uint64
	// JournalSeed is the seed of the journal's segment with this position; 0 if there need not be one.
	JournalSeed uint32
	// Spaces has the number of the space of every database.
	Spaces []uint32
	// NextSpace and NextParts are lower bounds of unused numbers: they and higher ones were never used.
	NextSpace uint32
	NextParts uint64
	// Saved is the time of the checkpoint, in ms since 1970.
	Saved int64
	// Keys is the number of stored keys, as given by the maker of the checkpoint.
	Keys int64
	// Group is the state of a group of servers at the checkpoint, nil if the data belongs to no group.
	Group []byte
	// Extra is additional state of the store's user.
	Extra []byte
}

// Metrics are counters and sizes of the store since it was opened.
type Metrics struct {
	// Disk is the size of its files in bytes, Tables the number of tables, Memtables the bytes in memory waiting to
	// become tables.
	Disk, Tables, Memtables int64
	// Cache is the size in bytes of the cached blocks; a read of a cached block is a hit. A filter hit is a read of a
	// table that its filter made unnecessary.
	Cache, CacheHits, CacheMisses, FilterHits, FilterMisses int64
	// Flushes and Compactions have written this many bytes; Debt is about how many bytes compactions have yet to
	// rewrite.
	Flushes, FlushedBytes, Compactions, CompactedBytes, Debt int64
	// ReadAmplification is the maximum number of tables that a read visits.
	ReadAmplification int
}

var (
	// ErrClosed is returned by every operation on a Store after Close.
	ErrClosed = errors.New("the store is closed")
	// ErrInUse says that another store, in this process or another one, has the directory open.
	ErrInUse = errors.New("another server uses the directory")
	// ErrNone says that the program has no Engine.
	ErrNone = errors.New(`this program keeps data in memory only; one with import _ "github.com/atomredis/atomredis" can store it`)
)

// Engine creates stores, and maintains those that are not open.
type Engine interface {
	// Open opens or creates a store. No other process may have it open.
	Open(o Options) (Store, error)
	// Verify reads everything in a store without changing it. It calls report for every damage, and for anything
	// superfluous or odd that is not damage. It returns the meta record as far as it can be read, and the first damage
	// as the error.
	Verify(fs disk.FS, dir string, report func(string)) (Meta, error)
	// Salvage replaces the data in a store by all of it that is sound, and reports what it omits and where the old data
	// is kept.
	Salvage(fs disk.FS, dir string, report func(string)) error
	// ForgetJournal makes a store name no segment of a journal any more.
	ForgetJournal(fs disk.FS, dir string) error
}

// registered is the program's Engine.
var registered Engine = none{}

// Register sets the program's Engine. Its package calls it in an init function.
func Register(e Engine) { registered = e }

// Registered returns the program's Engine. Without one its methods return ErrNone.
func Registered() Engine { return registered }

// none is the Engine of a program that has none.
type none struct{}

func (none) Open(Options) (Store, error)                        { return nil, ErrNone }
func (none) Verify(disk.FS, string, func(string)) (Meta, error) { return Meta{}, ErrNone }
func (none) Salvage(disk.FS, string, func(string)) error        { return ErrNone }
func (none) ForgetJournal(disk.FS, string) error                { return ErrNone }

// Inside a store's directory are the directory of the data, that of a checkpoint under way, and the file that the process
// locks which has the store open.
const (
	DataDir       = "data"
	CheckpointDir = "checkpoint"
	LockFile      = "LOCK"
)

// Exists reports whether there is a store in a directory.
func Exists(fs disk.FS, dir string) bool {
	info, err := fs.Stat(fs.PathJoin(dir, DataDir))
	return err == nil && info.IsDir()
}

// Size returns the size in bytes of the data files in a directory.
func Size(fs disk.FS, dir string) (total int64, err error) {
	data := fs.PathJoin(dir, DataDir)
	names, err := fs.List(data)
	if err != nil {
		return 0, err
	}
	for _, name := range names {
		info, err := fs.Stat(fs.PathJoin(data, name))
		if err != nil {
			return total, err
		}
		total += info.Size()
	}
	return total, nil
}
