package timeseries

import (
	"math"

	"github.com/atomredis/atomredis/command"
	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/timeseries"
	"github.com/atomredis/atomredis/resp"
)

func cmdRead(c *command.Ctx) {
	key := c.Args[1]
	blocks, timeout, least := false, int64(0), int64(0)
	var q timeseries.Query
	for args := c.Args[3:]; len(args) > 0; {
		switch {
		case command.EqualFold(args[0], "block") && len(args) >= 3 && !blocks:
			var ok bool
			if timeout, ok = c.IntTimeout(args[1]); !ok {
				return
			}
			if least, ok = resp.ParseInt(args[2]); !ok || least <= 0 {
				c.Err("ERR TSDB: min_count must be a positive integer")
				return
			}
			blocks, args = true, args[3:]
		case command.EqualFold(args[0], "max_count") && len(args) >= 2 && q.Count == 0:
			n, ok := resp.ParseInt(args[1])
			if !ok || n <= 0 {
				c.Err("ERR TSDB: max_count must be a positive integer")
				return
			}
			q.Count, args = command.AsInt(n), args[2:]
		default:
			c.Err(wrongArguments(c))
			return
		}
	}
	if q.Count > 0 && least > int64(q.Count) {
		c.Err("ERR TSDB: min_count must not be greater than max_count")
		return
	}
	e := c.G.Read(c.DB, key)
	var s *timeseries.Series
	switch {
	case e != nil && e.Type() != engine.TimeSeries:
		c.Err(errWrongType)
		return
	case e != nil:
		s = e.Series()
	case !blocks:
		c.Err(errNoKey)
		return
	}
	var ok bool
	if q.From, ok = readFrom(s, c.Args[2]); !ok {
		c.Err(errTime)
		return
	}
	q.To = math.MaxInt64
	if !blocks || s != nil && atLeast(s, &q, least) {
		writeRead(c.W, s, &q)
		return
	}
	if c.NoBlock {
		c.Err("ERR TSDB: BLOCK is not allowed here")
		return
	}
	wait(c, key, q, timeout, least)
}

// readFrom returns the time that the cursor of TS.READ stands for; s is nil if there is no series.
func readFrom(s *timeseries.Series, cursor []byte) (from int64, ok bool) {
	var last timeseries.Sample
	some, first := false, int64(0)
	if s != nil {
		last, some = s.Newest()
		_, first = s.Visible()
	}
	switch string(cursor) {
	case "-":
		return first, true
	case "+":
		return last.Time, true
	case "$":
		if some && last.Time < math.MaxInt64 {
			return last.Time + 1, true
		}
		return 0, true
	}
	from, ok = resp.ParseInt(cursor)
	return from, ok && from >= 0
}

// atLeast reports whether a query gives so many rows.
func atLeast(s *timeseries.Series, q *timeseries.Query, n int64) bool {
	few := *q
	few.Count = command.AsInt(n)
	rows := spareRows.Get().(*timeseries.Rows)
	defer giveBack(rows)
	return s.Run(&few, nil, rows) == nil && int64(len(rows.Times)) >= n
}

// writeRead writes the rows of a query on a series, which may be nil.
func writeRead(w *resp.Writer, s *timeseries.Series, q *timeseries.Query) {
	rows := spareRows.Get().(*timeseries.Rows)
	defer giveBack(rows)
	if s != nil {
		s.Run(q, nil, rows) // which fails only for buckets
	}
	writeRows(w, rows, 1)
}

// wait blocks the client until there are so many samples, or the series has gone. When the time is up it gets what is
// there: Cancel, which is called under a guard, takes that down for Empty.
func wait(c *command.Ctx, key []byte, q timeseries.Query, timeout, least int64) {
	existed := c.G.Peek(c.DB, key) != nil
	var rest *timeseries.Rows
	c.Block(command.Block{Keys: [][]byte{key}, Timeout: timeout, OnRemoval: true,
		Try: func(c *command.Ctx, key []byte) bool {
			e := c.G.Peek(c.DB, key)
			switch {
			case e == nil && !existed:
				return false
			case e == nil || e.Type() != engine.TimeSeries:
				c.W.Array(0)
				return true
			}
			existed = true
			if !atLeast(e.Series(), &q, least) {
				return false
			}
			writeRead(c.W, e.Series(), &q)
			return true
		},
		Cancel: func(c *command.Ctx) {
			if e := c.G.Peek(c.DB, c.Args[1]); e != nil && e.Type() == engine.TimeSeries {
				rest = new(timeseries.Rows)
				e.Series().Run(&q, nil, rest)
			}
		},
		Empty: func(w *resp.Writer) {
			if rest == nil {
				w.Array(0)
				return
			}
			writeRows(w, rest, 1)
		},
	})
}
