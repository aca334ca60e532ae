package perperignite_test

import (
	"encoding/binary"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis"
	"github.com/atomredis/atomredis/atomredistest"
	"github.com/atomredis/atomredis/engine"
)

const createExecutions = "09 0a000000 657865637574696f6e73"

// told reads a notification, and returns its body.
func (p *peer) told(query uint64) []byte {
	p.t.Helper()
	b := p.message()
	require.Equal(p.t, query, binary.LittleEndian.Uint64(b))
	require.Equal(p.t, unhex(p.t, "0400 d707"), b[8:12], "the flags, and the kind of the message")
	return b[12:]
}

func requireQueries(t *testing.T, s *atomredistest.Server, n string) {
	t.Helper()
	require.Eventually(t, func() bool {
		return strings.Contains(s.MustDo(t, "INFO", "door_perper_ignite").String(), "continuous_queries:"+n+"\r\n")
	}, deadline, time.Millisecond)
}

func TestContinuousQueriesTellOfChanges(t *testing.T) {
	s := opened(t)
	p, writer := connect(t, s), connect(t, s)
	const page1 = "01000000 0000000000000000 00" + null
	p.play(step{2006, prefix + page1, "1000 Cache does not exist [cacheId=539514971]"},
		step{1052, createExecutions, ""},
		step{2006, prefix + "01000000 0000000000000000 00" + thing + "01",
			"1 Continuous queries with a filter are not supported: its code (type id 5) cannot run here. " +
				"Filter in the client, or ask in SQL"},
		step{2006, prefix + "01000000", "1 malformed object"},
		step{2006, prefix + page1, "0100000000000000"})
	writer.play(step{1001, prefix + keyA + one, ""}, step{1001, prefix + keyA + thing, ""}, step{1016, prefix + keyA, "01"},
		step{1001, prefix + keyB + two, ""}, step{1013, prefix, ""})
	for _, want := range []string{keyA + null + one + "00", keyA + one + wrapped + "01", keyA + wrapped + wrapped + "02",
		keyB + null + two + "00", keyB + two + two + "02"} {
		require.Equal(t, unhex(t, "01000000"+want), p.told(1))
	}

	// The peer's own changes are sent too, before or after their answers.
	p.play(step{2006, prefix + "02000000 0000000000000000 00" + null, "0200000000000000"})
	p.send(1001, unhex(t, prefix+keyA+one))
	seen := map[uint64]int{}
	for range 2 {
		seen[binary.LittleEndian.Uint64(p.message())]++
	}
	require.Equal(t, map[uint64]int{1: 1, p.id: 1}, seen)
	requireQueries(t, s, "2")
	p.play(step{0, "0100000000000000", ""}, step{0, "0100000000000000", "1011 Failed to find resource with id: 1"})
	writer.play(step{1001, prefix + keyA + two, ""})
	require.Equal(t, unhex(t, "02000000"+keyA+null+one+"00"+keyA+one+two+"01"), p.told(2), "two changes are a page")
	p.play(step{0, "0200000000000000", ""})
	writer.play(step{1001, prefix + keyA + one, ""})
	p.play(step{1000, prefix + keyA, one})

	// A partial page is sent after its time, or when the cache is destroyed.
	p.play(step{2006, prefix + "64000000 0100000000000000 00" + null, "0300000000000000"})
	writer.play(step{1001, prefix + keyA + two, ""})
	require.Equal(t, unhex(t, "01000000"+keyA+one+two+"01"), p.told(3))
	p.play(step{2006, prefix + "64000000 0000000000000000 00" + null, "0400000000000000"}, step{0, "0300000000000000", ""})
	writer.play(step{1001, prefix + keyA + one, ""}, step{1056, executions, ""})
	require.Equal(t, unhex(t, "02000000"+keyA+two+one+"01"+keyA+one+one+"02"), p.told(4))
	p.play(step{0, "0400000000000000", ""})

	p.play(step{1052, createExecutions, ""})
	for range 128 {
		_, failed := p.ask(2006, unhex(t, prefix+page1))
		require.Empty(t, failed)
	}
	p.play(step{2006, prefix + page1, "1010 Too many open cursors: 128"})
	p.conn.Close()
	requireQueries(t, s, "0")
}

func TestEntriesExpire(t *testing.T) {
	// The clock only moves with FastForward, so entries do not expire before.
	s := atomredistest.RunOptions(t, atomredis.Options{Clock: engine.NewManualClock(time.Unix(1_000_000_000, 0)),
		Config: map[string]string{"door-perper-ignite": "127.0.0.1:0"}})
	p, w := connect(t, s), connect(t, s)
	const second, eternal, unchanged = "e803000000000000", "ffffffffffffffff", "feffffffffffffff"
	const expiring = executions + "04" + second + unchanged + unchanged
	// One query with expired entries, and one without.
	p.play(step{1052, createExecutions, ""},
		step{1001, expiring + keyA + one, ""}, step{1002, expiring + keyB + one, "01"})
	w.play(step{2006, prefix + "01000000 0000000000000000 01" + null, "0100000000000000"},
		step{2006, prefix + "01000000 0000000000000000 00" + null, "0200000000000000"})
	p.play(step{1005, executions + "04" + unchanged + eternal + unchanged + keyB + two, one})
	for range 2 {
		require.Equal(t, unhex(t, "01000000"+keyB+one+two+"01"), w.message()[12:])
	}
	s.FastForward(999 * time.Millisecond)
	p.play(step{1000, prefix + keyA, one}, step{1020, prefix + "00000000", "0200000000000000"})
	s.FastForward(time.Millisecond)
	require.Equal(t, unhex(t, "01000000"+keyA+one+one+"03"), w.told(1))
	p.play(step{1000, prefix + keyA, null}, step{1000, prefix + keyB, two}, step{1020, prefix + "00000000", "0100000000000000"})
	w.play(step{0, "0100000000000000", ""}, step{0, "0200000000000000", ""})

	// A cache whose configuration asks for expired entries.
	const name, id = "09 01000000 63", "63000000 00"
	p.play(step{1053, "00000000 0200 0000" + name + "9701 01" + second + unchanged + second, ""},
		step{1053, "00000000 0200 0000 09 01000000 64 9701 01" + second + unchanged + "fdffffffffffffff",
			"1002 The configuration of the cache cannot be read: malformed object"},
		step{1004, id + "02000000" + keyA + one + keyB + two, ""})
	s.FastForward(900 * time.Millisecond)
	p.play(step{1000, id + keyA, one})
	require.Eventually(t, func() bool { return s.MustDo(t, "PERPER.TTL", "c", "a").String() == "(integer) 1000" }, deadline,
		time.Millisecond, "what is read stays")
	s.FastForward(100 * time.Millisecond)
	p.play(step{1003, id + "02000000" + keyA + keyB, "01000000" + keyA + one})
}

// A peer that does not read delays no other peer, and gets its answers when it reads.
func TestPeersThatDoNotReadTheirAnswers(t *testing.T) {
	s := opened(t)
	slow, other := connect(t, s), connect(t, s)
	other.play(step{1052, createExecutions, ""})
	value := make([]byte, 0, 64<<10)
	value = append(value, unhex(t, "0c 00ff0000")...)
	value = append(value, make([]byte, 0xff00)...)
	_, failed := other.ask(1001, append(unhex(t, prefix+keyA), value...))
	require.Empty(t, failed)
	const n = 1000 // 64 MB
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		for range n {
			slow.send(1000, unhex(t, prefix+keyA))
		}
	}()
	other.play(step{1001, prefix + keyB + one, ""}, step{1000, prefix + keyB, one})
	for i := range n {
		b := slow.message()
		require.Equal(t, uint64(i+1), binary.LittleEndian.Uint64(b))
		require.Len(t, b, 10+len(value))
	}
	<-sent
}

// A peer that does not read its notifications is disconnected.
func TestPeersThatDoNotReadNotifications(t *testing.T) {
	s := opened(t, "client-output-buffer-limit", "pubsub 100000 0 0")
	slow, writer := connect(t, s), connect(t, s)
	writer.play(step{1052, createExecutions, ""})
	slow.play(step{2006, prefix + "01000000 0000000000000000 00" + null, "0100000000000000"})
	requireQueries(t, s, "1")
	value := append(unhex(t, "0c 00ff0000"), make([]byte, 0xff00)...)
	require.Eventually(t, func() bool {
		_, failed := writer.ask(1001, append(unhex(t, prefix+keyA), value...))
		require.Empty(t, failed)
		return strings.Contains(s.MustDo(t, "INFO", "door_perper_ignite").String(), "continuous_queries:0\r\n")
	}, deadline, time.Nanosecond)
	writer.play(step{1011, prefix + keyA, "01"})
}
