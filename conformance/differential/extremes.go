// Numbers at and beyond the limits, in the place of every numeric argument of every command.

package differential

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/atomredis/atomredis/internal/testing/transcript"
)

// extremeNumbers are extreme numbers, and texts that are almost numbers.
var extremeNumbers = []string{
	"0", "-0", "1", "-1", "2", "+1", "01", "-01", "00", "1 ", " 1", "1x", "x", "", " ", "-", "+", ".", "1\x00", "\x001",
	"1\n", "--1", "1_0", "1,0",
	"1.0", "1.5", "-1.5", ".5", "5.", "1e3", "1E3", "1e", "1e+", "1e400", "-1e400", "1e-400", "1e308", "1e309", "1e17",
	"0x10", "0X1p4", "0x", "0x1p-2000",
	"inf", "-inf", "+inf", "Infinity", "-infinity", "infx", "nan", "-nan", "NaN(1)",
	"9223372036854775806", "9223372036854775807", "9223372036854775808", "-9223372036854775807", "-9223372036854775808",
	"-9223372036854775809",
	"9223372036854775", "9223372036854776", "9223372036854", "-9223372036854776", "18446744073709551615",
	"18446744073709551616",
	"2147483647", "2147483648", "-2147483648", "-2147483649", "4294967295", "4294967296",
	"99999999999999999999999999999999999999999999999999",
	"65535", "65536", "-65536", "1000000000000000000", "-1000000000000000000",
}

// extremeData is the data on which the commands work.
var extremeData = strings.Split(strings.TrimSpace(`
SET s hello
SET n 10
SET f 1.5
RPUSH l a b c a b
HSET h f1 1 f2 x f3 3
SADD u a b c
SADD u2 a b
ZADD z 1 a 2 b 3 c
ZADD z2 1 a 5 b
GEOADD geo 13.361389 38.115556 p 15.087269 37.502669 q
XADD x 1-1 f v
XADD x 2-2 f v
XADD x 3-3 f v
XGROUP CREATE x g 0
XREADGROUP GROUP g c COUNT 2 STREAMS x >
PFADD hll a b c`), "\n")

// extremeCommands have a number in each pair of braces, which is used while the others are varied. A number with an
// exclamation mark is only varied by numbers that do not make a server hold gigabytes or wait.
var extremeCommands = strings.Split(strings.TrimSpace(`
SET s v EX {10}
SET s v PX {10000}
SET s v EXAT {4102444800}
SET s v PXAT {4102444800000}
SETEX s {10} v
PSETEX s {10000} v
GETEX s EX {10}
GETEX s PX {10000}
GETEX s EXAT {4102444800}
GETEX s PXAT {4102444800000}
EXPIRE s {10}
EXPIRE s {10} NX
EXPIRE s {10} GT
EXPIRE s {10} LT
PEXPIRE s {10000}
EXPIREAT s {4102444800}
PEXPIREAT s {4102444800000}
EXPIRE none {10}
INCRBY n {1}
DECRBY n {1}
INCRBYFLOAT f {1}
INCRBYFLOAT none {1}
GETRANGE s {0} {-1}
GETRANGE none {0} {-1}
SUBSTR s {0} {-1}
SETRANGE s {!1} x
SETRANGE none {!0} ""
SETBIT s {!1} {1}
GETBIT s {1}
GETBIT none {1}
BITCOUNT s {0} {-1}
BITCOUNT s {0} {-1} BIT
BITPOS s {1} {0} {-1}
BITPOS s {1} {0} {-1} BIT
BITPOS none {1}
BITFIELD s GET u8 {!0}
BITFIELD s SET u8 {!0} {1}
BITFIELD s SET i64 {!0} {1}
BITFIELD s INCRBY u8 {!0} {1}
BITFIELD s OVERFLOW SAT INCRBY i64 0 {1}
BITFIELD s OVERFLOW FAIL INCRBY u63 0 {1}
LCS s f MINMATCHLEN {1}
LCS s f IDX MINMATCHLEN {1}
COPY s copy DB {0}
MOVE s {1}
SELECT {0}
SWAPDB {0} {1}
RESTORE copy {0} junk
RESTORE copy 0 junk IDLETIME {1}
RESTORE copy 0 junk FREQ {1}
SCAN {0} COUNT {10000}
SSCAN u {0} COUNT {10000}
HSCAN h {0} COUNT {10000}
ZSCAN z {0} COUNT {10000}
SORT l LIMIT {0} {2} ALPHA
SORT_RO l LIMIT {0} {-1} ALPHA
OBJECT FREQ s
LPOP l {1}
RPOP l {1}
LPOP none {1}
LRANGE l {0} {-1}
LINDEX l {0}
LSET l {0} v
LREM l {1} a
LTRIM l {0} {-1}
LPOS l a RANK {1}
LPOS l a COUNT {1}
LPOS l a MAXLEN {1}
LPOS l a RANK {-1} COUNT {0} MAXLEN {3}
LMPOP {1} l LEFT COUNT {1}
BLPOP l {1}
BRPOP l {1}
BLMOVE l l LEFT LEFT {1}
BRPOPLPUSH l l {1}
BLMPOP {1} {1} l LEFT COUNT {1}
SPOP u {1}
SRANDMEMBER u {!1}
SRANDMEMBER none {1}
SINTERCARD {2} u u2 LIMIT {1}
HINCRBY h f1 {1}
HINCRBYFLOAT h f1 {1}
HRANDFIELD h {!1}
HRANDFIELD h {!1} WITHVALUES
ZADD z {1} a
ZADD z INCR {1} a
ZADD z GT CH {1} a
ZINCRBY z {1} a
ZCOUNT z {1} {2}
ZCOUNT z ({1} ({2}
ZRANGE z {0} {-1} WITHSCORES
ZRANGE z {1} {3} BYSCORE WITHSCORES LIMIT {0} {2}
ZRANGE z ({1} {3} BYSCORE
ZRANGE z - + BYLEX LIMIT {0} {2}
ZREVRANGE z {0} {-1}
ZRANGEBYSCORE z {1} {3} WITHSCORES LIMIT {0} {2}
ZREVRANGEBYSCORE z {3} {1} LIMIT {0} {2}
ZRANGEBYLEX z2 - + LIMIT {0} {2}
ZRANGESTORE copy z {0} {-1}
ZRANGESTORE copy z {1} {3} BYSCORE LIMIT {0} {2}
ZREMRANGEBYRANK z {0} {-1}
ZREMRANGEBYSCORE z {1} {3}
ZPOPMIN z {1}
ZPOPMAX z {1}
ZMPOP {1} z MIN COUNT {1}
BZPOPMIN z {1}
BZMPOP {1} {1} z MIN COUNT {1}
ZRANDMEMBER z {!1}
ZRANDMEMBER z {!1} WITHSCORES
ZUNION {2} z z2 WEIGHTS {1} {2} WITHSCORES
ZINTERSTORE copy {2} z z2 WEIGHTS {1} {2}
ZINTERCARD {2} z z2 LIMIT {1}
ZDIFF {2} z z2
GEOADD geo {13} {38} r
GEOSEARCH geo FROMLONLAT {15} {37} BYRADIUS {200} km COUNT {1}
GEOSEARCH geo FROMLONLAT 15 37 BYBOX {400} {400} km COUNT {1} ANY
GEORADIUS geo {15} {37} {200} km COUNT {1}
GEORADIUSBYMEMBER geo p {200} km
XADD x {5}-{1} f v
XADD x {5} f v
XADD x MAXLEN {2} 9-9 f v
XADD x MAXLEN ~ {2} LIMIT {1} 9-9 f v
XADD x MINID {2} 9-9 f v
XTRIM x MAXLEN {2}
XTRIM x MAXLEN ~ {2} LIMIT {1}
XTRIM x MINID {2}-{1}
XDEL x {1}-{1}
XRANGE x {1}-{1} {3}-{3} COUNT {1}
XREVRANGE x {3} {1} COUNT {1}
XRANGE x ({1}-{1} ({3}
XREAD COUNT {1} BLOCK {1} STREAMS x {0}-{1}
XREADGROUP GROUP g c COUNT {1} BLOCK {1} STREAMS x {0}-{1}
XREADGROUP GROUP g c COUNT {1} STREAMS x >
XSETID x {5}-{1} ENTRIESADDED {10} MAXDELETEDID {2}-{1}
XGROUP CREATE x g2 {1}-{1} ENTRIESREAD {1}
XGROUP SETID x g {1}-{1} ENTRIESREAD {1}
XACK x g {1}-{1}
XPENDING x g IDLE {0} {1}-{1} {3}-{1} {2}
XCLAIM x g c {0} {1}-{1} IDLE {5} RETRYCOUNT {2}
XCLAIM x g c 0 {1}-{1} TIME {5} FORCE LASTID {2}-{1}
XAUTOCLAIM x g c {0} {1}-{1} COUNT {!2} JUSTID
XINFO STREAM x FULL COUNT {1}
PFDEBUG GETREG none
OBJECT ENCODING n
WAIT {0} {!1}
CLIENT PAUSE {!0} WRITE
CLIENT KILL ID {99999}
CLIENT UNBLOCK {99999}
CLIENT NO-EVICT {1}
CLIENT REPLY {1}
LATENCY HISTORY {1}
ACL LOG {0}
CONFIG SET hz {10}
CONFIG SET maxmemory-samples {5}
CONFIG SET timeout {0}
CONFIG SET slowlog-max-len {128}
CONFIG SET slowlog-log-slower-than {10000}
CONFIG SET list-max-listpack-size {-2}
CONFIG SET hash-max-listpack-entries {128}
CONFIG SET tracking-table-max-keys {1000000}
CONFIG SET lfu-decay-time {1}
CONFIG SET busy-reply-threshold {5000}
HELLO {2}
EVAL "return 1" {0}
EVAL "return redis.call('INCRBY', 'n', ARGV[1])" 0 {1}
EVALSHA nosuch {0}
FCALL nosuch {0}
COMMAND GETKEYS EVAL x {!1} k
COMMAND GETKEYS ZUNION {!1} z
CLUSTER KEYSLOT {1}`), "\n")

// Extremes replaces each number of each command by every extreme one in turn, on both servers, and returns the number
// of differing replies. The final state of the keys that the commands use is compared too.
func Extremes(a, b string, log io.Writer) (int, error) {
	var conns [2]*transcript.Conn
	for i, addr := range []string{a, b} {
		nc, err := transcript.Dial(addr)
		if err != nil {
			return 0, err
		}
		conns[i] = transcript.NewConn(nc)
		defer conns[i].Close()
	}
	found := 0
	for _, line := range extremeCommands {
		for _, args := range extremeCalls(line) {
			difference, err := tryExtreme(conns, args)
			if err != nil {
				return found, fmt.Errorf("%q: %w", args, err)
			}
			if difference != "" {
				found++
				fmt.Fprintf(log, "%q\n%s", args, difference)
			}
		}
	}
	return found, nil
}

// extremeCalls are the calls described by a line. In the first of them all numbers are the original ones.
func extremeCalls(line string) (calls [][]string) {
	words := strings.Fields(line)
	if quoted := strings.SplitN(line, `"`, 3); len(quoted) == 3 { // a script
		words = slices.Concat(strings.Fields(quoted[0]), []string{quoted[1]}, strings.Fields(quoted[2]))
	}
	fill := func(chosen int, number string) (args []string) {
		n := 0
		for _, w := range words {
			var arg strings.Builder
			for {
				before, rest, ok := strings.Cut(w, "{")
				arg.WriteString(before)
				if !ok {
					break
				}
				usual, after, _ := strings.Cut(rest, "}")
				if n == chosen {
					usual = number
				}
				arg.WriteString(strings.TrimPrefix(usual, "!"))
				n++
				w = after
			}
			args = append(args, arg.String())
		}
		return args
	}
	calls = append(calls, fill(-1, ""))
	for n, place := range strings.Split(line, "{")[1:] {
		for _, number := range extremeNumbers {
			if place[0] == '!' && isCostly(number) {
				continue
			}
			calls = append(calls, fill(n, number))
		}
	}
	return calls
}

// isCostly reports whether a number is legal in most places and would make a server hold gigabytes, or wait for a day.
func isCostly(number string) bool {
	return slices.Contains([]string{"9223372036854775806", "-9223372036854775807", "9223372036854775",
		"9223372036854776", "9223372036854", "-9223372036854776",
		"2147483647", "2147483648", "-2147483648", "-2147483649", "4294967295", "4294967296", "-1000000000000000000",
		"1000000000000000000"}, number)
}

// tryExtreme makes one call on both servers; the difference is empty if they agree.
func tryExtreme(conns [2]*transcript.Conn, args []string) (difference string, err error) {
	after := [][]string{{"SELECT", "0"}, {"CLIENT", "UNPAUSE"}, {"DUMP", "s"}, {"GET", "s"}, {"PTTL", "s"}, {"GET", "n"},
		{"GET", "f"}, {"LRANGE", "l", "0", "-1"},
		{"ZRANGE", "z", "0", "-1", "WITHSCORES"}, {"HGETALL", "h"}, {"SCARD", "u"}, {"EXISTS", "copy", "none"},
		{"XLEN", "x"}, {"XPENDING", "x", "g"}, {"DBSIZE"}}
	var got [2][]value
	for i, c := range conns {
		c.Append("HELLO", "2")
		c.Append("FLUSHALL")
		for _, line := range extremeData {
			c.Append(strings.Fields(line)...)
		}
		c.Append(args...)
		for _, cmd := range after {
			c.Append(cmd...)
		}
		if err := c.Flush(); err != nil {
			return "", err
		}
		for range 2 + len(extremeData) {
			if _, err := c.Read(batchTimeout); err != nil {
				return "", err
			}
		}
		for range 1 + len(after) {
			v, err := c.Read(batchTimeout)
			if err != nil {
				return "", err
			}
			got[i] = append(got[i], v)
		}
	}
	for i := range got[0] {
		cmd := args
		if i > 0 {
			cmd = after[i-1]
		}
		a, b := got[0][i], got[1][i]
		if same(cmd, a, b) {
			continue
		}
		if knownReason(cmd, a, b) != "" {
			return "", nil // and its effects differ too
		}
		return fmt.Sprintf("  %q\n    A: %v\n    B: %v\n", cmd, a, b), nil
	}
	return "", nil
}
