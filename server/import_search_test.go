package server

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/testing/crashfs"
)

// searchFile is an RDB file of a Redis with the query engine; the test of package foreign describes its content.
func searchFile(t *testing.T) []byte {
	file, err := os.ReadFile("../internal/search/foreign/testdata/redisearch-8.0.rdb")
	require.NoError(t, err)
	return file
}

// searchReplies are commands on the file's data with the replies of that Redis.
var searchReplies = [][2]string{
	{"FT.SEARCH everything boy NOCONTENT", "*2\r\n:1\r\n$5\r\ndoc:1\r\n"},
	{"FT.SEARCH tout @kind:{blue} NOCONTENT", "*2\r\n:1\r\n$5\r\ndoc:2\r\n"},
	{"FT.SEARCH opts @b:{tag1} NOCONTENT", "*2\r\n:1\r\n$5\r\nother\r\n"},
	{"FT.SEARCH nohl hello NOCONTENT", "*2\r\n:1\r\n$5\r\ndoc:1\r\n"},
	{"FT.SUGGET names ada WITHPAYLOADS", "*4\r\n$4\r\nadam\r\n$-1\r\n$12\r\nada lovelace\r\n$3\r\npay\r\n"},
	{"FT.DICTDUMP autres", "*2\r\n$4\r\ndeux\r\n$2\r\nun\r\n"},
}

func TestTheIndexesOfARedisAreReadAtStart(t *testing.T) {
	fs := crashfs.Mem()
	putFile(t, fs, "/db/dump.rdb", searchFile(t))
	d, err := openDurable(t, fs)
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, d.WriteRDBWithModules(&out))
	require.Contains(t, out.String(), "\x05\x0beverything\x00", "the alias, as the module writes it")
	out.Reset()
	require.NoError(t, d.WriteRDB(&out))
	require.NotContains(t, out.String(), "everything\x00", "a Redis without the module refuses its data")
	for range 2 { // the indexes are stored, and filled again after a start
		for _, r := range searchReplies {
			d.await(r[1], r[0])
		}
		d.s.Close()
		require.NoError(t, d.close(false))
		d, err = openDurable(t, fs)
		require.NoError(t, err)
	}
	d.end()
}

// A Redis writes commands of the query engine under other names than its clients use.
var searchCommands = []string{"SELECT 0", "HSET r:1 a x", "_FT._CREATEIFNX r PREFIX 1 r: SCHEMA a TEXT", "_FT._ALTERIFNX r SCHEMA ADD b TAG",
	"_FT._ALIASADDIFNX one r", "_FT.ALIASUPDATE two r", "_FT._ALIASDELIFX one", "_FT.SYNUPDATE r g x y", "_FT.DICTADD d v w",
	"_FT.DICTDEL d v", "FT.SUGADD s text 1", "HSET r:2 b tag", "_FT._CREATEIFNX gone SCHEMA a TEXT", "MULTI", "DEL r:3",
	"_FT._DROPINDEXIFX gone _FORCEKEEPDOCS", "EXEC"}

var searchCommandReplies = [][2]string{
	{"FT._LIST", "*1\r\n+r\r\n"},
	{"FT.SEARCH two y NOCONTENT", "*2\r\n:1\r\n$3\r\nr:1\r\n"},
	{"FT.SEARCH r @b:{tag} NOCONTENT", "*2\r\n:1\r\n$3\r\nr:2\r\n"},
	{"FT.DICTDUMP d", "*1\r\n$1\r\nw\r\n"},
	{"FT.SUGGET s te", "*1\r\n$4\r\ntext\r\n"},
	{"FT.ALIASLIST r", "*1\r\n$3\r\ntwo\r\n"},
}

func TestTheIndexesOfAnAppendOnlyFileAreRead(t *testing.T) {
	fs := crashfs.Mem()
	putFile(t, fs, "/db/appendonly.aof", aofFile(searchCommands...))
	d, err := openDurable(t, fs)
	require.NoError(t, err)
	for _, r := range searchCommandReplies {
		d.expect(r[1], r[0])
	}
	d.end()
}

func TestTheIndexesOfAMasterAreFollowed(t *testing.T) {
	m := newScriptedMaster(t)
	s := startTestServer(t, Options{}, "appendonly", "no")
	c := s.connect()
	require.Equal(t, "OK", c.do("FT.CREATE old SCHEMA a TEXT")[1:])
	require.Equal(t, "+OK", c.do("REPLICAOF "+m.hostPort()))
	a := m.accept(append(introduction(0), "PSYNC ? -1=+FULLRESYNC "+oldHistory+" 100")...)
	data := searchFile(t)
	a.send(fmt.Sprintf("$%d\r\n%s", len(data), data))
	a.expect("REPLCONF ACK 100")
	require.Contains(t, c.do("FT.SEARCH everything boy NOCONTENT"), "doc:1")
	require.Contains(t, c.do("FT.SEARCH old *"), "Index not found: old")
	offset := a.confirmed(100 + a.say("_FT._DROPINDEXIFX opts _FORCEKEEPDOCS", "_FT.DICTADD words delta", "FT.SUGDEL names adam"))
	a.confirmed(offset + a.say(searchCommands...))
	require.Equal(t, `["two"]`, c.do("FT.ALIASLIST r"))
	require.NotContains(t, c.do("FT._LIST"), "opts")
	require.Contains(t, c.do("FT.DICTDUMP words"), "delta")
	require.Contains(t, c.do("INFO stats"), "unexpected_error_replies:0\r\n")
}

// A replica keeps expired documents until its master removes them. Rows and groups do not have them.
func TestExpiredDocumentsOfAReplicaAreNotInAggregations(t *testing.T) {
	m := newScriptedMaster(t)
	clock := engine.NewManualClock(time.UnixMilli(1e12))
	s := startTestServer(t, Options{Clock: clock}, "appendonly", "no")
	c := s.connect()
	require.Equal(t, "+OK", c.do("REPLICAOF "+m.hostPort()))
	a := m.accept(append(introduction(0), "PSYNC ? -1=+FULLRESYNC "+oldHistory+" 100")...)
	data := rdbFile(t)
	a.send(fmt.Sprintf("$%d\r\n%s", len(data), data))
	a.expect("REPLCONF ACK 100")
	offset := a.confirmed(100 + a.say("FT.CREATE x SCHEMA g TAG n NUMERIC v VECTOR FLAT 6 TYPE FLOAT32 DIM 1 DISTANCE_METRIC L2",
		"HSET a g t n 1 v aaaa", "HSET b g t n 2 v bbbb", "PEXPIREAT b 1000000001000"))
	grouped := []string{"FT.AGGREGATE x * GROUPBY 1 @g REDUCE COUNT 0 AS docs REDUCE SUM 1 @n AS sum",
		"FT.HYBRID x SEARCH * VSIM @v $v LOAD 2 @g @n GROUPBY 1 @g REDUCE COUNT 0 AS docs REDUCE SUM 1 @n AS sum PARAMS 2 v aaaa"}
	for _, query := range grouped {
		require.Contains(t, c.do(query), `["g" "t" "docs" "2" "sum" "3"]`)
	}
	first := c.do("FT.AGGREGATE x * LOAD 1 @n WITHCURSOR COUNT 1")
	require.Contains(t, first, `["n" "1"]`)
	cursor := first[strings.LastIndex(first, " ")+1 : len(first)-1]
	clock.Advance(2 * time.Second)
	for range 2 {
		for _, query := range grouped {
			require.Contains(t, c.do(query), `["g" "t" "docs" "1" "sum" "1"]`)
		}
		if cursor != "" {
			require.NotContains(t, c.do("FT.CURSOR READ x "+cursor), `"n"`)
			cursor = ""
		}
		offset = a.confirmed(offset + a.say("DEL b"))
	}
}

// is reads commands.
func (f *rawFollower) is(commands ...string) {
	f.t.Helper()
	for _, want := range commands {
		require.Equal(f.t, want, f.next())
	}
}

// A Redis gets the indexes as commands after its copy, and a server of this program with the copy.
func TestARedisThatFollowsGetsTheIndexes(t *testing.T) {
	s := startTestServer(t, Options{}, "appendonly", "no")
	c := s.connect()
	for _, line := range []string{"FT.CREATE i SKIPINITIALSCAN SCHEMA a TEXT", "FT.ALIASADD j i"} {
		require.Equal(t, "+OK", c.do(line))
	}
	require.Equal(t, "1", c.do("FT.DICTADD d w"))
	host, port, _ := strings.Cut(s.Addrs()[0].String(), ":")
	for _, ours := range []bool{true, false} {
		f := newRawFollower(t, host, port)
		f.say("REPLCONF listening-port 1")
		require.Equal(t, "+OK", f.line())
		if ours {
			f.say("REPLCONF group ?")
			require.Contains(t, f.line(), "-ERR")
		}
		f.follow("eof")
		if !ours {
			f.is("SELECT 0", "MULTI", "FT._CREATEIFNX i SCHEMA a TEXT", "FT._ALIASADDIFNX j i", "FT.DICTADD d w", "EXEC")
		}
		require.Equal(t, "+OK", c.do("SET a 1"))
		if ours {
			f.is("SELECT 0")
		}
		f.is("SET a 1")
		f.Close()
		c.waitFor("INFO replication", "connected_slaves:0")
	}
}
