package fanout

import (
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/cluster"
	"github.com/atomredis/atomredis/internal/cluster/shards"
	"github.com/atomredis/atomredis/internal/wire/peer"
)

// testCluster is a cluster whose shards are functions, and whose connections are in memory. The server's own shard is "a".
type testCluster struct {
	record  cluster.Record
	answers map[string]func(q *Question) (Answer, error)
	dialled atomic.Int32
	version uint64
}

func newTestCluster() *testCluster {
	c := &testCluster{record: cluster.Record{ID: "a"}, answers: map[string]func(q *Question) (Answer, error){}, version: 1}
	c.record.Claims = []cluster.Claim{{Range: cluster.Range{First: 0, Last: 99}, Epoch: 1}}
	for i, id := range []string{"b", "c"} {
		first := 100 * (i + 1)
		c.record.Others = append(c.record.Others, cluster.Other{ID: id, Claims: []cluster.Claim{{Range: cluster.Range{First: first, Last: first + 99}, Epoch: 1}}})
		c.answers[id] = func(*Question) (Answer, error) { return answerOf(id, first, first+99), nil }
	}
	return c
}

func (c *testCluster) Now() *shards.State {
	return &shards.State{Record: &c.record, ID: c.record.ID, Owners: c.record.Owners()}
}
func (c *testCluster) Servers(shard string) []string { return []string{"nobody", shard} }
func (c *testCluster) Dial(addr string, purpose peer.Purpose, _ time.Duration) (*peer.Conn, error) {
	if c.answers[addr] == nil {
		return nil, errors.New("connection refused")
	}
	c.dialled.Add(1)
	here, there := net.Pipe()
	go func() {
		Serve(peer.NewConn(there, purpose, c.version, nil, nil), func(q *Question) (Answer, error) { return c.answers[addr](q) })
		there.Close()
	}()
	return peer.NewConn(here, purpose, c.version, nil, nil), nil
}

// testAnswer has some parts.
type testAnswer struct {
	view  View
	parts []string
	kept  int
}

func answerOf(shard string, first, last int, parts ...string) *testAnswer {
	return &testAnswer{view: View{Shard: shard, Slots: []cluster.Range{{First: first, Last: last}}}, parts: parts}
}

func (a *testAnswer) View() *View      { return &a.view }
func (a *testAnswer) Keep(n int) error { a.kept = n; return nil }
func (a *testAnswer) Want() error      { return nil }
func (a *testAnswer) Close()           {}
func (a *testAnswer) Part() ([]byte, bool, error) {
	part := a.parts[0]
	if a.parts = a.parts[1:]; part == "again" {
		return nil, false, ErrAgain
	}
	return []byte(part), len(a.parts) > 0, nil
}

func TestAnswersArriveInParts(t *testing.T) {
	c := newTestCluster()
	var asked *Question
	c.answers["b"] = func(q *Question) (Answer, error) {
		asked = q
		return answerOf("b", 100, 199, "one", "", strings.Repeat("x", 1<<20)), nil
	}
	caller := NewCaller(c)
	defer caller.Close()
	for range 3 {
		a, err := caller.Ask("b", &Question{What: "w", Args: [][]byte{[]byte("x\xff")}}, time.Now().Add(time.Minute))
		require.NoError(t, err)
		require.Equal(t, "x\xff", string(asked.Args[0]))
		for i, want := range []string{"one", "", strings.Repeat("x", 1<<20)} {
			part, more, err := a.Part()
			require.NoError(t, err)
			require.Equal(t, want, string(part))
			require.Equal(t, i < 2, more)
		}
		a.Close()
	}
	a, err := caller.Ask("b", &Question{}, time.Now().Add(time.Minute))
	require.NoError(t, err)
	a.Close() // before its end
	require.Equal(t, int32(1), c.dialled.Load(), "the connection is used again")
}

func TestErrorsOfShards(t *testing.T) {
	c := newTestCluster()
	caller := NewCaller(c)
	defer caller.Close()
	until := time.Now().Add(time.Minute)
	c.answers["b"] = func(*Question) (Answer, error) { return nil, Refused("no") }
	_, err := caller.Ask("b", &Question{}, until)
	require.ErrorIs(t, err, peer.Refused)
	require.EqualError(t, err, "no")

	c.answers["b"] = func(*Question) (Answer, error) { return answerOf("b", 0, 1, "x", "again"), nil }
	a, err := caller.Ask("b", &Question{}, until)
	require.NoError(t, err)
	_, _, err = a.Part()
	require.NoError(t, err)
	_, _, err = a.Part()
	require.ErrorIs(t, err, peer.Again)
	a.Close()

	c.answers["b"] = func(*Question) (Answer, error) { return answerOf("other", 0, 1), nil }
	_, err = caller.Ask("b", &Question{}, until)
	require.ErrorContains(t, err, "CLUSTERDOWN Shard b does not answer")
	_, err = caller.Ask("nosuch", &Question{}, until)
	require.ErrorContains(t, err, "CLUSTERDOWN Shard nosuch does not answer: connection refused")

	c.version = 0
	_, err = NewCaller(c).Ask("b", &Question{}, until)
	require.EqualError(t, err, "ERR a shard runs a version without search across shards")
}

func TestAllSlotsAreAnsweredOnce(t *testing.T) {
	own := func(*Question) (Answer, error) { return answerOf("a", 0, 99), nil }
	c := newTestCluster()
	answers, whole, err := NewCaller(c).Gather(func() *Question { return &Question{} }, own, time.Minute, false)
	require.NoError(t, err)
	require.True(t, whole)
	require.Equal(t, []string{"a", "b", "c"}, names(answers))
	CloseAll(answers)

	// If two shards have a slot, or none, all shards are asked again.
	tries := 0
	c.answers["c"] = func(*Question) (Answer, error) {
		switch tries++; tries {
		case 1:
			return answerOf("c", 199, 299), nil
		case 2:
			return answerOf("c", 201, 299), nil
		case 3:
			return nil, ErrAgain
		}
		return answerOf("c", 200, 299), nil
	}
	answers, _, err = NewCaller(c).Gather(func() *Question { return &Question{} }, own, time.Minute, false)
	require.NoError(t, err)
	require.Equal(t, 4, tries)
	CloseAll(answers)
}

func TestWhatThereIsCountsIfItMay(t *testing.T) {
	own := func(*Question) (Answer, error) { return answerOf("a", 0, 99), nil }
	c := newTestCluster()
	c.answers["c"] = nil
	caller := NewCaller(c)
	caller.retryFor = time.Millisecond
	_, _, err := caller.Gather(func() *Question { return &Question{} }, own, time.Minute, false)
	require.ErrorContains(t, err, "CLUSTERDOWN Shard c does not answer")
	answers, whole, err := caller.Gather(func() *Question { return &Question{} }, own, time.Minute, true)
	require.NoError(t, err)
	require.False(t, whole)
	require.Equal(t, []string{"a", "b"}, names(answers))

	c.record.Others[1].Claims = nil // a shard without slots is not needed
	answers, whole, err = caller.Gather(func() *Question { return &Question{} }, own, time.Minute, false)
	require.NoError(t, err)
	require.True(t, whole)
	require.Equal(t, []string{"a", "b"}, names(answers))
}

func names(answers []Answer) (list []string) {
	for _, a := range answers {
		list = append(list, a.View().Shard)
	}
	return list
}

func TestTheNearestOfAllShardsCount(t *testing.T) {
	for _, c := range []struct {
		near [][]float64
		most int
		want []int
	}{
		{[][]float64{{1, 4, 5}, {2, 3}, {9}}, 3, []int{1, 2, 0}},
		{[][]float64{{1, 1}, {1, 1}}, 3, []int{2, 1}},
		{[][]float64{{1}, {}, {2}}, 10, []int{1, 0, 1}},
	} {
		var answers []Answer
		for _, near := range c.near {
			a := answerOf("s", 0, 1)
			a.view.SetNear(near, c.most)
			answers = append(answers, a)
		}
		require.NoError(t, KeepNearest(answers))
		for i, a := range answers {
			require.Equal(t, c.want[i], a.(*testAnswer).kept)
		}
	}
}

func TestBrokenQuestionsEndTheConnection(t *testing.T) {
	for _, sent := range []string{"", "\x01\x02{}n", "\x01\x01{", "x\x00", "\x01\x02{}\x03\x00", "\x01\x02{}k\x01\x05", "\x01\x02{}k\x00"} {
		here, there := net.Pipe()
		done := make(chan struct{})
		go func() {
			Serve(peer.NewConn(there, peer.Search, 1, nil, nil), func(*Question) (Answer, error) { return answerOf("a", 0, 1, "x"), nil })
			there.Close()
			close(done)
		}()
		go func() {
			for buf := make([]byte, 100); ; {
				if _, err := here.Read(buf); err != nil {
					return
				}
			}
		}()
		_, _ = here.Write([]byte(sent))
		here.Close()
		<-done
	}
}
