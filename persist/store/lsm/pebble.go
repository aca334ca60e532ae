package lsm

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"

	"github.com/atomredis/atomredis/persist/disk"
	"github.com/atomredis/atomredis/persist/store/pebblefs"
)

// database is a running Pebble and its surroundings.
type database struct {
	*pebble.DB
	options *pebble.Options
	fence   *fence
	sched   *scheduler
	log     *slog.Logger
	failed  func(error)

	users   sync.WaitGroup // operations that use it
	closing chan struct{}
}

// openDatabase opens Pebble in a directory. failed, which may be called under Pebble's locks, is called if it fails for
// good. change, which may be nil, changes the options.
func openDatabase(fs disk.FS, dir string, cache *pebble.Cache, log *slog.Logger, failed func(error),
	change func(*pebble.Options)) (*database, error) {
	d := &database{log: log, failed: failed, closing: make(chan struct{})}
	d.fence = newFence(pebblefs.To(fs), d.fail)
	d.sched = &scheduler{fence: d.fence}
	d.options = &pebble.Options{
		FS:    d.fence,
		Cache: cache,
		// Explicit, so that a newer library does not change the format on disk by itself.
		FormatMajorVersion: pebble.FormatValueSeparation,
		// Everything is ingested; the log and the memtable stay empty.
		DisableWAL:   true,
		MemTableSize: 64 << 10,
		// Every checkpoint adds a thin layer over all keys. Many layers are merged together, into a base level that is
		// small and has small files, so that a checkpoint of a few keys costs little more than these keys.
		L0CompactionThreshold: 16,
		L0StopWritesThreshold: 1 << 20,
		LBaseMaxBytes:         16 << 20,
		TargetFileSizes:       [7]int64{2 << 20, 2 << 20, 4 << 20, 8 << 20, 16 << 20, 32 << 20, 32 << 20},
		MaxManifestFileSize:   4 << 20,
		Logger:                (*logger)(d),
		EventListener: &pebble.EventListener{
			BackgroundError: d.backgroundError,
			DataCorruption: func(info pebble.DataCorruptionInfo) {
				log.Error("damaged data in the store", "file", info.Path, "error", info.Details.Error())
			},
		},
	}
	for i := range d.options.Levels {
		l := &d.options.Levels[i]
		// Without C, each block read becomes garbage for Go's collector, which costs more than reading. The index of 20
		// GB exceeds the cache, so its blocks are small too.
		l.BlockSize = 4 << 10
		l.IndexBlockSize = 16 << 10
		l.FilterPolicy = bloom.FilterPolicy(10)
	}
	d.options.ApplyCompressionSettings(func() pebble.DBCompressionSettings { return pebble.DBCompressionFastest })
	d.options.Experimental.CompactionScheduler = d.sched
	d.options.Experimental.ReadSamplingMultiplier = -1 // reads cause no writes
	if change != nil {
		change(d.options)
	}
	d.options.EnsureDefaults()
	err := d.fence.run(func() (err error) {
		d.DB, err = pebble.Open(dir, d.options)
		return err
	})
	if err == nil {
		err = d.fence.Err()
	}
	if err != nil {
		if d.fence.Err() != nil {
			_ = d.close()
		}
		return nil, fmt.Errorf("open %s: %w", dir, err)
	}
	return d, nil
}

// fail ends all changes after an error that leaves the state on disk unknown.
func (d *database) fail(err error) {
	if d.fence.shut(err) {
		d.log.Error("the store has failed; it is read-only until it is opened again", "error", err.Error())
		d.failed(err)
	}
}

// backgroundError handles errors of Pebble's background work, which Pebble retries.
func (d *database) backgroundError(err error) {
	if d.fence.Err() == nil {
		d.log.Warn("background work in the store has failed", "error", err.Error())
	}
	if !calledBy(".(*DB).collectTableStats") {
		d.sched.pause() // a compaction; Pebble's lock is held
		return
	}
	// Pebble gathers statistics again at once, and endlessly if the files are closed for good.
	select {
	case <-time.After(time.Second):
	case <-d.closing:
	}
	if d.fence.Err() != nil {
		select {}
	}
}

// close closes an unused database. For a failed one only the files are closed. Some memory and forever blocked
// goroutines remain, because Pebble cannot be ended in the middle of a change.
func (d *database) close() error {
	close(d.closing)
	var err error
	if d.fence.Err() == nil {
		err = d.fence.run(d.Close)
	}
	if d.fence.Err() != nil {
		d.fence.drain()
		d.fence.closeFiles()
	}
	return err
}

// logger makes a database the logger of its Pebble.
type logger database

func (l *logger) Infof(format string, args ...any) {
	if l.log.Enabled(context.Background(), slog.LevelDebug) {
		l.log.Debug("pebble: " + fmt.Sprintf(format, args...))
	}
}

func (l *logger) Errorf(format string, args ...any) {
	l.log.Warn("pebble: " + fmt.Sprintf(format, args...))
}

// Fatalf is called when Pebble cannot continue: if the MANIFEST cannot be written (which the fence hides from it,
// except while a store is being created), or if its state in memory is inconsistent. When Fatalf returns, Pebble
// returns an error from its operation.
func (l *logger) Fatalf(format string, args ...any) {
	(*database)(l).fail(fmt.Errorf(format, args...))
}
