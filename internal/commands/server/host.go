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
	// InfoSections returns the parts of INFO, in their order.
	InfoSections() []InfoSection
	// ResetStats sets the counters of INFO to zero.
	ResetStats()
	// Memory tells where the memory is; now is in ms since 1970.
	Memory(now int64) Memory
	// ClientCount returns how many clients are connected.
	ClientCount() int64
	// ProcessorTime returns how many seconds of the processor the process has used, 0 where the system does not tell.
	ProcessorTime() (system, user float64)
	// MeasureKeys begins to measure the use of keys; nil ends it.
	MeasureKeys(hot *stats.HotKeys)
	// HotKeys is where the commands keep what they measure.
	HotKeys() *HotKeys
	// Busy returns the error for clients while a script runs for too long; "" if none does.
	Busy() command.Error
	// Backups are what BACKUP makes.
	Backups() *transfer.Backups
	Saver
	Debugger
}

// Saver writes the data to the disk.
type Saver interface {
	// Stores reports whether the data are stored, and not in memory only.
	Stores() bool
	// Checkpoint begins a checkpoint of stored data. The error is persist.ErrInProgress if one is under way.
	Checkpoint() error
	// FinishCheckpoint makes a checkpoint of stored data, and returns when it is there.
	FinishCheckpoint() error
	// Dump is the RDB file, and what is saved with it.
	Dump() *transfer.Dump
	// Stop stops the server, and returns when nothing of it is running any more. Without save what the journal does not
	// have is lost.
	Stop(save bool) error
}

// Debugger is what DEBUG can do to a server.
type Debugger interface {
	// DelayJournal makes the journal wait before it writes.
	DelayJournal(d time.Duration)
	// ChangeReplicationID gives the history of the data a new name.
	ChangeReplicationID()
	// SkipChecksums says whether payloads and files with a wrong checksum are accepted.
	SkipChecksums(skip bool)
	// LetScriptsDebug says whether scripts may call DEBUG, and ScriptsMayDebug reports it.
	LetScriptsDebug(may bool)
	ScriptsMayDebug() bool
	// SetReplyBufferPeakAge says for how many ms the largest reply of a client counts for the size of its buffer; less than
	// 0 is for ever.
	SetReplyBufferPeakAge(ms int64)
	// FixReplyBuffers says whether these buffers keep their sizes.
	FixReplyBuffers(fixed bool)
	// EvictsClients reports whether maxmemory-clients is set.
	EvictsClients() bool
	// EvictableClients returns how many bytes each client uses that it may disconnect.
	EvictableClients() []int64
	// SessionSize returns the size in bytes of what is kept for every client.
	SessionSize() uintptr
}

// Client is what they need of the client.
type Client interface {
	command.Client
	// Has reports whether the client is one of those that have an access.
	Has(a config.Access) bool
	// ID is the client's number.
	ID() int64
	// Addr is where it is, as CLIENT LIST shows it.
	Addr() string
	// Monitor has the client see the commands of all others; it reports false if it did already.
	Monitor() bool
	// End closes its connection once it has its reply.
	End()
}

func hostOf(c *command.Ctx) Host     { return c.Host.(Host) }
func clientOf(c *command.Ctx) Client { return c.Client.(Client) }
