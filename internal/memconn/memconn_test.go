package memconn

import (
	"bytes"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func read(t *testing.T, c net.Conn, n int) string {
	t.Helper()
	b := make([]byte, n)
	n, err := io.ReadFull(c, b)
	require.NoError(t, err)
	return string(b[:n])
}

func TestBytesArriveInOrderThroughASmallBuffer(t *testing.T) {
	for _, buffer := range []int{1, 7, 100, 0} {
		a, b := Pipe(buffer)
		random := rand.New(rand.NewPCG(1, uint64(buffer)))
		sent := make([]byte, 50_000)
		for i := range sent {
			sent[i] = byte(random.IntN(256))
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			for rest := sent; len(rest) > 0; {
				n := min(random.IntN(300), len(rest))
				written, err := a.Write(rest[:n])
				if err != nil || written != n {
					t.Errorf("wrote %d of %d bytes: %v", written, n, err)
					return
				}
				rest = rest[n:]
			}
			a.CloseWrite()
		})
		got, err := io.ReadAll(b)
		require.NoError(t, err)
		require.True(t, bytes.Equal(sent, got), "buffer %d", buffer)
		require.LessOrEqual(t, cap(b.in.buf), 4*max(b.in.limit, 64), "the buffer does not grow without bound")
		wg.Wait()
	}
}

func TestWriterWaitsForRoomOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := Pipe(4)
		n, err := a.Write([]byte("abcd"))
		require.NoError(t, err)
		require.Equal(t, 4, n)
		done := make(chan error)
		go func() {
			_, err := a.Write([]byte("efgh"))
			done <- err
		}()
		synctest.Wait()
		select {
		case <-done:
			t.Fatal("more was written than the buffer holds")
		default:
		}
		require.Equal(t, "abcdefgh", read(t, b, 8))
		require.NoError(t, <-done)
	})
}

func TestDeadlinesEndReadsAndWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := Pipe(2)
		timeout := func(n int, err error) {
			t.Helper()
			require.ErrorIs(t, err, os.ErrDeadlineExceeded)
			var asNet net.Error
			require.ErrorAs(t, err, &asNet)
			require.True(t, asNet.Timeout())
		}
		start := time.Now()
		require.NoError(t, a.SetReadDeadline(start.Add(time.Second)))
		timeout(a.Read(make([]byte, 1)))
		require.Equal(t, time.Second, time.Since(start))
		timeout(a.Read(make([]byte, 1)))

		require.NoError(t, a.SetWriteDeadline(start.Add(time.Minute)))
		n, err := a.Write([]byte("abc"))
		timeout(n, err)
		require.Equal(t, 2, n, "what fitted is there")
		require.Equal(t, time.Minute, time.Since(start))
		require.Equal(t, "ab", read(t, b, 2))

		// A deadline that is set during a read ends that read.
		require.NoError(t, a.SetDeadline(time.Time{}))
		go func() {
			time.Sleep(time.Hour)
			a.SetReadDeadline(time.Unix(1, 0))
		}()
		timeout(a.Read(make([]byte, 1)))
		require.Equal(t, time.Hour+time.Minute, time.Since(start))

		// Without a deadline the connection works again.
		require.NoError(t, a.SetReadDeadline(time.Time{}))
		_, err = b.Write([]byte("x"))
		require.NoError(t, err)
		require.Equal(t, "x", read(t, a, 1))
	})
}

func TestEndsCloseAsThoseOfTCP(t *testing.T) {
	a, b := Pipe(0)
	_, err := a.Write([]byte("last words"))
	require.NoError(t, err)
	require.NoError(t, a.CloseWrite())
	_, err = a.Write([]byte("x"))
	require.ErrorIs(t, err, net.ErrClosed)
	require.Equal(t, "last words", read(t, b, 10))
	_, err = b.Read(make([]byte, 1))
	require.Equal(t, io.EOF, err)
	_, err = b.Write([]byte("answer"))
	require.NoError(t, err, "the other direction is still open")
	require.Equal(t, "answer", read(t, a, 6))

	_, err = b.Write([]byte("unread"))
	require.NoError(t, err)
	require.NoError(t, a.Close())
	require.NoError(t, a.Close())
	_, err = a.Read(make([]byte, 1))
	require.ErrorIs(t, err, net.ErrClosed)
	require.ErrorIs(t, a.SetDeadline(time.Now()), net.ErrClosed)
	_, err = b.Write([]byte("x"))
	require.ErrorIs(t, err, syscall.EPIPE)
}

func TestCloseEndsWhoWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, closeAt := range []int{0, 1} {
			a, b := Pipe(1)
			b.Write([]byte("x"))
			ends := []*Conn{a, b}
			errs := make(chan error, 2)
			go func() {
				_, err := b.Read(make([]byte, 1))
				errs <- err
			}()
			go func() {
				_, err := b.Write([]byte("more"))
				errs <- err
			}()
			synctest.Wait()
			require.Empty(t, errs)
			ends[closeAt].Close()
			for range 2 {
				require.Error(t, <-errs)
			}
		}
	})
}

func BenchmarkRoundTrip(b *testing.B) {
	b.ReportAllocs()
	x, y := Pipe(0)
	go io.Copy(y, y)
	defer x.Close()
	buf := make([]byte, 64)
	for b.Loop() {
		if _, err := x.Write(buf); err != nil {
			b.Fatal(err)
		}
		if _, err := io.ReadFull(x, buf); err != nil {
			b.Fatal(err)
		}
	}
}
