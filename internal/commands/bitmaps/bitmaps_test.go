package bitmaps_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/testing/commandtest"
	"github.com/atomredis/atomredis/internal/testing/crashfs"
	"github.com/atomredis/atomredis/internal/testing/servertest"
	"github.com/atomredis/atomredis/internal/testing/testseed"
	"github.com/atomredis/atomredis/server"
)

// conversation sends lines of commands to a new server and returns the replies, without line breaks.
func conversation(t *testing.T, lines ...string) []string {
	t.Helper()
	b := servertest.NewStepped(t, "proto-max-bulk-len", "1mb")
	defer b.Finish()
	var replies []string
	for _, line := range lines {
		replies = append(replies, servertest.OnOneLine(b.Step(line)))
	}
	return replies
}

// TestBitopHasTheOperationsOfRedis82 checks operations that are newer than the transcripts of Redis 7.0.
func TestBitopHasTheOperationsOfRedis82(t *testing.T) {
	// 11111000 11001100 00101010
	bits := []string{"BITFIELD a SET u8 0 248", "BITFIELD b SET u8 0 204", "BITFIELD c SET u8 0 42 SET u8 8 1"}
	for line, want := range map[string][]string{
		"BITOP DIFF d a b c":  {":2", "*2 :16 :0"},  // 00010000
		"BITOP DIFF d c a":    {":2", "*2 :2 :1"},   // 00000010
		"BITOP DIFF1 d a b c": {":2", "*2 :6 :1"},   // 00000110
		"bitop andor d a b c": {":2", "*2 :232 :0"}, // 11101000
		"BITOP ANDOR d a x":   {":1", "*2 :0 :0"},   // 00000000
		"BITOP ONE d a b c":   {":2", "*2 :22 :1"},  // 00010110
		"BITOP ONE d a":       {":1", "*2 :248 :0"}, // 11111000
		"BITOP ONE d x y":     {":0", "*2 :0 :0"},   // both keys are missing
		"BITOP DIFF d a":      {"-ERR BITOP DIFF must be called with at least two source keys.", "*2 :0 :0"},
		"BITOP diff1 d a":     {"-ERR BITOP DIFF1 must be called with at least two source keys.", "*2 :0 :0"},
		"BITOP ANDOR d a":     {"-ERR BITOP ANDOR must be called with at least two source keys.", "*2 :0 :0"},
	} {
		replies := conversation(t, append(append([]string(nil), bits...), line, "BITFIELD_RO d GET u8 0 GET u8 8")...)
		require.Equal(t, want, replies[len(bits):], line)
	}
}

// Offsets of seven digits take ten bytes each: 2 MB are those of 209,714 bits, and of more if some are shorter.
func TestTheBytesOfOffsetsAreLimited(t *testing.T) {
	const refused = "value is out of range"
	c := servertest.Start(t, server.Options{}, "proto-max-bulk-len", "1mb").Connect()
	require.Equal(t, "0", c.Line("SETBIT k 8388607 0"))
	require.Contains(t, c.Line("BITRANGEINTARRAY k 1000000 -1 BIT ZEROS LIMIT 300000"), refused)
	require.Len(t, strings.Fields(c.Line("BITRANGEINTARRAY k 1000000 -1 BIT ZEROS LIMIT 209000")), 209000)
	require.Contains(t, c.Line("BITRANGEINTARRAY k 0 -1 ZEROS LIMIT 1000000"), refused, "too many, however short they are")
}

func TestBitsBeyondTheLongestStringAreRefused(t *testing.T) {
	const refused = "-ERR bit offset is not an integer or out of range"
	require.Equal(t, []string{":0", refused, refused, "*1 :0", refused, ":1048576"}, // the limit is 1 MiB
		conversation(t, "SETBIT k 8388607 1", "SETBIT k 8388608 1", "GETBIT k 8388608", "BITFIELD none GET u63 8388600",
			"BITFIELD k SET u8 #1048576 1", "STRLEN k"))
}

// BITOP computes its result in reused memory, and stores it in the memory of the key that it replaces. Not every
// time: the race detector makes each pool drop a quarter of its buffers.
func TestBitopMakesNoGarbage(t *testing.T) {
	const size, times = 1 << 20, 20
	b := servertest.NewStepped(t)
	defer b.Finish()
	b.Send("c", "SET", "a", strings.Repeat("a", size))
	b.Send("c", "SET", "b", strings.Repeat("b", size))
	for _, op := range [][]string{{"NOT", "to", "a"}, {"AND", "to", "a", "b"}, {"OR", "to", "a", "b"},
		{"XOR", "to", "a", "b"}, {"DIFF1", "to", "a", "b"}} {
		bitop := commandtest.Request(append([]string{"BITOP"}, op...)...)
		want := fmt.Sprintf(":%d\r\n", size)
		require.Equal(t, want, b.Input("c", bitop))
		require.Less(t, allocated(times, func() { b.Input("c", bitop) }), uint64(times*size), op)
	}
}

// allocated returns how many bytes calling f so often allocates.
func allocated(times int, f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range times {
		f()
	}
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func TestTranscripts(t *testing.T) { servertest.Transcripts(t, "bitmap") }

// words are commands on bits at random, of strings and bitmaps of up to 300,000 bits.
func words(rnd *rand.Rand) string {
	key := func() string { return string('a' + rune(rnd.IntN(4))) }
	offset := func() int {
		if rnd.IntN(2) == 0 {
			return rnd.IntN(200)
		}
		return rnd.IntN(300_000)
	}
	unit := []string{"BYTE", "BIT"}[rnd.IntN(2)]
	field := fmt.Sprint([]string{"u", "i"}[rnd.IntN(2)], 1+rnd.IntN(63))
	switch rnd.IntN(12) {
	case 0, 1, 2:
		return fmt.Sprint("SETBIT ", key(), " ", offset(), " ", rnd.IntN(2))
	case 3:
		return fmt.Sprint("GETBIT ", key(), " ", offset())
	case 4:
		return fmt.Sprint("BITCOUNT ", key(), " ", offset()-150_000, " ", offset()-150_000, " ", unit)
	case 5:
		return fmt.Sprint("BITPOS ", key(), " ", rnd.IntN(2), " ", offset()-100, " ", offset()-150_000, " ", unit)
	case 6:
		return fmt.Sprint("BITPOS ", key(), " ", rnd.IntN(2), " ", offset())
	case 7:
		return fmt.Sprint("BITFIELD ", key(), " SET ", field, " ", offset(), " ", rnd.IntN(1000), " OVERFLOW ",
			[]string{"WRAP", "SAT", "FAIL"}[rnd.IntN(3)], " INCRBY ", field, " ", offset(), " ", rnd.Int64N(1<<50),
			" GET ", field, " ", offset())
	case 8:
		return fmt.Sprint("BITRANGEINTARRAY ", key(), " ", offset()-150_000, " ", offset()-150_000, " ", unit, " LIMIT 50",
			[]string{"", " ZEROS"}[rnd.IntN(2)])
	case 9:
		return fmt.Sprint("BITOP NOT ", key(), " ", key())
	case 10:
		return fmt.Sprint("SET ", key(), " ", strings.Repeat("x", rnd.IntN(2000)), ".")
	}
	op := []string{"AND", "OR", "XOR", "DIFF", "DIFF1", "ANDOR", "ONE"}[rnd.IntN(7)]
	return fmt.Sprint("BITOP ", op, " ", key(), " ", key(), " ", key(), " ", key())
}

// Compressed bitmaps answer like strings, also after restarts, whatever the directive says then.
func TestCompressedBitmapsAnswerLikeStrings(t *testing.T) {
	rnd, fs := testseed.Rand(t), crashfs.Mem()
	plain := servertest.OpenDurable(t, crashfs.Mem())
	defer plain.End()
	for round := range 4 {
		d := servertest.OpenDurable(t, fs, "bitmap-default-roaring", []string{"yes", "no"}[round%2])
		same := func(line string) { require.Equal(t, plain.Line(line), d.Line(line), line) }
		for range 300 {
			same(words(rnd))
		}
		for _, key := range []string{"a", "b", "c", "d"} {
			same("BITCOUNT " + key)
			same("BITPOS " + key + " 1")
		}
		if round%2 == 0 {
			d.End()
		} else {
			d.Drop()
		}
	}
}
