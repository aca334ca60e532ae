package perperignite

import (
	"cmp"
	le "encoding/binary"
	"errors"
	"strconv"
	"strings"

	"github.com/atomredis/atomredis/internal/protocols/perper/binary"
	"github.com/atomredis/atomredis/internal/protocols/perper/query"
	"github.com/atomredis/atomredis/internal/wire/ignite"
	"github.com/atomredis/atomredis/resp"
)

// answered is a cursor over the rows of a statement.
type answered struct {
	rows []resp.Reply
	page int
	size int // bytes of the rows
}

// cost implements cursor.
func (a *answered) cost() int { return a.size }

// changed is the cursor over the only row of a statement that changes something: how many rows it has changed.
type changed int64

// cost implements cursor.
func (changed) cost() int { return 0 }

// next implements cursor.
func (n changed) next(r *request) (more bool, err error) {
	r.appendInt32(1)
	r.out = binary.AppendLong(r.out, int64(n))
	r.appendBool(false)
	return false, nil
}

// changedColumn is the name of the column of changed.
const changedColumn = "UPDATED"

// The kinds of statements that a client may demand.
const (
	demandSelect = 1
	demandUpdate = 2
)

// sql executes a statement.
func (r *request) sql() error {
	schema := r.String()
	page := pageOf(r.Int32())
	most := r.Int32()
	text := r.String()
	args := r.objects()
	demand := r.Byte()
	r.Take(6 + 8) // flags for distribution, and the timeout
	names := r.Bool()
	if err := r.end(); err != nil {
		return err
	}
	st, err := query.Parse(text)
	if err != nil {
		return failed(err.Error())
	}
	if demand == demandSelect && st.Kind != query.Select || demand == demandUpdate && st.Kind == query.Select {
		return failed("Given statement type does not match that declared by the client")
	}
	if st.Kind != query.Select {
		if r.p.door.state(r.p.conn.Context()) == stateReadOnly {
			return failed("Failed to execute the statement (cluster is in read-only mode)")
		}
		n, err := r.change(st, cmp.Or(st.Cache, schema), text, args)
		if err != nil {
			return err
		}
		return r.open(n, func() { r.appendColumns([]string{changedColumn}, names) })
	}
	a, columns, err := r.query(st, cmp.Or(st.Cache, schema), text, args)
	if err != nil {
		return err
	}
	if a.page = page; most > 0 {
		a.rows = a.rows[:min(len(a.rows), int(most))]
	}
	return r.open(a, func() { r.appendColumns(columns, names) })
}

// objects reads a number of objects.
func (r *request) objects() (objects [][]byte) {
	for range r.Count(1) {
		objects = append(objects, r.Object())
	}
	return objects
}

// appendColumns appends the columns of a result, with their names if a client wants these.
func (r *request) appendColumns(columns []string, names bool) {
	r.appendInt32(len(columns))
	if names {
		for _, name := range columns {
			r.out = binary.AppendString(r.out, name)
		}
	}
}

// query executes a SELECT.
func (r *request) query(st *query.Statement, schema, text string, args [][]byte) (a *answered, columns []string, err error) {
	reply, err := r.onTable(st, schema, "PERPER.QUERY", text, "ARGS", len(args), args, raw)
	if err != nil {
		return nil, nil, err
	}
	parts, err := reply.Slice()
	if err != nil || len(parts) != 2 {
		return nil, nil, errors.Join(errReply, err)
	}
	if columns, err = parts[0].Texts(); err != nil {
		return nil, nil, err
	}
	rows, err := parts[1].Slice()
	return &answered{rows: rows, size: len(reply.Encoded())}, columns, err
}

// sqlOfType executes a query for keys and values: what follows the table, or only a condition.
func (r *request) sqlOfType() error {
	table, rest := r.String(), strings.TrimSpace(r.String())
	args := r.objects()
	r.Take(3) // flags for distribution
	page := pageOf(r.Int32())
	r.Take(8) // the timeout
	if err := r.end(); err != nil {
		return err
	}
	text, err := withKeys(table, rest)
	if err != nil {
		return err
	}
	st, err := query.Parse(text)
	if err != nil {
		return failed(err.Error())
	}
	a, _, err := r.query(st, "", text, args)
	if err != nil {
		return err
	}
	a.page = page
	return r.open(a, func() {})
}

// withKeys returns the statement for the keys and values of a table's rows: rest is a statement that selects all columns, what
// follows the table in one, or a condition.
func withKeys(table, rest string) (text string, err error) {
	const columns = "SELECT _KEY, _VAL "
	from := `FROM "` + strings.ReplaceAll(table, `"`, `""`) + `" `
	word, after, _ := strings.Cut(rest, " ")
	switch strings.ToUpper(word) {
	case "SELECT":
		after, all := strings.CutPrefix(strings.TrimSpace(after), "*")
		if !all {
			return "", failed("Invalid query (query must begin with an asterisk): " + rest)
		}
		return columns + after, nil
	case "", "AS", "WHERE", "ORDER", "LIMIT", "OFFSET":
		return columns + from + rest, nil
	case "FROM":
		return columns + rest, nil
	}
	return columns + from + "WHERE " + rest, nil
}

// change executes a statement that changes rows or tables, and returns the number of rows.
func (r *request) change(st *query.Statement, schema, text string, args [][]byte) (changed, error) {
	switch {
	case st.Kind.Modifies():
		reply, err := r.onTable(st, schema, "PERPER.MODIFY", text, "ARGS", len(args), args, raw)
		if err != nil {
			return 0, err
		}
		n, err := reply.Int()
		return changed(n), err
	case len(args) > 0:
		return 0, failed("The statement has no arguments")
	case st.Kind == query.CreateTable:
		return 0, r.createTable(st, schema, text)
	}
	err := r.alter(st, cmp.Or(schema, query.PublicSchema), text)
	missing := errors.As(err, new(query.ErrNoTable)) || failureStatus(err) == ignite.StatusNoCache
	switch {
	case missing && st.Optional:
		return 0, nil
	case missing && st.Kind == query.DropIndex:
		return 0, failed("Index doesn't exist: " + st.Index)
	case missing:
		return 0, failed("Table doesn't exist: " + st.Table)
	}
	return 0, err
}

// alter executes a statement on a table that exists, with everything that belongs to it.
func (r *request) alter(st *query.Statement, schema, text string) error {
	if r.cache != 0 {
		_, err := r.onCache("PERPER.DEFINE", text)
		if !missesTable(err) {
			return unquoted(err)
		}
		if schema, err = r.schemaOfCache(); err != nil {
			return err
		}
	}
	name, err := r.p.cacheOfTable(schema, st)
	if err != nil {
		return err
	}
	_, err = r.run("PERPER.DEFINE", name, text)
	return unquoted(err)
}

// createTable creates a table, whose name must be new in the schema.
func (r *request) createTable(st *query.Statement, schema, text string) error {
	if schema != "" && !strings.EqualFold(schema, query.PublicSchema) {
		return failed("CREATE TABLE is only supported in the schema " + query.PublicSchema)
	}
	_, err := r.p.cacheOfTable(query.PublicSchema, st)
	switch {
	case err == nil && st.Optional:
		return nil
	case err == nil:
		return failed("Table already exists: " + st.Table)
	case !errors.As(err, new(query.ErrNoTable)):
		return err
	}
	_, err = r.run("PERPER.DEFINE", st.CacheName(), text)
	return unquoted(err)
}

// schemaOfCache returns the schema of the request's cache: a statement finds the tables of all caches in it.
func (r *request) schemaOfCache() (string, error) {
	config, name, err := r.p.configOf(r.cache)
	if err != nil {
		return "", err
	}
	return cmp.Or(config.Schema(), name), nil
}

// onTable executes a command on the cache of the request, or else on the cache that has the table of a statement. The error is
// query.ErrNoTable if no cache has it.
func (r *request) onTable(st *query.Statement, schema, command string, args ...any) (resp.Reply, error) {
	if r.cache != 0 {
		reply, err := r.onCache(command, args...)
		switch missing := missesTable(err); {
		case !missing && (schema == "" || failureStatus(err) != ignite.StatusNoCache):
			return reply, unquoted(err)
		case missing && schema == "":
			if schema, err = r.schemaOfCache(); err != nil {
				return reply, err
			}
		}
	}
	schema = cmp.Or(schema, query.PublicSchema)
	names := []string{schema} // a cache is a schema
	if strings.EqualFold(schema, query.PublicSchema) {
		names[0] = st.CacheName()
	}
	key := strings.ToUpper(schema + "." + st.Table)
	if known, ok := r.p.door.tables.Load(key); ok {
		names = append([]string{known.(string)}, names...)
	}
	for _, name := range names {
		reply, err := r.run(append([]any{command, name}, args...)...)
		if failureStatus(err) != ignite.StatusNoCache && !missesTable(err) {
			return reply, unquoted(err)
		}
	}
	name, err := r.p.cacheOfTable(schema, st)
	if err != nil {
		r.p.door.tables.Delete(key)
		return resp.Reply{}, err
	}
	r.p.door.tables.Store(key, name)
	reply, err := r.run(append([]any{command, name}, args...)...)
	return reply, unquoted(err)
}

// unquoted returns the error of a command as a failure with only the message if the statement is wrong.
func unquoted(err error) error {
	if err == nil {
		return nil
	}
	if text, ok := strings.CutPrefix(err.Error(), "BADQUERY "); ok {
		return failed(text)
	}
	return err
}

// missesTable reports whether an error says that a cache has no such table.
func missesTable(err error) bool {
	if err == nil {
		return false
	}
	text, ok := strings.CutPrefix(err.Error(), "BADQUERY ")
	return ok && (strings.HasPrefix(text, "Table ") && strings.HasSuffix(text, " not found") || text == "the statement asks another cache")
}

// cacheOfTable returns the name of the cache whose configuration has the table or the index of a statement in a schema.
func (p *peer) cacheOfTable(schema string, st *query.Statement) (name string, err error) {
	reply, err := p.do("PERPER.CACHES")
	if err != nil {
		return "", err
	}
	names, err := reply.Texts()
	if err != nil {
		return "", err
	}
	known := strings.EqualFold(schema, query.PublicSchema)
	for _, name := range names {
		config, _, err := p.configOf(binary.Hash(name))
		if err != nil || !strings.EqualFold(config.Schema(), schema) {
			continue // an unreadable configuration has no tables
		}
		known = true
		for _, e := range config.Entities() {
			if st.Kind == query.DropIndex && e.HasIndex(st.Index) || st.Kind != query.DropIndex && strings.EqualFold(e.Table, st.Table) {
				return name, nil
			}
		}
	}
	if !known {
		return "", failed("Failed to set schema for DB connection: there is no schema " + strconv.Quote(schema))
	}
	return "", query.ErrNoTable{Table: st.Table}
}

// errReply says that a command's reply has an unexpected form.
var errReply = errors.New("unexpected reply")

// next implements cursor.
func (a *answered) next(r *request) (more bool, err error) {
	at, n := len(r.out), 0
	r.appendInt32(0)
	for ; n < a.page && len(a.rows) > 0 && len(r.out)-at < maxPageBytes; n++ {
		cells, err := a.rows[0].Slice()
		if err != nil {
			return false, err
		}
		for _, cell := range cells {
			if err := r.object(cell); err != nil {
				return false, err
			}
		}
		a.rows = a.rows[1:]
	}
	le.LittleEndian.PutUint32(r.out[at:], uint32(n))
	more = len(a.rows) > 0
	r.appendBool(more)
	return more, nil
}
