package server

import (
	"bytes"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/atomredis/atomredis/command"
	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/streams"
	"github.com/atomredis/atomredis/resp"
)

// The stream that followers execute is made of the journal's records. A record is repeated at its own time and as a whole; a follower
// executes commands when they come, one by one. So deadlines become points in time, and a record of several commands a transaction.

// replicationStream makes it. The zero value begins one.
type replicationStream struct {
	selected int // the database in which the stream is, and one more; 0 if that is not known
	commands []streamCommand
	buf      []byte
}

// streamCommand is a command of a record, in a database.
type streamCommand struct {
	db   int
	args [][]byte
}

// The names of the commands that others are passed on as.
var setName, delName, hsetName, hdelName = []byte("SET"), []byte("DEL"), []byte("HSET"), []byte("HDEL")

// restart has the next command preceded by SELECT.
func (r *replicationStream) restart() { r.selected = 0 }

// translate returns what followers execute for the commands that were journalled under one guard at time now. It is valid until the next call.
func (r *replicationStream) translate(now int64, record []byte) []byte {
	r.commands = r.commands[:0]
	if r.buf = r.buf[:0]; cap(r.buf) > maxStreamBuffer {
		r.buf = nil
	}
	parser := resp.Parser{MaxBulk: maxJournalBulk}
	db := 0
	for len(record) > 0 {
		args, n, err := parser.Next(record, nil)
		if err != nil || n == 0 {
			break // which the server itself does not write
		}
		record = record[n:]
		if len(args) == 2 && command.EqualFold(args[0], "select") {
			db, _ = strconv.Atoi(string(args[1]))
			continue
		}
		absolute(now, args, func(args ...[]byte) { r.commands = append(r.commands, streamCommand{db, args}) })
	}
	for i, c := range r.commands {
		if r.selected != c.db+1 {
			r.selected = c.db + 1
			r.add([]byte("SELECT"), intArg(int64(c.db)))
		}
		if i == 0 && len(r.commands) > 1 {
			r.add([]byte("MULTI"))
		}
		r.add(c.args...)
	}
	if len(r.commands) > 1 {
		r.add([]byte("EXEC"))
	}
	clear(r.commands)
	return r.buf
}

func (r *replicationStream) add(args ...[]byte) { r.buf = appendRequest(r.buf, args) }

// maxStreamBuffer is the size in bytes of the largest buffer that is kept for the next record.
const maxStreamBuffer = 1 << 20

// Words of the commands that absolute makes.
var (
	pexpireatWord  = []byte("PEXPIREAT")
	hpexpireatWord = []byte("HPEXPIREAT")
	pxatWord       = []byte("PXAT")
	keepTTLWord    = []byte("KEEPTTL")
	absTTLWord     = []byte("ABSTTL")
)

// absolute calls emit with commands that have the effect that args had, which changed something at time now, whenever they are executed. Only
// deadlines depend on the time: what else does is journalled by its effect while there are followers (see followedForm).
func absolute(now int64, args [][]byte, emit func(args ...[]byte)) {
	switch strings.ToLower(string(args[0])) {
	case "expire":
		absoluteExpire(now, command.InSeconds, args, emit)
	case "pexpire":
		absoluteExpire(now, command.InMillis, args, emit)
	case "expireat":
		absoluteExpire(now, command.AtSeconds, args, emit)
	case "pexpireat":
		absoluteExpire(now, command.AtMillis, args, emit)
	case "setex":
		emit(setName, args[1], args[3], pxatWord, pointInTime(now, command.InSeconds, args[2]))
	case "psetex":
		emit(setName, args[1], args[3], pxatWord, pointInTime(now, command.InMillis, args[2]))
	case "set":
		emit(append([][]byte{setName, args[1], args[2]}, setExpiry(now, args[3:])...)...)
	case "msetex":
		n, _ := strconv.Atoi(string(args[1]))
		pairs, options := args[2:2+2*n], args[2+2*n:]
		for i := 0; i < len(pairs); i += 2 {
			emit(append([][]byte{setName, pairs[i], pairs[i+1]}, setExpiry(now, options)...)...)
		}
	case "getex":
		if option := args[2]; command.EqualFold(option, "persist") {
			emit([]byte("PERSIST"), args[1])
		} else if unit, ok := expiryUnit(option); ok {
			absoluteExpire(now, unit, [][]byte{args[0], args[1], args[3]}, emit)
		}
	case "delex", "getdel":
		emit(delName, args[1])
	case "hgetdel":
		emit(append([][]byte{hdelName, args[1]}, args[4:]...)...)
	case "restore", "restore-asking":
		if ttl, ok := resp.ParseInt(args[2]); ok && ttl != 0 && !containsFold(args[4:], "absttl") {
			args = append([][]byte{args[0], args[1], intArg(now + ttl)}, args[3:]...)
			args = append(args, absTTLWord)
		}
		emit(args...)
	case "hexpire":
		emit(append([][]byte{hpexpireatWord, args[1], pointInTime(now, command.InSeconds, args[2])}, args[3:]...)...)
	case "hpexpire":
		emit(append([][]byte{hpexpireatWord, args[1], pointInTime(now, command.InMillis, args[2])}, args[3:]...)...)
	case "hexpireat":
		emit(append([][]byte{hpexpireatWord, args[1], pointInTime(now, command.AtSeconds, args[2])}, args[3:]...)...)
	case "hsetex", "hgetex":
		for i := 2; !command.EqualFold(args[i], "fields"); i++ {
			if unit, ok := expiryUnit(args[i]); ok {
				args[i], args[i+1] = pxatWord, pointInTime(now, unit, args[i+1])
				break
			}
		}
		emit(args...)
	default:
		emit(args...)
	}
}

// expiryUnit returns the unit of the time behind an option of SET, if it is one with a time.
func expiryUnit(word []byte) (unit command.TimeUnit, ok bool) {
	switch {
	case command.EqualFold(word, "ex"):
		return command.InSeconds, true
	case command.EqualFold(word, "px"):
		return command.InMillis, true
	case command.EqualFold(word, "exat"):
		return command.AtSeconds, true
	case command.EqualFold(word, "pxat"):
		return command.AtMillis, true
	}
	return command.TimeUnit{}, false
}

// setExpiry returns those of the options of a SET that has been carried out that say when the key expires.
func setExpiry(now int64, options [][]byte) [][]byte {
	for i, word := range options {
		if command.EqualFold(word, "keepttl") {
			return [][]byte{keepTTLWord}
		}
		if unit, ok := expiryUnit(word); ok && i+1 < len(options) {
			return [][]byte{pxatWord, pointInTime(now, unit, options[i+1])}
		}
	}
	return nil
}

// pointInTime returns the time in ms since 1970 that an argument stands for, which has been accepted at time now.
func pointInTime(now int64, unit command.TimeUnit, arg []byte) []byte {
	n, _ := resp.ParseInt(arg)
	at, _ := unit.Deadline(now, n)
	return intArg(at)
}

// absoluteExpire translates EXPIRE and its like. A deadline that is over has removed the key.
func absoluteExpire(now int64, unit command.TimeUnit, args [][]byte, emit func(args ...[]byte)) {
	n, _ := resp.ParseInt(args[2])
	if at, _ := unit.Deadline(now, n); at > now {
		emit(pexpireatWord, args[1], intArg(at))
	} else {
		emit(delName, args[1])
	}
}

// followedForm returns the command that is journalled, while there are followers, instead of one that has just changed something; nil if it is the
// command itself. These are commands whose effect depends on more than arguments and data, but not where the journal is repeated: at their time,
// and by the same program.
func followedForm(c *command.Ctx) [][]byte {
	switch c.Cmd.Name {
	case "xadd":
		if e := c.G.Peek(c.DB, c.Args[1]); e != nil && e.Type() == engine.Stream {
			args := slices.Clone(c.Args)
			args[xaddIDIndex(args)] = e.Stream().LastID().Append(nil)
			return args
		}
	case "incrbyfloat":
		if e := c.G.Peek(c.DB, c.Args[1]); e != nil && e.Type() == engine.String {
			return [][]byte{setName, c.Args[1], e.Bytes(), keepTTLWord}
		}
	case "hincrbyfloat":
		if e := c.G.Peek(c.DB, c.Args[1]); e != nil && e.Type() == engine.Hash {
			value, ok := e.Hash().Get(c.Args[2])
			if at, _ := e.Hash().Deadline(c.Args[2]); ok && at == 0 {
				return [][]byte{hsetName, c.Args[1], c.Args[2], value}
			}
		}
	case "hexpire":
		return expiredFields(c, command.InSeconds, 2, 1)
	case "hpexpire":
		return expiredFields(c, command.InMillis, 2, 1)
	case "hexpireat":
		return expiredFields(c, command.AtSeconds, 2, 1)
	case "hpexpireat":
		return expiredFields(c, command.AtMillis, 2, 1)
	case "hgetex", "hsetex":
		step := 1
		if c.Cmd.Name == "hsetex" {
			step = 2
		}
		for i := 2; !command.EqualFold(c.Args[i], "fields"); i++ {
			if unit, ok := expiryUnit(c.Args[i]); ok {
				return expiredFields(c, unit, i+1, step)
			}
		}
	}
	return nil
}

// expiredFields returns HDEL of those of the fields behind FIELDS, every step arguments, that are not there, if the deadline argument that they were
// given was over already; otherwise nil.
func expiredFields(c *command.Ctx, unit command.TimeUnit, deadline, step int) [][]byte {
	n, _ := resp.ParseInt(c.Args[deadline])
	if at, _ := unit.Deadline(c.Now(), n); at > c.Now() {
		return nil
	}
	i := deadline
	for !command.EqualFold(c.Args[i], "fields") {
		i++
	}
	e := c.G.Peek(c.DB, c.Args[1])
	args := [][]byte{hdelName, c.Args[1]}
	for i += 2; i < len(c.Args); i += step {
		if e == nil || e.Type() == engine.Hash && !e.Hash().Has(c.Args[i]) {
			args = append(args, c.Args[i])
		}
	}
	if len(args) == 2 {
		return nil
	}
	return args
}

// xaddIDIndex returns which argument of XADD is the ID.
func xaddIDIndex(args [][]byte) int {
	for i := 2; ; i++ {
		switch command.Lower(args[i]) {
		case "nomkstream", "keepref", "delref", "acked":
		case "maxlen", "minid":
			if i++; len(args[i]) == 1 && (args[i][0] == '=' || args[i][0] == '~') {
				i++
			}
		case "limit":
			i++
		default:
			return i
		}
	}
}

// maxClaimAttempts is how many pending entries XAUTOCLAIM looks at for each that it may claim.
const maxClaimAttempts = 10

// logClaims has what XCLAIM and XAUTOCLAIM have claimed journalled behind them: where they are executed later the idle times are others.
func logClaims(c *command.Ctx) {
	var ids []streams.ID
	var g *streams.Group
	if c.Cmd.Name != "xclaim" && c.Cmd.Name != "xautoclaim" {
		return
	}
	if e := c.G.Peek(c.DB, c.Args[1]); e != nil && e.Type() == engine.Stream {
		g = e.Stream().Group(c.Args[2])
	}
	if g == nil {
		return
	}
	pending := func(from, to streams.ID, limit int, fn func(n *streams.NACK)) {
		g.Pending(from, to, func(n *streams.NACK) bool {
			if n.Consumer.Name == string(c.Args[3]) {
				fn(n)
			}
			limit--
			return limit > 0
		})
	}
	if c.Cmd.Name == "xclaim" {
		for _, arg := range c.Args[5:] {
			id, ok := streams.ParseID(arg, 0)
			if !ok {
				break
			}
			ids = append(ids, id)
		}
	} else {
		start, _ := streams.ParseRangeID(bytes.TrimPrefix(c.Args[5], []byte("(")), 0)
		count := int64(defaultClaimCount)
		for o := c.Options(6); o.Next(); {
			if o.Is("count") && o.More() {
				count, _ = resp.ParseInt(o.Arg())
			}
		}
		limit := command.AsInt(min(max(count, 1), math.MaxInt32) * maxClaimAttempts)
		pending(start, streams.MaxID, limit, func(n *streams.NACK) {
			if n.DeliveryTime == c.Now() {
				ids = append(ids, n.ID)
			}
		})
	}
	for _, id := range ids {
		pending(id, id, 1, func(n *streams.NACK) {
			c.G.Log(c.DB, [][]byte{[]byte("XCLAIM"), c.Args[1], c.Args[2], c.Args[3], []byte("0"), id.Append(nil),
				[]byte("TIME"), intArg(n.DeliveryTime), []byte("RETRYCOUNT"), intArg(n.DeliveryCount), []byte("FORCE"), []byte("JUSTID")})
		})
	}
}

// defaultClaimCount is the COUNT of XAUTOCLAIM that has none.
const defaultClaimCount = 100
