package server

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/atomredis/atomredis/internal/command"
	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/testing/crashfs"
)

// input gives a client's session input, and waits until no value is read for it any more.
func (b *tiered) input(client int, line string) {
	s := b.clients[client]
	s.Input(request(strings.Fields(line)...), b.ks.Now())
	for s.Fetching() {
		select {
		case <-b.woken:
		case <-time.After(time.Millisecond):
		}
		s.Advance(b.ks.Now())
	}
}

// end waits until no command of a client is offloaded any more, and returns its replies.
func (b *tiered) end(client int) string {
	s := b.clients[client]
	for s.Waiting() {
		select {
		case <-b.woken:
		case <-time.After(time.Millisecond):
		}
		s.Advance(b.ks.Now())
	}
	replies := string(s.Output())
	s.SetOutput(nil)
	return replies
}

// Offloaded commands see complete values of which some elements are in memory and changed and the others are not in
// memory. They still see the same state if elements are changed, stored and removed from memory meanwhile.
func TestOffloadedCommandsSeeValuesThatArePartlyAway(t *testing.T) {
	with := openTiered(t, crashfs.Mem(), 2)
	defer with.close()
	without := openTiered(t, crashfs.Mem(), 2, "maxmemory-policy=noeviction")
	defer without.close()
	var fill []byte
	for i := range manyElements {
		name := fmt.Sprint("m", i)
		fill = append(fill, request("HSET", "h", name, name)...)
		fill = append(fill, request("SADD", "s", name)...)
		fill = append(fill, request("ZADD", "z", fmt.Sprint(i), name)...)
		fill = append(fill, request("RPUSH", "l", fmt.Sprint(i*7919%manyElements))...)
	}
	fill = append(fill, request("SADD", "t", "m1", "m2", "m3", "m4", "m5", "m6", "other")...)
	for _, b := range []*tiered{with, without} {
		b.send(0, fill)
	}
	changes := func(i int) []string {
		return []string{fmt.Sprintf("HSET h m%d changed new%d 1", i, i), fmt.Sprintf("HDEL h m%d", 100+i),
			fmt.Sprintf("HEXPIRE h 1000 FIELDS 1 m%d", 200+i), fmt.Sprintf("SADD s new%d", i),
			fmt.Sprintf("SEXPIRE s 1000 MEMBERS 1 m%d", 500+i), fmt.Sprintf("SREM s m%d", 300+i),
			fmt.Sprintf("ZADD z 7.5 m%d 8 new%d", i, i), fmt.Sprintf("ZREM z m%d", 400+i), fmt.Sprintf("LPUSH l %d", i),
			fmt.Sprintf("LSET l -2 %d", i), "RPOP l"}
	}
	ordered := []string{"LRANGE", "ZRANGE", "SORT"}
	for i, line := range []string{"HGETALL h", "SMEMBERS s", "ZRANGE z 0 -1 WITHSCORES", "LRANGE l 0 -1", "SORT l", "SUNION s t",
		"SUNIONSTORE to s t", "ZUNIONSTORE to 2 z s", "ZRANGESTORE to z 0 -1", "SORT l STORE to", "COPY h to", "COPY l to"} {
		with.leave()
		for _, change := range changes(2 * i) {
			require.Equal(t, without.do(change), with.do(change), change)
		}
		want := without.sendAlone(0, line)
		if slices.Contains(strings.Fields(line), "to") {
			want += sorted([]string{without.sendAlone(0, storedOf(line))})[0]
		}
		with.input(0, line)
		require.True(t, with.clients[0].Waiting(), "%s is offloaded", line)
		if i%2 == 0 {
			with.leave()
		}
		// Commands that store a result are tried without changes of their sources, because a change would restart
		// them.
		if reads := !strings.Contains(line, "to"); reads {
			for _, change := range changes(2*i + 1) {
				require.Equal(t, without.do(change), with.sendAlone(1, change), change)
			}
		}
		got := with.end(0)
		if slices.Contains(strings.Fields(line), "to") {
			got += sorted([]string{with.sendAlone(0, storedOf(line))})[0]
			with.do("DEL to")
			without.do("DEL to")
		}
		if !slices.Contains(ordered, strings.Fields(line)[0]) {
			want, got = sortedReply(want), sortedReply(got)
		}
		require.True(t, want == got, "%s: %d and %d bytes", line, len(want), len(got))
	}
	now := with.ks.Now()
	require.Equal(t, withoutEncodings(dump(without.ks, now)), withoutEncodings(dump(with.ks, now)))
	_, came := with.stats()
	require.NotZero(t, came)
}

// A read of many keys whose values are not in memory has the reply of a server that has them in memory.
func TestManyKeysThatAreAway(t *testing.T) {
	with := openTiered(t, crashfs.Mem(), 2)
	defer with.close()
	without := openTiered(t, crashfs.Mem(), 2, "maxmemory-policy=noeviction")
	defer without.close()
	names := ""
	var fill []byte
	for i := range manyElements {
		names += fmt.Sprint(" key", i)
		if i%50 == 0 {
			fill = append(fill, request("SET", fmt.Sprint("key", i), strings.Repeat("v", 200))...)
		}
	}
	for _, b := range []*tiered{with, without} {
		b.send(0, fill)
	}
	for _, name := range []string{"MGET", "EXISTS", "TOUCH"} {
		with.leave()
		want := without.sendAlone(0, name+names)
		with.input(0, name+names)
		require.False(t, with.clients[0].Waiting(), name)
		got := with.end(0)
		require.True(t, want == got, "%s: %d and %d bytes", name, len(want), len(got))
	}
	_, came := with.stats()
	require.NotZero(t, came)
}

// storedOf returns the command that reads the key to, in which a command has stored its result.
func storedOf(line string) string {
	switch {
	case line[0] == 'S' && line[1] == 'U':
		return "SMEMBERS to"
	case line[0] == 'Z':
		return "ZRANGE to 0 -1 WITHSCORES"
	case line == "COPY h to":
		return "HGETALL to"
	}
	return "LRANGE to 0 -1"
}

// sendAlone is send for a client while the others wait.
func (b *tiered) sendAlone(client int, line string) string {
	b.input(client, line)
	return b.end(client)
}

// manyElements are enough for a command to be offloaded.
const manyElements = command.LongFrom + 100

// sortedReply puts the elements of a reply in order, because sets and hashes have none.
func sortedReply(reply string) string {
	lines := strings.Split(reply, "\r\n")
	slices.Sort(lines)
	return strings.Join(lines, "\r\n")
}

// The result of an offloaded command reaches the store and the journal whenever a checkpoint is made, and values
// that are not in memory are read first.
func TestResultsOfOffloadedCommandsAreDurable(t *testing.T) {
	fs := crashfs.Mem()
	b := openTiered(t, fs, 2)
	s := b.clients[0]
	hash := []string{"HSET", "h"}
	for i := range manyElements {
		hash = append(hash, "f"+strconv.Itoa(i), strings.Repeat("v", 80))
	}
	b.send(0, request(hash...))
	s.Input(request("DUMP", "h"), b.ks.Now())
	b.sessions.AwaitOffloaded()
	_, payload, _ := strings.Cut(strings.TrimSuffix(b.settle()[0], "\r\n"), "\r\n")
	set, list := []string{"SADD", "s"}, []string{"RPUSH", "l"}
	for i := range manyElements {
		set, list = append(set, "m"+strconv.Itoa(i)), append(list, strconv.Itoa(i))
	}
	b.send(0, request(set...))
	b.send(0, request(list...))
	var document strings.Builder
	for i := range manyElements {
		fmt.Fprintf(&document, ",%d", i)
	}
	b.send(0, request("JSON.SET", "j", "$", "["+document.String()[1:]+"]"))
	n := strconv.Itoa(manyElements)
	for i, c := range []struct{ line, length string }{
		{"SUNIONSTORE union s none", "SCARD union"}, {"ZUNIONSTORE scores 1 s", "ZCARD scores"}, {"SORT l DESC STORE sorted", "LLEN sorted"},
		{"COPY s copy", "SCARD copy"}, {"COPY s copy REPLACE", "SCARD copy"}, {"RESTORE restored 0", "HLEN restored"},
		{"JSON.NUMINCRBY j $[*] 1", "JSON.ARRLEN j ."}, {"JSON.NUMPOWBY j $[*] 2", "JSON.ARRLEN j ."},
	} {
		args := strings.Fields(c.line)
		if args[0] == "RESTORE" {
			args = append(args, payload)
		}
		if i%2 == 0 {
			b.leave()
		}
		s.Input(request(args...), b.ks.Now())
		for s.Fetching() {
			<-b.woken
			s.Advance(b.ks.Now())
		}
		require.True(t, s.Waiting(), c.line)
		b.sessions.AwaitOffloaded()
		if i%2 == 1 {
			require.NoError(t, b.storage.Save()) // a new epoch begins between the computation and its end
		}
		s.Advance(b.ks.Now())
		require.False(t, s.Waiting())
		require.NotContains(t, b.settle()[0], "-ERR", c.line)
		require.Equal(t, ":"+n+"\r\n", b.do(c.length), c.line)
		b.leave()
		require.Equal(t, ":"+n+"\r\n", b.do(c.length), c.line)
	}
	b.close()
	b = openTiered(t, fs, 1)
	for _, line := range []string{"SCARD union", "ZCARD scores", "LLEN sorted", "SCARD copy", "SUNIONCARD 2 union copy", "HLEN restored"} {
		b.clients[0].Input(request(strings.Fields(line)...), b.ks.Now())
		for b.clients[0].Waiting() {
			<-b.woken
			b.clients[0].Advance(b.ks.Now())
		}
		require.Equal(t, ":"+n+"\r\n", b.settle()[0], line)
	}
	require.Equal(t, "*2\r\n$5\r\n16483\r\n$5\r\n16482\r\n", b.do("LRANGE sorted 0 1"))
	require.Equal(t, "$4\r\n[81]\r\n", b.do("JSON.GET j $[8]"))
	b.close()
}
