package scripting

import (
	"bytes"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"

	lua "github.com/yuin/gopher-lua"

	"github.com/atomredis/atomredis/resp"
)

// Engine compiles scripts, keeps them by their digest, and runs them. Its methods may be called from any goroutine.
type Engine struct {
	options Options

	mu       sync.Mutex // protects the following fields
	scripts  map[string]*Script
	idle     []*vm
	machines int // virtual machines, idle and in use
}

// maxIdle is the number of virtual machines kept for reuse. Scripts of one server exclude each other, so more would
// serve only short overlaps.
const maxIdle = 4

// VMBytes is the memory of a virtual machine that has not run anything, in bytes. Objects that scripts make in it
// become garbage when they end.
const VMBytes = 97 << 10

// Options describe the server to an engine.
type Options struct {
	// Version and VersionNum are the values that scripts see as redis.REDIS_VERSION and redis.REDIS_VERSION_NUM.
	Version    string
	VersionNum int
	// Interrupt stops the scripts of the engine. It may be nil.
	Interrupt *Interrupt
	// Log receives the messages that scripts write with redis.log.
	Log func(level Level, message string)
}

// Level is the importance of a script's log message.
type Level int

// The levels, with the numbers that scripts use.
const (
	LevelDebug Level = iota
	LevelVerbose
	LevelNotice
	LevelWarning
)

// Host is the server from a script's point of view.
type Host interface {
	// Call executes a command and returns its encoded reply in the given version of the protocol. The arguments are
	// views, valid only until Call returns; the reply must stay valid until the next Call.
	Call(args [][]byte, proto int) []byte
	// Check reports whether a command may be executed. If it is not a valid command, wrong is UnknownToCheck or
	// WrongArityToCheck. The arguments are views, valid only until Check returns.
	Check(args [][]byte) (allowed bool, wrong string)
}

// Script is a compiled script. It does not change.
type Script struct {
	// SHA is the digest of the source in lower-case hexadecimal.
	SHA string
	// Flags are those of the shebang line. They are valid only if Declared is set.
	Flags Flags
	// Declared reports that the source has a shebang line.
	Declared bool

	// Source is the source that was compiled.
	Source string

	code *chunk
}

// Flags are a script's declarations about itself, given in its shebang line.
type Flags uint8

// The flags of scripts.
const (
	NoWrites Flags = 1 << iota
	AllowOOM
	AllowStale
	NoCluster
	AllowCrossSlotKeys
)

var flagNames = map[string]Flags{"no-writes": NoWrites, "allow-oom": AllowOOM, "allow-stale": AllowStale,
	"no-cluster": NoCluster, "allow-cross-slot-keys": AllowCrossSlotKeys}

// New returns an engine without scripts.
func New(options Options) *Engine {
	return &Engine{options: options, scripts: map[string]*Script{}}
}

// Close removes the scripts and the idle virtual machines.
func (e *Engine) Close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.scripts = map[string]*Script{}
	e.machines -= len(e.idle)
	e.idle = nil
}

// Load compiles source, unless it is already known, and keeps it. The error is the text of an error reply.
func (e *Engine) Load(source []byte) (*Script, error) {
	digest := sha1.Sum(source)
	var sha [2 * sha1.Size]byte
	hex.Encode(sha[:], digest[:])
	e.mu.Lock()
	script := e.scripts[string(sha[:])]
	e.mu.Unlock()
	if script != nil {
		return script, nil
	}
	script, err := compileScript(string(sha[:]), string(source))
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	e.scripts[script.SHA] = script
	e.mu.Unlock()
	return script, nil
}

// Find returns the script with the digest, in any case, or nil.
func (e *Engine) Find(sha []byte) *Script {
	if len(sha) != 2*sha1.Size {
		return nil
	}
	var lower [2 * sha1.Size]byte
	for i, c := range sha {
		if c >= 'A' && c <= 'Z' {
			c |= 0x20
		}
		lower[i] = c
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.scripts[string(lower[:])]
}

// Len returns the number of known scripts.
func (e *Engine) Len() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.scripts)
}

// SourceBytes returns the total length of the sources of all known scripts.
func (e *Engine) SourceBytes() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := 0
	for _, s := range e.scripts {
		n += len(s.Source)
	}
	return n
}

// VMs returns the number of virtual machines.
func (e *Engine) VMs() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.machines
}

// Flush removes all scripts, and the idle virtual machines.
func (e *Engine) Flush() { e.Close() }

// Run executes a script and writes exactly one reply to w. keys and args are not kept.
func (e *Engine) Run(script *Script, host Host, keys, args [][]byte, w *resp.Writer) {
	m := e.take()
	e.give(m, m.run(script, host, keys, args, w))
}

func (e *Engine) take() *vm {
	e.mu.Lock()
	if n := len(e.idle); n > 0 {
		m := e.idle[n-1]
		e.idle = e.idle[:n-1]
		e.mu.Unlock()
		return m
	}
	e.machines++
	e.mu.Unlock()
	return newVM(&e.options)
}

// give takes back a virtual machine, to be used again if it is intact.
func (e *Engine) give(m *vm, intact bool) {
	e.mu.Lock()
	if intact && len(e.idle) < maxIdle {
		e.idle = append(e.idle, m)
	} else {
		e.machines--
	}
	e.mu.Unlock()
}

// scriptName is the name of scripts in messages.
const scriptName = "user_script"

// compileScript makes a script from its source.
func compileScript(sha, source string) (*Script, error) {
	script := &Script{SHA: sha, Source: source}
	body := source
	if strings.HasPrefix(source, "#!") {
		line, _, ok := strings.Cut(source, "\n")
		if !ok {
			return nil, fmt.Errorf("ERR Invalid script shebang")
		}
		if err := script.readShebang(line); err != nil {
			return nil, err
		}
		body = source[len(line):] // the line break stays to keep the line numbers
	}
	code, err := compile(body, scriptName)
	if err != nil {
		return nil, fmt.Errorf("ERR Error compiling script (new function): %w", err)
	}
	script.code = code
	return script, nil
}

// DeclaredFlags returns the flags of a source's shebang line; ok is false if it has no readable one.
func DeclaredFlags(source []byte) (flags Flags, ok bool) {
	line, _, found := bytes.Cut(source, []byte("\n"))
	if !found || !bytes.HasPrefix(line, []byte("#!")) {
		return 0, false
	}
	var s Script
	err := s.readShebang(string(line))
	return s.Flags, err == nil
}

// readShebang reads the first line of a source, "#!lua flags=a,b".
func (s *Script) readShebang(line string) error {
	words := strings.Fields(line)
	if words[0] != "#!lua" {
		return fmt.Errorf("ERR Unexpected engine in script shebang: %s", words[0])
	}
	s.Declared = true
	for _, word := range words[1:] {
		list, ok := strings.CutPrefix(word, "flags=")
		if !ok {
			return fmt.Errorf("ERR Unknown lua shebang option: %s", word)
		}
		if list == "" {
			continue
		}
		for _, name := range strings.Split(list, ",") {
			flag, ok := flagNames[name]
			if !ok {
				return fmt.Errorf("ERR Unexpected flag in script shebang: %s", name)
			}
			s.Flags |= flag
		}
	}
	return nil
}

// chunk is compiled Lua that any number of virtual machines may run.
type chunk struct {
	proto *lua.FunctionProto
	names *names
}
