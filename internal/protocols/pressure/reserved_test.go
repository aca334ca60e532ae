package pressure_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/testing/crashfs"
	"github.com/atomredis/atomredis/internal/testing/servertest"
	"github.com/atomredis/atomredis/server"
)

// reservedIDs returns the ids in a reply of PRESSURE.GET with RESERVE.
func reservedIDs(reply string) []string {
	return regexp.MustCompile(`\b\d{13}-\d+\b`).FindAllString(reply, -1)
}

// reserve gets n messages and returns their ids; want are the messages.
func (p *pressureServer) reserve(client string, ms int, want ...string) []string {
	reply := p.step(fmt.Sprintf("%s PRESSURE.GET q COUNT %d RESERVE %d", client, len(want), ms))
	ids := reservedIDs(reply)
	require.Len(p.t, ids, len(want), reply)
	expected := fmt.Sprintf("*%d", len(want))
	for i := range want {
		expected += " *2 " + ids[i] + " " + want[i]
	}
	require.Equal(p.t, expected, reply)
	return ids
}

func TestPressureReservedMessagesAreAcknowledged(t *testing.T) {
	eachSharding(t, func(t *testing.T, p *pressureServer) {
		p.play([][2]string{{"a PRESSURE.CREATE q BOUND 3", "+OK"}, {"a PRESSURE.PUT q x yy zzz", ":3"}}...)
		id := reservedIDs(p.step("a PRESSURE.GET q RESERVE 50"))
		require.Len(t, id, 1)
		ids := p.reserve("a", 50, "yy", "zzz")
		require.Equal(t, ":0", p.info("length"))
		require.Equal(t, ":3", p.info("reserved"))
		require.Equal(t, ":0", p.info("consumed_messages"))
		p.play([][2]string{
			{"a HLEN $:reserved", ":3"}, {"a HGET $:reserved " + id[0], "1000000000050 x"},
			// Their places are still taken.
			{"b PRESSURE.PUT q more", ""},
			{"a PRESSURE.ACK q " + ids[0] + " " + ids[0] + " nonsense " + ids[1], ":2"},
			{"b", ":1"},
			{"a PRESSURE.ACK q " + ids[0], ":0"},
			{"a LLEN $:not_full", ":1"},
			{"a PRESSURE.GET q TIMEOUT 1", "more"},
			{"a PRESSURE.ACK q " + id[0] + " PREFIX __pressure__", ":1"},
			{"a EXISTS $:reserved", ":0"},
			{"+1000", ""},
			{"a PRESSURE.LEN q", ":0"},
		}...)
		require.Equal(t, ":4", p.info("consumed_messages"))
		require.Equal(t, ":10", p.info("consumed_bytes"))
		require.Equal(t, ":0", p.info("redelivered"))
	})
}

func TestPressureReservedMessagesComeBackInOrder(t *testing.T) {
	eachSharding(t, func(t *testing.T, p *pressureServer) {
		p.play([][2]string{{"a PRESSURE.CREATE q BOUND 9", "+OK"}, {"a PRESSURE.PUT q 1 2 3 4 5 6", ":6"}}...)
		first := p.reserve("a", 100, "1", "2", "3")
		p.reserve("b", 50, "4", "5")
		p.play([][2]string{
			{"+49", ""}, {"c LRANGE $ 0 -1", "*1 6"},
			{"+1", ""}, {"c LRANGE $ 0 -1", "*3 6 5 4"},
			{"c PRESSURE.RETURN q " + first[2] + " " + first[0] + " " + first[2], ":2"},
			{"c PRESSURE.RETURN q " + first[2], ":0"},
			{"c LRANGE $ 0 -1", "*5 6 5 4 3 1"},
			{"c PRESSURE.ACK q " + first[0], ":0"},
			{"+50", ""}, {"c LRANGE $ 0 -1", "*6 6 5 4 3 1 2"},
			{"c EXISTS $:reserved", ":0"},
		}...)
		require.Equal(t, ":5", p.info("redelivered"))
		require.Equal(t, ":0", p.info("consumed_messages"))
		require.NotEqual(t, first[:1], p.reserve("a", 10, "2"))
	})
}

// A message that comes back at its deadline goes to a waiting client.
func TestPressureWaitersGetReturnedMessages(t *testing.T) {
	eachSharding(t, func(t *testing.T, p *pressureServer) {
		p.play([][2]string{{"a PRESSURE.CREATE q", "+OK"}, {"a PRESSURE.PUT q 1 2", ":2"}}...)
		ids := p.reserve("a", 30, "1", "2")
		p.play([][2]string{
			{"b BRPOP $ 0", ""}, {"c PRESSURE.GET q", ""},
			{"a PRESSURE.RETURN q " + ids[1], ":1"}, {"b", "*2 $ 2"},
			{"+29", ""}, {"c", ""}, {"+1", ""}, {"c", "1"},
		}...)
	})
}

// A closed queue is drained only when no reserved message can come back.
func TestPressureClosedQueueWithReservedMessages(t *testing.T) {
	eachSharding(t, func(t *testing.T, p *pressureServer) {
		p.play([][2]string{{"a PRESSURE.CREATE q", "+OK"}, {"a PRESSURE.PUT q 1 2", ":2"}}...)
		ids := p.reserve("a", 30, "1", "2")
		p.play([][2]string{
			{"a PRESSURE.CLOSE q", "+OK"},
			{"b PRESSURE.GET q", ""}, {"c PRESSURE.GET q", ""},
			{"a PRESSURE.RETURN q " + ids[0], ":1"}, {"b", "1"}, {"c", ""},
			{"a PRESSURE.ACK q " + ids[1], ":1"}, {"c", queueClosed},
			{"a LLEN $:consumer_free", ":1"}, {"a LLEN $:closed", ":2"},
		}...)
	})
}

func TestPressureReservedMessagesOfADeletedQueueAreDropped(t *testing.T) {
	eachSharding(t, func(t *testing.T, p *pressureServer) {
		p.play([][2]string{{"a PRESSURE.CREATE q", "+OK"}, {"a PRESSURE.PUT q 1 2", ":2"}}...)
		p.reserve("a", 30, "1")
		p.play([][2]string{{"a PRESSURE.DELETE q", "+OK"}, {"a EXISTS $:reserved", ":0"}, {"+30", ""}, {"a DBSIZE", ":0"}}...)
		// A client that deletes the queue with its own steps knows nothing of the hash.
		p.play([][2]string{{"a PRESSURE.CREATE q", "+OK"}, {"a PRESSURE.PUT q 1 2", ":2"}}...)
		p.reserve("a", 30, "1")
		p.play([][2]string{
			{"a PRESSURE.CLOSE q", "+OK"}, {"a RPOP $", "2"}, {"w PRESSURE.GET q", ""},
			{"a DEL $:bound", ":1"}, {"a LPUSH $:closed 0 0", ":4"}, {"w", noQueue},
			{"b BRPOP $:consumer_free 0", "*2 $:consumer_free 0"}, {"+60000", ""}, {"a EXISTS $ $:reserved", ":0"},
		}...)
		p.play([][2]string{{"a FLUSHALL", "+OK"}, {"a PRESSURE.CREATE q", "+OK"}, {"a PRESSURE.PUT q 1", ":1"}}...)
		p.reserve("a", 30, "1")
		p.play([][2]string{{"a FLUSHALL", "+OK"}, {"+30", ""}, {"a DBSIZE", ":0"}}...)
	})
}

// Values that other commands write into the hash do no harm, and no message is lost.
func TestPressureStrangeReservationsComeBack(t *testing.T) {
	p := newPressureServer(t)
	p.play([][2]string{
		{"a PRESSURE.CREATE q", "+OK"}, {"a HSET $:reserved odd message 5-6 late", ":2"},
		{"a PRESSURE.GET q COUNT 5", "*2 message late"}, {"a EXISTS $:reserved", ":0"},
	}...)
	p.step("a PRESSURE.PUT q x")
	p.reserve("a", 10, "x")
	p.play([][2]string{{"a SET $ string", "+OK"}, {"+10", ""}, {"a HLEN $:reserved", ":1"}, {"a DEL $", ":1"},
		{"a PRESSURE.GET q", ""}, {"+1000", ""}, {"a", "x"}}...)
	p.step("a PRESSURE.PUT q y")
	reply := p.step("a PRESSURE.GET q RESERVE 9000000000000000000")
	require.Len(t, reservedIDs(reply), 1)
	p.play([][2]string{{"+100000", ""}, {"a PRESSURE.LEN q", ":0"},
		{"a PRESSURE.ACK q " + reservedIDs(reply)[0], ":1"}}...)
	p.Finish()
}

func TestPressureReservationsOutliveARestart(t *testing.T) {
	for _, shards := range []string{"1", "16"} {
		t.Run(shards, func(t *testing.T) {
			fs := crashfs.Mem()
			d := servertest.OpenDurable(t, fs, "shards", shards)
			d.Expect("+OK\r\n", "PRESSURE.CREATE q BOUND 5")
			d.Expect(":3\r\n", "PRESSURE.PUT q 1 2 3")
			kept := reservedIDs(d.Line("PRESSURE.GET q RESERVE 100000000"))
			require.Len(t, kept, 1)
			d.Line("PRESSURE.GET q COUNT 2 RESERVE 1")
			d.Drop()
			d = servertest.OpenDurable(t, fs, "shards", shards)
			// Without any command on queues, the messages come back by themselves.
			d.Await("*2\r\n$1\r\n3\r\n$1\r\n2\r\n", "LRANGE __pressure__:q 0 -1")
			d.Expect(":1\r\n", "PRESSURE.ACK q "+kept[0])
			d.Expect("*2\r\n$1\r\n2\r\n$1\r\n3\r\n", "PRESSURE.GET q COUNT 3")
			d.Line("PRESSURE.PUT q 4")
			require.NotContains(t, d.Line("PRESSURE.GET q RESERVE 5"), kept[0])
			d.End()
		})
	}
}

// Over a socket, with the clock of the machine.
func TestPressureReservationsAreReturnedByTheTimer(t *testing.T) {
	servertest.EachTransport(t, func(t *testing.T, o server.Options, settings ...string) {
		s := servertest.Start(t, o, settings...)
		a, b := s.Connect(), s.Connect()
		require.Equal(t, "+OK", a.Line("PRESSURE.CREATE q"))
		require.Equal(t, "1", b.Line("PRESSURE.PUT q x"))
		for range 5 {
			require.True(t, strings.HasSuffix(a.Line("PRESSURE.GET q RESERVE 2"), `"x"]`))
		}
		require.Equal(t, "x", b.Line("PRESSURE.GET q"))
	})
}
