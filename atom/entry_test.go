package atom_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/atom"
)

func write(t *testing.T, e *atom.Element, stream string, data map[string]any) string {
	id, err := e.EntryWrite(t.Context(), stream, data, atom.WriteOptions{})
	require.NoError(t, err)
	return id
}

func TestEntryWrite(t *testing.T) {
	onEachServer(t, func(t *testing.T, r *redis.Client) {
		ctx := t.Context()
		rec := record(r)
		e := element(t, r, "robot")
		rec.take()
		id := write(t, e, "pose", map[string]any{"y": 2.5, "x": 1, "b": []byte("\x00\r\n\xff"), "none": nil})
		require.Equal(t, []string{"XADD stream:robot:pose maxlen ~ 1024 * b \x00\r\n\xff none  x 1 y 2.5 ser none"},
			rec.take())
		found := r.XRange(ctx, "stream:robot:pose", id, id).Val()
		require.Equal(t, map[string]any{"x": "1", "y": "2.5", "b": "\x00\r\n\xff", "none": "", "ser": "none"},
			found[0].Values)
		rec.take()

		_, err := e.EntryWrite(ctx, "pose", map[string]any{"v": []string{"a"}},
			atom.WriteOptions{MaxLen: 5, Serialization: atom.Msgpack})
		require.NoError(t, err)
		require.Equal(t, []string{"XADD stream:robot:pose maxlen ~ 5 * v \x91\xa1a ser msgpack"}, rec.take())
		_, err = e.EntryWrite(ctx, "pose", map[string]any{"v": 1}, atom.WriteOptions{MaxLen: -1})
		require.NoError(t, err)
		require.Equal(t, []string{"XADD stream:robot:pose * v 1 ser none"}, rec.take())

		for _, bad := range []map[string]any{nil, {}, {"ser": "x"}} {
			_, err := e.EntryWrite(ctx, "pose", bad, atom.WriteOptions{})
			require.ErrorIs(t, err, atom.InternalError)
		}
		_, err = e.EntryWrite(ctx, "", map[string]any{"v": 1}, atom.WriteOptions{})
		require.ErrorIs(t, err, atom.InternalError)
		_, err = e.EntryWrite(ctx, "pose", map[string]any{"v": []int{1}}, atom.WriteOptions{})
		require.ErrorIs(t, err, atom.SerializationError)
		_, err = e.EntryWrite(ctx, "pose", map[string]any{"v": 1}, atom.WriteOptions{Serialization: "arrow"})
		require.ErrorIs(t, err, atom.SerializationError)
		require.ErrorContains(t, err, `unknown serialization "arrow"`)
		require.Empty(t, rec.take())
	})
}

func TestEntryWriteTrims(t *testing.T) {
	onEachServer(t, func(t *testing.T, r *redis.Client) {
		e := element(t, r, "robot")
		for range 400 {
			_, err := e.EntryWrite(t.Context(), "s", map[string]any{"x": 1}, atom.WriteOptions{MaxLen: 100})
			require.NoError(t, err)
		}
		n := r.XLen(t.Context(), "stream:robot:s").Val()
		require.GreaterOrEqual(t, n, int64(100))
		require.Less(t, n, int64(300))
	})
}

func TestEntryReadN(t *testing.T) {
	onEachServer(t, func(t *testing.T, r *redis.Client) {
		ctx := t.Context()
		rec := record(r)
		e := element(t, r, "robot")
		var ids []string
		for i := range 10 {
			ids = append(ids, write(t, e, "pose", map[string]any{"i": i, "empty": ""}))
		}
		rec.take()
		entries, err := e.EntryReadN(ctx, "robot", "pose", 3, atom.Decoding{})
		require.NoError(t, err)
		require.Equal(t, []string{"XREVRANGE stream:robot:pose + - count 3"}, rec.take())
		require.Len(t, entries, 3)
		for i, entry := range entries {
			require.Equal(t, ids[9-i], entry.ID, "the newest first")
			require.Equal(t, fmt.Sprint(9-i), entry.Fields["i"].String())
			require.True(t, entry.Fields["empty"].Exists())
			require.False(t, entry.Fields["missing"].Exists())
			require.NotContains(t, entry.Fields, "ser")
		}
		entries, err = e.EntryReadN(ctx, "robot", "none", 3, atom.Decoding{})
		require.NoError(t, err)
		require.Empty(t, entries)
		_, err = e.EntryReadN(ctx, "robot", "pose", -1, atom.Decoding{})
		require.ErrorIs(t, err, atom.InternalError)
	})
}

func TestEntryReadSince(t *testing.T) {
	onEachServer(t, func(t *testing.T, r *redis.Client) {
		ctx := t.Context()
		e := element(t, r, "robot")
		var ids []string
		for i := range 10 {
			ids = append(ids, write(t, e, "pose", map[string]any{"i": i}))
		}
		rec := record(r)
		entries, err := e.EntryReadSince(ctx, "robot", "pose", atom.ReadOptions{After: ids[4], Count: 3})
		require.NoError(t, err)
		require.Equal(t, []string{"XREAD count 3 streams stream:robot:pose " + ids[4]}, rec.take())
		require.Len(t, entries, 3)
		require.Equal(t, ids[5], entries[0].ID, "the oldest first")
		entries, err = e.EntryReadSince(ctx, "robot", "pose", atom.ReadOptions{After: "0"})
		require.NoError(t, err)
		require.Len(t, entries, 10)
		// An ID without a sequence, for example one made from TIME, means <ms>-0, exclusive.
		ms, _, _ := strings.Cut(ids[0], "-")
		_, err = e.EntryReadSince(ctx, "robot", "pose", atom.ReadOptions{After: ms})
		require.NoError(t, err)

		// Without new entries there is no result and no error.
		for _, o := range []atom.ReadOptions{{After: ids[9]}, {After: ids[9], Block: time.Millisecond},
			{Block: time.Millisecond}} {
			entries, err = e.EntryReadSince(ctx, "robot", "pose", o)
			require.NoError(t, err)
			require.Empty(t, entries)
		}
		_, err = e.EntryReadSince(ctx, "robot", "pose", atom.ReadOptions{})
		require.ErrorIs(t, err, atom.InternalError, "$ needs BLOCK")
	})
}

// Entries that are written after the call come, after any time; older ones do not.
func TestEntryReadSinceWaits(t *testing.T) {
	onEachServer(t, func(t *testing.T, r *redis.Client) {
		e := element(t, r, "robot")
		write(t, e, "pose", map[string]any{"i": "old"})
		reader := client(t, r.Options().Addr)
		rec := record(reader)
		got := make(chan []atom.Entry, 1)
		other := element(t, reader, "reader")
		go func() {
			entries, _ := other.EntryReadSince(t.Context(), "robot", "pose", atom.ReadOptions{Block: -1})
			got <- entries
		}()
		reads := 0
		waitFor(t, "several pieces of waiting", func() bool {
			for _, cmd := range rec.take() {
				if strings.HasPrefix(cmd, "XREAD block") {
					reads++
				}
			}
			return reads >= 2
		})
		id := write(t, e, "pose", map[string]any{"i": "new"})
		entries := <-got
		require.Len(t, entries, 1)
		require.Equal(t, id, entries[0].ID)
	})
}

func TestContextsEndWaits(t *testing.T) {
	onEachServer(t, func(t *testing.T, r *redis.Client) {
		e := element(t, r, "robot")
		nothing := func(context.Context, atom.Entry) error { return nil }
		for name, wait := range map[string]func(context.Context) error{
			"EntryReadSince": func(ctx context.Context) error {
				_, err := e.EntryReadSince(ctx, "robot", "x", atom.ReadOptions{Block: -1})
				return err
			},
			"EntryReadLoop": func(ctx context.Context) error {
				return e.EntryReadLoop(ctx, []atom.StreamHandler{{Element: "robot", Stream: "x", Handle: nothing}},
					atom.ReadLoopOptions{})
			},
			"Entries": func(ctx context.Context) error {
				for _, err := range e.Entries(ctx, "robot", "x", atom.ReadOptions{}) {
					return err
				}
				return nil
			},
			"CommandLoop": func(ctx context.Context) error { return e.CommandLoop(ctx, atom.CommandLoopOptions{}) },
			"CommandSend": func(ctx context.Context) error {
				_, err := e.CommandSend(ctx, "nobody", "x", nil, atom.SendOptions{AckTimeout: long})
				return err
			},
			"Queue.Get": func(ctx context.Context) error {
				_, err := e.FIFOQueue("q", atom.QueueOptions{}).Get(ctx, -1)
				return err
			},
			"WaitForElementsHealthy": func(ctx context.Context) error {
				return e.WaitForElementsHealthy(ctx, []string{"nobody"}, long)
			},
		} {
			t.Run(name, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() { done <- wait(ctx) }()
				time.AfterFunc(20*time.Millisecond, cancel)
				began := time.Now()
				require.ErrorIs(t, <-done, context.Canceled)
				require.Less(t, time.Since(began), long/2)
				ctx, cancel = context.WithTimeout(t.Context(), 20*time.Millisecond)
				defer cancel()
				require.ErrorIs(t, wait(ctx), context.DeadlineExceeded)
			})
		}
	})
}

func TestEntryReadLoopOverManyStreams(t *testing.T) {
	onEachServer(t, func(t *testing.T, r *redis.Client) {
		e := element(t, r, "robot")
		const streams, each = 300, 5
		got, total := map[string][]string{}, 0
		enough := errors.New("enough")
		var handlers []atom.StreamHandler
		for i := range streams {
			name := fmt.Sprintf("s%d", i)
			handlers = append(handlers, atom.StreamHandler{Element: "robot", Stream: name, After: "0",
				Handle: func(_ context.Context, entry atom.Entry) error {
					got[entry.Stream] = append(got[entry.Stream], entry.Fields["n"].String())
					if total++; total == streams*each {
						return enough
					}
					return nil
				}})
		}
		go func() {
			for n := range each {
				for i := range streams {
					e.EntryWrite(t.Context(), fmt.Sprintf("s%d", i), map[string]any{"n": n}, atom.WriteOptions{})
				}
			}
		}()
		require.ErrorIs(t, e.EntryReadLoop(t.Context(), handlers, atom.ReadLoopOptions{Count: 2}), enough)
		require.Len(t, got, streams)
		for name, ns := range got {
			require.Equal(t, []string{"0", "1", "2", "3", "4"}, ns, name)
		}
	})
}

func TestEntryReadLoop(t *testing.T) {
	onEachServer(t, func(t *testing.T, r *redis.Client) {
		ctx := t.Context()
		e := element(t, r, "robot")
		write(t, e, "a", map[string]any{"i": 0})
		write(t, e, "b", map[string]any{"i": 1})
		var seen []string
		note := func(by string) func(context.Context, atom.Entry) error {
			return func(_ context.Context, entry atom.Entry) error {
				seen = append(seen, by+entry.Stream+entry.Fields["i"].String())
				return nil
			}
		}
		handlers := []atom.StreamHandler{
			{Element: "robot", Stream: "a", After: "0", Handle: note("1")},
			{Element: "robot", Stream: "b", After: "0", Handle: note("1")},
			{Element: "robot", Stream: "a", After: "0", Handle: note("2")}, // a stream may have several handlers
		}
		require.NoError(t, e.EntryReadLoop(ctx, handlers, atom.ReadLoopOptions{Loops: 1}))
		require.Equal(t, []string{"1a0", "2a0", "1b1"}, seen)

		err := e.EntryReadLoop(ctx, []atom.StreamHandler{{Element: "robot", Stream: "a", Handle: note("")}},
			atom.ReadLoopOptions{Timeout: 10 * time.Millisecond})
		require.ErrorIs(t, err, atom.ErrTimeout)

		panics := atom.StreamHandler{Element: "robot", Stream: "a", After: "0",
			Handle: func(context.Context, atom.Entry) error { panic("oh") }}
		err = e.EntryReadLoop(ctx, []atom.StreamHandler{panics}, atom.ReadLoopOptions{})
		require.ErrorIs(t, err, atom.CallbackFailed)
		require.ErrorContains(t, err, "panic: oh")

		for _, bad := range [][]atom.StreamHandler{nil, {{Element: "robot", Stream: "a"}},
			{{Element: "robot", Stream: "a", Handle: note("")}, {Element: "robot", Stream: "a", After: "0", Handle: note("")}}} {
			require.ErrorIs(t, e.EntryReadLoop(ctx, bad, atom.ReadLoopOptions{}), atom.InternalError)
		}
	})
}

func TestEntriesIterates(t *testing.T) {
	onEachServer(t, func(t *testing.T, r *redis.Client) {
		e := element(t, r, "robot")
		for i := range 250 {
			write(t, e, "s", map[string]any{"i": i})
		}
		n := 0
		for entry, err := range e.Entries(t.Context(), "robot", "s", atom.ReadOptions{After: "0"}) {
			require.NoError(t, err)
			require.Equal(t, fmt.Sprint(n), entry.Fields["i"].String())
			if n++; n == 250 {
				write(t, e, "s", map[string]any{"i": n})
			}
			if n == 251 {
				break
			}
		}
		require.Equal(t, 251, n)
		n = 0
		for _, err := range e.Entries(t.Context(), "robot", "s",
			atom.ReadOptions{After: "0", Count: 7, Block: time.Millisecond}) {
			require.NoError(t, err)
			n++
		}
		require.Equal(t, 251, n, "Block ends it")
		for _, err := range e.Entries(t.Context(), "robot", "s", atom.ReadOptions{After: "nonsense"}) {
			require.ErrorIs(t, err, atom.RedisError)
			n++
		}
		require.Equal(t, 252, n)
	})
}

// Entries of other languages: Python adds ser, C adds timestamp and never ser.
func TestEntriesOfOtherLanguages(t *testing.T) {
	onEachServer(t, func(t *testing.T, r *redis.Client) {
		e := element(t, r, "reader")
		read := func(stream string, d atom.Decoding) map[string]atom.Value {
			entries, err := e.EntryReadN(t.Context(), "other", stream, 1, d)
			require.NoError(t, err)
			require.Len(t, entries, 1)
			return entries[0].Fields
		}
		python, c := pythonPeer(t, r, "other"), cPeer(t, r, "other")
		python.add("stream:other:packed", "hello", "\x00", "list", "\x92\xa1a\xc4\x01\xff", "ser", "msgpack")
		fields := read("packed", atom.Decoding{})
		value, err := fields["list"].Any()
		require.NoError(t, err)
		require.Equal(t, []any{"a", []byte{0xff}}, value)
		var n int
		require.NoError(t, fields["hello"].Decode(&n))
		require.Zero(t, n)
		require.Equal(t, "\x00", read("packed", atom.Decoding{Serialization: atom.None, Force: true})["hello"].String())
		var raw []byte
		require.NoError(t, read("packed", atom.Decoding{Force: true})["hello"].Decode(&raw), "force overrides ser")
		require.Equal(t, []byte{0}, raw)

		c.add("stream:other:raw", "v", "\x05", "timestamp", "12")
		require.Equal(t, "12", read("raw", atom.Decoding{})["timestamp"].String())
		require.NoError(t, read("raw", atom.Decoding{Serialization: atom.Msgpack})["v"].Decode(&n),
			"without ser the reader's choice counts")
		require.Equal(t, 5, n)

		python.add("stream:other:arrow", "v", "data", "ser", "arrow")
		v := read("arrow", atom.Decoding{})["v"]
		require.Equal(t, "data", v.String())
		require.ErrorIs(t, v.Decode(&n), atom.DeserializationError)
		require.ErrorContains(t, v.Decode(&n), "arrow")
	})
}

func TestStrangeNamesAndLargeEntries(t *testing.T) {
	onEachServer(t, func(t *testing.T, r *redis.Client) {
		ctx := t.Context()
		large := bytes.Repeat([]byte("\x00\xff\r\n"), 4<<20)
		for _, name := range strange {
			e := element(t, r, name)
			write(t, e, name, map[string]any{name: "first", "": "unnamed"})
			entries, err := e.EntryReadSince(ctx, name, name, atom.ReadOptions{After: "0", Block: long})
			require.NoError(t, err)
			require.Equal(t, "first", entries[0].Fields[name].String())
			require.Equal(t, "unnamed", entries[0].Fields[""].String())
		}
		e := element(t, r, "robot")
		write(t, e, "large", map[string]any{"data": large})
		entries, err := e.EntryReadN(ctx, "robot", "large", 1, atom.Decoding{})
		require.NoError(t, err)
		require.True(t, bytes.Equal(large, entries[0].Fields["data"].Bytes))
	})
}

// The log is a stream without an element, with the fields level, element, msg and host.
func TestLog(t *testing.T) {
	onEachServer(t, func(t *testing.T, r *redis.Client) {
		ctx := t.Context()
		e := element(t, r, "robot")
		rec := record(r)
		require.NoError(t, e.Logf(ctx, atom.LogInfo, "%d%%\x00", 5))
		if native(r) {
			require.Regexp(t, "^ATOM.LOG 6 robot 5%\x00 .+$", rec.take()[0])
		} else {
			require.Regexp(t, "^XADD log maxlen ~ 1024 \\* level 6 element robot msg 5%\x00 host .+$", rec.take()[0])
		}
		entries, err := e.EntryReadN(ctx, "", "log", 1, atom.Decoding{})
		require.NoError(t, err)
		require.Equal(t, "5%\x00", entries[0].Fields["msg"].String())
		require.ErrorIs(t, e.Log(ctx, 8, "x"), atom.InternalError)
		require.ErrorIs(t, e.Log(ctx, -1, "x"), atom.InternalError)
	})
}
