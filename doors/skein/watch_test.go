package skein_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/atomredis/atomredis/internal/testing/testseed"
	pb "github.com/atomredis/atomredis/internal/wire/skein"
)

// watcher is a client's stream of watches.
type watcher struct {
	t      testing.TB
	stream grpc.BidiStreamingClient[pb.WatchRequest, pb.WatchResponse]
}

func watching(t testing.TB, c *client) *watcher {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	stream, err := c.Watch(ctx)
	require.NoError(t, err)
	return &watcher{t, stream}
}

func (w *watcher) send(request string) {
	w.t.Helper()
	require.NoError(w.t, w.stream.Send(message(w.t, new(pb.WatchRequest), request)))
}

// create creates a watch and returns its ID.
func (w *watcher) create(start, end string) int32 {
	w.t.Helper()
	return w.createOf(start, end, "ALL")
}

func (w *watcher) createOf(start, end, kind string) int32 {
	w.t.Helper()
	w.send(fmt.Sprintf("create { start: %q end: %q event_type: %s }", start, end, kind))
	r, err := w.stream.Recv()
	require.NoError(w.t, err)
	require.Equal(w.t, pb.WatchResponse_CREATE, r.Type)
	return r.WatchId
}

// expect receives a message.
func (w *watcher) expect(want string) {
	w.t.Helper()
	got, err := w.stream.Recv()
	require.NoError(w.t, err)
	require.True(w.t, proto.Equal(message(w.t, new(pb.WatchResponse), want), got), "%s: %v", want, got)
}

func TestWatchesTellOfChanges(t *testing.T) {
	s := opened(t)
	c := connect(t, s)
	c.play(t, step{"PutKey", `key: "before"`, ``})
	w := watching(t, c)
	require.EqualValues(t, 0, w.create("a", "c"))
	require.EqualValues(t, 1, w.createOf("b", "", "PUT"))
	require.EqualValues(t, 2, w.createOf("", "", "DELETE"))
	require.EqualValues(t, 3, watching(t, c).create("", ""), "IDs are those of the server")
	c.play(t,
		step{"PutKey", `key: "a" value: "1"`, ``},
		step{"PutKey", `key: "b" value: "2" owner { service_name: "sleeper" }`, ``},
		step{"PutKey", `key: "b" ignore_value: true`, ``},
		step{"PutKey", `key: "\U0001f600" value: "3"`, ``},
		step{"DeleteRange", `start: "x" end: "y"`, ``},
		step{"DeleteRange", ``, `count: 4`},
	)
	w.expect(`type: PUT event { key: "a" value: "1" }`)
	w.expect(`type: PUT event { key: "b" value: "2" owner { service_name: "sleeper" } }`)
	w.expect(`type: PUT watch_id: 1 event { key: "b" value: "2" owner { service_name: "sleeper" } }`)
	w.expect(`type: PUT event { key: "b" value: "2" }`)
	w.expect(`type: PUT watch_id: 1 event { key: "b" value: "2" }`)
	w.expect(`type: PUT watch_id: 1 event { key: "\U0001f600" value: "3" }`)
	w.expect(`type: DELETE event { key: "a" } event { key: "b" } event { key: "before" }`)
	w.expect(`type: DELETE watch_id: 2 event { key: "a" } event { key: "b" } event { key: "before" } event { key: "\U0001f600" }`)

	// A transaction has an event per operation; the end of a container has events of all keys that it owned.
	w.send(`cancel { watch_id: 1 }`)
	w.expect(`type: CANCEL watch_id: 1`)
	w.send(`cancel { watch_id: 2 }`)
	w.expect(`type: CANCEL watch_id: 2`)
	w.send(`cancel { watch_id: 3 }`)
	w.expect(`type: CANCEL watch_id: 3`)
	w.send(`cancel { watch_id: -7 }`)
	w.expect(`type: CANCEL watch_id: -7`)
	w.send(``)
	c.play(t,
		step{"Transaction", `on_success { put_key { key: "a" owner { service_name: "sleeper" } } }
			on_success { delete_range { start: "a" end: "b" } } on_success { put_key { key: "b" owner { service_name: "sleeper" } } }
			on_success { put_key { key: "a" value: "x" owner { service_name: "sleeper" } } }`,
			`succeeded: true result { put_key {} } result { delete_range { count: 1 } } result { put_key {} } result { put_key {} }`},
		step{"killContainer", `service_name: "sleeper"`, ``},
	)
	other, err := s.Database(1)
	require.NoError(t, err)
	_, err = other.Do(t.Context(), "SKEIN.PUT", "skein", "a", "VALUE", "in another database")
	require.NoError(t, err)
	s.MustDo(t, "SKEIN.PUT", "skein", "a", "VALUE", "by RESP")
	s.MustDo(t, "PUBLISH", "skein:{skein}:events", "nonsense")
	w.expect(`type: PUT event { key: "a" owner { service_name: "sleeper" } }`)
	w.expect(`type: DELETE event { key: "a" }`)
	w.expect(`type: PUT event { key: "b" owner { service_name: "sleeper" } }`)
	w.expect(`type: PUT event { key: "a" value: "x" owner { service_name: "sleeper" } }`)
	w.expect(`type: DELETE event { key: "a" } event { key: "b" }`)
	w.expect(`type: PUT event { key: "a" value: "by RESP" }`)

	// After the peer has closed its side it gets all events, and then the stream ends.
	c.play(t, step{"PutKey", `key: "a" value: "last"`, ``})
	require.NoError(t, w.stream.CloseSend())
	w.expect(`type: PUT event { key: "a" value: "last" }`)
	_, err = w.stream.Recv()
	require.ErrorIs(t, err, io.EOF)
	require.Eventually(t, func() bool {
		return strings.Contains(s.MustDo(t, "INFO", "door_skein").String(), "skein_watch_streams:1\r\nskein_watches:1\r\n")
	}, deadline, time.Millisecond)

	w = watching(t, c)
	w.send(`create { event_type: 9 }`)
	_, err = w.stream.Recv()
	require.Equal(t, codes.InvalidArgument, status.Code(err))
}

// Changes from before the cancellation of a watch are sent before the confirmation.
func TestACanceledWatchHasToldEverything(t *testing.T) {
	c := connect(t, opened(t))
	w := watching(t, c)
	for i := range 200 {
		id := w.create("", "")
		c.play(t, step{"PutKey", fmt.Sprintf(`key: "k%d"`, i), ``})
		w.send(fmt.Sprintf(`cancel { watch_id: %d }`, id))
		w.expect(fmt.Sprintf(`type: PUT watch_id: %d event { key: "k%d" }`, id, i))
		w.expect(fmt.Sprintf(`type: CANCEL watch_id: %d`, id))
	}
}

// A peer that does not read its events is disconnected, and delays no other client.
func TestWatchesThatAreNotRead(t *testing.T) {
	s := opened(t, "client-output-buffer-limit", "pubsub 1mb 0 0")
	c, writer := connect(t, s), connect(t, s)
	w := watching(t, c)
	w.create("", "")
	value := []byte(strings.Repeat("x", 100_000))
	for range 100 {
		_, err := writer.PutKey(t.Context(), &pb.PutKeyRequest{Key: "k", Value: value})
		require.NoError(t, err)
	}
	require.Eventually(t, func() bool {
		return strings.Contains(s.MustDo(t, "INFO", "door_skein").String(), "skein_watch_streams:0\r\nskein_watches:0\r\n")
	}, deadline, time.Millisecond)
	var err error
	for err == nil {
		_, err = w.stream.Recv()
	}
	require.Equal(t, codes.ResourceExhausted, status.Code(err), err)
	c.play(t, step{"GetRange", `result_type: NONE`, `count: 1 result_type: NONE`})
	w = watching(t, c)
	large := message(t, new(pb.WatchRequest), `create { start: "`+strings.Repeat("x", 1<<20)+`" }`)
	for err = nil; err == nil; {
		err = w.stream.Send(large)
	}
	for err = nil; err == nil; {
		_, err = w.stream.Recv()
	}
	require.Equal(t, codes.ResourceExhausted, status.Code(err), err)
}

// A thousand watches on overlapping ranges, while many clients write (100,000 times with ATOMREDIS_FULL_TESTS). Each
// gets the events of its range in order, none missing, and none twice.
func TestAThousandWatchesUnderLoad(t *testing.T) {
	streams, perStream, writers, writes := 20, 50, 8, 500
	switch {
	case os.Getenv("ATOMREDIS_FULL_TESTS") != "":
		writes = 12_500
	case testing.Short():
		streams, perStream = 5, 40
	}
	s := opened(t)
	const names = 1000
	random := testseed.Rand(t)
	name := func(i int) string { return fmt.Sprintf("key%04d", i) }
	var all sync.WaitGroup
	last := name(names) // after all ranges except those without an end
	for range streams {
		w := watching(t, connect(t, s))
		type bounds struct{ from, to int }
		ranges := map[int32]bounds{}
		for range perStream {
			from := random.IntN(names - 1)
			to := min(from+1+random.IntN(20), names)
			ranges[w.create(name(from), name(to))] = bounds{from, to}
		}
		end := w.create(last, "")
		all.Go(func() {
			seen := map[int32]map[string]int{} // by watch, then by writer and key: the last written number
			count := map[int32]int{}
			for {
				r, err := w.stream.Recv()
				if err != nil {
					t.Error(err)
					return
				}
				if r.WatchId == end {
					break
				}
				var writer, n int
				if _, err := fmt.Sscanf(string(r.Event[0].Value), "%d:%d", &writer, &n); err != nil || len(r.Event) != 1 {
					t.Error(r, err)
					return
				}
				if seen[r.WatchId] == nil {
					seen[r.WatchId] = map[string]int{}
				}
				key := r.Event[0].Key
				if b := ranges[r.WatchId]; key < name(b.from) || key >= name(b.to) {
					t.Error(key, b)
				}
				// A writer's numbers grow with each of its writes.
				if who := fmt.Sprint(writer); seen[r.WatchId][who] >= n {
					t.Errorf("watch %d: writer %d: %d comes after %d", r.WatchId, writer, n, seen[r.WatchId][who])
					return
				} else {
					seen[r.WatchId][who] = n
				}
				count[r.WatchId]++
			}
			for id, b := range ranges {
				want := 0
				for i := b.from; i < b.to; i++ {
					want += writesTo(i, names, writers, writes)
				}
				if count[id] != want {
					t.Errorf("watch %d of %d to %d: %d events instead of %d", id, b.from, b.to, count[id], want)
				}
			}
		})
	}
	var writing sync.WaitGroup
	for who := range writers {
		c := connect(t, s)
		writing.Go(func() {
			for n := range writes {
				_, err := c.PutKey(context.Background(), &pb.PutKeyRequest{Key: name(keyOf(who, n, names)),
					Value: fmt.Appendf(nil, "%d:%d", who, n+1)})
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	writing.Wait()
	s.MustDo(t, "SKEIN.PUT", "skein", last, "VALUE", "0:0")
	all.Wait()
}

// keyOf returns the number of the key of a writer's n-th write.
func keyOf(writer, n, names int) int { return (n*7 + writer*131) % names }

// writesTo counts the writes of all writers to a key.
func writesTo(key, names, writers, writes int) (n int) {
	for w := range writers {
		for i := range writes {
			if keyOf(w, i, names) == key {
				n++
			}
		}
	}
	return n
}
