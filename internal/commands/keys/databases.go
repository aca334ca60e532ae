package keys

import (
	"math"
	"strings"

	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/version"
	"github.com/atomredis/atomredis/resp"
)

// This file has the commands on whole databases, and two that need no data at all: TIME and LOLWUT.

func init() { command.Register(keyspaceCommands) }

var keyspaceCommands = []*command.Command{
	{Name: "dbsize", Group: "server", Since: "1.0.0", Arity: 1,
		Flags: command.ReadOnly | command.Fast | command.WholeKeyspace | command.AllKeys, ACL: command.CatKeyspace,
		Summary: "Counts the keys of the database", Complexity: "O(1)", Do: cmdDbsize},
	{Name: "flushall", Group: "server", Since: "1.0.0", Arity: -1, Flags: command.Write | command.WholeKeyspace,
		ACL:     command.CatKeyspace | command.CatDangerous,
		Summary: "Deletes all keys of all databases", Syntax: "[ASYNC | SYNC]",
		Complexity: "O(N), where N is the number of keys deleted", AllDatabases: true, Do: cmdFlushall},
	{Name: "flushdb", Group: "server", Since: "1.0.0", Arity: -1, Flags: command.Write | command.WholeKeyspace,
		ACL:     command.CatKeyspace | command.CatDangerous,
		Summary: "Deletes all keys of the database", Syntax: "[ASYNC | SYNC]",
		Complexity: "O(N), where N is the number of keys deleted", Do: cmdFlushdb},
	{Name: "lolwut", Group: "server", Since: "5.0.0", Arity: -1, Flags: command.ReadOnly | command.Fast,
		Summary: "Draws a picture and shows the version", Syntax: "[VERSION version] [columns] [rows]",
		Complexity: "O(N), where N is the size of the picture", Do: cmdLolwut},
	{Name: "swapdb", Group: "server", Since: "4.0.0", Arity: 3,
		Flags:   command.Write | command.Fast | command.WholeKeyspace,
		ACL:     command.CatKeyspace | command.CatDangerous,
		Summary: "Exchanges two databases", Syntax: "index1 index2",
		Complexity: "O(N+M), where N is the number of keys in both databases and M that of watched keys and blocked clients",
		Databases:  func([][]byte) []int { return []int{1, 2} }, Do: cmdSwapdb},
	{Name: "time", Group: "server", Since: "2.6.0", Arity: 1, Flags: command.Loading | command.Stale | command.Fast,
		Summary: "Returns the server's clock", Complexity: "O(1)", Do: cmdTime},
}

const (
	errFirstDB  command.Error = "ERR invalid first DB index"
	errSecondDB command.Error = "ERR invalid second DB index"

	errSwapInCluster command.Error = "ERR SWAPDB is not allowed in cluster mode"
)

func cmdDbsize(c *command.Ctx) {
	c.W.Int(int64(c.G.Len(c.DB) - c.Host.ForeignLen(c.G, c.DB)))
}

func cmdFlushall(c *command.Ctx) { flush(c, -1) }
func cmdFlushdb(c *command.Ctx)  { flush(c, c.DB) }

// flush deletes all keys of a database, or of all if db is -1. ASYNC and SYNC do the same here: the keys are gone at
// once and their memory is freed in the background.
func flush(c *command.Ctx, db int) {
	o := c.Options(1)
	if o.Next() && (o.More() || !o.Is("async") && !o.Is("sync")) {
		c.Err(command.ErrSyntax)
		return
	}
	if !c.Origin.In(command.Accepted) {
		if e := c.Host.MayFlush(); e != "" {
			c.Err(e)
			return
		}
	}
	c.G.Flush(db)
	c.W.OK()
}

func cmdSwapdb(c *command.Ctx) {
	if c.ClusterMode() {
		c.Err(errSwapInCluster)
		return
	}
	a, ok := c.IntIn(c.Args[1], math.MinInt32, math.MaxInt32, errFirstDB)
	if !ok {
		return
	}
	b, ok := c.IntIn(c.Args[2], math.MinInt32, math.MaxInt32, errSecondDB)
	if !ok {
		return
	}
	if n := int64(c.Host.Keyspace().Databases()); a < 0 || a >= n || b < 0 || b >= n {
		c.Err(command.ErrDBRange)
		return
	}
	c.G.Swap(int(a), int(b))
	c.W.OK()
}

func cmdTime(c *command.Ctx) {
	us := c.Micros
	if us == 0 {
		us = c.Host.Keyspace().Clock().Now().UnixMicro()
	}
	c.W.Array(2)
	c.W.BulkInt(us / 1e6)
	c.W.BulkInt(us % 1e6)
}

// The default and the largest size of LOLWUT's picture.
const (
	lolwutColumns, lolwutRows       = 41, 15
	lolwutMaxColumns, lolwutMaxRows = 400, 100
)

// cmdLolwut draws an atom. The picture is the same for every version.
func cmdLolwut(c *command.Ctx) {
	size := [2]int64{lolwutColumns, lolwutRows}
	o := c.Options(1)
	for i := 0; o.Next(); {
		version := i == 0 && o.Is("version") && o.More()
		if version {
			o.Arg()
		}
		n, ok := resp.ParseInt(o.Word())
		if !ok {
			c.Err(command.ErrNotInteger)
			return
		}
		if !version && i < len(size) {
			size[i] = n
			i++
		}
	}
	columns := int(min(max(size[0], 1), lolwutMaxColumns))
	rows := int(min(max(size[1], 1), lolwutMaxRows))
	c.W.Verbatim("txt", drawAtom(columns, rows)+"\natomredis ver. "+version.Number+"\n")
}

// drawAtom draws a nucleus and three electrons on their orbits.
func drawAtom(columns, rows int) string {
	picture := make([][]byte, rows)
	for y := range picture {
		picture[y] = []byte(strings.Repeat(" ", columns))
	}
	plot := func(x, y float64, mark byte) { // -1 to 1 in both directions
		picture[int(math.Round((y+1)/2*float64(rows-1)))][int(math.Round((x+1)/2*float64(columns-1)))] = mark
	}
	const orbits = 3
	orbit := func(k int, angle float64) (x, y float64) {
		sin, cos := math.Sincos(float64(k) * math.Pi / orbits)
		along, across := math.Cos(angle), math.Sin(angle)/orbits
		return along*cos - across*sin, along*sin + across*cos
	}
	steps := 8 * (columns + rows)
	for k := range orbits {
		for i := range steps {
			x, y := orbit(k, 2*math.Pi*float64(i)/float64(steps))
			plot(x, y, '.')
		}
	}
	for k := range orbits {
		x, y := orbit(k, float64(k)+0.5)
		plot(x, y, 'o')
	}
	plot(0, 0, '@')
	var b strings.Builder
	for _, line := range picture {
		b.WriteString(strings.TrimRight(string(line), " "))
		b.WriteByte('\n')
	}
	return b.String()
}
