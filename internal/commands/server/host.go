package server

import (
	"time"

	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/config"
	"github.com/atomredis/atomredis/internal/stats"
	"github.com/atomredis/atomredis/internal/transfer"
)

// Host is what the commands of this package need of the server.
type Host interface {
	command.Host
	// The parts of the server.
	Table() *command.Table
	Config() *config.Config
	CommandLog(kind stats.LogKind) *stats.CommandLog
	Latency() *stats.Latency
	CommandStats() *stats.Commands
	// InfoSections returns the sections of INFO, in order.
	InfoSections() []InfoSection
	// ResetStats sets the counters of INFO to zero.
	ResetStats()
	// Memory returns the use of memory; now is in ms since 1970.
	Memory(now int64) Memory
	// ClientCount returns how many clients are connected.
	ClientCount() int64
	// ProcessorTime returns the processor time of the process in seconds, 0 where the system does not report it.
	ProcessorTime() (system, user float64)
	// MeasureKeys begins to measure the use of keys; nil ends it.
	MeasureKeys(hot *stats.HotKeys)
	// HotKeys returns the state of HOTKEYS.
	HotKeys() *HotKeys
	// Busy returns the error for clients while a script runs for too long; "" if none does.
	Busy() command.Error
	// Backups are the backups of BACKUP.
	Backups() *transfer.Backups
	Saver
	Debugger
}

// Saver writes the data to the disk.
type Saver interface {
	// Stores reports whether the data is stored on disk, and not in memory only.
	Stores() bool
	// Checkpoint begins a checkpoint of stored data. The error is persist.ErrInProgress if one is under way.
	Checkpoint() error
	// FinishCheckpoint makes a checkpoint of stored data, and returns when it is complete.
	FinishCheckpoint() error
	// Dump is the RDB file, and the files saved with it.
	Dump() *transfer.Dump
	// Stop stops the server, and returns when all of it has stopped. Without save, data that the journal does not
	// have is lost.
	Stop(save bool) error
}

// Debugger is what DEBUG can do to a server.
type Debugger interface {
	// DelayJournal makes the journal wait before it writes.
	DelayJournal(d time.Duration)
	// ChangeReplicationID gives the history of the data a new name.
	ChangeReplicationID()
	// SkipChecksums sets whether payloads and files with a wrong checksum are accepted.
	SkipChecksums(skip bool)
	// LetScriptsDebug sets whether scripts may call DEBUG, and ScriptsMayDebug reports it.
	LetScriptsDebug(may bool)
	ScriptsMayDebug() bool
	// SetReplyBufferPeakAge sets for how many ms the largest reply of a client counts for the size of its buffer;
	// less than 0 is for ever.
	SetReplyBufferPeakAge(ms int64)
	// FixReplyBuffers sets whether these buffers keep their sizes.
	FixReplyBuffers(fixed bool)
	// EvictsClients reports whether maxmemory-clients is set.
	EvictsClients() bool
	// EvictableClients returns the memory in bytes of each client that maxmemory-clients may disconnect.
	EvictableClients() []int64
	// SessionSize returns the fixed size of a client's state in bytes.
	SessionSize() uintptr
}

// Client is what the commands need of the client.
type Client interface {
	command.Client
	// Has reports whether the client has an access.
	Has(a config.Access) bool
	// ID is the client's number.
	ID() int64
	// Addr is the client's address, as CLIENT LIST shows it.
	Addr() string
	// Monitor makes the client see the commands of all others; it returns false if it already does.
	Monitor() bool
	// End closes the client's connection once it has its reply.
	End()
}

func hostOf(c *command.Ctx) Host     { return c.Host.(Host) }
func clientOf(c *command.Ctx) Client { return c.Client.(Client) }
