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

// Scripts are the scripts and functions of a server, and the one that is running. Their methods may be called by any
// goroutine.
type Scripts struct {
	server    Options
	engine    *scripting.Engine
	functions *scripting.Functions
	mayDebug  atomic.Bool // scripts may call DEBUG
	running
}

// Options has the parts of the server that scripts need beside command.Host.
type Options struct {
	Keyspace *engine.Keyspace
	Config   *config.Config
	Log      *slog.Logger
	// Relieve has other goroutines go on with what is held up because a client's command waits for the end of a script, or
	// is one. It is called by one goroutine at a time, again and again while a script makes the server busy. Resume is
	// called when that one has ended.
	Relieve, Resume func()
}

// New prepares a server for scripts.
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

// Close gives back what scripts have used. None is running any more.
func (s *Scripts) Close() { s.engine.Close() }

// LetDebug says whether scripts may call DEBUG, and MayDebug reports it.
func (s *Scripts) LetDebug(may bool) { s.mayDebug.Store(may) }

// MayDebug reports whether scripts may call DEBUG.
func (s *Scripts) MayDebug() bool { return s.mayDebug.Load() }

// Usage has the numbers of scripts and functions, and their memory in bytes.
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
