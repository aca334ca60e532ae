package config

// This file reads configuration files and command lines, and has CONFIG REWRITE.

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/resp"
)

// ConfigError is an error in a line of a configuration.
type ConfigError struct {
	// File is the name of the file, "" for a command-line option.
	File string
	// Line counts from 1.
	Line int
	// Text is the line.
	Text string
	// Err is the reason.
	Err error
}

// Error implements error.
func (e *ConfigError) Error() string {
	if e.File == "" {
		return fmt.Sprintf("command line: '%s': %v", e.Text, e.Err)
	}
	return fmt.Sprintf("%s, line %d: '%s': %v", e.File, e.Line, e.Text, e.Err)
}

// Unwrap returns the reason.
func (e *ConfigError) Unwrap() error { return e.Err }

var (
	ErrNoConfigFile  = errors.New("The server is running without a config file")
	ErrDuplicateUser = errors.New("Duplicate user found. A user can only be defined once in config files")
	ErrDuplicateRole = errors.New("Duplicate role found. A role can only be defined once in config files")
)

// maxIncludes is the largest depth of included files.
const maxIncludes = 16

// LoadFile reads a configuration file. If it fails, the configuration is unchanged.
func (c *Config) LoadFile(path string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	next := *c.Get()
	if err := c.readFile(path, &next, 0); err != nil {
		return err
	}
	file, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	c.file = file
	c.current.Store(&next)
	return nil
}

// SetLine applies a line of a configuration file. If it fails, the configuration must not be used.
func (c *Config) SetLine(line string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	words, err := lineWords([]byte(line))
	if err != nil || len(words) == 0 {
		return err
	}
	next := *c.Get()
	if err := c.line(words[0], words[1:], &next, 0, c.noteChange); err != nil {
		return err
	}
	c.current.Store(&next)
	return nil
}

// LoadArgs reads the arguments of a command line: first a configuration file or "-" for standard input, then
// options, each two dashes and a directive, followed by its value: "redis.conf --port 6380 --bind 10.0.0.1
// 127.0.0.1". A "-" at the end reads standard input as well. If it fails, the configuration must not be used.
func (c *Config) LoadArgs(args []string) error { return c.LoadArgsFrom(args, os.Stdin) }

// LoadArgsFrom is LoadArgs with stdin in place of standard input.
func (c *Config) LoadArgsFrom(args []string, stdin io.Reader) error {
	if len(args) > 0 && args[0] != "-" && !strings.HasPrefix(args[0], "--") {
		if err := c.LoadFile(args[0]); err != nil {
			return err
		}
		args = args[1:]
	}
	fromStdin := false
	if n := len(args); n > 0 && args[n-1] == "-" {
		args, fromStdin = args[:n-1], true
	} else if n > 0 && args[0] == "-" {
		args, fromStdin = args[1:], true
	}

	c.mu.Lock()
	defer c.mu.Unlock()
	next := *c.Get()
	if fromStdin {
		if err := c.read(stdin, "standard input", &next, 0, c.noteChange); err != nil {
			return err
		}
	}
	for len(args) > 0 {
		words, rest, err := optionWords(args)
		if err == nil {
			err = c.line(words[0], words[1:], &next, 0, c.noteChange)
		}
		if included := new(ConfigError); errors.As(err, &included) {
			return err
		}
		if err != nil {
			return &ConfigError{Text: strings.Join(args[:len(args)-len(rest)], " "), Err: err}
		}
		args = rest
	}
	c.current.Store(&next)
	return nil
}

// optionWords returns the words of the first option of a command line: those of its own argument, which may be
// several ("--port 1" in one argument), and the arguments after it up to the next option. If the option has no value
// otherwise, the first of these may begin with dashes, except for save, which may have no value.
func optionWords(args []string) (words, rest []string, err error) {
	option, ok := strings.CutPrefix(args[0], "--")
	rest = args[1:]
	if !ok {
		return nil, rest, ErrUnknownDirective
	}
	if words, err = lineWords([]byte(option)); err != nil {
		return nil, rest, err
	}
	if len(words) == 0 {
		return nil, rest, ErrUnknownDirective
	}
	if len(words) == 1 && len(rest) > 0 && !strings.EqualFold(words[0], "save") {
		words, rest = append(words, rest[0]), rest[1:]
	}
	for len(rest) > 0 && !strings.HasPrefix(rest[0], "--") {
		words, rest = append(words, rest[0]), rest[1:]
	}
	return words, rest, nil
}

func (c *Config) readFile(path string, s *Settings, depth int) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("can't open config file: %w", err)
	}
	defer f.Close()
	return c.read(f, path, s, depth, func(d *directive) { c.used[d.name] = true })
}

// read parses a configuration into s and calls note for every directive that it contains. c.mu is held.
func (c *Config) read(r io.Reader, name string, s *Settings, depth int, note func(*directive)) error {
	content, err := io.ReadAll(r)
	if err != nil {
		return fmt.Errorf("can't read config file %s: %w", name, err)
	}
	for i, line := range splitLines(content) {
		words, err := lineWords(line)
		if err == nil && len(words) > 0 {
			err = c.line(words[0], words[1:], s, depth, note)
		}
		if included := new(ConfigError); errors.As(err, &included) {
			return err // the error names the line of the included file
		}
		if err != nil {
			return &ConfigError{File: name, Line: i + 1, Text: string(line), Err: err}
		}
	}
	return nil
}

// line applies one line.
func (c *Config) line(name string, words []string, s *Settings, depth int, note func(*directive)) error {
	if strings.EqualFold(name, includeLine) {
		if len(words) != 1 {
			return ErrWordCount
		}
		return c.include(words[0], s, depth)
	}
	for _, kind := range []string{userLine, roleLine} {
		if !strings.EqualFold(name, kind) {
			continue
		}
		err := s.addUser(kind, words)
		if err == nil && depth > 0 {
			c.included = append(c.included, append([]string{kind}, words...))
		}
		return err
	}
	if strings.EqualFold(name, renameLine) {
		return s.addRenaming(words)
	}
	if strings.EqualFold(name, moduleLine) {
		return s.addModule(words)
	}
	d := directiveNamed(name)
	if d == nil {
		return unknown(name, includeLine, userLine, roleLine, renameLine, moduleLine)
	}
	if d.many && len(words) == 1 && words[0] != "" {
		words = strings.Fields(words[0])
	}
	if d.accumulates && c.used[d.name] && len(words) > 0 && words[0] != "" {
		words = append(splitWords(d.show(s)), words...)
	}
	if err := d.set(s, words); err != nil {
		return err
	}
	note(d)
	return nil
}

// includeLine begins a line that names files to read in its place.
const includeLine = "include"

// userLine begins a line that defines a user. It is no directive: there may be many such lines, and only in files
// and command lines.
const userLine = "user"

// roleLine begins a line that defines a role of users, likewise.
const roleLine = "role"

// addUser adds a user or, of kind roleLine, a role; words are its name and rules. The server, which knows the commands,
// checks them when it starts.
func (s *Settings) addUser(kind string, words []string) error {
	if len(words) == 0 {
		return ErrWordCount
	}
	list, duplicate := &s.ACL.Users, ErrDuplicateUser
	if kind == roleLine {
		list, duplicate = &s.ACL.Roles, ErrDuplicateRole
	}
	for _, u := range *list {
		if u[0] == words[0] {
			return duplicate
		}
	}
	*list = append(slices.Clone(*list), words)
	return nil
}

// renameLine begins a line that gives a command another name. As for users, there may be many.
const renameLine = "rename-command"

// addRenaming adds the renaming of a command.
func (s *Settings) addRenaming(words []string) error {
	if len(words) != 2 {
		return ErrUnknownDirective
	}
	renamed := append(slices.Clone(s.Commands.Renamed), words)
	if err := command.NewTable().Rename(renamed); err != nil {
		return err
	}
	s.Commands.Renamed = renamed
	return nil
}

// moduleLine begins a line that loads a module.
const moduleLine = "loadmodule"

var errNoModules = errors.New("modules cannot be loaded; take the line out, and see docs/compatibility.md for what is built in")

// knownModules are prefixes of the file names of built-in modules, without "lib": the names of the files that Redis
// and Valkey ship, and of the modules.
var knownModules = []string{"redistimeseries", "redisbloom", "rebloom", "rejson", "redisearch", "valkey_bloom", "json", "search",
	"module-oss", "module-enterprise", "bf", "timeseries", "vectorset"}

// addModule records the module of a loadmodule line. A known module is no error: its commands exist or are unknown,
// with or without the line.
func (s *Settings) addModule(words []string) error {
	if len(words) == 0 {
		return ErrWordCount
	}
	name := strings.TrimPrefix(strings.ToLower(filepath.Base(words[0])), "lib")
	if !slices.ContainsFunc(knownModules, func(known string) bool { return strings.HasPrefix(name, known) }) {
		return errNoModules
	}
	s.Commands.Modules = append(slices.Clone(s.Commands.Modules), words[0])
	return nil
}

// include reads the files that a glob pattern names. A pattern may match nothing, but a file with a plain name must
// exist.
func (c *Config) include(pattern string, s *Settings, depth int) error {
	if depth >= maxIncludes {
		return errors.New("too many nested includes")
	}
	files := []string{pattern}
	if strings.ContainsAny(pattern, "*?[") {
		var err error
		if files, err = filepath.Glob(pattern); err != nil {
			return err
		}
	}
	for _, file := range files {
		if err := c.readFile(file, s, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func splitLines(content []byte) [][]byte {
	lines := bytes.Split(content, []byte("\n"))
	for i, line := range lines {
		lines[i] = bytes.Trim(line, " \t\r")
	}
	return lines
}

// lineWords returns the words of a line, none if it is empty or a comment.
func lineWords(line []byte) ([]string, error) {
	if len(line) == 0 || line[0] == '#' || line[0] == 0 {
		return nil, nil
	}
	args, err := resp.SplitArgs(line, nil)
	if err != nil {
		return nil, errors.New("Unbalanced quotes in configuration line")
	}
	words := make([]string, len(args))
	for i, a := range args {
		words[i] = string(a)
	}
	return words, nil
}

// OnRewrite makes Rewrite replace the lines that define users by those that the function returns. The function gets
// the users of included files, each a name and rules: these users must be left out, and the function fails if they
// have changed.
func (c *Config) OnRewrite(users func(set *Settings, included [][]string) (lines []string, err error)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.users = users
}

// Rewrite writes the directives that were set on the command line or while the server was running, and the users,
// into the configuration file, and leaves the rest of the file as it is. The file is replaced atomically.
func (c *Config) Rewrite() error { return c.rewrite(false) }

// RewriteAll is Rewrite for every directive, whether or not it was set.
func (c *Config) RewriteAll() error { return c.rewrite(true) }

// rewrite is Rewrite, or with all RewriteAll.
func (c *Config) rewrite(all bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.file == "" {
		return ErrNoConfigFile
	}
	content, err := os.ReadFile(c.file)
	if err != nil {
		return err
	}
	if content, err = c.rewritten(content, all); err != nil {
		return err
	}
	return ReplaceFile(c.file, content)
}

// rewritten returns the content of the file with the present values of changed directives: in place of the last line
// that sets them, or at the end if a later include might override them.
func (c *Config) rewritten(content []byte, all bool) ([]byte, error) {
	set := c.Get()
	wanted := func(d *directive) bool { return all || c.changed[d.name] }
	const heading = "# Generated by CONFIG REWRITE"
	lines := bytes.Split(bytes.TrimSuffix(content, []byte("\n")), []byte("\n"))
	if len(content) == 0 {
		lines = nil
	}
	owner := make([]*directive, len(lines)) // the changed directive that a line sets
	last := map[*directive]int{}
	hasHeading, includes := false, false
	isUser := map[int]bool{}
	for i, line := range lines {
		trimmed := bytes.Trim(line, " \t\r")
		hasHeading = hasHeading || string(trimmed) == heading
		words, err := lineWords(trimmed)
		if err != nil || len(words) == 0 {
			continue
		}
		if strings.EqualFold(words[0], includeLine) {
			clear(last)
			includes = true
		} else if c.users != nil && (strings.EqualFold(words[0], userLine) || strings.EqualFold(words[0], roleLine)) {
			isUser[i] = true
		} else if d := directiveNamed(words[0]); d != nil && wanted(d) {
			owner[i], last[d] = d, i
		}
	}
	var users []string
	if c.users != nil {
		var err error
		if users, err = c.users(set, c.included); err != nil {
			return nil, err
		}
	}
	var out bytes.Buffer
	write := func(d *directive) {
		if d.unwritten(set) && !includes {
			return
		}
		if d.noneLine != "" && d.hasDefault(set) {
			out.WriteString(d.noneLine + "\n")
			return
		}
		if d.accumulates && includes {
			out.WriteString(d.name + " \"\"\n") // so that the next lines do not add to values of an included file
		}
		out.WriteString(d.line(set))
	}
	for i, line := range lines {
		d := owner[i]
		if isUser[i] {
			// All users are written in place of the first one.
			for _, user := range users {
				out.WriteString(user + "\n")
			}
			users = nil
		} else if d == nil {
			out.Write(line)
			out.WriteByte('\n')
		} else if at, ok := last[d]; ok && at == i {
			write(d)
		}
	}
	for _, d := range directives() {
		if _, ok := last[d]; ok || !wanted(d) || d.unwritten(set) && !includes {
			continue
		}
		if !hasHeading {
			out.WriteString(heading + "\n")
			hasHeading = true
		}
		write(d)
	}
	if len(users) > 0 && !hasHeading {
		out.WriteString(heading + "\n")
	}
	for _, user := range users {
		out.WriteString(user + "\n")
	}
	return out.Bytes(), nil
}

// line returns the directive with its value as a line of a configuration file.
func (d *directive) line(s *Settings) string {
	words := []string{d.name}
	for _, w := range d.words(d.show(s)) {
		words = append(words, QuoteWord(w))
	}
	if len(words) == 1 {
		words = append(words, `""`)
	}
	return strings.Join(words, " ") + "\n"
}

// QuoteWord quotes a word so that resp.SplitArgs reads it back.
func QuoteWord(w string) string {
	plain := func(b byte) bool { return b > ' ' && b < 0x7f && b != '"' && b != '\'' && b != '\\' && b != '#' }
	if w != "" && !slices.ContainsFunc([]byte(w), func(b byte) bool { return !plain(b) }) {
		return w
	}
	var out strings.Builder
	out.WriteByte('"')
	for i := range len(w) {
		switch b := w[i]; {
		case b == '"' || b == '\\':
			out.WriteByte('\\')
			out.WriteByte(b)
		case b < ' ' || b >= 0x7f:
			fmt.Fprintf(&out, `\x%02x`, b)
		default:
			out.WriteByte(b)
		}
	}
	out.WriteByte('"')
	return out.String()
}

// ReplaceFile replaces the content of a file atomically, and keeps its permissions. Only the owner can access a new
// file.
func ReplaceFile(path string, content []byte) error {
	mode := os.FileMode(0o600)
	switch info, err := os.Stat(path); {
	case err == nil:
		mode = info.Mode().Perm()
	case !errors.Is(err, os.ErrNotExist):
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.tmp")
	if err != nil {
		return err
	}
	_, err = tmp.Write(content)
	err = errors.Join(err, tmp.Chmod(mode), tmp.Sync(), tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		os.Remove(tmp.Name())
	}
	return err
}
