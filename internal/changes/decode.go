package changes

import (
	"bytes"
	"slices"
	"strconv"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/glob"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/persist/journal"
	"github.com/atomredis/atomredis/resp"
)

// AnyDatabase is the value of Filter.DB that lets all databases pass.
const AnyDatabase = -1

// Filter says which commands of the changes a reader gets, and in which form.
type Filter struct {
	Match [][]byte      // patterns of keys: a command passes with a key that matches one of them
	Types []engine.Type // a command for values of other types does not pass; nil lets all pass
	DB    int           // the database, or AnyDatabase
	Keys  bool          // names of commands and their keys only
	// MayRead reports whether the reader may read a key of a database. MayReadAll reports whether it may read everything, as
	// is needed for commands without keys. Rights returns what stands for the rights on which they decide: another value
	// says that these may have changed. All are called while a page is read.
	MayRead    func(db int, key []byte) bool
	MayReadAll func() bool
	Rights     func() any
}

// all reports whether all commands pass as they are.
func (f *Filter) all() bool {
	return f.Match == nil && f.Types == nil && f.DB == AnyDatabase && !f.Keys && f.MayReadAll()
}

// decoder encodes records as changes of a reply. One goroutine may use it.
type decoder struct {
	table  *command.Table
	filter *Filter

	parser resp.Parser
	args   [][]byte
	body   []byte // the commands of a change
	n      int    // their number
	keys   [][]byte
	dbs    []int
}

// encode adds a record to a reply; it reports false if nothing of it passes.
func (d *decoder) encode(w *resp.Writer, e *journal.Entry) bool {
	d.parser.MaxBulk = resp.AnyBulk
	d.begin()
	db := 0
	for rest := e.Commands; len(rest) > 0; {
		args, size, err := d.parser.Next(rest, d.args[:0])
		if err != nil || size == 0 || len(args) == 0 {
			break // the server itself never writes this
		}
		d.args = args
		encoded := rest[:size]
		rest = rest[size:]
		if n, ok := selects(args); ok {
			db = n
		} else {
			d.add(args, db, encoded)
		}
	}
	return d.end(w, Position{Place: e.After}, e.Now)
}

// selects reports whether a command is SELECT, and returns its database.
func selects(args [][]byte) (db int, ok bool) {
	if len(args) != 2 || !command.EqualFold(args[0], "select") {
		return 0, false
	}
	db, _ = strconv.Atoi(string(args[1]))
	return db, true
}

// begin begins a change.
func (d *decoder) begin() { d.body, d.n = d.body[:0], 0 }

// add adds a command to the change if it passes.
func (d *decoder) add(args [][]byte, db int, encoded []byte) {
	switch {
	case command.EqualFold(args[0], "replconf") || command.EqualFold(args[0], "changes"):
		return // notes of the journal, and positions of readers
	case d.filter.all():
		d.raw(len(args), db, encoded)
	case !d.filtered(args, db, encoded):
		return
	}
	d.n++
}

// end adds the change to a reply; it reports false if nothing of it passes.
func (d *decoder) end(w *resp.Writer, after Position, now int64) bool {
	if d.n == 0 {
		return false
	}
	w.Array(3)
	w.BulkString(after.String())
	w.Int(now)
	w.Array(d.n)
	w.Raw(d.body)
	if cap(d.body) > maxKept {
		d.body = nil
	}
	return true
}

// maxKept is the largest buffer in bytes that is kept for the next record.
const maxKept = 1 << 20

// raw adds a command as it is in the journal: only the length of the array and the database are new.
func (d *decoder) raw(n, db int, encoded []byte) {
	d.head(n+1, db)
	d.body = append(d.body, encoded[bytes.IndexByte(encoded, '\n')+1:]...)
}

// head begins a command of n elements, the database first.
func (d *decoder) head(n, db int) {
	w := resp.Writer{Buf: d.body}
	w.Array(n)
	w.Int(int64(db))
	d.body = w.Buf
}

// filtered adds a command if it passes.
func (d *decoder) filtered(args [][]byte, db int, encoded []byte) bool {
	f := d.filter
	cmd, _ := d.table.LookupOriginal(args)
	if cmd == nil {
		return false // an unknown command may concern every key
	}
	d.analyse(cmd, args, db)
	if !f.ofType(cmd) || !d.matches(cmd) || !d.allowed(cmd) {
		return false
	}
	if !f.Keys {
		d.raw(len(args), db, encoded)
		return true
	}
	d.head(2+len(d.keys), db)
	w := resp.Writer{Buf: d.body}
	w.Bulk(args[0])
	for _, key := range d.keys {
		w.Bulk(key)
	}
	d.body = w.Buf
	return true
}

// analyse finds the keys of a command, and the databases that it concerns.
func (d *decoder) analyse(cmd *command.Command, args [][]byte, db int) {
	d.keys, d.dbs = d.keys[:0], append(d.dbs[:0], db)
	cmd.EachKey(args, func(i int, spec *command.KeySpec) bool {
		for _, flag := range cmd.UseOfKey(spec, args) {
			if flag == "not_key" {
				return true
			}
		}
		d.keys = append(d.keys, args[i])
		return true
	})
	if cmd.DerivedKeys != nil {
		cmd.DerivedKeys(args, func(key []byte) { d.keys = append(d.keys, bytes.Clone(key)) })
	}
	if cmd.Databases != nil {
		for _, i := range cmd.Databases(args) {
			if i < len(args) {
				if n, ok := resp.ParseInt(args[i]); ok {
					d.dbs = append(d.dbs, int(n))
				}
			}
		}
	}
}

// matches reports whether the analysed command concerns the reader's database and keys.
func (d *decoder) matches(cmd *command.Command) bool {
	f := d.filter
	if f.DB != AnyDatabase && !cmd.AllDatabases && cmd.ACL&command.CatScripting == 0 && !slices.Contains(d.dbs, f.DB) {
		return false
	}
	if f.Match == nil || len(d.keys) == 0 {
		return true
	}
	for _, key := range d.keys {
		for _, pattern := range f.Match {
			if glob.Match(pattern, key, false) {
				return true
			}
		}
	}
	return false
}

// allowed reports whether the reader may see the analysed command.
func (d *decoder) allowed(cmd *command.Command) bool {
	f := d.filter
	if f.MayReadAll() {
		return true
	}
	if len(d.keys) == 0 || cmd.AllDatabases || cmd.Flags&(command.TouchesArbitraryKeys|command.WholeKeyspace) != 0 {
		return false
	}
	for _, db := range d.dbs {
		for _, key := range d.keys {
			if !f.MayRead(db, key) {
				return false
			}
		}
	}
	return true
}

// typeGroups are the groups of the commands that change values of each type.
var typeGroups = map[engine.Type][]string{
	engine.String: {"string", "bitmap", "hyperloglog"}, engine.List: {"list"}, engine.Set: {"set"}, engine.ZSet: {"sorted_set", "geo"},
	engine.Hash: {"hash"}, engine.Stream: {"stream"}, engine.Bloom: {"bf"}, engine.JSON: {"json"}, engine.Cuckoo: {"cf"},
	engine.CountMin: {"cms"}, engine.TopK: {"topk"}, engine.TDigest: {"tdigest"}, engine.TimeSeries: {"timeseries"}, engine.Array: {"array"},
	engine.VectorSet: {"vector_set"}, engine.Suggestions: {"search"}, engine.Bitmap: {"bitmap"},
	engine.PathHash: {"pathhash"},
}

// ofType reports whether a command is for values of the reader's types, or of any type.
func (f *Filter) ofType(cmd *command.Command) bool {
	if f.Types == nil {
		return true
	}
	group := cmd.Group
	if cmd.Parent != nil {
		group = cmd.Parent.Group
	}
	typed := false
	for t, groups := range typeGroups {
		if slices.Contains(groups, group) {
			if typed = true; slices.Contains(f.Types, t) {
				return true
			}
		}
	}
	return !typed
}
