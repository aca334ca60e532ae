package perper

import (
	"errors"
	"fmt"
	"math"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/protocols/internal/effect"
	"github.com/atomredis/atomredis/internal/protocols/perper/binary"
	"github.com/atomredis/atomredis/internal/protocols/perper/query"
)

// errOtherCache says that a statement names another cache.
var errOtherCache = errors.New("the statement asks another cache")

// defineKeysOf is queryKeysOf for a command that creates or destroys a cache.
func defineKeysOf(args [][]byte, fn func(key []byte)) {
	queryKeysOf(args, fn)
	fn(cachesKey)
}

// queryKeysOf is keysOf for a command that needs the types even if its reply does not show them.
func queryKeysOf(args [][]byte, fn func(key []byte)) {
	keysOf(args, fn)
	fn(typesKey)
}

// ask replies with the names of the columns, and the rows.
func ask(c *command.Ctx) {
	a, st, ok := readStatement(c)
	if !ok {
		return
	}
	if st.Kind != query.Select {
		badQuery(c, errNotAsked)
		return
	}
	rows, columns, err := a.query(st)
	if err != nil {
		badQuery(c, err)
		return
	}
	c.W.Array(2)
	c.W.Array(len(columns))
	for _, name := range columns {
		c.W.BulkString(name)
	}
	c.W.Array(len(rows))
	for _, row := range rows {
		c.W.Array(len(row))
		for _, cell := range row {
			a.show(c.W, cell)
		}
	}
}

// The errors of statements that need another command.
var (
	errNotAsked   = errors.New("the statement is no SELECT: PERPER.MODIFY executes INSERT, MERGE, UPDATE and DELETE")
	errNotModify  = errors.New("the statement is no INSERT, MERGE, UPDATE or DELETE")
	errNotDefined = errors.New("the statement is no CREATE, DROP or ALTER")
)

func badQuery(c *command.Ctx, err error) { c.Err(command.Error("BADQUERY " + err.Error())) }

// readStatement reads a cache that must exist, a statement, and objects as its arguments. On an error it writes the
// reply and ok is false.
func readStatement(c *command.Ctx) (a arguments, st *query.Statement, ok bool) {
	from, n := 3, 0
	if len(c.Args) > 4 && command.EqualFold(c.Args[3], "args") {
		count, ok := c.IntIn(c.Args[4], 0, int64(len(c.Args)), command.ErrNumKeys)
		if !ok {
			return a, nil, false
		}
		if from, n = 5, int(count); len(c.Args)-from < n {
			c.Err(command.ErrNumKeysRange)
			return a, nil, false
		}
	}
	if !a.takeAny(c, from, n) || !a.use(c) {
		return a, nil, false
	}
	st, err := query.Parse(string(c.Args[2]))
	if err != nil {
		badQuery(c, err)
		return a, nil, false
	}
	return a, st, true
}

// settings returns the configuration of the cache.
func (ca *cache) settings() (*binary.Config, error) {
	b := ca.config()
	if len(b) == 0 {
		return binary.NewConfig(), nil
	}
	return binary.ParseConfig(b)
}

// run begins to execute a statement on the cache.
func (a *arguments) run(st *query.Statement) (*query.Run, error) {
	config, err := a.settings()
	if err != nil {
		return nil, err
	}
	if !st.In(string(a.name), config) {
		return nil, errOtherCache
	}
	return st.NewRun(config, registered(a.c), a.objects)
}

// query executes a SELECT.
func (a *arguments) query(st *query.Statement) (rows [][][]byte, columns []string, err error) {
	run, err := a.run(st)
	if err != nil {
		return nil, nil, err
	}
	a.add(run)
	rows, err = run.Rows()
	return rows, run.Columns(), err
}

// add adds the entries of the cache to a run. They are in the order of their keys if all keys are longs.
func (a *arguments) add(run *query.Run) {
	h := effect.Hash(a.c, a.names[valuesKey])
	if h == nil {
		return
	}
	if k, ok := run.Key(); ok {
		if v, has := h.Get(k); has {
			run.Add(k, v)
		}
		return
	}
	if effect.ZCard(a.c, a.names[orderKey]) < h.Len() {
		for k, v := range h.All() {
			if !run.Add(k, v) {
				break
			}
		}
		return
	}
	var k []byte
	a.ordered(math.MinInt64, math.MaxInt64, false, -1, func(n int64) bool {
		k = binary.AppendLong(k[:0], n)
		v, ok := h.Get(k)
		return !ok || run.Add(k, v)
	})
}

// modify executes an INSERT, MERGE, UPDATE or DELETE, and replies with the number of entries that it changed. On an
// error nothing has changed.
func modify(c *command.Ctx) {
	a, st, ok := readStatement(c)
	if !ok || !effect.Is(c, typesKey, engine.Hash) {
		return
	}
	if !st.Kind.Modifies() {
		badQuery(c, errNotModify)
		return
	}
	entries, err := a.changes(st)
	if err != nil {
		badQuery(c, err)
		return
	}
	for _, e := range entries {
		if e.Value == nil {
			a.remove(e.Key)
		} else {
			a.put(e.Key, e.Value)
		}
	}
	c.W.Int(int64(len(entries)))
}

// changes returns what a statement writes, and registers the types that it needs.
func (a *arguments) changes(st *query.Statement) (entries []query.Entry, err error) {
	run, err := a.run(st)
	if err != nil {
		return nil, err
	}
	if st.Kind == query.Insert || st.Kind == query.Merge {
		entries, err = run.Inserts()
	} else {
		a.add(run)
		entries, err = run.Changes()
	}
	if err == nil && st.Kind == query.Insert {
		err = a.unused(entries)
	}
	if err != nil || len(entries) == 0 {
		return nil, err
	}
	for _, t := range run.Types() {
		if err := register(a.c, t); err != nil {
			return nil, err
		}
	}
	return entries, nil
}

// unused returns an error if the cache has one of the keys, or if two are the same.
func (a *arguments) unused(entries []query.Entry) error {
	seen := map[string]bool{}
	for _, e := range entries {
		if _, has := a.get(e.Key); has || seen[string(e.Key)] {
			return fmt.Errorf("Duplicate key during INSERT [key=%s]", binary.AppendText(nil, e.Key, registered(a.c)))
		}
		seen[string(e.Key)] = true
	}
	return nil
}

// define executes a CREATE, DROP or ALTER. It replies with 1, or with 0 if there was nothing to do.
func define(c *command.Ctx) {
	st, err := query.Parse(string(c.Args[2]))
	if err == nil && !st.Kind.Defines() {
		err = errNotDefined
	}
	if err != nil {
		badQuery(c, err)
		return
	}
	ca := cacheOf(c, c.Args[1])
	if !ca.typesFit() || !effect.Is(c, cachesKey, engine.Hash) || !effect.Is(c, typesKey, engine.Hash) {
		return
	}
	done := false
	switch exists := ca.exists(); {
	case st.Kind == query.CreateTable && !exists:
		if err := ca.createTable(st); err != "" {
			c.Err(err)
			return
		}
		done = true
	case st.Kind == query.CreateTable && !st.Optional:
		c.Err(errCacheExists)
		return
	case st.Kind != query.CreateTable && exists:
		if done, err = ca.alter(st); err != nil {
			badQuery(c, err)
			return
		}
	case st.Kind != query.CreateTable && !st.Optional:
		c.Err(errNoCache)
		return
	}
	yes(c, done)
}

// createTable creates the cache of a table.
func (ca *cache) createTable(st *query.Statement) command.Error {
	if len(ca.name) == 0 {
		return errCacheName
	}
	config, types, err := st.NewTable(string(ca.name), newUUID())
	for _, t := range types {
		if err == nil {
			err = register(ca.c, t)
		}
	}
	if err != nil {
		return command.Error("BADQUERY " + err.Error())
	}
	return ca.create(config.Encode())
}

// alter drops the table, or changes its configuration.
func (ca *cache) alter(st *query.Statement) (changed bool, err error) {
	config, err := ca.settings()
	if err != nil {
		return false, err
	}
	if !st.In(string(ca.name), config) {
		return false, errOtherCache
	}
	if st.Kind == query.DropTable {
		if err := st.Drops(string(ca.name), config); err != nil {
			return false, err
		}
		ca.destroy()
		return true, nil
	}
	changed, typ, err := st.Alter(config)
	if err != nil || !changed {
		return false, err
	}
	if typ != nil {
		if err := register(ca.c, typ); err != nil {
			return false, err
		}
	}
	effect.Set(ca.c, ca.names[configKey], config.Encode())
	return true, nil
}
