package transfer

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/atomredis/atomredis/internal/config"
	"github.com/atomredis/atomredis/persist/disk"
	"github.com/atomredis/atomredis/resp"
)

// This file finds the files of a Redis: in a data directory, and as parts that a manifest names.

const manifestTail = ".manifest"

// redisFiles are the names of Redis's files in a data directory.
type redisFiles struct{ rdb, aofDir, aof string }

var defaultFiles = redisFiles{"dump.rdb", "appendonlydir", "appendonly.aof"}

// Find returns the path of the file of a Redis in the data directory of a configuration, "" if there is none.
func Find(fs disk.FS, set *config.Settings) (string, error) {
	return redisFiles{set.Files.DBFilename, set.Files.AppendDirname, set.Files.AppendFilename}.in(fs, set.Files.Dir, set.Persistence.AppendOnly)
}

// in returns the path of the file of a Redis in a directory, "" if there is none. It prefers an append-only file to
// an RDB file, unless the configuration turns append-only files off. An entry of another kind with the name of a
// file, or a folder of parts without their manifest, is an error.
func (n redisFiles) in(fs disk.FS, dir string, appendOnly bool) (string, error) {
	parts := fs.PathJoin(dir, n.aofDir)
	aof := []string{fs.PathJoin(parts, n.aof+manifestTail), fs.PathJoin(dir, n.aof)}
	candidates := append(aof, fs.PathJoin(dir, n.rdb))
	if !appendOnly {
		candidates = append([]string{fs.PathJoin(dir, n.rdb)}, aof...)
	}
	for _, name := range candidates {
		info, err := fs.Stat(name)
		switch {
		case errors.Is(err, os.ErrNotExist):
		case err != nil:
			return "", err
		case info.IsDir():
			return "", fmt.Errorf("%s is a directory, and should be a file", name)
		default:
			return name, nil
		}
		if name == aof[0] {
			if err := n.orphans(fs, parts); err != nil {
				return "", err
			}
		}
	}
	return "", nil
}

// orphans returns an error if a directory has parts of an append-only file but no manifest of that name.
func (n redisFiles) orphans(fs disk.FS, parts string) error {
	names, err := fs.List(parts)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, name := range names {
		if strings.HasPrefix(name, n.aof+".") {
			return fmt.Errorf("%s has parts of an append-only file, but %s%s is missing", parts, n.aof, manifestTail)
		}
	}
	return nil
}

// path reads a file of any kind, or a directory with such files.
func (l *load) path(name string) error {
	info, err := l.files.FS.Stat(name)
	if err != nil {
		return err
	}
	if info.IsDir() {
		if name, err = l.inDirectory(name); err != nil {
			return err
		}
	}
	if strings.HasSuffix(name, manifestTail) {
		return l.manifest(name)
	}
	return l.file(name, true)
}

// inDirectory returns the path of the file to read in a directory, which is the data directory of a Redis or has an
// append-only file in parts.
func (l *load) inDirectory(dir string) (string, error) {
	if name, err := defaultFiles.in(l.files.FS, dir, true); name != "" || err != nil {
		return name, err
	}
	names, err := l.files.FS.List(dir)
	if err != nil {
		return "", err
	}
	names = slices.DeleteFunc(names, func(name string) bool { return !strings.HasSuffix(name, manifestTail) })
	switch len(names) {
	case 0:
		return "", errors.New("there is neither an RDB file nor an append-only file in the directory")
	case 1:
		return l.files.FS.PathJoin(dir, names[0]), nil
	}
	return "", fmt.Errorf("several append-only files in the directory: %s", strings.Join(names, ", "))
}

// aofPart is a line of a manifest.
type aofPart struct {
	name string
	kind byte // b for the base, i for an increment, h for a part that is not needed any more
	seq  int64
}

// manifest reads the parts of an append-only file.
func (l *load) manifest(name string) error {
	b, err := l.readSmall(name)
	if err != nil {
		return err
	}
	parts, err := parseManifest(b)
	if err != nil {
		return err
	}
	for _, p := range parts {
		// The names are relative to the manifest. A missing part is detected when it is opened.
		if info, err := l.files.FS.Stat(l.files.FS.PathJoin(l.files.FS.PathDir(name), p.name)); err == nil {
			l.total += info.Size()
		}
	}
	for i, p := range parts {
		part := l.files.FS.PathJoin(l.files.FS.PathDir(name), p.name)
		if err := l.file(part, i == len(parts)-1); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		l.preamble = true
	}
	return nil
}

// maxManifest limits the length of a manifest in bytes; each line names a file of the same directory.
const maxManifest = 1 << 20

func (l *load) readSmall(name string) ([]byte, error) {
	f, err := l.files.FS.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxManifest+1))
	if err == nil && len(b) > maxManifest {
		err = errors.New("the manifest is too long")
	}
	return b, err
}

// parseManifest returns the parts to be read, in their order. A line is pairs of words: file NAME seq NUMBER type
// KIND.
func parseManifest(b []byte) ([]aofPart, error) {
	var parts []aofPart
	for i, line := range bytes.Split(b, []byte("\n")) {
		if line = bytes.TrimSpace(line); len(line) == 0 || line[0] == '#' {
			continue
		}
		malformed := fmt.Errorf("line %d of the manifest is malformed", i+1)
		words, err := resp.SplitArgs(line, nil) // names may be in quotes, as in a command
		if err != nil || len(words)%2 != 0 {
			return nil, malformed
		}
		var p aofPart
		for j := 0; j < len(words); j += 2 {
			value := string(words[j+1])
			if value == "" {
				return nil, malformed
			}
			switch string(words[j]) {
			case "file":
				p.name = value
			case "seq":
				p.seq, err = strconv.ParseInt(value, 10, 64)
			case "type":
				p.kind = value[0]
			}
			if err != nil {
				return nil, malformed
			}
		}
		if p.name == "" || p.name != path.Base(p.name) || p.kind == 0 {
			return nil, fmt.Errorf("line %d of the manifest does not name a file of the same directory", i+1)
		}
		if p.kind != 'h' {
			parts = append(parts, p)
		}
	}
	slices.SortStableFunc(parts, func(a, b aofPart) int {
		if a.kind != b.kind {
			return int(a.kind) - int(b.kind) // the base first
		}
		return int(min(max(a.seq-b.seq, -1), 1))
	})
	return parts, nil
}
