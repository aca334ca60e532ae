// Package rpc serves gRPC behind the seam of package door. It knows no protocol; a door registers its services and
// translates their calls.
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
// Calls of a peer whose client is not admitted are refused before their messages are received.
//
// Every connection is a client of the server, and every call of it has a [Peer]: the connection with a pool of clients,
// so that calls may block beside each other. A handler returns the error of a command as it is, and its peer gets the
// status of [Status]; handlers with words of their own return errors of package status.
//
// A call ends when its context does: the peer has cancelled it or gone, its client was killed, or the door is closed.
// Handlers must return soon after that, with the goroutines that they have begun; [Peer.Go] begins those. A handler that
// waits for long, as that of a stream does, ends with [ErrEnding] when Ending is closed. One that sends must not rely on
// a peer that reads: Send waits for as long as the connection lasts. A handler that returns ends a Send, or a Recv, that
// waits in another goroutine.
//
// A panic in a handler is a bug, of which the log tells. Its call ends with INTERNAL, and nobody else notices.
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

// Options say how a Server serves. What is zero has a default.
type Options struct {
	// Host makes the clients.
	Host door.Host
	// Credentials do the handshake with a peer. Without them there is none: HTTP/2 in the clear, or over the TLS of the
	// directive door-<name>-tls, to which peers must come without ALPN.
	Credentials credentials.TransportCredentials
	// Message is how many bytes a message of a peer may have, 64 MiB by default.
	Message int
	// Calls is how many calls a peer may have at the same time, 1024 by default. Further ones wait.
	Calls int
}

// Limits of a peer, beside those of messages and calls.
const (
	headers          = 16 << 10 // bytes of the headers of a call
	handshake        = 10 * time.Second
	quiet            = 30 * time.Second // after which a peer is asked whether it is there
	keepaliveTimeout = 20 * time.Second // for its answer
	pings            = time.Second      // between those that it may send
	farewell         = 5 * time.Second  // for calls to end when the door ends by itself
	// maxRefused is how many calls a peer may try that is not admitted.
	maxRefused = 64
)

// ErrEnding is the status of calls that end because the door does.
var ErrEnding = status.Error(codes.Unavailable, "the server is closed")

// errStranger is the status of calls of peers who act as a user that needs a password: the protocols have no place for it.
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

// New returns a server that has not begun to serve. register registers its services; it may be called only here.
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
		return nil // Close was faster
	}
	return err
}

// Close implements door.Door. Calls that go on see their connection break, which clients take for UNAVAILABLE.
func (s *Server) Close() error {
	err := s.peers.Close()
	s.server.Stop()
	s.background.Wait()
	return err
}

// End ends the door from inside: no further calls are accepted, Ending is closed, and Serve returns nil once those that
// go on have ended and their peers have been answered, or after five seconds. It may be called by handlers, and several
// times.
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

// tap refuses a call of a peer that may do nothing before its first message is received, for which there would be memory.
func (s *Server) tap(ctx context.Context, _ *tap.Info) (context.Context, error) {
	p := PeerOf(ctx)
	p.Conn.Requested()
	if p.Conn.Client.Admitted() {
		return ctx, nil
	}
	s.calls.Add(1)
	s.failed.Add(1)
	if p.refused++; p.refused >= maxRefused { // grpc keeps something of each until the connection ends
		p.Conn.Close()
	}
	return nil, errStranger
}

// unary is around every call with one request and one response.
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

// stream is around every other call.
func (s *Server) stream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	return s.call(stream.Context(), info.FullMethod, func() error { return handle(srv, stream) })
}

// call counts a call, makes a status of its error, and survives its panic.
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

// panicked tells the log of a panic.
func (s *Server) panicked(p *Peer, method string, v any) {
	s.options.Host.Log().Error("a call of gRPC has panicked", "method", method, "peer", p.Conn.RemoteAddr().String(),
		"panic", v, "stack", string(debug.Stack()))
}

// Peer is who calls: a connection, with clients for its calls.
type Peer struct {
	*door.Pool
	// Conn is the connection. Its Client is one of the pool.
	Conn    *door.Conn
	server  *Server
	refused int // calls that tap has refused; used by the goroutine that reads from the connection
}

// PeerOf returns the peer of a call. ctx is that of the handler, or made from it.
func PeerOf(ctx context.Context) *Peer {
	p, _ := peer.FromContext(ctx)
	return p.AuthInfo.(identity).peer
}

// Go calls a function in a goroutine. Only handlers call it, and they wait until the channel is closed, which it is
// when the function has returned; one that returns to end a Send or a Recv in the function need not. If the function
// panics its connection is closed, and nobody else suffers from it.
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

// shaker does the handshake with a peer, and tells its calls of it.
type shaker struct {
	credentials.TransportCredentials // nil if there are none
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

// identity is how a Peer is kept with its connection.
type identity struct{ peer *Peer }

// AuthType implements credentials.AuthInfo.
func (identity) AuthType() string { return "door" }
