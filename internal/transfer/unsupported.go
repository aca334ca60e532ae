package transfer

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/atomredis/atomredis/persist/disk"
	"github.com/atomredis/atomredis/persist/rdb"
)

// This file handles values that an import cannot store, because their types belong to modules that do not exist here.

// Unsupported counts the values in a file whose types do not exist here.
type Unsupported struct {
	Keys   int
	ByType map[string]int // number of keys
	Report string         // the file with a line for each key, "" if there is none
}

// String returns the number of keys of each type, the most frequent first.
func (u *Unsupported) String() string {
	types := slices.SortedFunc(maps.Keys(u.ByType), func(a, b string) int {
		return cmp.Or(u.ByType[b]-u.ByType[a], strings.Compare(a, b))
	})
	for i, t := range types {
		types[i] = fmt.Sprintf("%d of %s", u.ByType[t], t)
	}
	return strings.Join(types, ", ")
}

func (u *Unsupported) add(typ string) {
	if u.ByType == nil {
		u.ByType = map[string]int{}
	}
	u.Keys++
	u.ByType[typ]++
}

// UnsupportedError is the error for a file with such values.
type UnsupportedError struct{ Unsupported }

// Error implements error.
func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("%d keys have values of types that do not exist here (%s): import-skip-unsupported yes leaves them out",
		e.Keys, &e.Unsupported)
}

// skipsUnsupported reports whether values of types that do not exist here are left out.
func (im *Importer) skipsUnsupported() bool { return im.files.Config.Get().Files.SkipUnsupported }

// maxLogged is the number of omitted keys that the log names. The report names all.
const maxLogged = 100

// typeName returns the name of a value's type in reports.
func typeName(t *rdb.UnknownType) string { return fmt.Sprintf("%s (version %d)", t.Module, t.Version) }

// leaveOutKey leaves out a key. If the import must refuse the file, the rest is only read to count such keys.
func (l *load) leaveOutKey(db int, key []byte, typ string) error {
	l.unsupported.add(typ)
	switch {
	case l.found != nil:
		l.found(db, key, typ)
		return nil
	case !l.skip:
		l.look = true
	case l.report == nil:
		var err error
		if l.report, err = l.newReport(); err != nil {
			return err
		}
		l.unsupported.Report = l.report.name
	}
	if l.unsupported.Keys <= maxLogged {
		l.files.Log.Warn("a value of a type that does not exist here is left out", "key", strconv.Quote(string(key)), "database", db,
			"type", typ)
	}
	if l.report != nil {
		return l.report.add(db, key, typ)
	}
	return nil
}

// reportName is the name of the report in the directory of the data.
const reportName = "import-report.tsv"

// report is a file with a line for each omitted key: the database, the type and the quoted key, separated by tabs.
type report struct {
	name string
	fs   disk.FS
	file disk.File
	w    *bufio.Writer
}

func (l *load) newReport() (*report, error) {
	fs, dir := l.files.FS, l.files.Config.Get().Files.Dir
	if err := fs.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	name := fs.PathJoin(dir, reportName)
	file, err := fs.Create(name)
	if err != nil {
		return nil, err
	}
	r := &report{name, fs, file, bufio.NewWriter(file)}
	_, err = r.w.WriteString("database\ttype\tkey\n")
	return r, err
}

func (r *report) add(db int, key []byte, typ string) error {
	_, err := fmt.Fprintf(r.w, "%d\t%s\t%s\n", db, typ, strconv.Quote(string(key)))
	return err
}

// endReport completes the report, if there is one, or removes it if the import has failed.
func (l *load) endReport(failed error) error {
	r := l.report
	if r == nil {
		return failed
	}
	l.report = nil
	err := r.w.Flush()
	if err == nil {
		err = r.file.Sync()
	}
	if err = errors.Join(failed, err, r.file.Close()); err != nil {
		_ = r.fs.Remove(r.name)
		return err
	}
	l.files.Log.Warn("values of types that do not exist here are left out", "keys", l.unsupported.Keys, "types",
		l.unsupported.String(), "report", r.name)
	return nil
}

// refusal returns the error if the file has values that the import may not leave out.
func (l *load) refusal() error {
	if l.unsupported.Keys > 0 && !l.skip && l.found == nil {
		return &UnsupportedError{l.unsupported}
	}
	return nil
}

// Checked is the result of a check of a file.
type Checked struct {
	Keys, Expired, Functions, Commands int
	Unsupported                        Unsupported
	LeftOut                            string // see Importer.LeftOut
}

// Check reads a path as Import does, and stores nothing. It decodes values, and looks up commands without executing
// them. It calls found with each key whose value has a type that does not exist here.
func (im *Importer) Check(name string, found func(db int, key []byte, typ string)) (*Checked, error) {
	l := load{Importer: im, look: true, found: found, by: im.replayer()}
	defer l.unlock()
	if err := l.path(name); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return &Checked{l.keys, l.expired, l.functions, l.commands, l.unsupported, l.leftOut}, nil
}
