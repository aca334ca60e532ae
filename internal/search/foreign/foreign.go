// Package foreign reads and writes the data that Redis's query engine, a module, stores beside the keys in RDB
// files: definitions of indexes with their aliases and synonyms, and dictionaries. It converts them from and to the
// commands that make them here. The contents of indexes are in no file of either side.
//
// foreign.go reads a module's data, index.go an index and field.go its fields; write.go writes them.
package foreign

import (
	"fmt"

	"github.com/atomredis/atomredis/persist/rdb"
)

// The module's types, and the versions of their forms. Version 17 is of RediSearch 2.0, 24 of 8.0, 25 of 8.2, 26 of 8.6 and 27 of 8.10.
const (
	indexType      = "ft_index0"
	dictionaryType = "scdtype00"

	oldestIndex      = 17
	newestIndex      = 27
	newestDictionary = 1
	versionPaths     = 18
	versionBlobs     = 20
	versionMulti     = 21
	versionTiered    = 22
	versionShapes    = 23
	versionIndexAll  = 24
	versionSVS       = 25
	versionRerank    = 27

	maxFields = 1 << 10
)

// Read returns the commands that make the data of a module. leftOut has an error for each part that cannot be made.
// err is the error of m.
func Read(m *rdb.Module) (commands [][]string, leftOut []error, err error) {
	switch {
	case m.Name == indexType && m.Version >= oldestIndex && m.Version <= newestIndex:
		for n := m.Uint(); n > 0 && m.Err() == nil; n-- {
			r := reader{Module: m}
			made, refused := r.index()
			if refused != nil {
				leftOut = append(leftOut, refused)
			}
			commands = append(commands, made...)
		}
	case m.Name == dictionaryType && m.Version <= newestDictionary:
		if m.AfterKeys { // the part before the keys is empty
			commands = dictionaries(m)
		}
	default:
		leftOut = append(leftOut, fmt.Errorf("data of the module type %q, version %d: not known", m.Name, m.Version))
	}
	return commands, leftOut, m.Err()
}

// dictionaries reads the dictionaries for spelling.
func dictionaries(m *rdb.Module) (commands [][]string) {
	for n := m.Uint(); n > 0 && m.Err() == nil; n-- {
		command := []string{"FT.DICTADD", zeroEnded(m)}
		for words := m.Uint(); words > 0 && m.Err() == nil; words-- {
			command = append(command, zeroEnded(m))
			m.Double() // its score, which is always 1
		}
		if len(command) > 2 {
			commands = append(commands, command)
		}
	}
	return commands
}

// zeroEnded reads a zero-terminated text.
func zeroEnded(m *rdb.Module) string {
	text := m.Text()
	if m.Err() != nil {
		return ""
	}
	if text == "" || text[len(text)-1] != 0 {
		m.Corrupt("the module type %q has a text without its last byte", m.Name)
		return ""
	}
	return text[:len(text)-1]
}

// reader reads an index.
type reader struct {
	*rdb.Module
	name    string
	refused error
}

// refuse records why the index cannot be made; the first reason counts.
func (r *reader) refuse(format string, args ...any) {
	if r.refused == nil {
		r.refused = fmt.Errorf("index %q: %s", r.name, fmt.Sprintf(format, args...))
	}
}

// text reads a zero-terminated text.
func (r *reader) text() string { return zeroEnded(r.Module) }

// optional reads a text that may be missing, as option and argument.
func (r *reader) optional(option string) []string {
	if r.Uint() == 0 {
		return nil
	}
	return []string{option, r.text()}
}
