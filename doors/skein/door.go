// Package skein is the door for clients of Skein's application master. It translates gRPC over mutual TLS into the
// commands of internal/protocols/skein. It holds no data. docs/skein.md describes it.
package skein

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/atomredis/atomredis/doors/door"
	"github.com/atomredis/atomredis/doors/internal/rpc"
	"github.com/atomredis/atomredis/internal/protocols/skein/keys"
	pb "github.com/atomredis/atomredis/internal/wire/skein"
	"github.com/atomredis/atomredis/resp"
)

func init() {
	door.Register(door.Kind{
		Name: "skein", Port: 5560, Authenticates: true,
		New: func(h door.Host) (door.Door, error) { return newDoor(h) },
		Directives: []door.Directive{
			{Name: "skein-application", Default: "skein", Check: checkApplication},
			{Name: "skein-cert"},
			{Name: "skein-key"},
			{Name: "skein-services", Check: checkServices},
			{Name: "skein-shutdown", Default: "door", Check: checkShutdown},
		},
	})
}

func checkApplication(value string) error {
	if value == "" || strings.ContainsAny(value, "{}") {
		return errors.New("argument must be the name of an application, without braces")
	}
	return nil
}

func checkServices(value string) error {
	_, err := parseServices(value)
	return err
}

func checkShutdown(value string) error {
	if value != "door" && value != "server" {
		return errors.New("argument must be one of the following: door, server")
	}
	return nil
}

// service is a service of skein-services, which runs from the start.
type service struct {
	name  string
	count int
}

// parseServices reads the value of skein-services.
func parseServices(value string) (list []service, err error) {
	if value == "" {
		return nil, nil
	}
	for part := range strings.SplitSeq(value, ",") {
		name, number, _ := strings.Cut(part, "=")
		count, err := strconv.Atoi(number)
		if err != nil || name == "" || count < 0 || count > 10_000 {
			return nil, errors.New("argument must be a list of services and how many containers they have: name=count,...")
		}
		list = append(list, service{name, count})
	}
	return list, nil
}

// skein is the door.
type skein struct {
	*rpc.Server
	pb.UnsafeAppMasterServer // skein implements all methods
	host                     door.Host
	nextWatch                atomic.Int32 // the ID of the next watch
	watches, streams         atomic.Int64 // gauges
}

func newDoor(h door.Host) (*skein, error) {
	s, err := newSecrets(h)
	if err != nil {
		return nil, err
	}
	d := &skein{host: h}
	o := rpc.Options{Host: h, Credentials: credentials.NewTLS(s.config())}
	d.Server = rpc.New(o, func(s *grpc.Server) { pb.RegisterAppMasterServer(s, d) })
	return d, nil
}

// Serve implements door.Door. It starts the containers of skein-services before it accepts peers. The door ends when
// any client executes SKEIN.FINISH for its application.
func (d *skein) Serve(l net.Listener) error {
	if err := d.startServices(); err != nil && !errors.Is(err, door.ErrClosed) {
		d.host.Log().Warn("the containers of skein-services do not run", "error", err.Error())
	}
	err := d.Server.Serve(l)
	select {
	case <-d.Ending():
		d.ended()
	default:
	}
	return err
}

// startServices starts containers of services without any.
func (d *skein) startServices() error {
	list, err := parseServices(d.host.Setting("skein-services"))
	if err != nil || len(list) == 0 {
		return err
	}
	c, err := d.host.OwnClient()
	if err != nil {
		return err
	}
	defer c.Close()
	for _, s := range list {
		if err := startService(&c, d.app(), s); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}

func startService(c *door.Client, app string, s service) error {
	ctx := context.Background()
	if _, err := c.Do(ctx, "SKEIN.CONTAINER", "SERVICE", app, s.name, s.count); err != nil {
		return err
	}
	reply, err := c.Do(ctx, "SKEIN.CONTAINER", "LIST", app, "SERVICE", s.name)
	if err != nil {
		return err
	}
	if active, err := reply.Slice(); err != nil || len(active) > 0 {
		return err
	}
	for range s.count {
		if _, err := c.Do(ctx, "SKEIN.CONTAINER", "RUN", app, s.name); err != nil {
			return err
		}
	}
	return nil
}

// ended is called after the application was finished and the peer was answered. It ends the server with the permissions
// of the door's user: a client that may finish the application may not be allowed to end the server.
func (d *skein) ended() {
	d.host.Log().Info("the application has finished, and with it the door for skein")
	if !d.endsServer() {
		return
	}
	own := door.Peer{Addr: "@door-skein:0", Local: "@door-skein:0"}
	c, err := d.host.Client(own)
	if err == nil {
		_, err = c.Do(context.Background(), "SHUTDOWN")
		c.Close()
	}
	if err != nil && !errors.Is(err, door.ErrClosed) && !errors.Is(err, door.ErrKilled) {
		d.host.Log().Error("the server could not be ended with its application of skein", "error", err.Error())
	}
}

// endsServer reports whether the server ends with the application.
func (d *skein) endsServer() bool { return d.host.Setting("skein-shutdown") == "server" }

// Info implements door.Door.
func (d *skein) Info(add func(field, value string)) {
	d.Server.Info(add)
	add("watch_streams", strconv.FormatInt(d.streams.Load(), 10))
	add("watches", strconv.FormatInt(d.watches.Load(), 10))
}

// app returns the name of the door's application.
func (d *skein) app() string { return d.host.Setting("skein-application") }

// do executes a command for the peer of a call.
func (d *skein) do(ctx context.Context, args ...any) (resp.Reply, error) {
	reply, err := rpc.PeerOf(ctx).Do(ctx, args...)
	var refused resp.Error
	if errors.As(err, &refused) {
		if text, ok := strings.CutPrefix(refused.Error(), keys.Invalid); ok {
			return reply, status.Error(codes.InvalidArgument, text)
		}
		if text, ok := strings.CutPrefix(refused.Error(), keys.Precondition); ok {
			return reply, status.Error(codes.FailedPrecondition, text)
		}
	}
	return reply, err
}

// invalid returns the status of a malformed request.
func invalid(format string, args ...any) error {
	return status.Errorf(codes.InvalidArgument, format, args...)
}
