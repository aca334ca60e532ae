// Package rpc serves gRPC for doors. It knows no protocol: a door registers its services and translates their calls.
//
//	func newDoor(h door.Host) (door.Door, error) {
//		d := &mine{host: h}
//		d.Server = rpc.New(rpc.Options{Host: h}, func(s *grpc.Server) {
//			pb.RegisterMineServer(s, d)
//			reflection.Register(s)
//		})
//		return d, nil // Serve, Close and Info are those of the Server
//	}
//
//	func (d *mine) Get(ctx context.Context, r *pb.GetRequest) (*pb.GetResponse, error) {
//		reply, err := rpc.PeerOf(ctx).Do(ctx, "GET", r.Key)
//		...
//	}
//
// It refuses calls of a peer whose client is not admitted before it receives their messages.
//
// Every connection is a client of the server, and every call has a [Peer]: the connection with a pool of clients, so
// that several calls may block at the same time. A handler returns the error of a command unchanged, and its peer gets
// the status of [Status]. Handlers with their own error texts return errors of package status.
//
// A call ends with its context: the peer has cancelled it or disconnected, its client was killed, or the door is
// closed. Handlers must return soon after that, together with their goroutines, which [Peer.Go] starts. A long-running
// handler, such as that of a stream, must end with [ErrEnding] when Ending is closed. Send blocks while the peer does
// not read, for as long as the connection lasts. When a handler returns, a Send or a Recv in another goroutine ends.
//
// A panic in a handler is a bug, and is logged. Its call ends with INTERNAL; other calls are not affected.
package rpc

import (
	"context"
	"math"
	"net"
	"runtime/debug"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"

	"github.com/atomredis/atomredis/doors/door"
)

// Options configure a Server. Zero values mean the defaults.
type Options struct {
	// Host makes the clients.
	Host door.Host
	// Credentials do the handshake with a peer. nil means no handshake: HTTP/2 in the clear, or over the TLS of the
	// directive door-<name>-tls, without ALPN.
	Credentials credentials.TransportCredentials
	// Message limits the bytes of a message from a peer; the default is 64 MiB.
	Message int
	// Calls limits the concurrent calls of a peer; the default is 1024. Further calls wait.
	Calls int
}

// Further limits of a peer.
const (
	headers          = 16 << 10 // bytes of the headers of a call
	handshake        = 10 * time.Second
	quiet            = 30 * time.Second // silence after which a peer gets a ping
	keepaliveTimeout = 20 * time.Second // for the answer to a ping
	pings            = time.Second      // least time between pings from a peer
	farewell         = 5 * time.Second  // for running calls when the door ends by itself
	// maxRefused limits the calls of a peer that is not admitted.
	maxRefused = 64
)

// ErrEnding is the status of calls that end with the door.
var ErrEnding = status.Error(codes.Unavailable, "the server is closed")

// errStranger is the status of calls of a peer whose user needs a password: the protocols have no field for one.
var errStranger = status.Error(codes.Unauthenticated, "NOAUTH Authentication required.")

// Server is a door for gRPC.
type Server struct {
	options Options
	peers   door.Peers
	server  *grpc.Server

	ending     chan struct{} // closed by End
	once       sync.Once     // of End
	background sync.WaitGroup

	calls, failed, active atomic.Int64
}

// New returns a server that does not serve yet. It calls register once, to register the services.
func New(o Options, register func(s *grpc.Server)) *Server {
	if o.Message == 0 {
		o.Message = 64 << 20
	}
	if o.Calls == 0 {
		o.Calls = 1024
	}
	s := &Server{options: o, ending: make(chan struct{})}
	s.peers.Host = o.Host
	s.server = grpc.NewServer(
		grpc.Creds(&shaker{o.Credentials, s}),
		grpc.MaxRecvMsgSize(o.Message),
		grpc.MaxSendMsgSize(math.MaxInt32),
		grpc.MaxConcurrentStreams(uint32(o.Calls)),
		grpc.MaxHeaderListSize(headers),
		grpc.ConnectionTimeout(handshake),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: quiet, Timeout: keepaliveTimeout}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: pings, PermitWithoutStream: true}),
		grpc.InTapHandle(s.tap),
		grpc.UnaryInterceptor(s.unary),
		grpc.StreamInterceptor(s.stream),
		grpc.WaitForHandlers(true),
	)
	register(s.server)
	return s
}

// Serve implements door.Door.
func (s *Server) Serve(l net.Listener) error {
	err := s.server.Serve(s.peers.Listener(l))
	select {
	case <-s.ending:
		return nil
	default:
	}
	if err == grpc.ErrServerStopped {
		return nil // Close came first
	}
	return err
}

// Close implements door.Door. It breaks the connections of running calls, which clients report as UNAVAILABLE.
func (s *Server) Close() error {
	err := s.peers.Close()
	s.server.Stop()
	s.background.Wait()
	return err
}

// End ends the door from inside: the door accepts no further calls, and Ending is closed. Serve returns nil when
// running calls have been answered, or after five seconds. Handlers may call End, also several times.
func (s *Server) End() {
	s.once.Do(func() {
		close(s.ending)
		s.background.Go(func() {
			late := time.AfterFunc(farewell, func() { s.peers.Close() })
			defer late.Stop()
			s.server.GracefulStop()
		})
	})
}

// Ending is closed when the door ends by itself.
func (s *Server) Ending() <-chan struct{} { return s.ending }

// Info implements door.Door.
func (s *Server) Info(add func(field, value string)) {
	add("calls", strconv.FormatInt(s.calls.Load(), 10))
	add("calls_failed", strconv.FormatInt(s.failed.Load(), 10))
	add("calls_active", strconv.FormatInt(s.active.Load(), 10))
}

// tap refuses calls of a peer that is not admitted, before memory for the first message is allocated.
func (s *Server) tap(ctx context.Context, _ *tap.Info) (context.Context, error) {
	p := PeerOf(ctx)
	p.Conn.Requested()
	if p.Conn.Client.Admitted() {
		return ctx, nil
	}
	s.calls.Add(1)
	s.failed.Add(1)
	if p.refused++; p.refused >= maxRefused { // grpc keeps some memory for each until the connection ends
		p.Conn.Close()
	}
	return nil, errStranger
}

// unary wraps every call with one request and one response.
func (s *Server) unary(ctx context.Context, request any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (
	response any, err error,
) {
	err = s.call(ctx, info.FullMethod, func() error {
		response, err = handle(ctx, request)
		return err
	})
	if err != nil {
		return nil, err
	}
	return response, nil
}

// stream wraps every other call.
func (s *Server) stream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	return s.call(stream.Context(), info.FullMethod, func() error { return handle(srv, stream) })
}

// call counts a call, converts its error into a status, and recovers from a panic.
func (s *Server) call(ctx context.Context, method string, handle func() error) (err error) {
	s.calls.Add(1)
	s.active.Add(1)
	defer s.active.Add(-1)
	defer func() {
		if v := recover(); v != nil {
			s.panicked(PeerOf(ctx), method, v)
			err = status.Error(codes.Internal, "internal error")
		}
		if err != nil {
			s.failed.Add(1)
			err = Status(err)
		}
	}()
	select {
	case <-s.ending:
		return ErrEnding
	default:
		return handle()
	}
}

// panicked logs a panic.
func (s *Server) panicked(p *Peer, method string, v any) {
	s.options.Host.Log().Error("a call of gRPC has panicked", "method", method, "peer", p.Conn.RemoteAddr().String(),
		"panic", v, "stack", string(debug.Stack()))
}

// Peer is a connection with clients for its calls.
type Peer struct {
	*door.Pool
	// Conn is the connection. Its Client is one of the pool.
	Conn    *door.Conn
	server  *Server
	refused int // calls that tap has refused; only the goroutine that reads from the connection uses it
}

// PeerOf returns the peer of a call. ctx is the handler's context, or derived from it.
func PeerOf(ctx context.Context) *Peer {
	p, _ := peer.FromContext(ctx)
	return p.AuthInfo.(identity).peer
}

// Go calls a function on a goroutine, and closes the channel done when the function has returned. Only handlers may
// call Go, and they must wait for done, except to end a Send or a Recv in the function by returning. A panic in the
// function closes the connection, and affects no other.
func (p *Peer) Go(fn func()) (done <-chan struct{}) {
	ended := make(chan struct{})
	p.server.background.Go(func() {
		defer close(ended)
		defer func() {
			if v := recover(); v != nil {
				p.server.panicked(p, "", v)
				p.Conn.Close()
			}
		}()
		fn()
	})
	return ended
}

// shaker does the handshake with a peer, and attaches the Peer to its calls.
type shaker struct {
	credentials.TransportCredentials // nil without credentials
	server                           *Server
}

// ServerHandshake implements credentials.TransportCredentials.
func (s *shaker) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	c := raw.(*door.Conn)
	id := identity{&Peer{Pool: door.NewPool(c.Client, s.server.options.Calls+1), Conn: c, server: s.server}}
	if s.TransportCredentials == nil {
		return raw, id, nil
	}
	conn, _, err := s.TransportCredentials.ServerHandshake(raw)
	return conn, id, err
}

// identity attaches a Peer to its connection.
type identity struct{ peer *Peer }

// AuthType implements credentials.AuthInfo.
func (identity) AuthType() string { return "door" }
