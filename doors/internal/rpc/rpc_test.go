package rpc_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/atomredis/atomredis"
	"github.com/atomredis/atomredis/atomredistest"
	"github.com/atomredis/atomredis/doors/door"
	"github.com/atomredis/atomredis/doors/internal/rpc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const deadline = 20 * time.Second

// words is a door whose service executes the words of its request as a command.
type words struct{ *rpc.Server }

func init() {
	door.Register(door.Kind{Name: "words", New: func(h door.Host) (door.Door, error) {
		d := &words{}
		d.Server = rpc.New(rpc.Options{Host: h, Message: 1 << 20, Calls: 8}, func(s *grpc.Server) {
			s.RegisterService(&service, d)
			healthpb.RegisterHealthServer(s, health.NewServer())
			reflection.Register(s)
		})
		return d, nil
	}})
}

type text = wrapperspb.StringValue

// service has the methods Do, which executes a command, Panic, and End. Its streams are Listen, which sends the
// messages of a channel, Flood, which sends without end, and Echo.
var service = grpc.ServiceDesc{
	ServiceName: "test.Words", HandlerType: (*any)(nil),
	Methods: []grpc.MethodDesc{
		unary("Do", func(d *words, ctx context.Context, r *text) (*text, error) {
			reply, err := rpc.PeerOf(ctx).Do(ctx, strings.Fields(r.Value))
			if err != nil {
				return nil, err
			}
			return wrapperspb.String(reply.String()), nil
		}),
		unary("Panic", func(d *words, ctx context.Context, r *text) (*text, error) { panic(r.Value) }),
		unary("PanicBeside", func(d *words, ctx context.Context, r *text) (*text, error) {
			<-rpc.PeerOf(ctx).Go(func() { panic(r.Value) })
			return r, nil
		}),
		unary("End", func(d *words, ctx context.Context, r *text) (*text, error) {
			d.End()
			d.End()
			return r, nil
		}),
	},
	Streams: []grpc.StreamDesc{
		{StreamName: "Listen", ServerStreams: true, Handler: func(srv any, s grpc.ServerStream) error {
			var r text
			if err := s.RecvMsg(&r); err != nil {
				return err
			}
			p := rpc.PeerOf(s.Context())
			c, err := p.Get()
			if err != nil {
				return err
			}
			sub, err := c.Subscribe(s.Context(), r.Value)
			p.Put(c)
			if err != nil {
				return err
			}
			ctx, cancel := context.WithCancel(s.Context())
			failed := make(chan error, 1)
			done := p.Go(func() {
				for {
					m, err := sub.Next(ctx)
					if err == nil {
						err = s.SendMsg(wrapperspb.String(m.Payload))
					}
					if err != nil {
						failed <- err
						return
					}
				}
			})
			defer func() { cancel(); sub.Close(); <-done }()
			if err := s.SendMsg(wrapperspb.String("listening")); err != nil {
				return err
			}
			select {
			case err := <-failed:
				return err
			case <-srv.(*words).Ending():
				return rpc.ErrEnding
			}
		}},
		{StreamName: "Flood", ServerStreams: true, Handler: func(srv any, s grpc.ServerStream) error {
			sent := make(chan struct{}, 1<<20)
			rpc.PeerOf(s.Context()).Go(func() {
				for s.SendMsg(wrapperspb.String(strings.Repeat("x", 1<<16))) == nil {
					sent <- struct{}{}
				}
			})
			for { // until Send blocks, because the peer does not read
				select {
				case <-sent:
				case <-time.After(200 * time.Millisecond):
					return door.ErrSlow
				}
			}
		}},
	},
}

// unary makes a method from a function.
func unary(name string, do func(d *words, ctx context.Context, r *text) (*text, error)) grpc.MethodDesc {
	return grpc.MethodDesc{MethodName: name, Handler: func(srv any, ctx context.Context, decode func(any) error,
		around grpc.UnaryServerInterceptor) (any, error) {
		r := new(text)
		if err := decode(r); err != nil {
			return nil, err
		}
		return around(ctx, r, &grpc.UnaryServerInfo{Server: srv, FullMethod: "/test.Words/" + name},
			func(ctx context.Context, r any) (any, error) { return do(srv.(*words), ctx, r.(*text)) })
	}}
}

// opened starts a server with the door.
func opened(t testing.TB, settings ...string) *atomredistest.Server {
	o := atomredis.Options{Config: map[string]string{"door-words": "127.0.0.1:0"}}
	for i := 0; i < len(settings); i += 2 {
		o.Config[settings[i]] = settings[i+1]
	}
	return atomredistest.RunOptions(t, o)
}

// peer is a peer of the door.
type peer struct {
	t    testing.TB
	conn *grpc.ClientConn
}

func connect(t testing.TB, s *atomredistest.Server) *peer {
	t.Helper()
	address := s.DoorAddr("words")
	if strings.HasPrefix(address, "/") {
		address = "unix://" + address
	}
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDisableRetry())
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	return &peer{t, conn}
}

// call calls a method.
func (p *peer) call(ctx context.Context, method, words string) (string, error) {
	var out text
	err := p.conn.Invoke(ctx, "/test.Words/"+method, wrapperspb.String(words), &out)
	return out.Value, err
}

// do executes a command that must succeed.
func (p *peer) do(command string) string {
	p.t.Helper()
	out, err := p.call(p.t.Context(), "Do", command)
	require.NoError(p.t, err)
	return out
}

// open opens a stream.
func (p *peer) open(method, words string) grpc.ClientStream {
	p.t.Helper()
	ctx, cancel := context.WithCancel(p.t.Context())
	p.t.Cleanup(cancel)
	s, err := p.conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, "/test.Words/"+method,
		grpc.MaxCallRecvMsgSize(1<<30))
	require.NoError(p.t, err)
	require.NoError(p.t, s.SendMsg(wrapperspb.String(words)))
	require.NoError(p.t, s.CloseSend())
	return s
}

func receive(t testing.TB, s grpc.ClientStream) string {
	t.Helper()
	var out text
	require.NoError(t, s.RecvMsg(&out))
	return out.Value
}

func requireStatus(t testing.TB, code codes.Code, message string, err error) {
	t.Helper()
	require.Error(t, err)
	require.Equal(t, code, status.Code(err), err.Error())
	require.Contains(t, err.Error(), message)
}

// eventually waits until the reply to a command contains want.
func eventually(t testing.TB, s *atomredistest.Server, want string, args ...any) {
	t.Helper()
	has := func() bool { return strings.Contains(s.MustDo(t, args...).String(), want) }
	require.Eventually(t, has, deadline, time.Millisecond, want)
}

func TestCallsAreCommandsOfTheConnectionsClient(t *testing.T) {
	for _, network := range []string{"tcp", "unix"} {
		t.Run(network, func(t *testing.T) {
			var settings []string
			if network == "unix" {
				settings = []string{"door-words", t.TempDir() + "/words.sock"}
			}
			s := opened(t, settings...)
			one, two := connect(t, s), connect(t, s)
			require.Contains(t, one.do("SET k v"), "OK")
			require.Contains(t, two.do("GET k"), "v")
			id := one.do("CLIENT ID")
			require.Equal(t, id, one.do("CLIENT ID"), "calls one after the other have the same client")
			require.NotEqual(t, id, two.do("CLIENT ID"))
			require.Contains(t, one.do("CLIENT INFO"), " lib-name=door-words ")
			one.conn.Close()
			two.conn.Close()
			eventually(t, s, "door_words_clients:0\r\n", "INFO", "door_words")
			eventually(t, s, "door_words_connections:0\r\n", "INFO", "door_words")
			eventually(t, s, "words_calls:6\r\nwords_calls_failed:0\r\nwords_calls_active:0\r\n", "INFO", "door_words")
		})
	}
}

func TestCallsBlockBesideEachOther(t *testing.T) {
	s := opened(t)
	p := connect(t, s)
	var wg sync.WaitGroup
	got := make([]string, 5)
	for i := range got {
		wg.Go(func() { got[i], _ = p.call(t.Context(), "Do", fmt.Sprintf("BLPOP list%d 0", i)) })
	}
	eventually(t, s, "blocked_clients:5\r\n", "INFO", "clients")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := p.call(ctx, "Do", "BLPOP canceled 0")
		ended <- err
	}()
	eventually(t, s, "blocked_clients:6\r\n", "INFO", "clients")
	cancel()
	requireStatus(t, codes.Canceled, "", <-ended)
	eventually(t, s, "blocked_clients:5\r\n", "INFO", "clients")
	p.do("RPUSH canceled v")
	require.Contains(t, p.do("LLEN canceled"), "1", "who has gone takes nothing")
	for i := range got {
		p.do(fmt.Sprintf("RPUSH list%d value%d", i, i))
	}
	wg.Wait()
	for i := range got {
		require.Contains(t, got[i], fmt.Sprintf("value%d", i))
	}
}

func TestWhoIsKilledIsDisconnected(t *testing.T) {
	s := opened(t)
	p, bystander := connect(t, s), connect(t, s)
	list := p.open("Listen", "channel")
	require.Equal(t, "listening", receive(t, list))
	bystander.do("SET k v")
	before := bystander.do("CLIENT ID")
	ended := make(chan error, 1)
	go func() {
		_, err := p.call(t.Context(), "Do", "BLPOP list 0")
		ended <- err
	}()
	eventually(t, s, "blocked_clients:1\r\n", "INFO", "clients")
	var addr string
	for _, line := range strings.Split(s.MustDo(t, "CLIENT", "LIST").String(), "\n") {
		if i := strings.Index(line, " addr="); strings.Contains(line, "cmd=blpop") {
			addr = strings.Fields(line[i:])[0][len("addr="):]
		}
	}
	s.MustDo(t, "CLIENT", "KILL", "ADDR", addr)
	requireStatus(t, codes.Unavailable, "", <-ended)
	requireStatus(t, codes.Unavailable, "", list.RecvMsg(new(text)))
	require.Equal(t, before, bystander.do("CLIENT ID"))
	require.Eventually(t, func() bool { // the peer connects again
		_, err := p.call(t.Context(), "Do", "PING")
		return err == nil
	}, deadline, time.Millisecond)
}

func TestPanicsHurtNobody(t *testing.T) {
	s := opened(t)
	p, bystander := connect(t, s), connect(t, s)
	before := bystander.do("CLIENT ID")
	_, err := p.call(t.Context(), "Panic", "secret")
	requireStatus(t, codes.Internal, "internal error", err)
	require.NotContains(t, err.Error(), "secret")
	_, err = p.call(t.Context(), "PanicBeside", "secret")
	requireStatus(t, codes.Unavailable, "", err)
	require.Equal(t, before, bystander.do("CLIENT ID"))
	p.do("PING")
}

func TestErrorsAreStatuses(t *testing.T) {
	s := opened(t)
	s.MustDo(t, "ACL", "SETUSER", "limited", "on", "nopass", "~k", "+get", "+set", "+lpush", "+blpop", "&*")
	s.MustDo(t, "CONFIG", "SET", "door-words-user", "limited")
	p := connect(t, s)
	p.do("SET k v")
	for command, want := range map[string]codes.Code{
		"GET other": codes.PermissionDenied, "LPUSH k x": codes.FailedPrecondition, "SET k": codes.Internal,
	} {
		_, err := p.call(t.Context(), "Do", command)
		requireStatus(t, want, "", err)
	}
	s.MustDo(t, "CONFIG", "SET", "maxmemory", "1")
	_, err := p.call(t.Context(), "Do", "SET k v")
	requireStatus(t, codes.ResourceExhausted, "OOM command not allowed", err)
	for err, want := range map[error]codes.Code{
		door.ErrClosed: codes.Unavailable, door.ErrKilled: codes.Unavailable, door.ErrSlow: codes.ResourceExhausted,
		door.ErrTooManyClients: codes.ResourceExhausted, door.ErrNotDurable: codes.Unavailable,
		context.DeadlineExceeded: codes.DeadlineExceeded, context.Canceled: codes.Canceled, io.EOF: codes.Internal,
		status.Error(codes.NotFound, "x"): codes.NotFound,
	} {
		require.Equal(t, want, status.Code(rpc.Status(fmt.Errorf("wrapped: %w", err))), err.Error())
	}
}

func TestWhatAPeerMayCost(t *testing.T) {
	s := opened(t)
	p, bystander := connect(t, s), connect(t, s)
	bystander.do("PING")
	_, err := p.call(t.Context(), "Do", "ECHO "+strings.Repeat("x", 1<<20))
	requireStatus(t, codes.ResourceExhausted, "larger than max", err)
	require.Contains(t, p.do("PING"), "PONG", "the connection goes on")

	// Eight calls run at the same time; further ones wait.
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() { p.call(ctx, "Do", "BLPOP list 0") })
	}
	eventually(t, s, "blocked_clients:8\r\n", "INFO", "clients")
	require.Contains(t, bystander.do("PING"), "PONG")
	cancel()
	wg.Wait()

	// A peer that does not read can be killed.
	flood := p.open("Flood", "")
	require.NoError(t, flood.RecvMsg(new(text))) // the stream has begun
	eventually(t, s, "words_calls_active:0\r\n", "INFO", "door_words")
	for err = nil; err == nil; {
		err = flood.RecvMsg(new(text))
	}
	requireStatus(t, codes.ResourceExhausted, door.ErrSlow.Error(), err)
}

// Calls of peers that are not admitted are refused before their messages arrive, whatever lengths these announce.
func TestStrangersAreRefused(t *testing.T) {
	s := opened(t, "requirepass", "secret")
	p := connect(t, s)
	_, err := p.call(t.Context(), "Do", "PING")
	requireStatus(t, codes.Unauthenticated, "NOAUTH", err)
	stream, err := p.conn.NewStream(t.Context(), &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, "/test.Words/Listen")
	require.NoError(t, err)
	requireStatus(t, codes.Unauthenticated, "NOAUTH", stream.RecvMsg(new(text)))
	_, err = healthpb.NewHealthClient(p.conn).Check(t.Context(), &healthpb.HealthCheckRequest{})
	requireStatus(t, codes.Unauthenticated, "NOAUTH", err)
	eventually(t, s, "words_calls:3\r\nwords_calls_failed:3\r\nwords_calls_active:0\r\n", "INFO", "door_words")
	for i := 0; status.Code(err) == codes.Unauthenticated; i++ {
		require.Less(t, i, 100, "so many refusals end the connection")
		_, err = p.call(t.Context(), "Do", "PING")
		if strings.Contains(s.MustDo(t, "INFO", "door_words").String(), "door_words_connections_received:2") {
			break
		}
	}
	s.MustDo(t, "ACL", "SETUSER", "u", "on", "nopass", "+@all", "~*")
	s.MustDo(t, "CONFIG", "SET", "door-words-user", "u")
	require.Contains(t, connect(t, s).do("PING"), "PONG")
}

// Malformed and incomplete HTTP/2 affects no other peer, and leaves nothing behind when the door closes.
func TestWhatIsNoCallDisturbsNobody(t *testing.T) {
	s := opened(t)
	bystander := connect(t, s)
	bystander.do("PING")
	preface := "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
	for _, input := range []string{
		"", "GET / HTTP/1.1\r\n\r\n", "PRI * HTTP", preface, preface + "\x00\x00\x00\x04\x00\x00\x00\x00\x00",
		preface + "\xff\xff\xff\x04\x00\x00\x00\x00\x00", preface + strings.Repeat("\xff", 100), "*1\r\n$4\r\nPING\r\n",
		preface + "\x00\x00\x00\x04\x00\x00\x00\x00\x00" + "\x00\x00\x04\x01\x04\x00\x00\x00\x01\x88\x88\x88\x88",
		strings.Repeat("\x00", 1000),
	} {
		conn, err := net.Dial("tcp", s.DoorAddr("words"))
		require.NoError(t, err)
		t.Cleanup(func() { conn.Close() })
		_, err = conn.Write([]byte(input))
		require.NoError(t, err)
		require.Contains(t, bystander.do("PING"), "PONG")
	}
}

func TestTheDoorEndsFromInside(t *testing.T) {
	s := opened(t)
	p := connect(t, s)
	conn, err := net.Dial("tcp", s.DoorAddr("words")) // its handshake does not end
	require.NoError(t, err)
	defer conn.Close()
	list := p.open("Listen", "channel")
	require.Equal(t, "listening", receive(t, list))
	s.MustDo(t, "PUBLISH", "channel", "message")
	require.Equal(t, "message", receive(t, list))
	out, err := p.call(t.Context(), "End", "answered")
	require.NoError(t, err)
	require.Equal(t, "answered", out)
	requireStatus(t, codes.Unavailable, "the server is closed", list.RecvMsg(new(text)))
	conn.Close()
	require.Eventually(t, func() bool { return s.DoorAddr("words") == "" }, deadline, time.Millisecond)
	_, err = p.call(t.Context(), "Do", "PING")
	requireStatus(t, codes.Unavailable, "", err)
	eventually(t, s, "OK", "CONFIG", "SET", "door-words", "")
	s.MustDo(t, "CONFIG", "SET", "door-words", "127.0.0.1:0")
	connect(t, s).do("PING")
}

func TestHealthAndReflectionAreServed(t *testing.T) {
	s := opened(t)
	p := connect(t, s)
	r, err := healthpb.NewHealthClient(p.conn).Check(t.Context(), &healthpb.HealthCheckRequest{})
	require.NoError(t, err)
	require.Equal(t, healthpb.HealthCheckResponse_SERVING, r.Status)
}

func TestPeersOfAClosedServerAreGone(t *testing.T) {
	db, err := atomredis.Open(atomredis.Options{Config: map[string]string{"door-words": "127.0.0.1:0"}})
	require.NoError(t, err)
	half, err := net.Dial("tcp", db.DoorAddr("words"))
	require.NoError(t, err)
	defer half.Close()
	conn, err := grpc.NewClient(db.DoorAddr("words"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	defer conn.Close()
	p := &peer{t, conn}
	p.do("PING")
	ended := make(chan error, 1)
	go func() {
		_, err := p.call(context.Background(), "Do", "BLPOP list 0")
		ended <- err
	}()
	for {
		r, err := db.Do(t.Context(), "INFO", "clients")
		require.NoError(t, err)
		if strings.Contains(r.String(), "blocked_clients:1") {
			break
		}
	}
	require.NoError(t, db.Close())
	requireStatus(t, codes.Unavailable, "", <-ended)
	half.SetReadDeadline(time.Now().Add(deadline))
	_, err = io.Copy(new(bytes.Buffer), half)
	require.False(t, errors.Is(err, context.DeadlineExceeded), "the connection is closed")
}
