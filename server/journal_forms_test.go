package server

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/session"
	"github.com/atomredis/atomredis/internal/testing/commandtest"
	"github.com/atomredis/atomredis/internal/testing/testseed"
	"github.com/atomredis/atomredis/resp"
)

// memoryJournal is a journal that keeps its records.
type memoryJournal struct{ records []memoryRecord }

type memoryRecord struct {
	now      int64
	commands []byte
}

// Append implements engine.Journal.
func (j *memoryJournal) Append(now int64, commands []byte) {
	j.records = append(j.records, memoryRecord{now, slices.Clone(commands)})
}

// text returns the commands of a record, words separated by spaces.
func (r memoryRecord) text(t require.TestingT) []string {
	var out []string
	parser := resp.Parser{MaxBulk: resp.AnyBulk}
	for b := r.commands; len(b) > 0; {
		args, n, err := parser.Next(b, nil)
		require.NoError(t, err)
		require.NotZero(t, n)
		words := make([]string, len(args))
		for i, a := range args {
			words[i] = string(a)
		}
		out = append(out, strings.Join(words, " "))
		b = b[n:]
	}
	return out
}

// journalled is a server whose changes go to a journal in memory, with some clients.
type journalled struct {
	*harness
	journal  memoryJournal
	sessions [3]*session.Session
}

// newJournalled returns a server whose sets soon become large.
func newJournalled(t require.TestingT) *journalled {
	b := &journalled{harness: newHarness(t)}
	require.NoError(t, b.config.Set("set-max-listpack-entries", maxSmallSet, false))
	b.ks.EndReplay(&b.journal)
	for i := range b.sessions {
		b.sessions[i] = b.session()
	}
	return b
}

const maxSmallSet = "4"

// step executes a line: "+1000" advances the clock by 1000 ms; any other line is a command of client 0, or of the
// client whose number and a colon precede it. It returns the replies of that client.
func (b *journalled) step(line string) string {
	if ms, ok := strings.CutPrefix(line, "+"); ok {
		n, _ := strconv.Atoi(ms)
		b.clock.Advance(time.Duration(n) * time.Millisecond)
		b.advance()
		return ""
	}
	s := b.sessions[0]
	if len(line) > 2 && line[1] == ':' {
		s, line = b.sessions[line[0]-'0'], line[2:]
	}
	s.Input(request(strings.Fields(line)...), b.ks.Now())
	b.advance()
	reply := string(s.Output())
	s.SetOutput(nil)
	return reply
}

// advance lets all clients read their mail.
func (b *journalled) advance() {
	for _, s := range b.sessions {
		s.Advance(b.ks.Now())
	}
}

// finish repeats the journal on a new server, and checks that the data is the same there. The streams have blocks of
// another size, on which the result must not depend.
func (b *journalled) finish(t require.TestingT) {
	again := newHarness(t)
	require.NoError(t, again.config.Set("set-max-listpack-entries", maxSmallSet, false))
	require.NoError(t, again.config.Set("stream-node-max-entries", "7", false))
	require.NoError(t, again.ks.Restore(engine.StoredState{}))
	b.repeat(t, again, command.FromJournal, 0)
	now := b.ks.Now()
	// No record says that a consumer tried to read and found nothing.
	seen := regexp.MustCompile(`seen \d+ `)
	require.Equal(t, without(seen, b.ks, now), without(seen, again.ks, now))
	require.Equal(t, string(b.kept()), string(again.kept()))
	// Followers repeat the commands later. Only the times at which entries were read differ then.
	later := newHarness(t)
	require.NoError(t, later.config.Set("set-max-listpack-entries", maxSmallSet, false))
	require.NoError(t, later.ks.Restore(engine.StoredState{}))
	b.repeat(t, later, command.FromImport, 1e9)
	times := regexp.MustCompile(`seen \d+ active -?\d+|at \d+,`)
	require.Equal(t, without(times, b.ks, now), without(times, later.ks, now))
	require.Equal(t, string(b.kept()), string(later.kept()))
	require.NoError(t, later.Close())
	for _, s := range b.sessions {
		s.Close()
	}
	require.NoError(t, b.Close())
	require.NoError(t, again.Close())
	require.Empty(t, b.log.Found)
	require.Empty(t, again.log.Found)
}

// repeat executes the journal on another server, some ms later.
func (b *journalled) repeat(t require.TestingT, on *harness, from command.Origin, later int64) {
	r := on.Server.sessions.NewReplayer(from)
	for _, rec := range b.journal.records {
		require.NoError(t, r.Apply(rec.now+later, rec.commands), "%q", rec.text(t))
	}
}

// dump returns all stored data, a line for each key.
func dump(ks *engine.Keyspace, now int64) []string { return commandtest.Dump(ks, now) }

// without is dump without the parts that an expression matches.
func without(what *regexp.Regexp, ks *engine.Keyspace, now int64) (out []string) {
	for _, line := range dump(ks, now) {
		out = append(out, what.ReplaceAllString(line, ""))
	}
	return out
}

// fill returns n commands that add to a stream, several times as many as a block holds.
func fill(key string, n int) []string {
	lines := make([]string, n)
	for i := range lines {
		lines[i] = fmt.Sprintf("XADD %s %d-1 field %d", key, i+1, i)
	}
	return lines
}

// integerPayload is a payload for RESTORE that is one word: the integer 40.
const integerPayload = "\x00\xc0\x28\x08\x00\x2f\x34\xa7\x81\x2f\xfe\xb8\xab"

// journalForms are commands, and the record of the last one of them where that differs from the command.
var journalForms = []struct {
	name  string
	steps []string
	want  []string
}{
	{"set", []string{"SET k v", "SET k w EX 10", "SET k x KEEPTTL", "SET k y GET PX 5000", "SETEX j 7 v",
		"PSETEX i 70 v", "SETNX h v",
		"SETNX h w", "GETSET k z", "MSET a 1 b 2", "MSETNX a 3 c 4", "MSETNX d 5", "APPEND a tail", "SETRANGE b 5 x"},
		[]string{"SETRANGE b 5 x"}},
	{"increment", []string{"INCR n", "DECR n", "INCRBY n 5", "DECRBY n 3", "INCRBYFLOAT n 0.1", "INCRBYFLOAT n 1e-5"},
		nil},
	{"bits", []string{"SETBIT a 9 1", "SETBIT a 9 0", "SETBIT b 100 0",
		"BITFIELD c SET i8 #1 -3 OVERFLOW SAT INCRBY u4 2 20", "BITFIELD d OVERFLOW FAIL SET u2 50 9",
		"BITFIELD c GET u8 0 SET i8 #1 -4", "BITOP NOT e a", "BITOP DIFF f e b c", "BITOP ONE e a nosuch",
		"BITOP AND f nosuch"}, nil},
	{"bits only read", []string{"SET k v", "BITFIELD k GET u8 0 SET u8 0 118", "SETBIT k 0 0", "APPEND k w"},
		[]string{"APPEND k w"}},
	{"pfadd", []string{"PFADD h a b c", "PFADD h a", "PFADD i", "PFMERGE i h", "PFADD i d", "PFMERGE new nosuch",
		"PFDEBUG TODENSE h", "PFADD h e",
		"PFMERGE j i h", "PFDEBUG GETREG i"}, nil},
	{"pfcount", []string{"PFADD h a b c", "PFCOUNT h"}, []string{"SETRANGE h 8 \x03\x00\x00\x00\x00\x00\x00\x00"}},
	{"pfcount twice", []string{"PFADD h a", "PFCOUNT h", "PFCOUNT h", "PFCOUNT h nosuch", "PFADD h b"},
		[]string{"PFADD h b"}},
	{"geoadd", []string{"GEOADD g 13.361389 38.115556 a 15.087269 37.502669 b 180 85.05112878 c",
		"GEOADD g XX CH 1.5 -1.5 b", "GEORADIUS g 13 38 200 km STORE d",
		"GEORADIUS g 13 38 200 km STORE no STORE e STOREDIST f", "GEORADIUSBYMEMBER g a 9000 km STOREDIST f",
		"GEOSEARCHSTORE s g FROMLONLAT 1 1 BYBOX 900 900 km",
		"GEOSEARCHSTORE s g FROMMEMBER a BYRADIUS 9000 mi COUNT 2 STOREDIST",
		"GEOSEARCHSTORE d nosuch FROMMEMBER a BYRADIUS 1 m"}, nil},
	{"getex", []string{"SET k v", "+5", "GETEX k EX 10", "+5", "GETEX k PX 100", "GETEX k PERSIST",
		"GETEX k PXAT 1000000100000"}, nil},
	{"getex in the past", []string{"SET k v", "GETEX k PXAT 1"}, nil},
	{"getdel", []string{"SET k v", "GETDEL k"}, nil},
	{"expire", []string{"MSET a 1 b 2 c 3 d 4 e 5", "+3", "EXPIRE a 10", "PEXPIRE b 1500", "EXPIREAT c 1000000100",
		"PEXPIREAT d 1000000100000", "EXPIRE e -1",
		"PERSIST a", "EXPIRE a 20 NX", "EXPIRE a 30 GT"}, nil},
	{"expired", []string{"SET a v PX 10", "SET b v PX 20", "+15", "SETNX a w", "+15", "APPEND b x"}, nil},
	{"a deadline in the past", []string{"SET a v PXAT 5", "SET a w NX"}, []string{"DEL a", "SET a w"}},
	{"rename", []string{"SET a v EX 10", "SADD b m", "RENAME a b", "RENAMENX b c", "COPY c d", "COPY c e DB 3",
		"MOVE c 2", "COPY d e REPLACE", "DEL d", "UNLINK nosuch e"},
		[]string{"UNLINK nosuch e"}},
	{"databases", []string{"SELECT 4", "SET k v", "SELECT 2", "SET k w", "SWAPDB 4 2", "SELECT 4", "APPEND k x"},
		[]string{"SELECT 4", "APPEND k x"}},
	{"restore", []string{"RESTORE a 0 " + integerPayload, "INCR a", "+7", "RESTORE b 500 " + integerPayload,
		"RESTORE c 9000000000000 " + integerPayload + " ABSTTL IDLETIME 100",
		"RESTORE a 100 " + integerPayload + " REPLACE", "RESTORE-ASKING d 0 " + integerPayload, "+200"}, nil},
	{"bless", []string{"SET a v", "BLESS SET a NO-EVICT", "RENAME a b", "MOVE b 2", "COPY b c", "SET d 1",
		"BLESS SET d NO-EVICT", "RESTORE d 0 " + integerPayload + " REPLACE", "BLESS CLEAR d NO-EVICT",
		"BLESS SET d NO-EVICT", "APPEND d x", "SET d 2", "BLESS CLEAR d NO-EVICT"}, nil},
	{"restore in the past", []string{"SET a v", "RESTORE b 1 " + integerPayload + " ABSTTL",
		"RESTORE a 1 " + integerPayload + " ABSTTL REPLACE"}, []string{"DEL a"}},
	{"flush", []string{"SET k v", "FLUSHDB", "SET k v", "FLUSHALL"}, nil},
	{"flush without keys", []string{"FT.DICTADD d x", "FLUSHALL", "FT.CREATE i SCHEMA t TEXT", "SELECT 1", "FLUSHDB", "SELECT 0", "FLUSHDB"}, nil},
	{"search beside expiry", []string{"FT.CREATE i SCHEMA t TEXT", "SET k v PX 10", "FT.ALIASADD a i", "PERSIST k", "SET j v PX 10", "+20",
		"FT.ALIASUPDATE a i"}, []string{"FT.ALIASUPDATE a i"}},
	{"list", []string{"RPUSH l a b c d e f", "LPUSH l z", "LPUSHX l y", "RPUSHX l g", "LINSERT l BEFORE c x",
		"LSET l 0 w", "LREM l 1 d", "LTRIM l 1 -2",
		"LPOP l", "RPOP l 2", "LMOVE l m LEFT RIGHT"}, []string{"LMOVE l m LEFT RIGHT"}},
	{"rpoplpush", []string{"RPUSH l a b", "RPOPLPUSH l m"}, []string{"LMOVE l m RIGHT LEFT"}},
	{"rotation", []string{"RPUSH l a b c", "LMOVE l l left right"}, []string{"LMOVE l l LEFT RIGHT"}},
	{"lmpop", []string{"RPUSH l a b c", "LMPOP 2 none l LEFT COUNT 2"}, []string{"LPOP l 2"}},
	{"blpop", []string{"RPUSH l a b", "BLPOP none l 0"}, []string{"LPOP l"}},
	{"brpop", []string{"RPUSH l a b", "BRPOP none l 0"}, []string{"RPOP l"}},
	{"blmove", []string{"RPUSH l a b", "BLMOVE l m LEFT RIGHT 0"}, []string{"LMOVE l m LEFT RIGHT"}},
	{"brpoplpush", []string{"RPUSH l a b", "BRPOPLPUSH l m 0"}, []string{"LMOVE l m RIGHT LEFT"}},
	{"blmpop", []string{"RPUSH l a b c", "BLMPOP 0 2 none l RIGHT COUNT 2"}, []string{"RPOP l 2"}},
	{"blpop served later", []string{"1:BLPOP k l 0", "RPUSH l a b"}, []string{"RPUSH l a b", "LPOP l"}},
	{"brpop served later", []string{"1:BRPOP k l 0", "RPUSH l a"}, []string{"RPUSH l a", "RPOP l"}},
	{"blmpop served later", []string{"1:BLMPOP 0 2 k l LEFT COUNT 5", "RPUSH l a b"}, []string{"RPUSH l a b", "LPOP l 5"}},
	{"a chain of moves", []string{"1:BLMOVE a b LEFT RIGHT 0", "2:BRPOPLPUSH b c 0", "RPUSH a x y"}, nil},
	{"blocked in another database", []string{"1:SELECT 3", "1:BLPOP l 0", "RPUSH k a", "COPY k l DB 3"},
		[]string{"COPY k l DB 3", "SELECT 3", "LPOP l"}},
	{"blmove to what is no list", []string{"SET m v", "1:BLMOVE l m LEFT RIGHT 0", "RPUSH l a"}, []string{"RPUSH l a"}},
	{"hash", []string{"HSET h a 1 b 2 c 3", "HMSET h d 4", "HSETNX h e 5", "HINCRBY h a 5", "HINCRBYFLOAT h b 0.1",
		"HDEL h c nosuch"}, nil},
	{"deadlines of fields", []string{"HSET h a 1 b 2 c 3 d 4 e 5 f 6 g 7", "+3", "HEXPIRE h 10 FIELDS 2 a nosuch",
		"HPEXPIRE h 1500 FIELDS 1 b",
		"HEXPIREAT h 1000000100 FIELDS 1 c", "HPEXPIREAT h 1000000100000 FIELDS 1 d", "HEXPIRE h 20 GT FIELDS 2 a e",
		"HEXPIRE h 0 FIELDS 1 f",
		"HPERSIST h FIELDS 2 b e", "HGETEX h PX 700 FIELDS 2 e b", "HGETEX h PERSIST FIELDS 1 e",
		"HGETEX h EXAT 1 FIELDS 1 g", "HINCRBY h a 5",
		"HINCRBYFLOAT h c 0.5", "HSET h d 5", "HSETEX h EX 9 FIELDS 2 x 1 y 2", "HSETEX h KEEPTTL FIELDS 1 x 2",
		"HSETEX h FNX PXAT 7 FIELDS 1 z 1",
		"HGETDEL h FIELDS 2 y nosuch", "COPY h i", "RENAME h j", "HSET i " + strings.Repeat("long", 20) + " 1",
		"HPEXPIRE i 99 FIELDS 1 c"}, nil},
	{"expired fields", []string{"HSET h a 1 b 2 c 3", "HPEXPIRE h 10 FIELDS 2 a c", "+15", "HSETNX h a 2",
		"HPEXPIRE h 10 FIELDS 2 a b", "+15",
		"HSET h d 1"}, nil},
	{"an expired field is journalled before what follows",
		[]string{"HSETEX h PX 10 FIELDS 2 a 1 b 2", "HSET h c 3", "+2", "MULTI", "HPEXPIRE h 0 FIELDS 1 a",
			"HSET h a 7", "EXEC"}, []string{"HDEL h a", "HSET h a 7"}},
	{"deadlines of members", []string{"SADD s a b c d e f g", "SADD i 1 2 3", "+3", "SEXPIRE s 10 MEMBERS 2 a nosuch",
		"SPEXPIRE s 1500 MEMBERS 1 b",
		"SEXPIREAT s 1000000100 MEMBERS 1 c", "SPEXPIREAT s 1000000100000 MEMBERS 1 d", "SEXPIRE s 20 GT MEMBERS 2 a e",
		"SEXPIRE s 0 MEMBERS 1 f", "SEXPIRE i 7 MEMBERS 1 2",
		"SPERSIST s MEMBERS 2 b e", "SADD s a x", "SADDEX s EX 9 MEMBERS 2 x y", "SADDEX s KEEPTTL MEMBERS 2 x z",
		"SADDEX s MEMBERS 1 y", "SADDEX s MNX PXAT 7 MEMBERS 1 w", "SADDEX s PXAT 7 MEMBERS 2 z nosuch",
		"SMOVE s i a", "COPY s t", "RENAME s u", "SADD t " + strings.Repeat("long", 20), "SPEXPIRE t 99 MEMBERS 1 c"}, nil},
	{"expired members", []string{"SADD s a b c", "SPEXPIRE s 10 MEMBERS 2 a c", "+15", "SADD s a",
		"SPEXPIRE s 10 MEMBERS 2 a b", "+15",
		"SADD s d"}, nil},
	{"saddex in the past", []string{"SADD s a b c", "SADDEX s EX 0 MEMBERS 2 b nosuch"}, []string{"SREM s b"}},
	{"sort", []string{"SADD s a b c d e f", "RPUSH l 3 1 2", "MSET w_a x w_b x w_c y", "SORT s BY w_* ALPHA STORE d",
		"SORT s BY nosort GET w_* STORE e",
		"SORT l DESC STORE l", "SORT l LIMIT 5 1 STORE e", "SORT s ALPHA STORE s"}, nil},
	{"compared strings", []string{"SET k a", "SET k b IFEQ a EX 5", "SET k c IFEQ a", "DELEX k IFNE c",
		"MSETEX 2 a 1 b 2 PX 1500", "MSETEX 2 b 3 c 4 NX", "+1000",
		"SET a 5 IFEQ 1 KEEPTTL", "DELEX b"}, nil},
	{"xdelex", append(fill("x", 10), "XGROUP CREATE x g 0", "XREADGROUP GROUP g c COUNT 8 STREAMS x >",
		"XDELEX x ACKED IDS 2 1-1 2-1", "XDELEX x DELREF IDS 2 3-1 99-1",
		"XACKDEL x g IDS 2 4-1 5-1", "XACKDEL x g ACKED IDS 1 6-1", "XDELEX x IDS 1 10-1"), nil},
	{"xnack", append(fill("x", 9), "XGROUP CREATE x g 0", "XREADGROUP GROUP g c COUNT 8 STREAMS x >",
		"XNACK x g FAIL IDS 2 5-1 2-1", "XNACK x g FATAL IDS 1 3-1", "XNACK x g SILENT IDS 2 2-1 99-1", "+5",
		"XREADGROUP GROUP g d COUNT 2 CLAIM 60000 STREAMS x >", "XNACK x g FAIL IDS 1 9-1 RETRYCOUNT 7 FORCE",
		"XACK x g 3-1", "XDEL x 2-1", "XNACK x g FAIL IDS 1 2-1"), nil},
	{"xadd idmp", []string{"XADD x IDMP p 1 * a 1", "+5", "XADD x IDMP p 2 * a 2", "XADD x IDMP p 1 * a 3",
		"XADD x IDMPAUTO q MAXLEN ~ 5 * a 1 b 2", "XADD x IDMPAUTO q * b 2 a 1", "XADD x IDMP p 3 MAXLEN 0 * a 4",
		"XCFGSET x IDMP-DURATION 1", "XADD x IDMP p 1 * a 5", "+5", "XADD x IDMP p 1 * a 6",
		"XCFGSET x IDMP-MAXSIZE 1 IDMP-DURATION 1", "XADD x IDMP p 1 * a 7", "XADD x IDMP p 8 * a 8",
		"XADD y 1-1 a b", "XIDMPRECORD y p i 1-1", "XIDMPRECORD y p i 1-1", "CONFIG SET stream-idmp-duration 7",
		"XADD z IDMP p 1 * a 1"}, nil},
	{"xread limits", append(fill("x", 9), "XADD y 1-1 a b", "XGROUP CREATE x g 0", "XGROUP CREATE y g 0",
		"XREADGROUP GROUP g c MAXCOUNT 2 STREAMS x y > >", "XREADGROUP GROUP g c MAXSIZE 10 STREAMS y x > >",
		"XREADGROUP GROUP g d COUNT 3 MAXSIZE 150 STREAMS x >", "+5",
		"XREADGROUP GROUP g c MAXSIZE 10 STREAMS x 0", "XREADGROUP GROUP g c MAXCOUNT 3 CLAIM 0 STREAMS x >",
		"XREADGROUP GROUP g e MAXSIZE 200 CLAIM 0 STREAMS x y > >"), nil},
	{"sadd", []string{"SADD s a b c", "SREM s a x", "SMOVE s t b", "SADD u c d", "SUNIONSTORE v s t u",
		"SINTERSTORE w v u", "SDIFFSTORE x v u"}, nil},
	{"spop all", []string{"SADD s a b c", "SPOP s 3"}, []string{"DEL s"}},
	{"spop the last", []string{"SADD s a", "SPOP s"}, []string{"DEL s"}},
	{"spop integers", []string{"SADD s 1 2 3 4 5 6 7 8 9", "SPOP s", "SPOP s 5"}, nil},
	{"spop strings", []string{"SADD s a b c d e f g h i", "SPOP s", "SPOP s 5"}, nil},
	{"spop large", []string{"SADD s a b c d e f g h i " + strings.Repeat("long", 20), "SPOP s", "SPOP s 5"}, nil},
	{"zadd", []string{"ZADD z 1 a 2 b 3 c 4 d 5 e 6 f", "ZADD z XX GT CH 7 a", "ZINCRBY z 1.5 b", "ZADD z INCR 1 c",
		"ZREM z d", "ZPOPMIN z", "ZPOPMAX z 2",
		"ZADD y 0.1 a 0.2 b 0.3 c 0.4 x", "ZUNIONSTORE u 2 z y WEIGHTS 2 3", "ZINTERSTORE i 2 z y AGGREGATE MAX",
		"ZDIFFSTORE d 2 y z", "ZRANGESTORE r y 0 1",
		"ZREMRANGEBYRANK y 0 0", "ZREMRANGEBYSCORE y 0.2 0.2", "ZREMRANGEBYLEX y [c [c"}, nil},
	{"zmpop", []string{"ZADD z 1 a 2 b 3 c", "ZMPOP 2 none z MAX COUNT 2"}, []string{"ZPOPMAX z 2"}},
	{"bzpopmin", []string{"ZADD z 1 a 2 b", "BZPOPMIN none z 0"}, []string{"ZPOPMIN z"}},
	{"bzpopmax", []string{"ZADD z 1 a 2 b", "BZPOPMAX none z 0"}, []string{"ZPOPMAX z"}},
	{"bzmpop", []string{"ZADD z 1 a 2 b 3 c", "BZMPOP 0 1 z MIN COUNT 2"}, []string{"ZPOPMIN z 2"}},
	{"zmove", []string{"ZADD z 1 a 2 b 3 c 4 d 5 e", "ZADD y 9 b", "ZMOVE z y MAX", "ZMOVE z y MIN COUNT 2",
		"ZMOVE z x BYSCORE (3 4", "ZMOVEMEMBER y x NX MEMBERS 3 a a nosuch", "ZMOVE z z MIN", "ZMOVE none z MIN",
		"ZMOVEMEMBER y x XX MEMBERS 1 b", "ZMOVE z y MIN COUNT 10"}, nil},
	{"bzmove", []string{"ZADD z 1 a 2 b 3 c", "BZMOVE z y MAX 0", "BZMOVE z y MIN 0 COUNT 2"},
		[]string{"ZMOVE z y MIN COUNT 2"}},
	{"bzmove served later", []string{"1:BZMOVE z y MIN 0 COUNT 2", "2:BZMOVE y x MAX 0", "ZADD z 1 a 2 b 3 c"}, nil},
	{"bzmove to what is no sorted set", []string{"SET y v", "1:BZMOVE z y MIN 0", "ZADD z 1 a"}, []string{"ZADD z 1 a"}},
	{"bzmpop served later", []string{"1:BZMPOP 0 2 y z MAX COUNT 2", "ZADD z 1 a 2 b 3 c"},
		[]string{"ZADD z 1 a 2 b 3 c", "ZPOPMAX z 2"}},
	{"bzpop served later", []string{"1:BZPOPMAX y z 0", "2:BZPOPMIN z 0", "ZADD z 1 a 2 b 3 c"},
		[]string{"ZADD z 1 a 2 b 3 c", "ZPOPMAX z", "ZPOPMIN z"}},
	{"xadd", []string{"XADD x * a 1", "+5", "XADD x * a 2 b 3", "XADD x * c 4", "XADD y 5-* a 1", "XADD y 5-* a 1",
		"XADD y NOMKSTREAM MAXLEN 2 6-1 a b",
		"XADD y MINID 6 7-1 a b"}, nil},
	{"xadd trims nothing", append(fill("x", 150), "XADD x NOMKSTREAM MAXLEN ~ 100 LIMIT 10 900-1 a b"),
		[]string{"XADD x 900-1 a b"}},
	{"xadd trims to a length", append(fill("x", 250), "XADD x MAXLEN ~ 120 900-1 a b"),
		[]string{"XADD x MAXLEN = 151 900-1 a b"}},
	{"xadd trims to an ID", append(fill("x", 250), "XADD x NOMKSTREAM MINID ~ 220 900-* a b"),
		[]string{"XADD x MAXLEN = 51 900-0 a b"}},
	{"xadd trims up to a limit", append(fill("x", 350), "XADD x MAXLEN ~ 0 LIMIT 250 900-1 a b"),
		[]string{"XADD x MAXLEN = 151 900-1 a b"}},
	{"xtrim", append(fill("x", 250), "XTRIM x MAXLEN 240", "XTRIM x MINID 20"), nil},
	{"xtrim about", append(fill("x", 250), "XTRIM x MAXLEN ~ 120"), []string{"XTRIM x MAXLEN = 150"}},
	{"xtrim about to an ID", append(fill("x", 250), "XDEL x 50-1 120-1", "XTRIM x MINID ~ 150"),
		[]string{"XTRIM x MAXLEN = 149"}},
	{"xtrim regards groups", append(fill("x", 50), "XGROUP CREATE x g 0", "XREADGROUP GROUP g c COUNT 40 STREAMS x >",
		"XACK x g 2-1 3-1 5-1 7-1",
		"XTRIM x MAXLEN 47 ACKED", "XTRIM x MINID 4 DELREF", "XADD x ACKED MAXLEN 3 900-1 a b"), nil},
	{"xtrim about with references", append(fill("x", 250), "XGROUP CREATE x g 0",
		"XREADGROUP GROUP g c COUNT 120 STREAMS x >", "XTRIM x MAXLEN ~ 120 DELREF"),
		[]string{"XTRIM x MAXLEN = 150 DELREF"}},
	{"xtrim about what is acknowledged", append(fill("x", 250), "XGROUP CREATE x g 0",
		"XREADGROUP GROUP g c COUNT 220 STREAMS x >", "XACK x g 3-1 50-1 150-1 201-1",
		"XTRIM x MAXLEN ~ 0 ACKED"), []string{"XTRIM x MAXLEN = 246 ACKED"}},
	{"xadd trims what is acknowledged", append(fill("x", 250), "XGROUP CREATE x g 0",
		"XREADGROUP GROUP g c COUNT 220 STREAMS x >", "XACK x g 3-1 50-1 150-1 201-1",
		"XADD x ACKED MINID ~ 200 900-1 a b"), []string{"XADD x MAXLEN = 249 ACKED 900-1 a b"}},
	{"xdel", append(fill("x", 10), "XDEL x 3-1 5-1 99-1", "XSETID x 20-1 ENTRIESADDED 30 MAXDELETEDID 19-1"), nil},
	{"groups", append(fill("x", 10), "XGROUP CREATE x g 3", "XGROUP CREATE new g $ MKSTREAM",
		"XGROUP CREATECONSUMER x g c", "XGROUP SETID x g 2 ENTRIESREAD 2",
		"+10", "XREADGROUP GROUP g d COUNT 5 STREAMS x >", "+10", "XACK x g 3-1",
		"XREADGROUP GROUP g d COUNT 2 STREAMS x 0", "+10",
		"XREADGROUP GROUP g e NOACK COUNT 1 STREAMS x >", "XDEL x 5-1", "XREADGROUP GROUP g d STREAMS x 0",
		"XGROUP CREATE x h 0", "XREADGROUP GROUP h c STREAMS x >",
		"XGROUP DELCONSUMER x h c", "XGROUP DESTROY new g", "+5", "XREADGROUP GROUP g seen STREAMS x 0"), nil},
	{"claims", append(fill("x", 40), "XGROUP CREATE x g 0", "XREADGROUP GROUP g c STREAMS x >", "+50",
		"XREADGROUP GROUP g c COUNT 2 STREAMS x 0", "+50",
		"XCLAIM x g d 70 1-1 2-1 3-1 4-1", "+5", "XCLAIM x g e 0 5-1 JUSTID", "XCLAIM x g e 0 6-1 IDLE 30 RETRYCOUNT 9",
		"XCLAIM x g e 0 7-1 TIME 1000 LASTID 99-1",
		"XDEL x 10-1 12-1", "XCLAIM x g f 0 10-1", "XAUTOCLAIM x g f 60 0 COUNT 3", "XAUTOCLAIM x g h 0 8 COUNT 4 JUSTID",
		"XACK x g 30-1", "XCLAIM x g i 0 30-1 FORCE"), nil},
	{"xreadgroup served later", []string{"XGROUP CREATE x g $ MKSTREAM", "XGROUP CREATE y g $ MKSTREAM",
		"1:XREADGROUP GROUP g c COUNT 5 BLOCK 0 NOACK STREAMS x y > >", "+7",
		"XADD y 5-1 a b"}, []string{"XADD y 5-1 a b", "XREADGROUP GROUP g c COUNT 5 NOACK STREAMS y >"}},
	{"xreadgroup served at once", []string{"XGROUP CREATE x g $ MKSTREAM", "XADD x 5-1 a b",
		"XREADGROUP GROUP g c BLOCK 0 STREAMS x >"}, nil},
	{"xreadgroup claims", append(append(fill("x", 9), fill("y", 2)...), "XGROUP CREATE x g 0", "XGROUP CREATE y g 0",
		"XREADGROUP GROUP g c COUNT 4 STREAMS x y > >", "+50",
		"XREADGROUP GROUP g c COUNT 1 STREAMS x 2", "XDEL x 1-1", "+20",
		"XREADGROUP GROUP g d COUNT 3 CLAIM 70 STREAMS x y > >", "+9",
		"XREADGROUP GROUP g e COUNT 5 NOACK CLAIM 9 STREAMS y x 0 >"), []string{
		"XGROUP CREATECONSUMER y g e", "XGROUP CREATECONSUMER x g e", "XREADGROUP GROUP g e COUNT 5 NOACK STREAMS y 0-0",
		"XCLAIM x g e 0 2-1 3-1 4-1 5-1 TIME 1000000000079", "XREADGROUP GROUP g e COUNT 1 NOACK STREAMS x >"}},
	{"xreadgroup claims later", append(fill("x", 2), "XGROUP CREATE x g 0", "XGROUP CREATE y g 0 MKSTREAM",
		"XREADGROUP GROUP g c STREAMS x >",
		"1:XREADGROUP GROUP g d COUNT 1 BLOCK 0 CLAIM 70 NOACK STREAMS y x > >", "+70"),
		[]string{"XCLAIM x g d 0 1-1 TIME 1000000000070"}},
	{"xreadgroup not served with nothing", []string{"XGROUP CREATE x g $ MKSTREAM", "XADD x 5-1 a b",
		"XREADGROUP GROUP g d STREAMS x >", "+9",
		"1:XREADGROUP GROUP g c BLOCK 0 STREAMS x >", "MULTI", "XADD x 6-1 a b", "XDEL x 6-1", "EXEC", "XADD x 7-1 a b"},
		[]string{"XADD x 7-1 a b", "XREADGROUP GROUP g c STREAMS x >"}},
	{"xreadgroup served from two streams", []string{"XGROUP CREATE x g $ MKSTREAM", "XGROUP CREATE y g $ MKSTREAM",
		"1:XREADGROUP GROUP g c COUNT 5 BLOCK 0 STREAMS x y > >", "+7", "MULTI", "XADD y 5-1 a b", "XADD x 5-1 a b", "EXEC"},
		[]string{"XADD y 5-1 a b", "XADD x 5-1 a b", "XREADGROUP GROUP g c COUNT 5 STREAMS x >",
			"XREADGROUP GROUP g c COUNT 5 STREAMS y >"}},
	{"groups of consumers", []string{"CHANGES GROUP CREATE g 00000001-5", "CHANGES GROUP CREATE h 0", "CHANGES GROUP DESTROY h",
		"CHANGES GROUP ACK g 00000001-6"}, []string{"CHANGES GROUP ACK g 00000001-6"}},
	{"search", []string{"HSET p1 t word", "FT.CREATE i PREFIX 1 p SCHEMA t TEXT"}, []string{"FT._CREATEIFNX i PREFIX 1 p SCHEMA t TEXT"}},
	{"search fields", []string{"FT._CREATEIFNX i SCHEMA t TEXT", "FT._ALTERIFNX i SCHEMA ADD m NUMERIC", "FT.ALTER i SCHEMA ADD n NUMERIC"},
		[]string{"FT._ALTERIFNX i SCHEMA ADD n NUMERIC"}},
	{"search names", []string{"FT.CREATE i SCHEMA t TEXT", "FT.ALIASADD a i", "FT._ALIASADDIFNX b i", "FT.ALIASUPDATE a i", "FT._ALIASDELIFX b",
		"FT.ALIASDEL a"}, []string{"FT._ALIASDELIFX a"}},
	{"search words", []string{"FT.CREATE i SCHEMA t TEXT", "FT.CONFIG SET TIMEOUT 500", "FT.SYNUPDATE i g x y", "FT.DICTADD d x y", "FT.DICTDEL d x"},
		[]string{"FT.DICTDEL d x"}},
	{"search documents", []string{"FT.CREATE i SCHEMA t TEXT", "FT.ADD i p 1 FIELDS t x", "FT.ADD i p 1 REPLACE FIELDS t y", "FT.DEL i p"},
		[]string{"DEL p"}},
	{"search suggestions", []string{"FT.SUGADD s text 1", "FT.SUGADD s other 2 INCR PAYLOAD p", "FT.SUGDEL s text"}, []string{"FT.SUGDEL s text"}},
	{"search drops", []string{"FT.CREATE a PREFIX 1 none SCHEMA t TEXT", "FT.CREATE b PREFIX 1 none SCHEMA t TEXT",
		"FT.CREATE c PREFIX 1 none SCHEMA t TEXT", "FT.CREATE i PREFIX 1 p SCHEMA t TEXT", "HSET p1 t x", "FT._DROPIFX a", "FT._DROPINDEXIFX b",
		"FT.DROP c", "FT.DROPINDEX i DD"}, []string{"FT._DROPINDEXIFX i _FORCEKEEPDOCS", "DEL p1"}},
	{"transaction", []string{"SADD s a", "MULTI", "SPOP s", "SELECT 1", "BLPOP l 0", "RPUSH l a b", "BLPOP l 0",
		"INCR l", "GET k", "EXEC"},
		[]string{"DEL s", "SELECT 1", "RPUSH l a b", "LPOP l"}},
	{"script", []string{"SADD s a", "EVAL redis.call('spop',KEYS[1]);redis.call('select',5);redis.call('set','k','v');redis.pcall('incr','k');return(1) 1 s"},
		[]string{"DEL s", "SELECT 5", "set k v"}},
}

func TestJournalRepeatsCommands(t *testing.T) {
	for _, form := range journalForms {
		t.Run(form.name, func(t *testing.T) {
			b := newJournalled(t)
			for i, line := range form.steps {
				before := len(b.journal.records)
				reply := b.step(line)
				require.False(t, strings.HasPrefix(reply, "-"), "%s: %s", line, reply)
				if i == len(form.steps)-1 {
					require.Greater(t, len(b.journal.records), before)
				}
			}
			if form.want != nil {
				last := b.journal.records[len(b.journal.records)-1]
				require.Equal(t, form.want, last.text(t))
			}
			b.finish(t)
		})
	}
}

// TestJournalRepeatsEveryWriteCommand checks that journalForms include all commands that can change anything.
func TestJournalRepeatsEveryWriteCommand(t *testing.T) {
	b := newHarness(t)
	missing := map[string]bool{}
	for name, cmd := range b.table.ByName {
		// Sources of functions have spaces and line breaks: see TestFunctionsAreDurable.
		// MIGRATE needs another server: see TestMigrate. TRIMSLOTS has nothing to remove, and FT.SYNADD is always refused.
		// FT._STAMP needs shards: see TestDefinitionsReachAllShards. Clients do not send BITCONVERT and BITROAROP, which are
		// journalled for others.
		if cmd.Flags&command.Write != 0 && !strings.HasPrefix(name, "function|") && name != "migrate" && name != "trimslots" &&
			name != "ft.synadd" && name != "ft._stamp" && name != "bitconvert" && name != "bitroarop" {
			missing[name] = true
		}
	}
	for _, form := range journalForms {
		for _, line := range form.steps {
			if len(line) > 2 && line[1] == ':' {
				line = line[2:]
			}
			var args [][]byte
			for _, word := range strings.Fields(line) {
				args = append(args, []byte(word))
			}
			if cmd, _ := b.table.Lookup(args); cmd != nil {
				delete(missing, cmd.Name)
			}
		}
	}
	require.Empty(t, missing)
	require.NoError(t, b.Close())
}

// journalTemplates are commands with random arguments: $A to $Z are keys that mostly hold a value of one kind, $K is
// any of them, $v is a value, $m are one to three of them, $n a small number, $f one with a fraction, $t a time in
// ms, $d a database, $p a payload of RESTORE, $i an ID of a stream, $g a group and $c a consumer.
var journalTemplates = strings.Split(strings.TrimSpace(`
SET $A $v
SET $K $v NX PX $t
SET $A $v XX GET KEEPTTL
SET $A $n EX $n
GETEX $A PX $t
GETEX $A PERSIST
GETDEL $A
CL.THROTTLE $A $n 1000 $n $n
CL.THROTTLE $K 9 3 1
GETSET $A $n
APPEND $A $v
SETRANGE $A $n $v
SETBIT $A $n 1
SETBIT $K $t 0
BITFIELD $A SET u5 $n $n OVERFLOW FAIL INCRBY i9 $t $n
BITOP OR $A $A $A
BITOP DIFF $A $A $A
PFADD $P $m
PFADD $P $t $t $t
PFCOUNT $P
PFMERGE $P $P $P
PFDEBUG TODENSE $P
INCRBY $A $n
INCRBYFLOAT $A $f
MSET $A $v $A $v
MSETNX $A $v $A $v
PEXPIRE $K $t
PEXPIRE $K $t GT
PEXPIREAT $K 1
PERSIST $K
BLESS SET $K NO-EVICT
BLESS CLEAR $K NO-EVICT
DEL $K $K
RESTORE $K 0 $p
RESTORE $K $t $p REPLACE
RENAME $K $K
RENAMENX $K $K
COPY $K $K
COPY $K $K DB $d REPLACE
MOVE $K $d
SELECT $d
SWAPDB $d $d
FLUSHDB
RPUSH $L $m
LPUSH $L $m
RPUSHX $L $v
LPOP $L
RPOP $L $n
LINSERT $L AFTER $v $v
LSET $L $n $v
LREM $L $n $v
LTRIM $L $n -2
LMOVE $L $L LEFT RIGHT
LMPOP 2 $L $L RIGHT COUNT $n
BLPOP $L $L 0.2
BRPOP $L 0.2
BLMOVE $L $L RIGHT LEFT 0.2
BRPOPLPUSH $L $L 0.2
BLMPOP 0.2 2 $L $L LEFT COUNT $n
SADD $S $m
SADD $S $n $n $n
SREM $S $m
SPOP $S
SPOP $S $n
SMOVE $S $S $v
SUNIONSTORE $S $S $S
SINTERSTORE $S $S $S
SDIFFSTORE $S $S $S
SPEXPIRE $S $t MEMBERS 2 $v $v
SPEXPIRE $S $t LT MEMBERS 1 $v
SPEXPIREAT $S 1 MEMBERS 1 $v
SPERSIST $S MEMBERS 2 $v $v
SADDEX $S PX $t MEMBERS 2 $v $v
SADDEX $S MXX KEEPTTL MEMBERS 1 $v
SADDEX $S MEMBERS 1 $v
HSET $H $v $v $v $v
HSETNX $H $v $n
HDEL $H $m
HINCRBY $H $v $n
HINCRBYFLOAT $H $v $f
HPEXPIRE $H $t FIELDS 2 $v $v
HPEXPIRE $H $t GT FIELDS 1 $v
HPEXPIREAT $H 1 FIELDS 1 $v
HPERSIST $H FIELDS 2 $v $v
HSETEX $H PX $t FIELDS 2 $v $v $v $v
HSETEX $H FXX KEEPTTL FIELDS 1 $v $v
HGETEX $H PX $t FIELDS 2 $v $v
HGETDEL $H FIELDS 2 $v $v
GEOADD $Z $n $n $v
GEORADIUS $Z $n 5 1000 km STORE $Z COUNT $n ANY
GEOSEARCHSTORE $Z $Z FROMLONLAT 1 $n BYBOX 900 900 km STOREDIST
ZADD $Z $f $v $f $v
ZADD $Z GT CH $f $v
ZADD $Z NX INCR $f $v
ZINCRBY $Z $f $v
ZREM $Z $m
ZPOPMIN $Z
ZMOVE $Z $Z MIN COUNT 2
ZMOVE $Z $Z BYSCORE $n 5
ZMOVEMEMBER $Z $Z NX MEMBERS 2 $v $v
ZPOPMAX $Z $n
ZMPOP 2 $Z $Z MIN COUNT $n
BZPOPMIN $Z $Z 0.2
BZPOPMAX $Z 0.2
BZMPOP 0.2 2 $Z $Z MAX COUNT $n
ZUNIONSTORE $Z 3 $Z $Z $S WEIGHTS $f $f $f
ZINTERSTORE $Z 2 $Z $Z
ZDIFFSTORE $Z 2 $Z $S
ZRANGESTORE $Z $Z 0 $n
ZREMRANGEBYRANK $Z 0 $n
ZREMRANGEBYSCORE $Z 0 $f
XADD $X * $v $v
XADD $X * $v $v $v $v
XADD $X MAXLEN ~ $n * $v $v
XADD $X MINID ~ $i * $v $v
XADD $X MAXLEN ~ $n LIMIT $n * $v $v
XADD $X NOMKSTREAM MAXLEN $n $i $v $v
XTRIM $X MAXLEN ~ $n
XTRIM $X MINID ~ $i LIMIT $n
XTRIM $X MAXLEN $n
XTRIM $X MAXLEN ~ $n ACKED
XTRIM $X MINID ~ $i DELREF
XADD $X ACKED MAXLEN $n * $v $v
XADD $X ACKED MAXLEN ~ $n LIMIT $n * $v $v
XADD $X DELREF MAXLEN ~ $n * $v $v
XDEL $X $i $i
XSETID $X $i
XGROUP CREATE $X $g $i MKSTREAM
XGROUP CREATE $X $g $
XGROUP CREATECONSUMER $X $g $c
XGROUP DELCONSUMER $X $g $c
XGROUP SETID $X $g $i
XGROUP DESTROY $X $g
XREADGROUP GROUP $g $c STREAMS $X >
XREADGROUP GROUP $g $c COUNT $n STREAMS $X $i
XREADGROUP GROUP $g $c COUNT $n BLOCK 200 STREAMS $X $X > >
XREADGROUP GROUP $g $c BLOCK 200 NOACK STREAMS $X >
XREADGROUP GROUP $g $c COUNT $n CLAIM $t STREAMS $X >
XREADGROUP GROUP $g $c BLOCK 200 CLAIM $t STREAMS $X $X > >
XREADGROUP GROUP $g $c MAXCOUNT 2 BLOCK 200 STREAMS $X $X > >
XREADGROUP GROUP $g $c MAXSIZE 150 CLAIM $t STREAMS $X $X > 0
XREADGROUP GROUP $g $c MAXSIZE 90 COUNT 2 STREAMS $X $X > >
XNACK $X $g FAIL IDS 2 $i $i
XNACK $X $g SILENT IDS 1 $i FORCE
XADD $X IDMP $v $n * $v $v
XADD $X IDMPAUTO $v MAXLEN ~ $n * $v $v
XCFGSET $X IDMP-MAXSIZE 2
XCFGSET $X IDMP-DURATION 1
XACK $X $g $i $i
XCLAIM $X $g $c $t $i $i
XCLAIM $X $g $c 0 $i FORCE JUSTID
XAUTOCLAIM $X $g $c $t 0 COUNT 1
XAUTOCLAIM $X $g $c 0 $i COUNT 2 JUSTID
FT.CREATE $C PREFIX 1 H SCHEMA a TEXT
FT.SYNUPDATE $C $g $m
FT.ALIASUPDATE $g $C
FT.DROPINDEX $C DD
FT.DROPINDEX $C
FT.DICTADD $D $m
FT.DICTDEL $D $m
FLUSHALL
MULTI
EVAL redis.call('spop',KEYS[1],2);return(redis.call('xadd',KEYS[2],'MAXLEN','~','2','*','a','b')) 2 $S $X
`), "\n")

// randomCommand returns a template with its arguments filled in.
func randomCommand(r *rand.Rand, template string) string {
	words := strings.Fields(template)
	for i, w := range words {
		if at := strings.IndexByte(w, '$'); at >= 0 && at+1 < len(w) {
			words[i] = w[:at] + randomWord(r, w[at+1])
		}
	}
	return strings.Join(words, " ")
}

// randomWord returns an argument of a kind that journalTemplates has.
func randomWord(r *rand.Rand, kind byte) string {
	pick := func(choices ...string) string { return choices[r.IntN(len(choices))] }
	switch kind {
	case 'K':
		return randomWord(r, "ALSHZX"[r.IntN(6)])
	case 'v':
		return pick("a", "b", "c", "d", "1", "2", strings.Repeat("long", 20))
	case 'm':
		return pick("a", "b", "a b", "1 2", "1 2 3", "c d 1")
	case 'n':
		return strconv.Itoa(r.IntN(7))
	case 'f':
		return pick("1", "0.1", "0.7", "-3", "1e300", "-0", "inf")
	case 't':
		return strconv.Itoa(1 + r.IntN(300))
	case 'd':
		return pick("0", "1")
	case 'i':
		return pick("0", "999999999999", "1000000000000-0", "1000000000000-1", "1000000000100", "9000000000000-3")
	case 'g':
		return pick("g", "h")
	case 'p':
		return integerPayload
	case 'c':
		return pick("c", "d", "e")
	}
	return string(kind) + pick("1", "2")
}

func TestJournalRepeatsRandomCommands(t *testing.T) {
	testseed.Check(t, func(t *rapid.T) {
		// Rapid itself would choose the first templates and words much more often than the others.
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		b := newJournalled(t)
		require.NoError(t, b.config.Set("stream-node-max-entries", "3", false))
		for range rapid.IntRange(100, 200).Draw(t, "steps") {
			client, line := r.IntN(len(b.sessions)), ""
			switch s := b.sessions[client]; {
			case s.Waiting():
				line = fmt.Sprintf("+%d", r.IntN(100))
			case s.InTransaction() && r.IntN(4) == 0:
				line = fmt.Sprintf("%d:EXEC", client)
			default:
				line = fmt.Sprintf("%d:%s", client, randomCommand(r, journalTemplates[r.IntN(len(journalTemplates))]))
			}
			t.Log(line)
			b.step(line)
		}
		b.finish(t)
	})
}

// Journals of earlier versions have the original commands, which are repeated at their own time.
func TestJournalsOfEarlierVersionsAreRepeated(t *testing.T) {
	b := newHarness(t)
	require.NoError(t, b.ks.Restore(engine.StoredState{}))
	r := b.Server.sessions.NewReplayer(command.FromJournal)
	const now = 1_000_000_000_000
	for i, line := range []string{
		"SET a 1 EX 10 NX", "SET b 1", "EXPIRE b -1", "INCR b", "SETEX c 5 v", "HSET h f 1 g 2", "HEXPIRE h 0 FIELDS 1 f",
		"HINCRBY h f 5",
		"HEXPIRE h 7 FIELDS 1 g", "XADD s * f v", "INCRBYFLOAT n 0.5", "GETEX a PX 77", "RESTORE i 10 " + integerPayload,
		"XGROUP CREATE s g 0", "XREADGROUP GROUP g c STREAMS s >", "XCLAIM s g d 0 1000000000009-0", "XAUTOCLAIM s g e 0 0",
	} {
		require.NoError(t, r.Apply(now+int64(i), request(strings.Fields(line)...)), line)
	}
	require.Equal(t, []string{
		`0 "a" string expires 1000000000088: "1"`, `0 "b" string expires 0: "1"`, `0 "c" string expires 1000000005004: "v"`,
		`0 "h" hash expires 0: "f"="5" "g" expires 1000000007008 "g"="2" listpackex`,
		`0 "i" string expires 1000000000022: "40"`,
		`0 "n" string expires 0: "0.5"`,
		`0 "s" stream expires 0: last 1000000000009-0 deleted 0-0 added 1 1000000000009-0 "f"="v" ` +
			"\n group \"g\" last 1000000000009-0 read 1 " +
			"\n  consumer \"c\" seen 1000000000014 active 1000000000014 \n  consumer \"d\" seen 1000000000015 active 1000000000015 " +
			"\n  consumer \"e\" seen 1000000000016 active 1000000000016 \n  pending 1000000000009-0 for \"e\" at 1000000000016, 3 times",
	}, dump(b.ks, now))
	require.NoError(t, b.Close())
}
