package scripts

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/config"
	"github.com/atomredis/atomredis/internal/version"
	"github.com/atomredis/atomredis/scripting"
)

// Scripts are the scripts and functions of a server, and the running one. Any goroutine may call their methods.
type Scripts struct {
	server    Options
	engine    *scripting.Engine
	functions *scripting.Functions
	mayDebug  atomic.Bool // scripts may call DEBUG
	running
}

// Options has what scripts need of the server beside command.Host.
type Options struct {
	Keyspace *engine.Keyspace
	Config   *config.Config
	Log      *slog.Logger
	// Relieve makes other goroutines continue the work of goroutines that run a script or wait for its end. One
	// goroutine calls it repeatedly while a script makes the server busy. Resume is called when that script has
	// ended.
	Relieve, Resume func()
}

// New returns the Scripts of a server.
func New(o Options) *Scripts {
	s := &Scripts{server: o}
	s.running.base = time.Now()
	s.engine = scripting.New(s.options())
	s.functions = scripting.NewFunctions(s.options())
	return s
}

func (s *Scripts) options() scripting.Options {
	return scripting.Options{Version: version.Redis, VersionNum: version.RedisNumber, Log: s.log, Interrupt: &s.interrupt}
}

// log writes a message of a script to the server's log.
func (s *Scripts) log(level scripting.Level, message string) {
	levels := [...]slog.Level{slog.LevelDebug, slog.LevelDebug, slog.LevelInfo, slog.LevelWarn}
	s.server.Log.Log(context.Background(), levels[level], message, "source", "script")
}

// Close releases the memory of scripts. No script is running any more.
func (s *Scripts) Close() { s.engine.Close() }

// LetDebug sets whether scripts may call DEBUG.
func (s *Scripts) LetDebug(may bool) { s.mayDebug.Store(may) }

// MayDebug reports whether scripts may call DEBUG.
func (s *Scripts) MayDebug() bool { return s.mayDebug.Load() }

// Usage is the number of scripts and functions, and their memory in bytes.
type Usage struct {
	Scripts, Libraries, Functions int
	ScriptSources, LibrarySources int64
	ScriptMachines                int64 // virtual machines of Lua
	FunctionMachines              int64
}

// Usage returns the present numbers.
func (s *Scripts) Usage() Usage {
	u := Usage{
		Scripts: s.engine.Len(), ScriptSources: int64(s.engine.SourceBytes()),
		ScriptMachines:   int64(s.engine.VMs()) * scripting.VMBytes,
		FunctionMachines: int64(s.functions.VMs()) * scripting.VMBytes,
	}
	u.Libraries, u.Functions = s.functions.Count()
	for _, code := range s.Libraries() {
		u.LibrarySources += int64(len(code))
	}
	return u
}
