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

// sql executes a statement on the cache of the request, or without one on the cache that the statement names.
func (r *request) sql() error {
	schema := r.String()
	page := pageOf(r.Int32())
	most := r.Int32()
	text := r.String()
	var args [][]byte
	for range r.Count(1) {
		args = append(args, r.Object())
	}
	r.Take(1 + 6 + 8) // the kind of statement, flags for distribution, and the timeout
	names := r.Bool()
	if err := r.end(); err != nil {
		return err
	}
	st, err := query.Parse(text)
	if err != nil {
		return &failure{ignite.StatusFailed, err.Error()}
	}
	command := []any{text, "ARGS", len(args), args, raw}
	reply, err := r.onCache("PERPER.QUERY", command...)
	if named := cmp.Or(st.Cache, schema); named != "" && failureStatus(err) == ignite.StatusNoCache {
		reply, err = r.run(append([]any{"PERPER.QUERY", named}, command...)...)
		if failureStatus(err) == ignite.StatusNoCache {
			if named, err = r.p.cacheOfTable(named, st.Table); err == nil {
				reply, err = r.run(append([]any{"PERPER.QUERY", named}, command...)...)
			}
		}
	}
	if err != nil {
		if text, ok := strings.CutPrefix(err.Error(), "BADQUERY "); ok {
			return &failure{ignite.StatusFailed, text}
		}
		return err
	}
	parts, err := reply.Slice()
	if err != nil || len(parts) != 2 {
		return errors.Join(errReply, err)
	}
	columns, err := parts[0].Texts()
	if err != nil {
		return err
	}
	rows, err := parts[1].Slice()
	if err != nil {
		return err
	}
	if most > 0 {
		rows = rows[:min(len(rows), int(most))]
	}
	return r.open(&answered{rows, page, len(reply.Encoded())}, func() {
		r.appendInt32(len(columns))
		if names {
			for _, name := range columns {
				r.out = binary.AppendString(r.out, name)
			}
		}
	})
}

// publicSchema is the schema of statements that name none.
const publicSchema = "PUBLIC"

// cacheOfTable returns the name of the cache whose configuration has a table in a schema.
func (p *peer) cacheOfTable(schema, table string) (name string, err error) {
	reply, err := p.do("PERPER.CACHES")
	if err != nil {
		return "", err
	}
	names, err := reply.Texts()
	if err != nil {
		return "", err
	}
	known := strings.EqualFold(schema, publicSchema)
	for _, name := range names {
		config, _, err := p.configOf(binary.Hash(name))
		if err != nil || !strings.EqualFold(config.Schema(), schema) {
			continue // an unreadable configuration has no tables
		}
		known = true
		for _, e := range config.Entities() {
			if strings.EqualFold(e.Table, table) {
				return name, nil
			}
		}
	}
	if !known {
		return "", failed("Failed to set schema for DB connection: there is no schema " + strconv.Quote(schema))
	}
	return "", failed("Table " + strconv.Quote(table) + " not found")
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
