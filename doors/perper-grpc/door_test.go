package perpergrpc_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"

	"github.com/atomredis/atomredis"
	"github.com/atomredis/atomredis/atomredistest"
	"github.com/atomredis/atomredis/internal/testing/testseed"
	"github.com/atomredis/atomredis/internal/wire/externalscaler"
	"github.com/atomredis/atomredis/internal/wire/fabric"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const deadline = 30 * time.Second

// agent is a client of the Fabric, with its server.
type agent struct {
	fabric.FabricClient
	t    testing.TB
	s    *atomredistest.Server
	conn *grpc.ClientConn
	ctx  context.Context
}

func start(t testing.TB, o atomredis.Options) *atomredistest.Server {
	if o.Config == nil {
		o.Config = map[string]string{}
	}
	o.Config["door-perper-grpc"] = "127.0.0.1:0"
	return atomredistest.RunOptions(t, o)
}

func dial(t testing.TB, s *atomredistest.Server) *agent {
	t.Helper()
	conn, err := grpc.NewClient(s.DoorAddr("perper-grpc"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	t.Cleanup(cancel)
	return &agent{fabric.NewFabricClient(conn), t, s, conn, ctx}
}

func opened(t testing.TB) *agent {
	t.Helper()
	return dial(t, start(t, atomredis.Options{}))
}

func (a *agent) do(args ...any) string {
	a.t.Helper()
	return a.s.MustDo(a.t, args...).String()
}

// call creates an execution of agent a.
func (a *agent) call(id, instance, delegate string) {
	a.t.Helper()
	a.do("PERPER.CALL", "a", instance, delegate, "ID", id)
}

// eventually waits until a command has a reply.
func (a *agent) eventually(want string, args ...any) {
	a.t.Helper()
	require.Eventually(a.t, func() bool { return a.do(args...) == want }, deadline, time.Millisecond, "%v", args)
}

// waits waits until n clients are blocked.
func (a *agent) waits(n int) {
	a.t.Helper()
	require.Eventually(a.t, func() bool {
		text, _ := a.s.MustDo(a.t, "INFO", "clients").Text()
		return strings.Contains(text, "blocked_clients:"+strconv.Itoa(n)+"\r\n")
	}, deadline, time.Millisecond)
}

// text returns a message of an execution in short form.
func text(m *fabric.ExecutionsResponse) string {
	switch {
	case m.StartOfStream:
		return "start"
	case m.Cancelled:
		return "cancelled " + m.Execution + " " + m.Instance + " " + m.Delegate
	}
	return m.Execution + " " + m.Instance + " " + m.Delegate
}

// next requires that a stream sends these executions next.
func next(t testing.TB, s interface {
	Recv() (*fabric.ExecutionsResponse, error)
}, want ...string) {
	t.Helper()
	for _, w := range want {
		m, err := s.Recv()
		require.NoError(t, err, w)
		require.Equal(t, w, text(m))
	}
}

func TestExecutions(t *testing.T) {
	a := opened(t)
	a.call("x", "i", "d")
	a.call("old", "i", "d")
	a.do("PERPER.FINISH", "old")
	all, err := a.Executions(a.ctx, &fabric.ExecutionsRequest{Agent: "a"})
	require.NoError(t, err)
	some, err := a.Executions(a.ctx, &fabric.ExecutionsRequest{Agent: "a", Instance: "j", Delegate: "e", LocalToData: true})
	require.NoError(t, err)
	next(t, all, "x i d", "start")
	next(t, some, "start")
	a.call("y", "j", "e")
	a.call("z", "j", "d")
	a.do("PERPER.CALL", "b", "j", "e", "ID", "other")
	a.do("PERPER.FINISH", "y") // has no effect
	a.do("PERPER.CANCEL", "old")
	a.do("PERPER.CANCEL", "z")
	a.do("PERPER.CANCEL", "y")
	a.call("y", "j", "e")
	next(t, all, "y j e", "z j d", "cancelled z j d", "cancelled y j e", "y j e")
	next(t, some, "y j e", "cancelled y j e", "y j e")
	a.do("PERPER.CLEAR", "executions")
	next(t, some, "cancelled y j e")

	list, err := a.AllExecutions(a.ctx, &fabric.ExecutionsRequest{Agent: "a"})
	require.NoError(t, err)
	require.Empty(t, list.Executions)
}

// An execution that changes from finished to unfinished is reported, unless it was reported before.
func TestExecutionsThatAreNotFinishedAnyMore(t *testing.T) {
	a := opened(t)
	a.call("x", "i", "d")
	before := a.raw("x")
	seen, err := a.Executions(a.ctx, &fabric.ExecutionsRequest{Agent: "a"})
	require.NoError(t, err)
	next(t, seen, "x i d", "start")
	a.do("PERPER.FINISH", "x")
	unseen, err := a.Executions(a.ctx, &fabric.ExecutionsRequest{Agent: "a"})
	require.NoError(t, err)
	next(t, unseen, "start")
	a.do("PERPER.PUT", "executions", "x", before)
	a.call("y", "i", "d")
	next(t, seen, "y i d")
	next(t, unseen, "x i d", "y i d")
}

// raw returns the value of an execution in the form for PERPER.PUT.
func (a *agent) raw(id string) string {
	v, err := a.s.MustDo(a.t, "HGET", "perper:{executions}", "\x09"+string(rune(len(id)))+"\x00\x00\x00"+id).Bytes()
	require.NoError(a.t, err)
	return fmt.Sprintf("hex(%x)", v)
}

func TestAllExecutions(t *testing.T) {
	a := opened(t)
	a.call("x", "i", "d")
	a.call("y", "j", "d")
	a.call("z", "j", "e")
	a.do("PERPER.FINISH", "x")
	for _, row := range []struct {
		filter *fabric.ExecutionsRequest
		want   []string
	}{
		{&fabric.ExecutionsRequest{Agent: "a"}, []string{"y j d", "z j e"}},
		{&fabric.ExecutionsRequest{Agent: "a", Instance: "j", Delegate: "e"}, []string{"z j e"}},
		{&fabric.ExecutionsRequest{Agent: "a", Instance: "i"}, nil},
		{&fabric.ExecutionsRequest{}, nil}, // the agent is always part of the filter
	} {
		list, err := a.AllExecutions(a.ctx, row.filter)
		require.NoError(t, err)
		var got []string
		for _, m := range list.Executions {
			got = append(got, text(m))
		}
		require.Equal(t, row.want, got, row.filter.String())
	}
}

// soon calls fn on a goroutine.
func soon(fn func() error) <-chan error {
	out := make(chan error, 1)
	go func() { out <- fn() }()
	return out
}

func TestExecutionFinished(t *testing.T) {
	a := opened(t)
	finished := func(id string) error {
		_, err := a.ExecutionFinished(a.ctx, &fabric.ExecutionFinishedRequest{Execution: id})
		return err
	}
	require.NoError(t, finished("x"), "there is none")
	a.call("x", "", "d")
	a.call("y", "", "d")
	x, y := soon(func() error { return finished("x") }), soon(func() error { return finished("y") })
	a.waits(2)
	a.do("PERPER.FINISH", "x")
	require.NoError(t, <-x)
	a.waits(1)
	a.do("PERPER.CANCEL", "y")
	require.NoError(t, <-y)
	require.NoError(t, finished("x"))
	a.call("z", "", "d")
	ctx, cancel := context.WithCancel(a.ctx)
	z := soon(func() error {
		_, err := a.ExecutionFinished(ctx, &fabric.ExecutionFinishedRequest{Execution: "z"})
		return err
	})
	a.waits(1)
	cancel()
	require.Equal(t, codes.Canceled, status.Code(<-z))
	a.waits(0)
}

func TestReserveExecution(t *testing.T) {
	a := opened(t)
	reserve := func(id string) (grpc.ServerStreamingClient[emptyMessage], context.CancelFunc) {
		ctx, cancel := context.WithCancel(a.ctx)
		s, err := a.ReserveExecution(ctx, &fabric.ReserveExecutionRequest{Execution: id, WorkGroup: "g"})
		require.NoError(t, err)
		return s, cancel
	}
	none, cancel := reserve("x")
	defer cancel()
	_, err := none.Recv()
	require.ErrorIs(t, err, io.EOF, "there is no such execution")
	a.call("x", "", "d")
	first, end := reserve("x")
	_, err = first.Recv()
	require.NoError(t, err)
	second, cancel := reserve("x")
	third, cancelThird := reserve("x")
	a.waits(2)
	end()
	type outcome struct {
		who int
		err error
	}
	got := make(chan outcome, 2)
	for i, s := range []grpc.ServerStreamingClient[emptyMessage]{second, third} {
		go func() {
			_, err := s.Recv()
			got <- outcome{i, err}
		}()
	}
	holder := <-got
	require.NoError(t, holder.err)
	a.do("PERPER.FINISH", "x")
	a.waits(1)
	[]func(){cancel, cancelThird}[holder.who]()
	require.Error(t, (<-got).err, "the execution has finished")
	a.eventually("(empty array)", "PERPER.LOCKS")
	cancel()
	cancelThird()
}

// worker is a call of ReservedExecutions.
type worker struct {
	grpc.BidiStreamingClient[fabric.ReservedExecutionsRequest, fabric.ExecutionsResponse]
	end context.CancelFunc
}

func (a *agent) work(first *fabric.ReservedExecutionsRequest) worker {
	a.t.Helper()
	ctx, cancel := context.WithCancel(a.ctx)
	a.t.Cleanup(cancel)
	s, err := a.ReservedExecutions(ctx)
	require.NoError(a.t, err)
	require.NoError(a.t, s.Send(first))
	return worker{s, cancel}
}

// more asks for more executions.
func (w worker) more(t testing.TB, n uint64) {
	require.NoError(t, w.Send(&fabric.ReservedExecutionsRequest{ReserveNext: n}))
}

func TestReservedExecutions(t *testing.T) {
	a := opened(t)
	filter := &fabric.ExecutionsRequest{Agent: "a"}
	a.call("x", "i", "d")
	a.call("y", "i", "d")
	a.call("z", "i", "d")
	one := a.work(&fabric.ReservedExecutionsRequest{ReserveNext: 1, WorkGroup: "g", Filter: filter})
	next(t, one, "x i d", "start")
	two := a.work(&fabric.ReservedExecutionsRequest{WorkGroup: "g", Filter: filter})
	next(t, two, "start")
	two.more(t, 5)
	next(t, two, "y i d", "z i d")
	a.call("w", "i", "d")
	next(t, two, "w i d")
	other := a.work(&fabric.ReservedExecutionsRequest{ReserveNext: 1, Filter: filter}) // "" is a group
	next(t, other, "x i d", "start")

	a.do("PERPER.CANCEL", "z")
	next(t, two, "cancelled z i d")
	a.do("PERPER.FINISH", "w")
	two.end() // y moves to one, which asks for more only now; w is finished
	one.more(t, 3)
	next(t, one, "y i d")
	a.do("PERPER.CANCEL", "x")
	next(t, one, "cancelled x i d")
	next(t, other, "cancelled x i d")
	require.NoError(t, one.CloseSend()) // it still listens
	a.call("v", "i", "d")
	next(t, one, "v i d")
	a.call("u", "i", "d")
	next(t, one, "u i d")
	other.end()
	one.end()
	a.eventually("(empty array)", "PERPER.LOCKS")
}

// The filter and the work group may come in separate messages. An empty group in a later message changes nothing.
func TestReservedExecutionsInSeveralMessages(t *testing.T) {
	a := opened(t)
	a.call("x", "i", "d")
	a.call("y", "j", "d")
	w := a.work(&fabric.ReservedExecutionsRequest{ReserveNext: 1})
	require.NoError(t, w.Send(&fabric.ReservedExecutionsRequest{WorkGroup: "g"}))
	require.NoError(t, w.Send(&fabric.ReservedExecutionsRequest{Filter: &fabric.ExecutionsRequest{Agent: "a", Instance: "j"}}))
	next(t, w, "y j d", "start")
	require.NoError(t, w.Send(&fabric.ReservedExecutionsRequest{ReserveNext: 1}))
	a.call("z", "j", "d")
	next(t, w, "z j d")
	require.NotContains(t, a.do("PERPER.LOCKS", ""), "z")
	require.Contains(t, a.do("PERPER.LOCKS", "g"), "z")
	none := a.work(&fabric.ReservedExecutionsRequest{ReserveNext: 1})
	require.NoError(t, none.CloseSend())
	_, err := none.Recv()
	require.ErrorIs(t, err, io.EOF, "it never said what it wants")
}

// Workers come and go. Every execution has one worker at a time, and is finished once.
func TestWorkersThatComeAndGo(t *testing.T) {
	a := opened(t)
	n := 1000
	if testing.Short() {
		n = 100
	}
	done := make(chan string, n)
	ctx, stop := context.WithCancel(a.ctx)
	var workers []<-chan error
	random := testseed.Rand(t)
	for range 4 {
		own := testseed.Fork(random)
		workers = append(workers, soon(func() error {
			for ctx.Err() == nil {
				if err := a.workSome(ctx, own, done); err != nil {
					return err
				}
			}
			return nil
		}))
	}
	for i := range n {
		a.call(fmt.Sprint(i), "", "d")
	}
	a.eventually("(empty array)", "PERPER.EXECUTIONS", "a")
	stop()
	for _, w := range workers {
		require.NoError(t, <-w)
	}
	require.Len(t, done, n)
}

// workSome finishes some executions and leaves others to the next workers.
func (a *agent) workSome(ctx context.Context, r *rand.Rand, done chan<- string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s, err := a.ReservedExecutions(ctx)
	if err != nil {
		return nil // the test ends
	}
	s.Send(&fabric.ReservedExecutionsRequest{ReserveNext: 3, WorkGroup: "g", Filter: &fabric.ExecutionsRequest{Agent: "a"}})
	for range r.IntN(20) + 1 {
		m, err := s.Recv()
		switch {
		case err != nil:
			return nil
		case m.StartOfStream:
			continue
		case r.IntN(5) == 0:
			return nil
		}
		switch r, err := a.s.Do(context.Background(), "PERPER.FINISH", m.Execution); {
		case err != nil:
			return err
		case r.String() != "(integer) 1":
			return fmt.Errorf("%s came back", m.Execution)
		}
		done <- m.Execution
		s.Send(&fabric.ReservedExecutionsRequest{ReserveNext: 1})
	}
	return nil
}

func TestKEDA(t *testing.T) {
	a := opened(t)
	k := externalscaler.NewExternalScalerClient(a.conn)
	object := &externalscaler.ScaledObjectRef{Name: "a", ScalerMetadata: map[string]string{"targetExecutions": "5"}}
	by := &externalscaler.ScaledObjectRef{Name: "n", ScalerMetadata: map[string]string{"agent": "a", "local": "true",
		"targetInstances": "2", "targetExecutions": "5"}}
	active := func(r *externalscaler.ScaledObjectRef) bool {
		m, err := k.IsActive(a.ctx, r)
		require.NoError(t, err)
		return m.Result
	}
	require.False(t, active(object))
	stream, err := k.StreamIsActive(a.ctx, by)
	require.NoError(t, err)
	is := func(want bool) {
		t.Helper()
		m, err := stream.Recv()
		require.NoError(t, err)
		require.Equal(t, want, m.Result)
	}
	is(false)
	a.do("PERPER.CALL", "Registry", "a", "Run", "ID", "i")
	is(true)
	require.True(t, active(object))
	require.True(t, active(by))
	a.call("x", "", "d")
	a.call("y", "", "d")
	a.do("PERPER.FINISH", "x")

	spec, err := k.GetMetricSpec(a.ctx, object)
	require.NoError(t, err)
	require.Equal(t, `metricSpecs:{metricName:"a-executions" targetSize:5}`, compact(spec))
	spec, err = k.GetMetricSpec(a.ctx, by)
	require.NoError(t, err)
	require.Equal(t, `metricSpecs:{metricName:"a-instances" targetSize:2} metricSpecs:{metricName:"a-executions" targetSize:5}`,
		compact(spec))
	by.ScalerMetadata["targetInstances"] = "many"
	_, err = k.GetMetricSpec(a.ctx, by)
	require.Equal(t, codes.InvalidArgument, status.Code(err))
	values, err := k.GetMetrics(a.ctx, &externalscaler.GetMetricsRequest{ScaledObjectRef: object, MetricName: "a-executions"})
	require.NoError(t, err)
	require.Equal(t, `metricValues:{metricName:"a-instances" metricValue:1} metricValues:{metricName:"a-executions" metricValue:2}`,
		compact(values))
	a.do("PERPER.CLEAR", "executions")
	is(false)
	require.False(t, active(by))
}

// compact returns a message with single spaces between its fields, because their number changes from build to build.
func compact(m fmt.Stringer) string { return strings.Join(strings.Fields(m.String()), " ") }

func TestHealthAndReflection(t *testing.T) {
	a := opened(t)
	h, err := healthpb.NewHealthClient(a.conn).Check(a.ctx, &healthpb.HealthCheckRequest{})
	require.NoError(t, err)
	require.Equal(t, healthpb.HealthCheckResponse_SERVING, h.Status)
	s, err := reflectionpb.NewServerReflectionClient(a.conn).ServerReflectionInfo(a.ctx)
	require.NoError(t, err)
	require.NoError(t, s.Send(&reflectionpb.ServerReflectionRequest{
		MessageRequest: &reflectionpb.ServerReflectionRequest_ListServices{}}))
	m, err := s.Recv()
	require.NoError(t, err)
	var names []string
	for _, service := range m.GetListServicesResponse().Service {
		names = append(names, service.Name)
	}
	require.Contains(t, names, "perper.Fabric")
	require.Contains(t, names, "externalscaler.ExternalScaler")
	require.NoError(t, s.CloseSend())
	_, err = s.Recv()
	require.ErrorIs(t, err, io.EOF)
}

func TestAfterARestart(t *testing.T) {
	dir := t.TempDir()
	s := start(t, atomredis.Options{Dir: dir})
	a := dial(t, s)
	a.call("x", "", "d")
	a.call("y", "", "d")
	w := a.work(&fabric.ReservedExecutionsRequest{ReserveNext: 2, Filter: &fabric.ExecutionsRequest{Agent: "a"}})
	next(t, w, "x  d", "y  d", "start")
	a.do("PERPER.FINISH", "x")
	a.do("PERPER.LISTEN", "s", "l")
	require.NoError(t, s.Close())
	_, err := w.Recv()
	require.Error(t, err)
	b := dial(t, start(t, atomredis.Options{Dir: dir}))
	w = b.work(&fabric.ReservedExecutionsRequest{ReserveNext: 2, Filter: &fabric.ExecutionsRequest{Agent: "a"}})
	next(t, w, "y  d", "start")
	_, err = b.ListenerAttached(b.ctx, &fabric.ListenerAttachedRequest{Stream: "s"})
	require.NoError(t, err)
}

// Malformed gRPC messages affect no other peer.
func TestMalformedMessagesBesideABystander(t *testing.T) {
	a := opened(t)
	bystander, err := a.Executions(a.ctx, &fabric.ExecutionsRequest{Agent: "a"})
	require.NoError(t, err)
	next(t, bystander, "start")
	n := 10_000
	if testing.Short() {
		n = 200
	}
	r := rand.New(rand.NewPCG(1, 2))
	methods := []string{"Executions", "AllExecutions", "ExecutionFinished", "ReserveExecution", "ReservedExecutions",
		"StreamItems", "ListenerAttached"}
	for i := range n {
		ctx, cancel := context.WithCancel(a.ctx)
		stream, err := a.conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true},
			"/perper.Fabric/"+methods[i%len(methods)], grpc.ForceCodec(bytesCodec{}))
		require.NoError(t, err)
		b := make([]byte, r.IntN(40))
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		b = append([]byte{0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f}, b...) // a text longer than the message
		if err := stream.SendMsg(b); err == nil {
			stream.CloseSend()
			var reply []byte
			require.Error(t, stream.RecvMsg(&reply))
		}
		cancel()
	}
	for range n / 100 { // bytes that are not HTTP/2
		conn, err := net.Dial("tcp", a.s.DoorAddr("perper-grpc"))
		require.NoError(t, err)
		b := make([]byte, 100)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		conn.Write(b)
		conn.Close()
	}
	// A malformed execution, and one whose name is not text.
	value := a.anyValue()
	a.do("PERPER.PUT", "executions", "bad", "value")
	a.do("PERPER.PUT", "executions", 5, value)
	a.do("PERPER.CALL", "a", "\xff", "d", "ID", "x\xff")
	next(t, bystander, "x� � d")
	require.Equal(t, `"PONG"`, strconv.Quote(a.do("PING")))
}

// anyValue returns a value of an execution, which it creates.
func (a *agent) anyValue() string {
	a.do("PERPER.CALL", "c", "i", "d", "ID", "q")
	return a.raw("q")
}

// bytesCodec sends and receives unchanged bytes.
type bytesCodec struct{}

func (bytesCodec) Marshal(v any) ([]byte, error) { return v.([]byte), nil }
func (bytesCodec) Unmarshal(b []byte, v any) error {
	*v.(*[]byte) = append([]byte(nil), b...)
	return nil
}
func (bytesCodec) Name() string { return "bytes" }
