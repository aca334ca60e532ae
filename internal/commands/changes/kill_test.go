package changes_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/testing/crashfs"
	"github.com/atomredis/atomredis/internal/testing/servertest"
	"github.com/atomredis/atomredis/internal/testing/testseed"
)

// consumer executes the changes of a server at another one, where it also keeps its position, in a database of its own.
type consumer struct {
	t    *testing.T
	fs   *crashfs.FS
	to   *servertest.Durable
	gone int // how often it had to begin again
}

const positionDB = "3"

func (k *consumer) open() { k.to = servertest.OpenDurable(k.t, k.fs) }

// position returns where to read on.
func (k *consumer) position() string {
	k.to.Line("SELECT " + positionDB)
	position := strings.Split(k.to.Line("GET position"), "\r\n")
	if len(position) < 3 {
		return "0"
	}
	return position[1]
}

// read executes a page; it reports whether there was anything.
func (k *consumer) read(from *servertest.Durable, count int) bool {
	at := k.position()
	reply := from.Line(fmt.Sprint("CHANGES READ FROM ", at, " COUNT ", count))
	if strings.HasPrefix(reply, "-CHANGESGONE") {
		k.gone++
		k.to.Line("FLUSHALL")
		return true
	}
	next, all := decode(k.t, reply)
	k.to.Line("MULTI")
	for _, c := range all {
		for _, cmd := range c.commands {
			db, words, _ := strings.Cut(cmd, " ")
			k.to.Line("SELECT " + db)
			k.to.Line(words)
		}
	}
	k.to.Line("SELECT " + positionDB)
	k.to.Line("SET position " + next)
	require.NotContains(k.t, k.to.Line("EXEC"), "\r\n-")
	return next != at
}

// The server and its consumer lose their power at any time, and journals are shortened: in the end the data is the same.
func TestAConsumerAndItsServerAreKilled(t *testing.T) {
	r := testseed.Rand(t)
	fs := crashfs.New()
	settings := []string{"changes-retention", "2kb"}
	d := servertest.OpenDurable(t, fs, settings...)
	k := &consumer{t: t, fs: crashfs.New()}
	k.open()
	change := func(n int) {
		for range n {
			d.Line(fmt.Sprint("SELECT ", r.IntN(3)))
			for _, line := range randomChange(r) {
				d.Line(line)
			}
		}
	}
	for round := range 100 {
		change(r.IntN(40))
		if round == 50 { // with any seed, the consumer has to begin again once
			for range 3 {
				change(100)
				d.Expect("+OK\r\n", "SAVE")
			}
		}
		if r.IntN(8) == 0 {
			d.Expect("+OK\r\n", "SAVE")
		}
		for range r.IntN(4) {
			k.read(d, 1+r.IntN(20))
		}
		if r.IntN(3) == 0 {
			fs2 := fs.CrashClone(crashfs.CloneCfg{})
			d.Drop()
			fs = fs2
			d = servertest.OpenDurable(t, fs, settings...)
		}
		if r.IntN(3) == 0 {
			fs2 := k.fs.CrashClone(crashfs.CloneCfg{})
			k.to.Drop()
			k.fs = fs2
			k.open()
		}
		if round%10 != 9 {
			continue
		}
		for k.read(d, 50) {
		}
		at := k.position()
		k.to.Line("DEL position")
		require.Equal(t, d.Line("DEBUG DIGEST"), k.to.Line("DEBUG DIGEST"), "round %d", round)
		k.to.Line("SET position " + at)
	}
	require.Positive(t, k.gone, "the test has snapshots in it")
	d.End()
	k.to.End()
}

// randomChange returns commands that change something.
func randomChange(r *rand.Rand) []string {
	key, n := fmt.Sprint("k", r.IntN(12)), r.IntN(1000)
	one := []string{
		fmt.Sprint("SET s", key, " ", n), fmt.Sprint("INCRBYFLOAT f", key, " 0.1"), fmt.Sprint("RPUSH l", key, " ", n, " ", n+1),
		fmt.Sprint("LPOP l", key), fmt.Sprint("SADD m", key, " ", n, " ", n+1, " ", n+2), fmt.Sprint("SPOP m", key),
		fmt.Sprint("HSET h", key, " f", n%9, " ", n), fmt.Sprint("ZADD z", key, " ", n, " m", n%20), fmt.Sprint("XADD x", key, " * f ", n),
		fmt.Sprint("DEL l", key), fmt.Sprint("EXPIRE s", key, " 100000"), fmt.Sprint("RENAME s", key, " s", key, "b"),
		fmt.Sprint("COPY s", key, " s", key, "c REPLACE"), fmt.Sprint("ZPOPMIN z", key), "SWAPDB 0 1",
		"EVALSHA_RO 0 0", fmt.Sprint("XTRIM x", key, " MAXLEN 3"), fmt.Sprint("LMOVE l", key, " lother LEFT RIGHT"),
	}
	pick := func() string { return one[r.IntN(len(one))] }
	switch r.IntN(10) {
	case 0:
		return []string{"MULTI", pick(), pick(), pick(), "EXEC"}
	case 1:
		if r.IntN(20) == 0 {
			return []string{"FLUSHDB"}
		}
	}
	return []string{pick()}
}
