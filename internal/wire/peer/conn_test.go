package peer

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/memconn"
)

// ends returns the two ends of a connection.
func ends(t testing.TB, room int) (here, there *Conn) {
	a, b := memconn.Pipe(room)
	t.Cleanup(func() {
		a.Close()
		b.Close()
	})
	return NewConn(a, Shards, 1, nil, nil), NewConn(b, Shards, 1, nil, nil)
}

// received returns a connection on which some bytes have arrived, and that has then ended.
func received(t testing.TB, sent []byte) *Conn {
	here, there := memconn.Pipe(len(sent) + 1)
	t.Cleanup(func() { there.Close() })
	_, err := here.Write(sent)
	require.NoError(t, err)
	here.Close()
	return NewConn(there, Shards, 1, nil, nil)
}

func TestTheFormOfAFrame(t *testing.T) {
	here, there := memconn.Pipe(100)
	c := NewConn(here, Shards, 1, nil, nil)
	require.NoError(t, c.Send('k', []byte("pay"), nil, []byte("load")))
	require.NoError(t, c.Send('e'))
	require.NoError(t, c.Fail(&Error{Busy, "text"}))
	here.Close()
	b, err := io.ReadAll(there)
	require.NoError(t, err)
	require.Equal(t, "k\x07payload"+"e\x00"+"\x03\x09\x04busytext", string(b))
}

func TestFramesArriveInOrder(t *testing.T) {
	here, there := ends(t, 10<<20)
	there.SetLimit(1 << 20)
	sizes := []int{0, 1, 100, readBuffer - 1, readBuffer, maxOut - 1, maxOut, maxOut + 1, step + 1, 1 << 20}
	content := bytes.Repeat([]byte("0123456789"), 1<<20/10+1)
	for _, n := range sizes {
		require.NoError(t, here.Send('k', content[:n/2], content[n/2:n]))
	}
	require.NoError(t, here.Flush())
	require.Empty(t, here.out)
	for _, n := range sizes {
		require.NoError(t, here.Queue('k', content[:n]))
	}
	require.NoError(t, here.Flush())
	for i, n := range append(sizes, sizes...) {
		var payload []byte
		kind, err := there.Next()
		require.NoError(t, err)
		require.Equal(t, Kind('k'), kind)
		require.EqualValues(t, n, there.Size())
		switch i % 3 {
		case 0:
			payload, err = there.Rest()
		case 1:
			payload, err = io.ReadAll(there)
		case 2:
			var chunk []byte
			for err == nil {
				chunk, err = there.Chunk()
				payload = append(payload, chunk...)
			}
			require.Equal(t, io.EOF, err)
			err = nil
		}
		require.NoError(t, err)
		require.True(t, bytes.Equal(content[:n], payload), "%d bytes", n)
	}
}

// Queue never writes, because its caller may hold a lock.
func TestQueueDoesNotWait(t *testing.T) {
	here, there := ends(t, 1)
	for range 10 {
		require.NoError(t, here.Queue('k', make([]byte, maxOut)))
	}
	go func() { _ = here.Flush() }()
	for range 10 {
		_, payload, err := there.Receive()
		require.NoError(t, err)
		require.Len(t, payload, maxOut)
	}
}

func TestWhatIsNotReadOfAPayloadIsSkipped(t *testing.T) {
	here, there := ends(t, 1<<20)
	require.NoError(t, here.Send('a', bytes.Repeat([]byte("x"), 100_000)))
	require.NoError(t, here.Send('b', []byte("xyz")))
	require.NoError(t, here.Flush())
	here.Close()
	_, err := there.Next()
	require.NoError(t, err)
	_, err = there.Chunk()
	require.NoError(t, err)
	b, err := there.ReadByte()
	require.NoError(t, err)
	require.Equal(t, byte('x'), b)
	kind, payload, err := there.Receive()
	require.NoError(t, err)
	require.Equal(t, Kind('b'), kind)
	require.Equal(t, "xyz", string(payload))
	_, err = there.ReadByte()
	require.Equal(t, io.EOF, err)
	_, err = there.Next()
	require.Equal(t, io.EOF, err)
}

func TestBytesThatWereReadAheadComeFirst(t *testing.T) {
	here, there := memconn.Pipe(100)
	_, err := here.Write([]byte("load"))
	require.NoError(t, err)
	kind, payload, err := NewConn(there, Shards, 1, nil, []byte("k\x07pay")).Receive()
	require.NoError(t, err)
	require.Equal(t, Kind('k'), kind)
	require.Equal(t, "payload", string(payload))
}

func TestBrokenFrames(t *testing.T) {
	for name, c := range map[string]struct {
		sent string
		want error
	}{
		"no length":       {"k", io.ErrUnexpectedEOF},
		"half a length":   {"k\xff", io.ErrUnexpectedEOF},
		"half a payload":  {"k\x05abc", io.ErrUnexpectedEOF},
		"too long":        {"k\x81\x80\x80\x08" + strings.Repeat("x", 100), ErrTooLong},
		"longer than all": {"k" + strings.Repeat("\xff", 9) + "\x01", ErrTooLong},
		"nothing":         {"", io.EOF},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := received(t, []byte(c.sent)).Receive()
			require.ErrorIs(t, err, c.want)
		})
	}
	_, _, err := received(t, []byte("k"+strings.Repeat("\xff", 20))).Receive()
	require.Error(t, err)
	here, there := ends(t, 100) // a frame that ends early while it is skipped
	require.NoError(t, here.Send('k', []byte("payload")))
	here.out = here.out[:5]
	require.NoError(t, here.Flush())
	here.Close()
	_, err = there.Next()
	require.NoError(t, err)
	_, err = there.Next()
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
}

// A long payload takes memory only as its bytes arrive.
func TestAnAnnouncedLengthTakesNoMemory(t *testing.T) {
	c := received(t, append(binary.AppendUvarint([]byte("k"), 8<<30), make([]byte, 1000)...))
	c.SetLimit(16 << 30)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, _, err := c.Receive()
	runtime.ReadMemStats(&after)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<20))
}

func TestRequestsRepliesAndErrors(t *testing.T) {
	here, there := ends(t, 1<<20)
	type question struct{ Ask string }
	var answering sync.WaitGroup
	answer := func(do func(question) error) {
		answering.Wait() // for the one before
		answering.Go(func() {
			var q question
			if err := there.ReadRequest(&q); err != nil {
				there.Close()
				return
			}
			_ = do(q)
		})
	}
	var got string
	answer(func(q question) error { return there.Reply("re: " + q.Ask) })
	require.NoError(t, here.Call(question{"news"}, &got))
	require.Equal(t, "re: news", got)

	cause := &Error{NotLeading, "not here"}
	answer(func(question) error { return there.Fail(errors.Join(cause)) })
	err := here.Call(question{}, &got)
	require.Equal(t, &Error{NotLeading, "not here"}, err)
	require.ErrorIs(t, err, NotLeading)
	require.NotErrorIs(t, err, Busy)

	answer(func(question) error { return there.Fail(errors.New("text")) })
	err = here.Call(question{}, &got)
	require.EqualError(t, err, "text")
	require.NotErrorIs(t, err, Code(""))

	answer(func(question) error { return errors.Join(there.Send('x'), there.Flush()) })
	require.ErrorIs(t, here.Call(question{}, &got), ErrFrame)

	answer(func(question) error { return errors.Join(there.Send(Reply, []byte("{")), there.Flush()) })
	require.Error(t, here.Call(question{}, &got))

	answer(func(question) error { return errors.Join(there.Send(Failed, []byte{9}), there.Flush()) })
	require.ErrorIs(t, here.Call(question{}, &got), ErrFrame)

	answering.Wait()
	require.NoError(t, here.Reply("no request"))
	require.ErrorIs(t, there.ReadRequest(&got), ErrFrame)
	require.Error(t, here.Request(func() {})) // a function cannot be JSON
}

func TestTheIdleTimeoutEndsReads(t *testing.T) {
	here, _ := ends(t, 1)
	here.SetIdleTimeout(time.Nanosecond)
	_, err := here.Next()
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	require.NoError(t, here.Send('k', make([]byte, 100)))
	require.ErrorIs(t, here.Flush(), os.ErrDeadlineExceeded)
}

func TestSmallFramesAllocateNothing(t *testing.T) {
	if testing.CoverMode() != "" {
		t.Skip("coverage allocates")
	}
	here, there := ends(t, 1<<20)
	payload := make([]byte, 100)
	allocs := testing.AllocsPerRun(100, func() {
		_ = here.Send('k', payload)
		_ = here.Flush()
		_, _ = there.Next()
		_, _ = there.Chunk()
	})
	require.Zero(t, allocs)
}

func TestPartsAreReadAsTheyWereWritten(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 0))
	for range 100 {
		part := make([]byte, r.IntN(300))
		b := append(AppendPart(nil, part), "rest"...)
		got, rest, err := Part(b)
		require.NoError(t, err)
		require.Equal(t, part, got)
		require.Equal(t, "rest", string(rest))
		_, _, err = Part(b[:len(part)/2])
		require.ErrorIs(t, err, ErrFrame)
	}
	_, _, err := Number(nil)
	require.ErrorIs(t, err, ErrFrame)
}

func FuzzFrames(f *testing.F) {
	f.Add([]byte("k\x07payloade\x00\x03\x09\x04busytext"), uint16(10))
	f.Add([]byte("\x01\x0e{\"Ask\":\"news\"}k\xff\xff\xff\x7f"), uint16(1000))
	f.Fuzz(func(t *testing.T, b []byte, limit uint16) {
		c := received(t, b)
		c.SetLimit(int64(limit))
		var list [][]byte
		for {
			kind, payload, err := c.Receive()
			if err != nil {
				break
			}
			require.LessOrEqual(t, len(payload), int(limit))
			if kind == Failed {
				_ = AsFailure(payload)
			}
			list = append(list, append([]byte{byte(kind)}, payload...))
		}
		here, there := ends(t, 2*len(b)+10) // what was read is written, and read again
		for _, one := range list {
			require.NoError(t, here.Send(Kind(one[0]), one[1:]))
		}
		require.NoError(t, here.Flush())
		for _, one := range list {
			kind, payload, err := there.Receive()
			require.NoError(t, err)
			require.Equal(t, one[0], byte(kind))
			require.True(t, bytes.Equal(one[1:], payload))
		}
	})
}
