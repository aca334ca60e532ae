// Package store is what package persist asks of the data set on the disk, in which the keys, their values and the parts
// of values are. Package persist/store/lsm has it on Pebble, and registers itself: programs that keep nothing on a disk
// do not link Pebble.
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
	// Dir is the directory. It is made, for its owner alone, if it does not exist.
	Dir string
	// Log takes what happens; nil discards it.
	Log *slog.Logger
}

// Store is a data set on disk. Reading methods may be called from any goroutine. One goroutine writes: Begin and the
// methods of a Checkpoint must not be called at the same time.
type Store interface {
	engine.Source
	// FS returns the file system for what lies in the store's directory.
	FS() disk.FS
	// Meta returns what was committed with the last checkpoint; ok is false if there was none yet.
	Meta() (m Meta, ok bool)
	// Heads calls fn for every key in a space, in the order of the keys, until it returns false. fn keeps neither key nor
	// h.Blob.
	Heads(space uint32, fn func(key []byte, h engine.Head) bool) error
	// HeadBytes returns about how many bytes of the disk the heads take, without reading them; 0 if it is not known.
	HeadBytes() int64
	// Begin begins a checkpoint, which must end with Commit or Abort before the next one begins. A store that has failed
	// is opened anew first.
	Begin() (Checkpoint, error)
	// Err returns why the store has failed, nil if it has not. A store that has failed can be read, and shows what was
	// there before, but not changed until Begin succeeds.
	Err() error
	// Metrics returns the metrics of now; zeros if the store is closed.
	Metrics() Metrics
	// Close closes the store. A checkpoint must have ended.
	Close() error
	// Abandon closes the store, and removes the directory, with all that is in it, as far as opening it has made it.
	Abandon() error
}

// Checkpoint is a change of the store under way. What concerns heads is told in ascending order of spaces and keys,
// what concerns parts in that of the values' numbers and the parts' names; between the two there is no order. A drop
// may be told earlier than at its place, and nothing of what it drops may be put or deleted by the same checkpoint.
// Every method returns the first error that there was, also before; the checkpoint can only be aborted then.
//
// Nothing can be read of it before Commit returns.
type Checkpoint interface {
	// DropSpace removes everything that is stored in a space.
	DropSpace(space uint32) error
	// PutHead stores the head of a key, and its value unless it has parts. If known is set the value is as it is stored
	// already and only the rest of the head is new; otherwise h.Blob is the value, which is kept apart from the head if
	// h.External is set. wasExternal says that a value may be stored apart from the head from before.
	PutHead(space uint32, key string, h engine.Head, known, wasExternal bool) error
	// DeleteHead removes a key, but for the parts of its value. wasExternal says that a value may be stored apart from
	// the head.
	DeleteHead(space uint32, key string, wasExternal bool) error
	// DropParts removes all parts of a value.
	DropParts(id uint64) error
	// PutPart stores a part of a value. data is not kept.
	PutPart(id uint64, name string, data []byte) error
	// DeletePart removes a part of a value.
	DeletePart(id uint64, name string) error
	// Commit ends the checkpoint. If it returns nil everything is stored durably, and can be read. If it returns an error
	// nothing is, unless the store has failed: then it shows which it is when it is opened anew.
	Commit(m Meta) error
	// Abort ends the checkpoint as if it had never begun. It does nothing after Commit.
	Abort()
}

// Meta is what is known of the whole data set. It is committed with every checkpoint.
type Meta struct {
	// Journal is the position from which the journal has to be repeated.
	Journal uint64
	// JournalSeed is that of the segment of the journal that has this position; 0 if there need not be one.
	JournalSeed uint32
	// Spaces holds the number of the space of every database.
	Spaces []uint32
	// NextSpace and NextParts are numbers such that they and greater ones were never used.
	NextSpace uint32
	NextParts uint64
	// Saved is when the checkpoint was made, in ms since 1970.
	Saved int64
	// Keys is the number of keys that are stored, as the maker of the checkpoint gave it.
	Keys int64
	// Group is what a group of servers has agreed on up to the checkpoint, nil if the data belongs to no group.
	Group []byte
	// Extra is what the user of the store keeps beside the keys.
	Extra []byte
}

// Metrics is what the store holds and has done since it was opened.
type Metrics struct {
	// Disk is how many bytes its files take, Tables how many tables there are, Memtables how many bytes wait in memory to
	// become tables.
	Disk, Tables, Memtables int64
	// Cache is how many bytes of blocks are kept in memory; a read of a block was a hit if it was there. A filter hit is a
	// read of a table that its filter made unnecessary.
	Cache, CacheHits, CacheMisses, FilterHits, FilterMisses int64
	// Flushes and Compactions have written so many bytes; Debt is about what compactions have yet to rewrite.
	Flushes, FlushedBytes, Compactions, CompactedBytes, Debt int64
	// ReadAmplification is how many tables a read looks at, at worst.
	ReadAmplification int
}

var (
	// ErrClosed is returned by everything that is done with a Store after Close.
	ErrClosed = errors.New("the store is closed")
	// ErrInUse is why a directory is refused that another store, in this process or another one, has open.
	ErrInUse = errors.New("another server uses the directory")
	// ErrNone is why a directory is refused in a program that has no Engine.
	ErrNone = errors.New(`this program keeps data in memory only; one with import _ "github.com/atomredis/atomredis" can store it`)
)

// Engine makes stores, and looks after those that nobody has open.
type Engine interface {
	// Open opens or creates a store. No other process may have it open.
	Open(o Options) (Store, error)
	// Verify reads everything in a store without changing it. report is called for every piece of damage, and for what is
	// superfluous or odd without being damaged. It returns the meta record, as far as it can be read, and the first damage
	// as the error.
	Verify(fs disk.FS, dir string, report func(string)) (Meta, error)
	// Salvage replaces the data in a store by all of it that is sound, and tells report what is left out, and where the
	// data as it was is kept.
	Salvage(fs disk.FS, dir string, report func(string)) error
	// ForgetJournal has a store name no segment of a journal any more.
	ForgetJournal(fs disk.FS, dir string) error
}

// registered is the program's Engine.
var registered Engine = none{}

// Register makes an Engine that of the program. Its package calls it in an init function.
func Register(e Engine) { registered = e }

// Registered returns the Engine of the program. Without one its methods return ErrNone.
func Registered() Engine { return registered }

// none is the Engine of a program that has none.
type none struct{}

func (none) Open(Options) (Store, error)                        { return nil, ErrNone }
func (none) Verify(disk.FS, string, func(string)) (Meta, error) { return Meta{}, ErrNone }
func (none) Salvage(disk.FS, string, func(string)) error        { return ErrNone }
func (none) ForgetJournal(disk.FS, string) error                { return ErrNone }

// DataDir is the directory below that of a store in which its data is.
const DataDir = "data"

// Exists reports whether there is a store in a directory.
func Exists(fs disk.FS, dir string) bool {
	info, err := fs.Stat(fs.PathJoin(dir, DataDir))
	return err == nil && info.IsDir()
}

// Size returns how many bytes the files of the data in a directory have.
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
