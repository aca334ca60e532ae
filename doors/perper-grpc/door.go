// Package perpergrpc is the door for agents of Perper Fabric. It translates the Fabric's gRPC service and KEDA's
// external scaler into the commands of internal/protocols/perper. It holds no data. docs/perper.md describes it.
//
// A call that waits for one event is a blocking command. A call without end subscribes to the channel of changes, reads
// the present state, and then sends later changes.
package perpergrpc

import (
	"context"
	"errors"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/atomredis/atomredis/doors/door"
	"github.com/atomredis/atomredis/doors/internal/rpc"
	"github.com/atomredis/atomredis/internal/wire/externalscaler"
	"github.com/atomredis/atomredis/internal/wire/fabric"
	"github.com/atomredis/atomredis/resp"
)

func init() {
	door.Register(door.Kind{
		Name: "perper-grpc", Port: 40400,
		New: func(h door.Host) (door.Door, error) { return newDoor(h), nil },
		TLS: true,
	})
}

// Limits of a peer.
const (
	maxMessage = 1 << 20 // requests are small
	maxCalls   = 1 << 14 // agents have many waiting calls
)

func newDoor(h door.Host) *rpc.Server {
	return rpc.New(rpc.Options{Host: h, Message: maxMessage, Calls: maxCalls}, func(s *grpc.Server) {
		fabric.RegisterFabricServer(s, service{})
		externalscaler.RegisterExternalScalerServer(s, scaler{})
		healthpb.RegisterHealthServer(s, health.NewServer())
		reflection.Register(s)
	})
}

// service is the service of the Fabric.
type service struct {
	fabric.UnimplementedFabricServer
}

// do executes a command for the peer of a call.
func do(ctx context.Context, args ...any) (resp.Reply, error) {
	reply, err := rpc.PeerOf(ctx).Do(ctx, args...)
	return reply, statusOf(err)
}

// statusOf converts errors that package rpc does not know.
func statusOf(err error) error {
	var refused resp.Error
	if errors.As(err, &refused) && strings.HasPrefix(refused.Error(), "NOCACHE ") {
		return status.Error(codes.NotFound, "the cache does not exist")
	}
	return err
}

// subscribe subscribes to a channel. The subscription is active when it returns.
func subscribe(ctx context.Context, channels ...string) (*door.Subscription, error) {
	p := rpc.PeerOf(ctx)
	c, err := p.Get()
	if err != nil {
		return nil, err
	}
	defer p.Put(c)
	return c.Subscribe(ctx, channels...)
}

// ExecutionFinished implements fabric.FabricServer.
func (service) ExecutionFinished(ctx context.Context, r *fabric.ExecutionFinishedRequest) (*emptypb.Empty, error) {
	if _, err := do(ctx, "PERPER.WAIT", r.Execution); err != nil {
		return nil, err
	}
	return &emptypb.Empty{}, nil
}

// ListenerAttached implements fabric.FabricServer.
func (service) ListenerAttached(ctx context.Context, r *fabric.ListenerAttachedRequest) (*emptypb.Empty, error) {
	if _, err := do(ctx, "PERPER.ATTACHED", r.Stream); err != nil {
		return nil, err
	}
	return &emptypb.Empty{}, nil
}

// outbox sends the messages of a call on its own goroutine, so that a peer that does not read blocks only this
// goroutine.
type outbox[T any] struct {
	ctx      context.Context
	messages chan *T
	sub      *door.Subscription
}

// outboxSize is how many messages may wait here for the peer. Beyond it, client-output-buffer-limit limits the
// subscription.
const outboxSize = 64

// newOutbox returns an outbox for a call with a subscription. close ends both.
func newOutbox[T any](out grpc.ServerStreamingServer[T], sub *door.Subscription) *outbox[T] {
	o := &outbox[T]{ctx: out.Context(), messages: make(chan *T, outboxSize), sub: sub}
	rpc.PeerOf(o.ctx).Go(func() {
		for m := range o.messages {
			if out.Send(m) != nil { // the call has ended
				return
			}
		}
	})
	return o
}

// errLost says that the subscription has ended; outbox.why returns the reason.
var errLost = errors.New("the subscription has ended")

// send queues a message. It blocks while the queue is full. The error is errLost, or that of the call.
func (o *outbox[T]) send(m *T) error {
	select {
	case o.messages <- m:
		return nil
	case <-o.ctx.Done():
		return o.ctx.Err()
	case <-o.sub.Done():
		return errLost
	}
}

// why returns the reason for errLost: too many unread messages, or CLIENT KILL. It returns other errors unchanged.
func (o *outbox[T]) why(err error) error {
	for err == errLost {
		if _, lost := o.sub.Next(o.ctx); lost != nil {
			err = lost
		}
	}
	return err
}

// close ends the outbox, when the call ends.
func (o *outbox[T]) close() {
	o.sub.Close()
	close(o.messages)
}
