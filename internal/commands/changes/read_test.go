package changes_test

import (
	"bytes"
	"fmt"
	"regexp"
	"runtime/pprof"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/testing/crashfs"
	"github.com/atomredis/atomredis/internal/testing/servertest"
	"github.com/atomredis/atomredis/persist/disk"
	"github.com/atomredis/atomredis/resp"
)

// change is a change as a client reads it.
type change struct {
	position string
	commands []string // the database, and the command
}

// decode returns the position and the changes of a reply to CHANGES READ.
func decode(t *testing.T, reply string) (position string, all []change) {
	t.Helper()
	require.True(t, strings.HasPrefix(reply, "*2\r\n"), reply)
	list := func(r resp.Reply) []resp.Reply {
		all, err := r.Slice()
		require.NoError(t, err)
		return all
	}
	text := func(r resp.Reply) string {
		s, err := r.Text()
		require.NoError(t, err)
		return s
	}
	page := list(resp.NewReply([]byte(reply)))
	for _, c := range list(page[1]) {
		parts := list(c)
		one := change{position: text(parts[0])}
		now, err := parts[1].Int()
		require.NoError(t, err)
		require.NotZero(t, now)
		for _, cmd := range list(parts[2]) {
			var words []string
			for _, w := range list(cmd) {
				words = append(words, text(w))
			}
			one.commands = append(one.commands, strings.Join(words, " "))
		}
		all = append(all, one)
	}
	return text(page[0]), all
}

// commandsOf returns the commands of changes, a transaction as one text.
func commandsOf(all []change) (list []string) {
	for _, c := range all {
		list = append(list, strings.Join(c.commands, " | "))
	}
	return list
}

// end returns the present position.
func end(t *testing.T, d *servertest.Durable) string {
	position, all := decode(t, d.Line("CHANGES READ FROM $"))
	require.Empty(t, all)
	return position
}

func TestChangesAreReadInOrder(t *testing.T) {
	d := servertest.OpenDurable(t, crashfs.Mem())
	defer d.End()
	begin := end(t, d)
	d.Lines("SET a 1", "INCR a", "SELECT 2", "RPUSH l x y z", "MULTI", "SET b 1", "LPOP l", "SELECT 3", "SADD s m", "EXEC", "GET b", "SPOP s")
	want := []string{"0 SET a 1", "0 INCR a", "2 RPUSH l x y z", "2 SET b 1 | 2 LPOP l | 3 SADD s m"}
	last, all := decode(t, d.Line("CHANGES READ FROM "+begin))
	got := commandsOf(all)
	require.Equal(t, want, got[:4])
	require.Len(t, got, 5)
	require.Regexp(t, `^3 (SREM s m|DEL s)$`, got[4], "effects, not chance")
	require.Equal(t, all[4].position, last)

	// Every position continues after its change, also in parts.
	for i, c := range all {
		position, rest := decode(t, d.Line("CHANGES READ FROM "+c.position))
		require.Equal(t, all[i+1:], append([]change{}, rest...))
		require.Equal(t, last, position)
	}
	var parts []change
	for at := begin; len(parts) < len(all); {
		var part []change
		at, part = decode(t, d.Line("CHANGES READ FROM "+at+" MAXBYTES 1"))
		require.Len(t, part, 1)
		parts = append(parts, part...)
	}
	require.Equal(t, all, parts)
	_, two := decode(t, d.Line("CHANGES READ FROM "+begin+" COUNT 2"))
	require.Equal(t, all[:2], two)
	position, none := decode(t, d.Line("CHANGES READ FROM "+last+" BLOCK 1"))
	require.Empty(t, none)
	require.Equal(t, last, position)

	_, keys := decode(t, d.Line("CHANGES READ FROM "+begin+" KEYS"))
	require.Equal(t, []string{"0 SET a", "0 INCR a", "2 RPUSH l", "2 SET b | 2 LPOP l | 3 SADD s"}, commandsOf(keys)[:4])
	_, some := decode(t, d.Line("CHANGES READ FROM "+begin+" MATCH b MATCH s DB 2"))
	require.Equal(t, []string{"2 SET b 1"}, commandsOf(some))
	_, some = decode(t, d.Line("CHANGES READ FROM "+begin+" TYPE list VALUES"))
	require.Equal(t, append([]string{"2 RPUSH l x y z", "2 LPOP l"}, got[4]), commandsOf(some), "DEL is for all types")
	position, some = decode(t, d.Line("CHANGES READ FROM "+begin+" MATCH nothing"))
	require.Empty(t, some)
	require.Equal(t, last, position, "what was left out need not be read again")
	d.Lines("FLUSHALL")
	_, some = decode(t, d.Line("CHANGES READ FROM "+last+" MATCH nothing"))
	require.Equal(t, []string{"3 FLUSHALL"}, commandsOf(some), "it concerns every key")
}

func TestWrongArgumentsOfReadsAreRefused(t *testing.T) {
	d := servertest.OpenDurable(t, crashfs.Mem())
	defer d.End()
	d.Line("SET a 1")
	at := end(t, d)
	for line, want := range map[string]string{
		"FROM":                "ERR wrong number of arguments for 'changes|read' command",
		"COUNT 3":             "ERR syntax error",
		"FROM x":              "ERR invalid position: it is what an earlier read returned, $ or 0",
		"FROM $ FROM $":       "ERR syntax error",
		"FROM $ COUNT 0":      "ERR COUNT must be between 1 and 1000000",
		"FROM $ MAXBYTES 0":   "ERR MAXBYTES must be between 1 and 67108864",
		"FROM $ BLOCK -1":     "ERR timeout is negative",
		"FROM $ TYPE tree":    "ERR unknown type",
		"FROM $ DB 4":         "ERR DB index is out of range",
		"FROM $ MATCH":        "ERR syntax error",
		"FROM 00000000-0":     "CHANGESGONE the position belongs to another history: begin with FROM 0",
		"FROM " + at + "0000": "CHANGESGONE the position belongs to another history: begin with FROM 0",
		"FROM " + at + ".7":   "CHANGESGONE the position belongs to another history: begin with FROM 0",
		"FROM $ KEYS NOW":     "ERR syntax error",
		"FROM $ BLOCK many":   "ERR timeout is not an integer or out of range",
	} {
		require.Equal(t, "-"+want+"\r\n", d.Line("CHANGES READ "+line), line)
	}
	d.Expect("+OK\r\n", "MULTI")
	require.Contains(t, d.Line("CHANGES READ FROM $"), "not allowed inside a transaction")
	d.Line("DISCARD")
	require.Contains(t, d.Call("EVAL", "return redis.call('CHANGES', 'READ', 'FROM', '$')", "0"), "not allowed from script")
	memory := servertest.NewStepped(t)
	require.Contains(t, memory.Step("CHANGES READ FROM $"), "the server has no journal")
	memory.Finish()
}

func TestPositionsOutliveRestartsAndCheckpoints(t *testing.T) {
	fs := crashfs.Mem()
	d := servertest.OpenDurable(t, fs, "changes-retention", "1mb")
	begin := end(t, d)
	var want []string
	for i := range 20 {
		d.Line(fmt.Sprint("SET k ", i))
		want = append(want, fmt.Sprint("0 SET k ", i))
		switch i % 5 {
		case 1:
			d.Expect("+OK\r\n", "SAVE")
		case 2:
			d.End()
			d = servertest.OpenDurable(t, fs, "changes-retention", "1mb")
		case 3:
			d.Drop()
			d = servertest.OpenDurable(t, fs, "changes-retention", "1mb")
		}
	}
	_, all := decode(t, d.Line("CHANGES READ FROM "+begin))
	require.Equal(t, want, commandsOf(all))
	require.Regexp(t, `(?s)retained-bytes\r\n:[1-9]`, d.Line("CHANGES INFO"))

	// Without retention only the present journal is there.
	d.Expect("+OK\r\n", "CONFIG SET changes-retention 0")
	d.Expect("+OK\r\n", "SAVE")
	d.Line("SET k last")
	reply := d.Line("CHANGES READ FROM " + begin)
	require.Regexp(t, `^-CHANGESGONE the oldest position kept is \S+: begin with FROM 0\r\n$`, reply)
	oldest := regexp.MustCompile(`kept is (\S+):`).FindStringSubmatch(reply)[1]
	_, all = decode(t, d.Line("CHANGES READ FROM "+oldest))
	require.Equal(t, []string{"0 SET k last"}, commandsOf(all))
	d.End()

	other := servertest.OpenDurable(t, crashfs.Mem())
	defer other.End()
	other.Lines("SET k 1", "SET k 2")
	require.Regexp(t, `^-CHANGESGONE`, other.Line("CHANGES READ FROM "+oldest), "of another server")
}

func TestAReaderWaitsForAChange(t *testing.T) {
	for _, policy := range []string{"always", "everysec", "no"} {
		d := servertest.OpenDurable(t, crashfs.Mem(), "appendfsync", policy)
		begin := end(t, d)
		writer := d.Another()
		got := make(chan string)
		go func() { got <- d.Line("CHANGES READ FROM " + begin + " MATCH k BLOCK 0") }()
		require.Eventually(t, func() bool { return strings.Contains(writer.Line("INFO clients"), "blocked_clients:1") },
			time.Minute, time.Millisecond)
		writer.Lines("SET other 1", "SET k 1", "SET k 2")
		_, all := decode(t, <-got)
		require.NotEmpty(t, all)
		require.Equal(t, "0 SET k 1", commandsOf(all)[0])
		writer.Disconnect()
		d.End()
	}
}

func TestAReaderSeesTheKeysThatItMayRead(t *testing.T) {
	d := servertest.OpenDurable(t, crashfs.Mem())
	defer d.End()
	begin := end(t, d)
	d.Lines("SET a:1 1", "SET b:1 1", "MSET a:2 1 b:2 1", "MULTI", "SET a:3 1", "SET b:3 1", "EXEC", "FLUSHALL",
		"ACL SETUSER reader on nopass ~a:* +@all")
	d.Expect("+OK\r\n", "AUTH reader x")
	_, all := decode(t, d.Line("CHANGES READ FROM "+begin))
	require.Equal(t, []string{"0 SET a:1 1", "0 SET a:3 1"}, commandsOf(all))
	d.Expect("+OK\r\n", "AUTH default x")
	d.Line("ACL SETUSER reader resetkeys %W~a:*")
	d.Expect("+OK\r\n", "AUTH reader x")
	_, all = decode(t, d.Line("CHANGES READ FROM "+begin))
	require.Empty(t, all)
}

// Readers that wait share few threads.
func TestReadersThatWaitHaveNoThread(t *testing.T) {
	d := servertest.OpenDurable(t, crashfs.Mem())
	defer d.End()
	begin := end(t, d)
	const readers = 60
	before := pprof.Lookup("threadcreate").Count()
	var all []*servertest.Durable
	got := make(chan string, readers)
	for range readers {
		r := d.Another()
		all = append(all, r)
		go func() { got <- r.Line("CHANGES READ FROM " + begin + " MATCH k BLOCK 0") }()
	}
	require.Eventually(t, func() bool {
		return strings.Contains(d.Line("INFO persistence"), fmt.Sprint("changes_readers:", readers))
	},
		time.Minute, time.Millisecond)
	d.Line("SET other 1")
	require.Less(t, pprof.Lookup("threadcreate").Count()-before, readers/2)
	d.Line("SET k 1")
	for range readers {
		_, some := decode(t, <-got)
		require.Equal(t, []string{"0 SET k 1"}, commandsOf(some))
	}
	for _, r := range all {
		r.Disconnect()
	}
}

// A user of one database sees nothing of the others, also with all keys; commands for all databases need all databases.
func TestAReaderSeesTheDatabasesThatItMayUse(t *testing.T) {
	d := servertest.OpenDurable(t, crashfs.Mem())
	defer d.End()
	begin := end(t, d)
	d.Lines("SET k 0", "SELECT 1", "SET k 1", "MOVE k 2", "SET k 3", "SWAPDB 1 2", "FLUSHALL", "SELECT 0", "SET k 4", "SELECT 1", "SET k 5",
		"ACL SETUSER reader on nopass ~* &* +@all resetdbs db=1")
	_, some := decode(t, d.Line("CHANGES READ FROM "+begin+" DB 3"))
	require.Equal(t, []string{"1 FLUSHALL"}, commandsOf(some), "it is for all databases")
	_, some = decode(t, d.Line("CHANGES READ FROM "+begin+" DB 2"))
	require.Equal(t, []string{"1 MOVE k 2", "1 SWAPDB 1 2", "1 FLUSHALL"}, commandsOf(some))
	d.Expect("+OK\r\n", "AUTH reader x")
	for _, from := range []string{begin, "0"} {
		var got []string
		for at, before := from, ""; at != before; { // without BLOCK, whose time may end before the first change is found
			var all []change
			before = at
			at, all = decode(t, d.Line("CHANGES READ FROM "+at))
			got = append(got, commandsOf(all)...)
		}
		want := []string{"1 SET k 5"}
		if from != "0" {
			want = []string{"1 SET k 1", "1 SET k 3", "1 SET k 5"}
		}
		require.Equal(t, want, got)
	}
}

// Values of other users are not read as commands: positions in a snapshot are those that the server has returned.
func TestPositionsInSnapshotsCannotBeMadeUp(t *testing.T) {
	d := servertest.OpenDurable(t, crashfs.Mem())
	defer d.End()
	d.Lines("SET a 1", "SET b 2")
	at, all := decode(t, d.Line("CHANGES READ FROM 0 COUNT 1"))
	require.Len(t, all, 1)
	parts := regexp.MustCompile(`^(s[0-9a-f]{16}-)(\d+)\.(\d+)(-[0-9a-f]{16})$`).FindStringSubmatch(at)
	require.NotNil(t, parts, at)
	for _, wrong := range []string{parts[1] + "0." + parts[3] + parts[4], parts[1] + parts[2] + ".2" + parts[4],
		parts[1] + parts[2] + "." + parts[3] + "-0000000000000000"} {
		require.Equal(t, "-CHANGESGONE the snapshot is not kept any more: begin with FROM 0 again\r\n", d.Line("CHANGES READ FROM "+wrong))
	}
	_, rest := decode(t, d.Line("CHANGES READ FROM "+at+" COUNT 1"))
	require.Len(t, rest, 1)
}

// small is a file system with little room.
type small struct {
	*crashfs.FS
	free atomic.Int64
}

func (s *small) Free(string) (int64, bool) { return s.free.Load(), true }

func TestASnapshotLeavesRoom(t *testing.T) {
	fs := &small{FS: crashfs.Mem()}
	d := servertest.OpenDurable(t, fs)
	defer d.End()
	d.Lines("SET a 1")
	fs.free.Store(256 << 20)
	require.Equal(t, "-NOROOM a snapshot of the data would leave less than 256 MB of the disk free\r\n", d.Line("CHANGES READ FROM 0"))
	names, err := fs.List("/db/changes-snapshots")
	require.NoError(t, err)
	require.Empty(t, names)
	d.Expect("+OK\r\n", "SET b 2")
	fs.free.Store(257 << 20)
	_, all := decode(t, d.Line("CHANGES READ FROM 0"))
	require.ElementsMatch(t, []string{"0 SET a 1", "0 SET b 2"}, commandsOf(all))
}

// A reader that waits gets nothing that its user may not read any more.
// A consumer that keeps only the positions of changes does not need the snapshot any more once it has the last one.
func TestTheLastChangeOfASnapshotHasAPositionInTheJournal(t *testing.T) {
	d := servertest.OpenDurable(t, crashfs.Mem())
	defer d.End()
	d.Lines("SET a 1", "SELECT 3", "SET b 2")
	last := end(t, d)
	next, all := decode(t, d.Line("CHANGES READ FROM 0"))
	require.Equal(t, []string{"0 SET a 1", "3 SET b 2"}, commandsOf(all))
	require.Equal(t, byte('s'), all[0].position[0])
	require.Equal(t, last, all[1].position)
	require.Equal(t, last, next)
	_, rest := decode(t, d.Line("CHANGES READ FROM "+all[0].position+" COUNT 1"))
	require.Equal(t, all[1:], rest)
}

func TestAReaderThatWaitsLosesTheRightsOfItsUser(t *testing.T) {
	d := servertest.OpenDurable(t, crashfs.Mem())
	defer d.End()
	reader := d.Another()
	begin := end(t, d)
	for _, keys := range []string{"~*", "~a:*"} {
		d.Line("ACL SETUSER reader on nopass resetkeys +@all " + keys)
		reader.Expect("+OK\r\n", "AUTH reader x")
		got := make(chan string)
		go func() { got <- reader.Line("CHANGES READ FROM " + begin + " BLOCK 0") }()
		require.Eventually(t, func() bool { return strings.Contains(d.Line("INFO clients"), "blocked_clients:1") }, time.Minute,
			time.Millisecond)
		d.Line("ACL SETUSER reader resetkeys ~b:*")
		d.Lines("SET a:1 secret", "SET b:1 open")
		position, all := decode(t, <-got)
		require.Equal(t, []string{"0 SET b:1 open"}, commandsOf(all))
		begin = position
	}
	reader.Disconnect()
}

// There is one snapshot at a time. A start removes old snapshots, and leaves other files in their directory.
func TestOnlySnapshotsAreRemoved(t *testing.T) {
	fs := crashfs.Mem()
	d := servertest.OpenDurable(t, fs)
	d.Lines("SET a 1", "SET b 2")
	_, _ = decode(t, d.Line("CHANGES READ FROM 0 COUNT 1"))
	at, _ := decode(t, d.Line("CHANGES READ FROM 0 COUNT 1"))
	d.Expect("+OK\r\n", "SAVE")
	d.Line("SET a 2")
	d.Expect("+OK\r\n", "SAVE")
	d.Line("SET a 3")
	later, _ := decode(t, d.Line("CHANGES READ FROM 0 COUNT 1"))
	require.NotEqual(t, at[:17], later[:17], "the changes after the first one are gone, and so it is of no use")
	names, err := fs.List("/db/changes-snapshots")
	require.NoError(t, err)
	require.Equal(t, []string{later[1:17] + ".snapshot"}, names)
	for _, name := range []string{"changes-snapshots/mine", "changes-snapshots/0123.snapshot", "changes-snapshots/0123456789abcdef.snapshot"} {
		file, err := fs.Create("/db/" + name)
		require.NoError(t, err)
		require.NoError(t, file.Close())
	}
	d.Drop()
	d = servertest.OpenDurable(t, fs)
	d.End()
	names, err = fs.List("/db/changes-snapshots")
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"mine", "0123.snapshot"}, names)
}

// A replaced data set is another history, even if its journal has the same length.
func TestDataThatWasReplacedIsAnotherHistory(t *testing.T) {
	dir := t.TempDir()
	open := func() *servertest.Durable {
		return servertest.OpenDurable(t, disk.System, "dir", dir+"/d", "changes-retention", "1mb")
	}
	d := open()
	d.Lines("SET a 1", "SET a 2")
	at := end(t, d)
	d.End()
	d = open()
	_, all := decode(t, d.Line("CHANGES READ FROM "+at))
	require.Empty(t, all)
	d.End()
	require.NoError(t, disk.System.RemoveAll(dir+"/d"))
	d = open()
	d.Lines("SET a 1", "SET a 2")
	require.Regexp(t, `^-CHANGESGONE the position belongs to another history`, d.Line("CHANGES READ FROM "+at))
	d.End()
}

// apply executes changes at another server, a transaction as one.
func apply(t *testing.T, to *servertest.Durable, all []change) {
	for _, c := range all {
		to.Line("MULTI")
		for _, cmd := range c.commands {
			db, words, _ := strings.Cut(cmd, " ")
			to.Line("SELECT " + db)
			to.Line(words)
		}
		require.NotContains(t, to.Line("EXEC"), "\n-", c.commands)
	}
}

func TestAConsumerThatBeginsEmptyEndsEqual(t *testing.T) {
	d := servertest.OpenDurable(t, crashfs.Mem())
	defer d.End()
	copied := servertest.OpenDurable(t, crashfs.Mem())
	defer copied.End()
	for i := range 300 {
		d.Lines(fmt.Sprint("SET k", i, " ", i), fmt.Sprint("RPUSH l", i%7, " ", i), fmt.Sprint("ZADD z ", i, " m", i))
	}
	d.Lines("SET t v PX 100000000", "SELECT 2", "HSET h f v", "XADD x 1-1 f v")
	at, first := decode(t, d.Line("CHANGES READ FROM 0 COUNT 10"))
	require.Regexp(t, `^s[0-9a-f]{16}-`, at)
	require.Len(t, first, 10)
	apply(t, copied, first)
	d.Lines("INCR k1", "DEL k2", "RPUSH l1 later") // after the snapshot's instant
	for all := first; len(all) > 0; {
		at, all = decode(t, d.Line("CHANGES READ FROM "+at+" COUNT 50"))
		apply(t, copied, all)
	}
	require.NotRegexp(t, `^s`, at)
	require.Equal(t, d.Line("DEBUG DIGEST"), copied.Line("DEBUG DIGEST"))

	// A reader that begins soon after shares the snapshot; one of a snapshot that is gone begins again.
	again, _ := decode(t, d.Line("CHANGES READ FROM 0 COUNT 10"))
	require.NotEqual(t, again, at)
	require.Equal(t, "-CHANGESGONE the snapshot is not kept any more: begin with FROM 0 again\r\n",
		d.Line("CHANGES READ FROM s0000000000000000-0.0-0000000000000000"))
	for _, wrong := range []string{"s", "s-0.0", "s0-x.0", "s0-0", "s0--1.0", "s0-0.x", "s0-0.0", "s0-0.0-1", "s0--1.0-0000000000000000"} {
		require.Contains(t, d.Line("CHANGES READ FROM "+wrong), "ERR invalid position", wrong)
	}
}

func TestAGroupKeepsItsPosition(t *testing.T) {
	fs := crashfs.Mem()
	d := servertest.OpenDurable(t, fs)
	begin := end(t, d)
	d.Expect("+OK\r\n", "CHANGES GROUP CREATE g $")
	d.Expect("+OK\r\n", "CHANGES GROUP CREATE other 0")
	d.Expect("-BUSYGROUP the group exists already\r\n", "CHANGES GROUP CREATE g 0")
	d.Expect("-NOGROUP there is no such group\r\n", "CHANGES GROUP ACK h $")
	d.Expect("-ERR syntax error\r\n", "CHANGES GROUP ACK g")
	require.Contains(t, d.Line("CHANGES GROUP ACK g x"), "ERR invalid position")
	d.Lines("SET a 1", "SET a 2", "SET a 3")
	_, all := decode(t, d.Line("CHANGES READ GROUP g"))
	require.Equal(t, []string{"0 SET a 1", "0 SET a 2", "0 SET a 3"}, commandsOf(all), "what groups do is no change of the data")
	d.Expect("+OK\r\n", "CHANGES GROUP ACK g "+all[0].position)
	for i := range 4 {
		_, rest := decode(t, d.Line("CHANGES READ GROUP g COUNT 2"))
		require.Equal(t, all[1:], rest)
		require.Regexp(t, `^\*2\r\n\*3\r\n\$1\r\ng\r\n\$\d+\r\n`+all[0].position+`\r\n:[1-9]\d*\r\n\*3\r\n\$5\r\nother\r\n\$1\r\n0\r\n:-1\r\n$`,
			d.Line("CHANGES GROUPS"))
		if i%2 == 0 {
			d.Drop()
			d = servertest.OpenDurable(t, fs, "changes-retention", "1mb")
			continue
		}
		d.Line("FT.DICTADD words one") // another state beside the keys
		d.Expect("+OK\r\n", "SAVE")
		d.End()
		d = servertest.OpenDurable(t, fs, "changes-retention", "1mb")
		d.Expect("*1\r\n$3\r\none\r\n", "FT.DICTDUMP words")
	}
	d.Expect("+OK\r\n", "CHANGES GROUP ACK g "+begin)
	_, again := decode(t, d.Line("CHANGES READ GROUP g COUNT 3"))
	require.Equal(t, all, again)
	require.Regexp(t, `changes_groups:2\r\nchanges_lag:[1-9]\d*\r\nchanges_lag_unknown:1\r`, d.Line("INFO persistence"))
	var file bytes.Buffer
	require.NoError(t, d.WriteAOF(&file))
	require.Contains(t, file.String(), "FT.DICTADD")
	require.NotContains(t, file.String(), "CHANGES", "a Redis does not know it")
	d.Expect(":1\r\n", "CHANGES GROUP DESTROY g")
	d.Expect(":0\r\n", "CHANGES GROUP DESTROY g")
	d.Expect("-NOGROUP there is no such group\r\n", "CHANGES READ GROUP g")
	d.End()
}
