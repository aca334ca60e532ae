package hashes_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/testing/crashfs"
	"github.com/atomredis/atomredis/internal/testing/servertest"
)

// fieldSteps are lines and their replies.
var fieldSteps = []struct {
	name  string
	steps []string // a line and its reply in turn
}{
	{"hexpire", []string{
		"HSET h a 1 b 2", ":2",
		"HEXPIRE h 10 FIELDS 3 a b nosuch", "*3 :1 :1 :-2",
		"HTTL h FIELDS 3 a b nosuch", "*3 :10 :10 :-2",
		"HPTTL h FIELDS 1 a", "*1 :10000",
		"HEXPIRETIME h FIELDS 1 a", "*1 :1000000010",
		"HPEXPIRETIME h FIELDS 1 a", "*1 :1000000010000",
		"+1", "",
		"HTTL h FIELDS 1 a", "*1 :10",
		"HPTTL h FIELDS 1 a", "*1 :9999",
		"HPEXPIRE h 1500 FIELDS 1 b", "*1 :1",
		"HEXPIRETIME h FIELDS 1 b", "*1 :1000000002",
		"HTTL nosuch FIELDS 2 a b", "*2 :-2 :-2",
		"HEXPIRE nosuch 10 FIELDS 2 a b", "*2 :-2 :-2",
		"EXISTS nosuch", ":0",
		"TTL h", ":-1",
	}},
	{"absolute", []string{
		"HSET h a 1 b 2 c 3", ":3",
		"HEXPIREAT h 1000000100 FIELDS 1 a", "*1 :1",
		"HPEXPIREAT h 1000000000001 FIELDS 1 b", "*1 :1",
		"HTTL h FIELDS 3 a b c", "*3 :100 :1 :-1",
		"HEXPIREAT h 70368744177 FIELDS 1 a", "*1 :1",
		"HPEXPIREAT h 70368744177663 FIELDS 1 a", "*1 :1",
		"HPEXPIRETIME h FIELDS 1 a", "*1 :70368744177663",
		"HPEXPIREAT h 70368744177664 FIELDS 1 a", "-ERR invalid expire time in 'hpexpireat' command",
		"HEXPIREAT h 70368744178 FIELDS 1 a", "-ERR invalid expire time in 'hexpireat' command",
		"HPEXPIRE h 70368744177663 FIELDS 1 a", "-ERR invalid expire time in 'hpexpire' command",
		"HPEXPIRE h 69368744177663 FIELDS 1 a", "*1 :1",
		"HEXPIRE h 9223372036854775807 FIELDS 1 a", "-ERR invalid expire time in 'hexpire' command",
	}},
	{"conditions", []string{
		"HSET h a 1 b 2", ":2",
		"HEXPIRE h 10 XX FIELDS 1 a", "*1 :0",
		"HEXPIRE h 10 GT FIELDS 1 a", "*1 :0",
		"HEXPIRE h 10 NX FIELDS 1 a", "*1 :1",
		"HEXPIRE h 20 NX FIELDS 2 a b", "*2 :0 :1",
		"HEXPIRE h 10 GT FIELDS 2 a b", "*2 :0 :0",
		"HEXPIRE h 11 gt FIELDS 2 a b", "*2 :1 :0",
		"HEXPIRE h 11 LT FIELDS 2 a b", "*2 :0 :1",
		"HEXPIRE h 5 XX FIELDS 3 a b c", "*3 :1 :1 :-2",
		"HPERSIST h FIELDS 1 a", "*1 :1",
		"HEXPIRE h 50 LT FIELDS 1 a", "*1 :1",
		"HEXPIRE h 0 NX FIELDS 1 a", "*1 :0",
		"HEXPIRE h 0 LT FIELDS 1 a", "*1 :2",
	}},
	{"in the past", []string{
		"listen", "",
		"HSET h a 1 b 2 c 3", ":3",
		"HEXPIRE h 0 FIELDS 2 a nosuch", "*2 :2 :-2",
		"HPEXPIREAT h 1 FIELDS 1 b", "*1 :2",
		"HGETALL h", "*2 c 3",
		"HPEXPIREAT h 1000000000000 FIELDS 2 c c", "*2 :2 :-2",
		"EXISTS h", ":0",
		"events", "hset=h hdel=h hdel=h hdel=h del=h",
	}},
	{"errors", []string{
		"SET s v", "+OK",
		"HSET h a 1", ":1",
		"HEXPIRE s 10 FIELDS 1 a", "-WRONGTYPE Operation against a key holding the wrong kind of value",
		"HTTL s FIELDS 1 a", "-WRONGTYPE Operation against a key holding the wrong kind of value",
		"HPERSIST s FIELDS 1 a", "-WRONGTYPE Operation against a key holding the wrong kind of value",
		"HGETEX s FIELDS 1 a", "-WRONGTYPE Operation against a key holding the wrong kind of value",
		"HGETDEL s FIELDS 1 a", "-WRONGTYPE Operation against a key holding the wrong kind of value",
		"HSETEX s FIELDS 1 a 1", "-WRONGTYPE Operation against a key holding the wrong kind of value",
		"HEXPIRE h 10 FIELDS 1", "-ERR wrong number of arguments for 'hexpire' command",
		"HTTL h FIELDS 1", "-ERR wrong number of arguments for 'httl' command",
		"HEXPIRE h x FIELDS 1 a", "-ERR value is not an integer or out of range",
		"HEXPIRE h -1 FIELDS 1 a", "-ERR invalid expire time, must be >= 0",
		"HEXPIRE h 10 FELDS 1 a", "-ERR unknown argument: FELDS",
		"HEXPIRE h 10 NX XX FIELDS 1 a", "-ERR Multiple condition flags specified",
		"HEXPIRE h 10 FIELDS 0 a", "-ERR Parameter `numFields` should be greater than 0",
		"HEXPIRE h 10 FIELDS x a", "-ERR Parameter `numFields` should be greater than 0",
		"HEXPIRE h 10 FIELDS 2 a", "-ERR wrong number of arguments",
		"HEXPIRE h 10 FIELDS 1 a b", "-ERR unknown argument: b",
		"HEXPIRE h 10 NX FIELDS 1", "-ERR FIELDS requires at least numfields and one field argument",
		"HTTL h FELDS 1 a", "-ERR Mandatory argument FIELDS is missing or not at the right position",
		"HTTL h FIELD\u017f 1 a", "-ERR Mandatory argument FIELDS is missing or not at the right position", // a long s
		"HTTL h FIELDS 0 a", "-ERR Number of fields must be a positive integer",
		"HPERSIST h FIELDS -1 a", "-ERR Number of fields must be a positive integer",
		"HPERSIST h FIELDS 3 a", "-ERR The `numfields` parameter must match the number of arguments",
		"HGETDEL h FIELDS 0 a", "-ERR Number of fields must be a positive integer",
		"HGETDEL h FIELDS 5 a", "-ERR The `numfields` parameter must match the number of arguments",
		"HGETDEL h x 1 a", "-ERR Mandatory argument FIELDS is missing or not at the right position",
		"HGETEX h EX 10 FIELDS", "-ERR wrong number of arguments for 'hgetex' command",
		"HGETEX h EX FIELDS 1 a", "-ERR value is not an integer or out of range",
		"HGETEX h EX -1 FIELDS 1 a", "-ERR invalid expire time, must be >= 0",
		"HGETEX h PERSIST EX 1 FIELDS 1 a", "-ERR Only one of EX, PX, EXAT, PXAT or PERSIST arguments can be specified",
		"HGETEX h NOSUCH FIELDS 1 a", "-ERR unknown argument: NOSUCH",
		"HGETEX h PX 70368744177664 FIELDS 1 a", "-ERR invalid expire time in 'hgetex' command",
		"HSETEX h FIELDS 1 a", "-ERR wrong number of arguments for 'hsetex' command",
		"HSETEX h FIELDS 2 a 1 b", "-ERR wrong number of arguments",
		"HSETEX h FIELDS 1 a 1 b 2", "-ERR unknown argument: b",
		"HSETEX h FIELDS 0 a 1", "-ERR invalid number of fields",
		"HSETEX h FIELDS 2147483648 a 1", "-ERR invalid number of fields",
		"HSETEX h FNX FXX FIELDS 1 a 1", "-ERR Only one of FXX or FNX arguments can be specified",
		"HSETEX h FNX FNX FIELDS 1 a 1", "-ERR Only one of FXX or FNX arguments can be specified",
		"HSETEX h EX 1 PX 1 FIELDS 1 a 1", "-ERR Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments can be specified",
		"HSETEX h KEEPTTL EXAT 1 FIELDS 1 a 1", "-ERR Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments can be specified",
		"HSETEX h EX 1 KEEPTTL FIELDS 1 a 1", "-ERR Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments can be specified",
		"HSETEX h FNX KEEPTTL NOSUCH FIELDS 1 a", "-ERR unknown argument: NOSUCH",
		"HSETEX h FNX EX 10 NOSUCH", "-ERR unknown argument: NOSUCH",
		"HSETEX h FNX KEEPTTL FXX EX", "-ERR Only one of FXX or FNX arguments can be specified",
		"HSETEX h EX x FIELDS 1 a 1", "-ERR value is not an integer or out of range",
		"HSETEX h PX -5 FIELDS 1 a 1", "-ERR invalid expire time, must be >= 0",
		"HSETEX h EXAT 70368744178 FIELDS 1 a 1", "-ERR invalid expire time in 'hsetex' command",
		"HGETALL h", "*2 a 1",
		"HTTL h FIELDS 1 a", "*1 :-1",
	}},
	{"hpersist", []string{
		"listen", "",
		"HPERSIST h FIELDS 2 a b", "*2 :-2 :-2",
		"HSET h a 1 b 2", ":2",
		"HPERSIST h FIELDS 1 a", "*1 :-1",
		"HEXPIRE h 1 FIELDS 1 a", "*1 :1",
		"HPERSIST h FIELDS 4 a b c a", "*4 :1 :-1 :-2 :-1",
		"+5000", "",
		"HLEN h", ":2",
		"events", "hset=h hexpire=h hpersist=h",
	}},
	{"hgetex", []string{
		"listen", "",
		"HGETEX h EX 1 FIELDS 2 a b", "*2 $-1 $-1",
		"HSET h a 1 b 2", ":2",
		"HGETEX h FIELDS 2 a nosuch", "*2 1 $-1",
		"HGETEX h EX 10 FIELDS 2 a nosuch", "*2 1 $-1",
		"HTTL h FIELDS 2 a b", "*2 :10 :-1",
		"HGETEX h PXAT 1000000005000 FIELDS 1 b", "*1 2",
		"HGETEX h FIELDS 1 a", "*1 1",
		"HTTL h FIELDS 2 a b", "*2 :10 :5",
		"HGETEX h PERSIST FIELDS 2 a nosuch", "*2 1 $-1",
		"HGETEX h persist FIELDS 1 a", "*1 1",
		"HTTL h FIELDS 2 a b", "*2 :-1 :5",
		"events", "hset=h hexpire=h hexpire=h hpersist=h",
		"HGETEX h EXAT 1 FIELDS 1 a", "*1 1",
		"HGETEX h PX 0 FIELDS 1 b", "*1 2",
		"EXISTS h", ":0",
		"events", "hdel=h hdel=h del=h",
	}},
	{"hsetex", []string{
		"listen", "",
		"HSETEX h FXX FIELDS 1 a 1", ":0",
		"EXISTS h", ":0",
		"HSETEX h FIELDS 2 a 1 b 2", ":1",
		"HSETEX h EX 10 FIELDS 1 a 3", ":1",
		"HSETEX h FNX FIELDS 2 a 4 c 4", ":0",
		"HSETEX h FXX FIELDS 2 a 4 c 4", ":0",
		"HSETEX h FXX KEEPTTL FIELDS 2 a 5 b 5", ":1",
		"HSETEX h FNX PX 500 FIELDS 1 c 6", ":1",
		"HTTL h FIELDS 3 a b c", "*3 :10 :-1 :1",
		"HMGET h a b c", "*3 5 5 6",
		"HSETEX h FIELDS 1 a 7", ":1",
		"HTTL h FIELDS 1 a", "*1 :-1",
		"events", "hset=h hset=h hexpire=h hset=h hset=h hexpire=h hset=h",
		"HSETEX h EXAT 1 FIELDS 2 a 1 b 1", ":1",
		"HKEYS h", "*1 c",
		"HSETEX h PX 0 FIELDS 1 c 1", ":1",
		"HSETEX new PX 0 FIELDS 1 c 1", ":1",
		"EXISTS h new", ":0",
		"events", "hset=h hdel=h hset=h hdel=h del=h hset=new hdel=new del=new",
	}},
	{"hgetdel", []string{
		"listen", "",
		"HGETDEL h FIELDS 1 a", "*1 $-1",
		"HSET h a 1 b 2", ":2",
		"HEXPIRE h 1 FIELDS 2 a b", "*2 :1 :1",
		"HGETDEL h FIELDS 3 a nosuch a", "*3 1 $-1 $-1",
		"HGETDEL h FIELDS 1 nosuch", "*1 $-1",
		"HLEN h", ":1",
		"HGETDEL h FIELDS 1 b", "*1 2",
		"EXISTS h", ":0",
		"+5000", "",
		"events", "hset=h hexpire=h hdel=h hdel=h del=h",
	}},
	{"what keeps a deadline and what clears it", []string{
		"HSETEX h EX 10 FIELDS 5 a 1 b 2 c 3 d 4 e 5", ":1",
		"HSET h a 1", ":0",
		"HMSET h b 1", "+OK",
		"HINCRBY h c 1", ":4",
		"HINCRBYFLOAT h d 1.5", "5.5",
		"HSETNX h e 1", ":0",
		"HTTL h FIELDS 5 a b c d e", "*5 :-1 :-1 :10 :10 :10",
		"HDEL h e", ":1",
		"HSET h e 1", ":1",
		"HTTL h FIELDS 1 e", "*1 :-1",
		"COPY h i", ":1",
		"RENAME h j", "+OK",
		"HTTL i FIELDS 2 c d", "*2 :10 :10",
		"HTTL j FIELDS 2 c d", "*2 :10 :10",
		"+10000", "",
		"HLEN i", ":3",
		"HLEN j", ":3",
	}},
	{"expired fields are gone", []string{
		"listen", "",
		"HSETEX h PX 100 FIELDS 3 a 1 b 2 c 3", ":1",
		"HSET h d 4", ":1",
		"HSETEX other PX 100 FIELDS 1 a 1", ":1",
		"events", "hset=h hexpire=h hset=h hset=other hexpire=other",
		"+99", "",
		"HLEN h", ":4",
		"+1", "",
		"events", "hexpired=h hexpired=other del=other",
		"HLEN h", ":1",
		"HGETALL h", "*2 d 4",
		"HSCAN h 0", "*2 0 *2 d 4",
		"HRANDFIELD h 5", "*1 d",
		"HMGET h a d", "*2 $-1 4",
		"HEXISTS h a", ":0",
		"HTTL h FIELDS 1 a", "*1 :-2",
		"HPERSIST h FIELDS 1 a", "*1 :-2",
		"HEXPIRE h 10 FIELDS 1 a", "*1 :-2",
		"HDEL h a", ":0",
		"EXISTS other", ":0",
		"DBSIZE", ":1",
		"INFO keyspace", "# Keyspace db0:keys=1,expires=0,avg_ttl=0,subexpiry=0",
	}},
	{"watched", []string{
		"HSETEX h PX 100 FIELDS 1 a 1", ":1",
		"HSET h b 1", ":1",
		"WATCH h", "+OK",
		"+100", "",
		"MULTI", "+OK",
		"PING", "+QUEUED",
		"EXEC", "*-1",
	}},
	{"in a script the time stands still", []string{
		"EVAL redis.call('hsetex','h','PX',100,'FIELDS',1,'a',1)return(redis.call('hpttl','h','FIELDS',1,'a')) 0", "*1 :100",
	}},
	{"small hashes stay small", []string{
		"HSET h a 1 b 2", ":2",
		"HPEXPIRE h 100 FIELDS 1 a", "*1 :1",
		"HGETALL h", "*4 a 1 b 2",
		"INFO keyspace", "# Keyspace db0:keys=1,expires=0,avg_ttl=0,subexpiry=1",
		"HPERSIST h FIELDS 1 a", "*1 :1",
		"INFO keyspace", "# Keyspace db0:keys=1,expires=0,avg_ttl=0,subexpiry=0",
	}},
}

func TestFieldsExpire(t *testing.T) {
	for _, settings := range [][]string{{"shards", "1"}, {"shards", "16", "hash-max-listpack-entries", "0"}} {
		t.Run(strings.Join(settings, " "), func(t *testing.T) {
			for _, tt := range fieldSteps {
				t.Run(tt.name, func(t *testing.T) {
					// Large hashes, and keys of several shards, have another order.
					servertest.NewListening(t, settings...).Steps(tt.steps, "HGETALL h", "events")
				})
			}
		})
	}
}

func TestInfoCountsExpiredFields(t *testing.T) {
	f := servertest.NewListening(t)
	f.Step("HSETEX h PX 100 FIELDS 3 a 1 b 2 c 3")
	require.Contains(t, f.Step("INFO stats"), "expired_subkeys:0 expired_subkeys_active:0 expired_keys:0")
	f.Step("+100")
	require.Contains(t, f.Step("INFO stats"), "expired_subkeys:3 expired_subkeys_active:3 expired_keys:0")
}

func TestTrackingHearsOfExpiredFields(t *testing.T) {
	f := servertest.NewListening(t)
	f.Step("HELLO 3")
	f.Step("HSETEX h PX 100 FIELDS 1 a 1")
	f.Step("HSET h b 1")
	f.Step("CLIENT TRACKING ON")
	require.Equal(t, "1", f.Step("HGET h a"))
	f.Step("+100")
	require.Contains(t, f.Step("PING"), "invalidate *1 h")
}

func TestDeadlinesOfFieldsAreThereAfterARestart(t *testing.T) {
	const at = "50000000000000"
	fs := crashfs.Mem()
	open := func() *servertest.Durable { return servertest.OpenDurable(t, fs) }
	ttl := func(d *servertest.Durable, key, a, b string) {
		d.Expect("*3\r\n:"+a+"\r\n:"+b+"\r\n:-2\r\n", "HPEXPIRETIME "+key+" FIELDS 3 a b nosuch")
	}
	long := strings.Repeat("x", 300)
	d := open()
	for _, key := range []string{"small", "long", "large", "moved"} {
		d.Lines("HSET "+key+" a 1 b 2 c 3", "HPEXPIREAT "+key+" "+at+" FIELDS 2 a b")
	}
	d.Lines("HSET long c "+long, "HSET large d 4 e 5 f 6", "HSET moved d 4 e 5 f 6", "HSET without a 1 b 2 c 3 d 4 e 5 f 6")
	d.End() // it makes a checkpoint

	d = open()
	for _, key := range []string{"small", "long", "large", "moved"} {
		ttl(d, key, at, at)
		d.Lines("HPERSIST "+key+" FIELDS 1 b", "HSET "+key+" g 7")
	}
	d.Lines("RENAME moved renamed", "HPEXPIREAT without "+at+" FIELDS 1 b")
	d.Drop()

	d = open()
	for range 3 {
		for _, key := range []string{"small", "long", "large", "renamed"} {
			ttl(d, key, at, "-1")
		}
		ttl(d, "without", "-1", at)
		d.End()
		d = open()
	}
	d.Lines("SAVE", "HSETEX soon PX 300 FIELDS 1 a 1", "HSETEX both PX 300 FIELDS 6 a 1 b 1 c 1 d 1 e 1 f 1",
		"HSET both g 1", "SAVE",
		"HSETEX both PX 300 FIELDS 1 h 1")
	d.End()
	d = open()
	d.Await("*2\r\n$1\r\ng\r\n$1\r\n1\r\n", "HGETALL both")
	d.Expect(":0\r\n", "EXISTS soon")
	d.Lines("FLUSHALL", "SAVE")
	d.End()
}

func TestTranscripts(t *testing.T) { servertest.Transcripts(t, "hash") }
