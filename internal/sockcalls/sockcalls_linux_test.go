package sockcalls

import (
	"bytes"
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// eachBatch tests a batch that makes its calls together, where the system can do that, and one that does not.
func eachBatch(t *testing.T, limit int, test func(t *testing.T, b *Batch)) {
	t.Run("together", func(t *testing.T) {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		b := New(limit)
		defer b.Close()
		if !b.Together() {
			t.Skip("no io_uring")
		}
		test(t, b)
		require.True(t, b.Together())
	})
	t.Run("separate", func(t *testing.T) { test(t, NewSeparate(limit)) })
}

// pairs returns two ends of each of n connections.
func pairs(t testing.TB, n int) (ours, theirs []int) {
	for range n {
		fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK, 0)
		require.NoError(t, err)
		ours, theirs = append(ours, fds[0]), append(theirs, fds[1])
	}
	t.Cleanup(func() {
		for i := range ours {
			unix.Close(ours[i])
			unix.Close(theirs[i])
		}
	})
	return ours, theirs
}

func TestCallsSendAndReceiveInTheirOrder(t *testing.T) {
	const n = 16
	eachBatch(t, n, func(t *testing.T, b *Batch) {
		ours, theirs := pairs(t, n)
		var want []byte
		for round := range 100 {
			k := round%n + 1
			for i := range k {
				message := fmt.Appendf(nil, "round %d, number %d", round, i)
				b.Send(ours[i], message)
				want = append(want, message...)
			}
			require.Len(t, b.calls, k)
			require.Equal(t, k == n, b.Full())
			for i, r := range b.Do() {
				require.Zero(t, r.Err)
				require.Equal(t, len(fmt.Sprintf("round %d, number %d", round, i)), r.N)
			}
			require.Empty(t, b.calls)
			bufs := make([][]byte, k)
			for i := range k {
				bufs[i] = make([]byte, 100)
				b.Recv(theirs[i], bufs[i])
			}
			var got []byte
			for i, r := range b.Do() {
				require.Zero(t, r.Err)
				got = append(got, bufs[i][:r.N]...)
			}
			require.Equal(t, string(want), string(got))
			want = want[:0]
		}
	})
}

// A failure of one socket does not affect the others.
func TestCallsFailAlone(t *testing.T) {
	eachBatch(t, 8, func(t *testing.T, b *Batch) {
		ours, theirs := pairs(t, 5)
		_, err := unix.Write(theirs[0], []byte("hello"))
		require.NoError(t, err)
		require.NoError(t, unix.Shutdown(theirs[2], unix.SHUT_WR))
		require.NoError(t, unix.Shutdown(theirs[3], unix.SHUT_RD))
		big := bytes.Repeat([]byte("x"), 8<<20)
		buf := make([]byte, 3)
		b.Recv(ours[0], buf)
		b.Recv(ours[1], make([]byte, 10))
		b.Recv(ours[2], make([]byte, 10))
		b.Send(ours[3], big)
		b.Send(ours[4], big)
		b.Recv(1<<20, make([]byte, 10))
		b.Send(ours[1], []byte("bye"))
		r := b.Do()
		require.Len(t, r, 7)
		require.Equal(t, Result{N: 3}, r[0], "what fits")
		require.Equal(t, "hel", string(buf))
		require.Equal(t, Result{Err: unix.EAGAIN}, r[1], "nothing there")
		require.Equal(t, Result{}, r[2], "the end")
		require.Equal(t, Result{Err: unix.EPIPE}, r[3], "nobody reads, and no signal tells")
		require.Zero(t, r[4].Err)
		require.Greater(t, r[4].N, 0)
		require.Less(t, r[4].N, len(big), "a part of it")
		require.Equal(t, Result{Err: unix.EBADF}, r[5])
		require.Equal(t, Result{N: 3}, r[6])

		b.Send(ours[4], big)
		b.Recv(ours[0], buf)
		r = b.Do()
		require.Equal(t, Result{Err: unix.EAGAIN}, r[0], "no room")
		require.Equal(t, Result{N: 2}, r[1], "what was left")
		require.Equal(t, "lol", string(buf))
	})
}

// A batch whose io_uring fails continues without it, and loses and repeats nothing.
func TestBatchesOutliveTheirRing(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	b := New(8)
	if !b.Together() {
		t.Skip("no io_uring")
	}
	ours, theirs := pairs(t, 8)
	fd := b.ring.fd
	null, err := unix.Open("/dev/null", unix.O_RDONLY, 0)
	require.NoError(t, err)
	require.NoError(t, unix.Dup3(null, fd, unix.O_CLOEXEC)) // not an io_uring
	require.NoError(t, unix.Close(null))
	for round := range 3 {
		for i := range ours {
			b.Send(ours[i], fmt.Appendf(nil, "%d/%d", round, i))
		}
		for _, r := range b.Do() {
			require.Equal(t, Result{N: 3}, r)
		}
		require.False(t, b.Together())
	}
	for i := range theirs {
		buf := make([]byte, 100)
		n, err := unix.Read(theirs[i], buf)
		require.NoError(t, err)
		require.Equal(t, fmt.Sprintf("0/%d1/%[1]d2/%[1]d", i), string(buf[:n]))
	}
}

// A batch keeps no references to data that it has sent, and makes no call twice.
func TestBatchesForgetTheirCalls(t *testing.T) {
	eachBatch(t, 4, func(t *testing.T, b *Batch) {
		ours, _ := pairs(t, 2)
		b.Send(ours[0], []byte("a"))
		b.Send(ours[1], []byte("b"))
		require.Len(t, b.Do(), 2)
		require.Empty(t, b.Do())
		for _, c := range b.calls[:cap(b.calls)] {
			require.Nil(t, c.b)
		}
	})
}

func BenchmarkBatch(b *testing.B) {
	for _, together := range []bool{false, true} {
		for _, n := range []int{1, 2, 4, 16} {
			b.Run(fmt.Sprintf("together=%v/calls=%d", together, n), func(b *testing.B) {
				runtime.LockOSThread()
				defer runtime.UnlockOSThread()
				batch := NewSeparate(n)
				if together {
					if batch = New(n); !batch.Together() {
						b.Skip("no io_uring")
					}
					defer batch.Close()
				}
				ours, _ := pairs(b, n)
				buf := make([]byte, 100)
				b.ReportAllocs()
				for range b.N {
					for _, fd := range ours {
						batch.Recv(fd, buf)
					}
					batch.Do()
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/call")
			})
		}
	}
}
