// Package config has the configuration of redis.conf, the command line and CONFIG SET. The directives are in
// directives.go, reading and rewriting files in file.go. Settings are immutable: a change makes new ones, which the
// owners of directives apply or refuse in functions of Apply and Follow.
package config

import (
	"bytes"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/glob"
	"github.com/atomredis/atomredis/engine/hashes"
	"github.com/atomredis/atomredis/engine/lists"
	"github.com/atomredis/atomredis/engine/sets"
	"github.com/atomredis/atomredis/engine/streams"
	"github.com/atomredis/atomredis/engine/zsets"
	"github.com/atomredis/atomredis/persist"
	"github.com/atomredis/atomredis/persist/journal"
)

// Config is the configuration of a server. Any goroutine may call Get at any time; it costs one atomic load.
type Config struct {
	current atomic.Pointer[Settings]

	mu        sync.Mutex // protects the fields below, and is held while settings change
	appliers  []applier
	followers []follower
	file      string          // the absolute path of the configuration file, "" without one
	changed   map[string]bool // directives that were not set by the file alone
	used      map[string]bool // directives that were set by any means
	// included are the users and roles of files that the configuration file includes: userLine or roleLine, a name and
	// its rules.
	included [][]string
	// users returns the lines that define the users of a running server; nil before the server runs. See OnRewrite.
	users func(set *Settings, included [][]string) ([]string, error)
}

// Settings are the values of all directives at one time, in groups. They are immutable: a change makes new ones.
type Settings struct {
	Network     NetworkSettings
	TLS         TLSSettings
	ACL         ACLSettings
	Commands    CommandSettings
	Clients     ClientSettings
	Scripts     ScriptSettings
	Monitoring  MonitoringSettings
	Memory      MemorySettings
	Types       TypeSettings
	Files       FileSettings
	Persistence PersistenceSettings
	Replication ReplicationSettings
	Raft        RaftSettings
	Cluster     ClusterSettings
	Process     ProcessSettings
	Threads     ThreadSettings
	Log         LogSettings

	Databases int

	// Registered are the values of the directives that doors and protocols have registered, by name.
	Registered map[string]string
	// Unused are the values other than the default of directives without an effect.
	Unused map[string]string

	// RereadFiles tells functions of Apply that a directive that names files was set.
	RereadFiles bool
}

// NetworkSettings are the settings of listeners and connections.
type NetworkSettings struct {
	Bind            []string    // addresses to listen on; a leading '-' marks one that may be missing
	Port            int         // 0 = no TCP
	UnixSocket      string      // "" = none
	UnixSocketPerm  os.FileMode // 0 = as created
	UnixSocketGroup string      // "" = the group of the process
	TCPBacklog      int
	TCPKeepAlive    int    // seconds; 0 = off
	BindSourceAddr  string // for connections that the server opens; "" = chosen by the system
	ProtectedMode   bool
	Timeout         int // seconds; 0 = never
	MaxClients      int
	// DoorMaxClients limits the connections of all doors together; 0 is half of maxclients.
	DoorMaxClients int
	// DoorFirstRequest is the time in seconds within which the peer of a door must send its first request; 0 is for
	// ever.
	DoorFirstRequest int
}

// ACLSettings are the settings of users and passwords.
type ACLSettings struct {
	RequirePass   string     // "" = none
	Users         [][]string // users in configuration files: a name and its rules
	Roles         [][]string // roles likewise
	File          string     // "" = none
	LogMaxLen     int
	PubSubDefault bool // new users may use all channels
}

// CommandSettings say which commands exist, and who may use the dangerous ones.
type CommandSettings struct {
	Modules                []string   // the files of loadmodule, which are not loaded
	Renamed                [][]string // the old name, and the new one or ""
	EnableDebug            Access
	EnableProtectedConfigs Access
	EnableModule           Access
}

// ClientSettings limit a client's resources, and say which messages clients get.
type ClientSettings struct {
	ProtoMaxBulkLen      int
	QueryBufferLimit     int
	OutputLimits         OutputLimits
	TrackingTableMaxKeys int
	NotifyKeyspaceEvents engine.EventClass
	// ImportMode says that clients that import another server's data see expired keys.
	ImportMode bool
}

// ScriptSettings limit a script's resources.
type ScriptSettings struct {
	// BusyReplyThreshold is the time in ms after which other clients get BUSY while a script runs; 0 is for ever.
	BusyReplyThreshold int
	// MemoryLimit is how many bytes a script may use before it is stopped with an error; 0 is no limit.
	MemoryLimit int
}

// MonitoringSettings say which commands are logged, and which figures are measured.
type MonitoringSettings struct {
	// SlowlogLogSlowerThan is the duration in µs from which on a command is logged as slow; negative is never.
	SlowlogLogSlowerThan int
	SlowlogMaxLen        int
	// SlowlogEntryMaxArgc and SlowlogEntryMaxStringLen are how many arguments of a logged command are kept, and how many
	// bytes of each.
	SlowlogEntryMaxArgc, SlowlogEntryMaxStringLen int
	// CommandlogRequestLargerThan and CommandlogReplyLargerThan are the bytes from which on a request, or a reply, is
	// logged as large; negative is never.
	CommandlogRequestLargerThan, CommandlogReplyLargerThan   int
	CommandlogLargeRequestMaxLen, CommandlogLargeReplyMaxLen int
	// LatencyMonitorThreshold is the duration in ms from which on the latency monitor records an event; 0 is never.
	LatencyMonitorThreshold int
	LatencyTracking         bool
	LatencyPercentiles      []float64
}

// MemorySettings limit memory.
type MemorySettings struct {
	Max              int // bytes; 0 = without limit
	MaxClients       int // bytes; negative = percent of Max; 0 = without limit
	Eviction         engine.Eviction
	EvictionTenacity int
}

// TypeSettings say how values are stored.
type TypeSettings struct {
	Hash   hashes.Limits
	Set    sets.Limits
	ZSet   zsets.Limits
	List   lists.Limit
	Stream streams.Limits
	// Producers is the default of how streams remember producers.
	Producers streams.Idempotence
	// HyperLogLogSparse is the length in bytes up to which HyperLogLogs have the sparse encoding.
	HyperLogLogSparse int
}

// FileSettings say where data is stored.
type FileSettings struct {
	Dir            string
	DBFilename     string // of RDB files in Dir
	AppendFilename string // prefix of the names of a Redis's append-only files
	AppendDirname  string // their directory in Dir
	BackupDirname  string // the directory in Dir where BACKUP writes
	// BackupSealedTTL is the time in seconds after which a sealed backup is removed; 0 is never.
	BackupSealedTTL int
	// AOFLoadTruncated says that an append-only file of a Redis may end in the middle of a command.
	AOFLoadTruncated bool
	// SkipUnsupported says that imports leave out values of types that do not exist here.
	SkipUnsupported bool
}

// PersistenceSettings say how and when data is stored.
type PersistenceSettings struct {
	Save                    []persist.SavePoint
	AppendOnly              bool
	AppendFsync             journal.Policy
	CheckpointSize          int           // bytes of journal
	ChangesRetention        int           // bytes of journal that are kept only for readers of changes
	ChangesRetentionTime    time.Duration // how old they may be; 0 is no limit
	Archive                 string        // the URL or the path of the archive; "" is none
	ArchiveInterval         time.Duration // between two uploads of records
	ArchiveBaseInterval     time.Duration // between two uploads of all data
	ArchiveRetention        time.Duration // how far back the archive reaches; 0 is for ever
	ArchiveJournalLimit     int           // bytes of journal that are kept until they are archived
	StopWritesOnBgsaveError bool
	// KeyLoadDelay and KeySaveDelay slow down, for tests, the loading of keys after a start and the writing of
	// checkpoints.
	KeyLoadDelay, KeySaveDelay persist.KeyDelay
}

// ReplicationSettings are those of Redis's replication, as a master and as a replica.
type ReplicationSettings struct {
	ReplicaOf              ReplicaOf
	MasterUser, MasterAuth string // "" = none
	Timeout                int    // seconds of silence of a master, or of unread stream at a follower, after which the link closes
	PingPeriod             int    // seconds between pings to followers
	ServeStaleData         bool   // while the link to the master is down
	ReadOnly               bool   // clients of a replica do not write
	IgnoreDiskErrors       bool   // a replica continues although it cannot store its master's stream
	IgnoreMaxMemory        bool   // a replica evicts only the keys that its master evicts
	Priority               int    // for Sentinel; 0 = never to become a master
	Announced              bool   // Sentinel may show the replica
	AnnounceIP             string // announced to masters; "" = the address that they see
	AnnouncePort           int    // 0 = the port
	BacklogSize            int    // bytes of the stream that are kept for disconnected replicas
	BacklogTTL             int    // seconds without a replica after which the backlog is dropped; 0 = for ever
	MinReplicas            int    // number of replicas without which clients may not write; 0 = none
	MinReplicasMaxLag      int    // seconds; 0 = without limit
}

// ProcessSettings are the settings of the process.
type ProcessSettings struct {
	PidFile                             string
	Daemonize                           bool
	Supervised                          Supervision
	OOMScoreAdj                         OOMScore
	OOMScoreAdjValues                   [3]int // of a master, a replica and a process that saves
	ShutdownOnSigint, ShutdownOnSigterm ShutdownFlags
}

// ThreadSettings say how work is divided among processors.
type ThreadSettings struct {
	Shards  int  // of the keyspace; 0 = chosen by the number of processors
	Loops   int  // event loops
	IOUring bool // loops may use io_uring to make several system calls at once, if the system supports it
}

// LogSettings are the level, format and destination of the log.
type LogSettings struct {
	File           string // "" = standard output
	Level          slog.Level
	Format         LogFormat
	Timestamps     LogTimestamps
	SyslogEnabled  bool
	SyslogIdent    string
	SyslogFacility SyslogFacility
}

// Of returns a configuration with settings that were derived from another's.
func Of(set Settings) *Config {
	c := NewConfig()
	c.current.Store(&set)
	return c
}

// Durable reports whether the data is stored: save points are set, or appendonly is on.
func (s *Settings) Durable() bool { return s.Persistence.AppendOnly || len(s.Persistence.Save) > 0 }

// InMemory changes the configuration of a server that has not started, so that it stores nothing.
func (c *Config) InMemory() {
	c.mu.Lock()
	defer c.mu.Unlock()
	next := *c.Get()
	next.Persistence.Save, next.Persistence.AppendOnly = nil, false
	c.current.Store(&next)
}

// ListenNowhere changes the configuration of a server that has not started, so that only the program can use it. The
// server joins no group.
func (c *Config) ListenNowhere() {
	c.mu.Lock()
	defer c.mu.Unlock()
	next := *c.Get()
	next.Network.Port, next.Network.UnixSocket, next.Raft.Addr = 0, "", ""
	c.current.Store(&next)
}

// OutputLimits are the limits on unsent output, by the class of the client.
type OutputLimits struct {
	Normal, Replica, PubSub OutputLimit
}

// OutputLimit disconnects a client with more than Hard bytes of unsent output, or with more than Soft bytes for
// SoftSeconds. 0 = no limit.
type OutputLimit struct {
	Hard, Soft  int64
	SoftSeconds int
}

// Access says which clients may use a dangerous command.
type Access uint8

// The values of enable-debug-command and similar directives.
const (
	AccessNo Access = iota
	AccessYes
	AccessLocal // clients on the same machine
)

// Levels of the log that slog has no name for. LevelNothing is above every message.
const (
	LevelVerbose = slog.LevelDebug + 2
	LevelNothing = slog.LevelError + 100
)

// NewConfig returns the default configuration.
func NewConfig() *Config {
	c := &Config{changed: map[string]bool{}, used: map[string]bool{}}
	set := *defaults()
	if err := parseDir(&set, []string{defaultDir}); err != nil { // it depends on the working directory
		panic("server: default of dir: " + err.Error())
	}
	c.current.Store(&set)
	return c
}

// defaults returns the default settings.
var defaults = sync.OnceValue(func() *Settings {
	set := new(Settings)
	for _, d := range directives() {
		if err := d.set(set, splitWords(d.initial)); err != nil {
			panic("server: default of " + d.name + ": " + err.Error())
		}
	}
	return set
})

// Get returns the present settings. They must not be changed.
func (c *Config) Get() *Settings { return c.current.Load() }

// File returns the absolute path of the configuration file, "" if there is none.
func (c *Config) File() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.file
}

// Set changes one directive; several words in value are separated by spaces. runtime says that the server is
// running, so that directives that only have an effect at the start are refused.
func (c *Config) Set(name, value string, runtime bool) error {
	d := directiveNamed(name)
	if d == nil {
		return unknown(name)
	}
	if runtime {
		_, err := c.SetAll([]Assignment{{d, name, value}}, true)
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	next := *c.Get()
	if err := d.set(&next, d.words(value)); err != nil {
		return err
	}
	c.noteChange(d)
	c.current.Store(&next)
	return nil
}

// Assignment is one pair of CONFIG SET; see Assign.
type Assignment struct {
	d     *directive
	name  string // the name that was used, of the directive's names
	value string
}

// Assign returns the assignment of a value to a directive, by any of its names; ok is false if the directive does
// not exist.
func Assign(name, value string) (a Assignment, ok bool) {
	d := directiveNamed(name)
	return Assignment{d, strings.ToLower(name), value}, d != nil
}

// Value returns the value of a directive, which must exist, as CONFIG GET shows it.
func (c *Config) Value(name string) string { return directiveNamed(name).show(c.Get()) }

// CheckAssignments checks whether a running server may change these directives; it ignores the values. trusted says
// that protected directives may change too. On an error it returns the directive at fault.
func (c *Config) CheckAssignments(pairs []Assignment, trusted bool) (culprit string, err error) {
	seen := make(map[string]bool, len(pairs))
	for _, p := range pairs {
		same := p.d.sameAllowed && p.value == p.d.show(c.Get())
		if p.d.startOnly && !same {
			return p.name, errImmutable
		}
		if p.d.protected && !trusted && !same {
			return p.name, errProtected
		}
		if seen[p.name] {
			return p.name, errDuplicate
		}
		seen[p.name] = true
	}
	return "", nil
}

// SetAll changes several directives of a running server, all or none. On an error it returns the directive at fault.
func (c *Config) SetAll(pairs []Assignment, trusted bool) (culprit string, err error) {
	if culprit, err := c.CheckAssignments(pairs, trusted); err != nil {
		return culprit, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	old := c.Get()
	next := *old
	for _, p := range pairs {
		if err := p.d.set(&next, p.d.words(p.value)); err != nil {
			return p.name, err
		}
		next.RereadFiles = next.RereadFiles || p.d.reread
	}
	changes := effective(pairs, old, &next)
	if culprit, err := c.apply(changes, old, &next); err != nil {
		return culprit, err
	}
	for _, p := range pairs {
		c.noteChange(p.d)
	}
	set := next
	set.RereadFiles = false
	c.current.Store(&set)
	c.tell(changes, &next)
	return "", nil
}

// ChangeError says why a change cannot take effect: it has the error of each directive that may be at fault, by
// name.
type ChangeError map[string]error

// Error implements error.
func (e ChangeError) Error() string {
	name := slices.Min(slices.Collect(maps.Keys(e)))
	return name + ": " + e[name].Error()
}

// noteChange records that a directive was set by other means than the file.
func (c *Config) noteChange(d *directive) {
	c.changed[d.name] = true
	c.used[d.name] = true
}

// IsSet reports whether a directive was set, by any means.
func (c *Config) IsSet(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.used[name]
}

// WithoutEffect returns the directives that have another value than their default but no effect: they tune machinery
// that this server does not have.
func (c *Config) WithoutEffect() []string { return slices.Sorted(maps.Keys(c.Get().Unused)) }

// Match calls fn once for every directive, including aliases, that one of the patterns matches. Patterns that are
// plain names come first, in their order; then the matches of glob patterns, sorted by name, without hidden
// directives.
func (c *Config) Match(patterns [][]byte, fn func(name, value string)) {
	set := c.Get()
	named := map[string]bool{}
	for _, p := range patterns {
		if bytes.ContainsAny(p, "[*?") {
			continue
		}
		name := strings.ToLower(string(p))
		if d := directiveNamed(name); d != nil && !named[name] {
			named[name] = true
			fn(string(p), d.show(set)) // as the client wrote it
		}
	}
	for _, n := range directiveNames() {
		if !n.foreign && !n.d.hiddenFrom(set) && !named[n.name] &&
			slices.ContainsFunc(patterns, func(p []byte) bool { return glob.Match(p, []byte(n.name), true) }) {
			fn(n.name, n.d.show(set))
		}
	}
}
