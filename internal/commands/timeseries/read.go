package timeseries

import (
	"math"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/timeseries"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/resp"
)

// The errors of TS.READ. As in RedisTimeSeries, some have no code.
const (
	errReadMillis   command.Error = "TSDB: BLOCK milliseconds must be a non-negative integer"
	errReadLeast    command.Error = "TSDB: BLOCK min_count must be a positive integer"
	errReadMost     command.Error = "TSDB: MAX_COUNT must be a positive integer"
	errReadOrder    command.Error = "TSDB: BLOCK min_count must be <= MAX_COUNT"
	errReadTime     command.Error = "TSDB: invalid timestamp"
	errReadType     command.Error = "WRONGTYPE Operation against a key holding the wrong kind of value"
	errReadNoBlocks command.Error = "TSDB: blocking TS.READ (with BLOCK) is not allowed inside MULTI, EVAL, or a deny-blocking context"
)

func cmdRead(c *command.Ctx) {
	key, args := c.Args[1], c.Args[3:]
	block, most := find(c.Args, 3, "block"), find(c.Args, 3, "max_count")
	want := 0
	if block > 0 {
		want += 3
	}
	if most > 0 {
		want += 2
	}
	if len(args) != want {
		c.Err(wrongArguments(c))
		return
	}
	var q timeseries.Query
	timeout, least := int64(0), int64(1)
	if block > 0 {
		var numbers [2]int64
		for i := range numbers {
			ok := block+1+i < len(c.Args)
			if ok {
				numbers[i], ok = resp.ParseInt(c.Args[block+1+i])
			}
			if !ok || numbers[0] < 0 {
				c.Err(errReadMillis)
				return
			}
		}
		var ok bool
		if least = numbers[1]; least <= 0 {
			c.Err(errReadLeast)
			return
		}
		if timeout, ok = c.IntTimeout(c.Args[block+1]); !ok {
			return
		}
	}
	if most > 0 {
		n, ok := int64(0), most+1 < len(c.Args)
		if ok {
			n, ok = resp.ParseInt(c.Args[most+1])
		}
		if !ok || n <= 0 {
			c.Err(errReadMost)
			return
		}
		if q.Count = command.AsInt(n); least > n {
			c.Err(errReadOrder)
			return
		}
	}
	e := c.G.Read(c.DB, key)
	var s *timeseries.Series
	var ok bool
	if e != nil && e.Type() == engine.TimeSeries {
		s = e.Series()
	}
	switch q.From, ok = readFrom(s, c.Args[2]); {
	case !ok:
		c.Err(errReadTime)
		return
	case e != nil && s == nil:
		c.Err(errReadType)
		return
	}
	q.To = math.MaxInt64
	if block == 0 || s != nil && atLeast(s, &q, least) {
		writeRead(c.W, s, &q)
		return
	}
	if c.NoBlock {
		c.Err(errReadNoBlocks)
		return
	}
	wait(c, key, q, timeout, least)
}

// readFrom returns the time of the cursor of TS.READ; s is nil if there is no series.
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

// atLeast reports whether a query returns at least n rows.
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
		s.Run(q, nil, rows) // cannot fail without buckets
	}
	writeRows(w, rows, 1)
}

// wait blocks the client until the series has so many samples or is gone. At the timeout the client gets the present
// samples: Cancel, which runs under a guard, saves them for Empty.
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
