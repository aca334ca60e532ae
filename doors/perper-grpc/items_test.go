package perpergrpc_test

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/atomredis/atomredis"
	"github.com/atomredis/atomredis/internal/wire/fabric"
)

type emptyMessage = emptypb.Empty

// put adds items to stream s.
func (a *agent) put(keys ...int64) {
	a.t.Helper()
	for _, k := range keys {
		a.do("PERPER.PUT", "s", k, "v")
	}
}

// listen calls StreamItems for stream s, and returns after the headers.
func (a *agent) listen(start, stride int64) grpc.ServerStreamingClient[fabric.StreamItemsResponse] {
	a.t.Helper()
	s, err := a.StreamItems(a.ctx, &fabric.StreamItemsRequest{Stream: "s", StartKey: start, Stride: stride})
	require.NoError(a.t, err)
	_, err = s.Header()
	require.NoError(a.t, err)
	return s
}

// keys requires that a stream sends these keys next.
func keys(t testing.TB, s grpc.ServerStreamingClient[fabric.StreamItemsResponse], want ...int64) {
	t.Helper()
	for _, w := range want {
		m, err := s.Recv()
		require.NoError(t, err)
		require.Equal(t, w, m.Key)
	}
}

func TestStreamItems(t *testing.T) {
	a := opened(t)
	a.do("PERPER.CREATE", "s")
	a.put(30, 10, 20)
	fresh, from10, from30, from50 := a.listen(-1, 0), a.listen(10, 0), a.listen(30, 0), a.listen(50, 0)
	keys(t, from10, 20, 30)
	a.put(10) // not a new item
	a.put(5, 40, 35, 50, 60)
	keys(t, fresh, 5, 40, 50, 60)
	keys(t, from10, 40, 50, 60)
	keys(t, from30, 40, 50, 60)
	keys(t, from50, 50, 60)
	a.do("PERPER.REMOVE", "s", 30)
	a.put(30, 70)
	keys(t, from30, 70)
}

// The start key is delivered if it comes later and is the first item.
func TestStreamItemsAtTheStart(t *testing.T) {
	a := opened(t)
	a.do("PERPER.CREATE", "s")
	r, late := a.listen(5, 0), a.listen(5, 0)
	a.put(4, 5, 6)
	keys(t, r, 5, 6)
	keys(t, late, 5, 6)
	a.put(7)
	behind := a.listen(6, 0)
	keys(t, behind, 7)
	a.do("PERPER.REMOVE", "s", 6)
	a.put(6, 8)
	keys(t, behind, 8)
}

func TestStreamItemsInStrides(t *testing.T) {
	a := opened(t)
	a.do("PERPER.CREATE", "s")
	first := a.listen(-1, 10)
	a.put(20)
	keys(t, first, 20)
	up, down := a.listen(-1, 1), a.listen(-1, -1)
	keys(t, up, 20)
	keys(t, down, 20)
	a.put(30, 22, 21, 19, 50, 40)
	keys(t, first, 30, 40, 50)
	keys(t, up, 21, 22)
	keys(t, down, 19)
	from := a.listen(21, 1)
	keys(t, from, 21, 22)
	a.put(23)
	keys(t, from, 23)
	keys(t, up, 23)
	high, low := a.listen(-1, 7), a.listen(-1, -7)
	keys(t, high, 50)
	keys(t, low, 19)
	a.put(57, 12, 18)
	keys(t, high, 57)
	keys(t, low, 12)
	keys(t, down, 18)
}

// A stream may have more items than a page.
func TestLongStreams(t *testing.T) {
	a := opened(t)
	a.do("PERPER.CREATE", "s")
	n := int64(2500)
	for k := range n {
		a.put(2 * k)
	}
	all, strides, down := a.listen(0, 0), a.listen(0, 2), a.listen(2*n-2, -4)
	for k := int64(1); k < n; k++ {
		keys(t, all, 2*k)
	}
	for k := range n {
		keys(t, strides, 2*k)
	}
	for k := 2*n - 2; k >= 0; k -= 4 {
		keys(t, down, k)
	}
	a.put(2 * n)
	keys(t, all, 2*n)
	keys(t, strides, 2*n)
}

func TestStreamItemsOfNoCache(t *testing.T) {
	a := opened(t)
	s, err := a.StreamItems(a.ctx, &fabric.StreamItemsRequest{Stream: "s"})
	require.NoError(t, err)
	_, err = s.Recv()
	require.Equal(t, codes.NotFound, status.Code(err))
}

func TestListenerAttached(t *testing.T) {
	a := opened(t)
	attached := func(stream string) <-chan error {
		return soon(func() error {
			_, err := a.ListenerAttached(a.ctx, &fabric.ListenerAttachedRequest{Stream: stream})
			return err
		})
	}
	s, other := attached("s"), attached("other")
	a.waits(2)
	a.do("PERPER.LISTEN", "s", "l")
	require.NoError(t, <-s)
	a.waits(1)
	require.NoError(t, <-attached("s"))
	a.do("PERPER.LISTEN", "other", "l") // the listener moves there
	require.NoError(t, <-other)
}

// A reader that does not read gets the error that it is too slow, and delays no other client.
func TestReadersThatAreSlow(t *testing.T) {
	a := dial(t, start(t, atomredis.Options{Config: map[string]string{
		"client-output-buffer-limit": "pubsub 20000 0 0"}}))
	a.do("PERPER.CREATE", "s")
	ctx, cancel := context.WithCancel(a.ctx)
	defer cancel()
	slow, err := a.StreamItems(ctx, &fabric.StreamItemsRequest{Stream: "s", StartKey: -1})
	require.NoError(t, err)
	_, err = slow.Header()
	require.NoError(t, err)
	other := dial(t, a.s)
	quick := other.listen(-1, 0)
	for k := int64(0); k < 20_000; k += 10 {
		args := []any{"PERPER.MPUT", "s", 10}
		for i := range int64(10) {
			args = append(args, k+i, "v")
		}
		a.do(args...)
		for i := range int64(10) {
			keys(t, quick, k+i)
		}
	}
	for {
		if _, err = slow.Recv(); err != nil {
			break
		}
	}
	require.Equal(t, codes.ResourceExhausted, status.Code(err), fmt.Sprint(err))
	a.put(30_000)
	keys(t, quick, 30_000)
}

// Items that all readers have read are removed, also while new readers come. A stream without readers becomes empty.
func TestItemsGoWhenTheirReadersHaveMovedOn(t *testing.T) {
	a := opened(t)
	a.do("PERPER.CREATE", "s")
	listeners := func(positions ...int64) {
		for i, at := range positions {
			a.do("PERPER.LISTEN", "s", fmt.Sprint("l", i), at)
		}
	}
	listeners(math.MinInt64, math.MinInt64)
	first, second := a.listen(0, 0), dial(t, a.s).listen(-1, 0)
	for k := int64(1); k <= 10; k++ {
		a.put(k)
	}
	for k := int64(1); k <= 10; k++ {
		keys(t, first, k)
		keys(t, second, k)
	}
	listeners(4)
	require.Equal(t, "(integer) 10", a.do("PERPER.LEN", "s"), "the second listener keeps all")
	listeners(4, 7)
	a.eventually("(integer) 7", "PERPER.LEN", "s")
	keys(t, a.listen(0, 0), 4, 5, 6, 7, 8, 9, 10) // a later reader gets the remaining items
	listeners(10)
	a.eventually("(integer) 4", "PERPER.LEN", "s")
	a.put(11)
	keys(t, first, 11)
	a.do("PERPER.REMOVE", "stream-listeners", "l1")
	a.eventually("(integer) 2", "PERPER.LEN", "s")
	a.do("PERPER.REMOVE", "stream-listeners", "l0")
	a.eventually("(integer) 0", "PERPER.LEN", "s")
	a.put(12)
	keys(t, second, 11, 12) // calls continue without their listeners
}
