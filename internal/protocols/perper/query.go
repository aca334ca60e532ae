package perper

import (
	"errors"
	"math"

	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/protocols/internal/effect"
	"github.com/atomredis/atomredis/internal/protocols/perper/binary"
	"github.com/atomredis/atomredis/internal/protocols/perper/query"
)

// errOtherCache says that a statement names another cache.
var errOtherCache = errors.New("the statement asks another cache")

// queryKeysOf is keysOf for a command that needs the types even if its reply does not show them.
func queryKeysOf(args [][]byte, fn func(key []byte)) {
	keysOf(args, fn)
	fn(typesKey)
}

// ask replies with the names of the columns, and the rows.
func ask(c *command.Ctx) {
	a, from, n := arguments{cache: cacheOf(c, c.Args[1])}, 3, 0
	if len(c.Args) > 4 && command.EqualFold(c.Args[3], "args") {
		count, ok := c.IntIn(c.Args[4], 0, int64(len(c.Args)), command.ErrNumKeys)
		if !ok {
			return
		}
		if from, n = 5, int(count); len(c.Args)-from < n {
			c.Err(command.ErrNumKeysRange)
			return
		}
	}
	if !a.takeAny(c, from, n) || !a.check() {
		return
	}
	rows, columns, err := a.query(string(c.Args[2]))
	if err != nil {
		c.Err(command.Error("BADQUERY " + err.Error()))
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

// query executes a statement. Without ORDER BY, rows are in the order of their keys if all keys are longs.
func (a *arguments) query(text string) (rows [][][]byte, columns []string, err error) {
	st, err := query.Parse(text)
	if err != nil {
		return nil, nil, err
	}
	b := a.config()
	if len(b) == 0 {
		b = []byte{0, 0}
	}
	config, err := binary.ParseConfig(b)
	if err != nil {
		return nil, nil, err
	}
	if !st.In(string(a.name), config) {
		return nil, nil, errOtherCache
	}
	run, err := st.NewRun(config, registered(a.c), a.objects)
	if err != nil {
		return nil, nil, err
	}
	if h := effect.Hash(a.c, a.names[valuesKey]); h != nil && effect.ZCard(a.c, a.names[orderKey]) < h.Len() {
		for k, v := range h.All() {
			if !run.Add(k, v) {
				break
			}
		}
	} else if h != nil {
		var k []byte
		a.ordered(math.MinInt64, math.MaxInt64, false, -1, func(n int64) bool {
			k = binary.AppendLong(k[:0], n)
			v, ok := h.Get(k)
			return !ok || run.Add(k, v)
		})
	}
	rows, err = run.Rows()
	return rows, run.Columns(), err
}
