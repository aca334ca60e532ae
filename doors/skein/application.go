package skein

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/atomredis/atomredis/doors/internal/rpc"
	"github.com/atomredis/atomredis/internal/protocols/skein/keys"
	pb "github.com/atomredis/atomredis/internal/wire/skein"
	"github.com/atomredis/atomredis/resp"
)

// The methods for containers and for the application itself.

// Suffixes of keys that only this door uses.
const (
	proxies  = ":proxies"  // a hash from routes to "target name"
	progress = ":progress" // a string, a number from 0 to 1
)

// GetContainers implements pb.AppMasterServer.
func (d *skein) GetContainers(ctx context.Context, r *pb.ContainersRequest) (*pb.ContainersResponse, error) {
	args := []any{"SKEIN.CONTAINER", "LIST", d.app()}
	for _, s := range r.States {
		name, ok := pb.Container_State_name[int32(s)]
		if !ok {
			return nil, invalid("Unknown state %d", s)
		}
		args = append(args, "STATE", name)
	}
	for _, service := range r.Services {
		args = append(args, "SERVICE", service)
	}
	return containers(d.do(ctx, args...))
}

// AddContainer implements pb.AppMasterServer. It ignores the environment, because the door starts no process.
func (d *skein) AddContainer(ctx context.Context, r *pb.AddContainerRequest) (*pb.Container, error) {
	reply, err := d.do(ctx, "SKEIN.CONTAINER", "ADD", d.app(), r.ServiceName)
	if err != nil {
		return nil, err
	}
	return container(reply)
}

// Scale implements pb.AppMasterServer.
func (d *skein) Scale(ctx context.Context, r *pb.ScaleRequest) (*pb.ContainersResponse, error) {
	return containers(d.do(ctx, "SKEIN.CONTAINER", "SCALE", d.app(), r.ServiceName, "COUNT", r.Count, "DELTA", r.Delta))
}

// KillContainer implements pb.AppMasterServer.
func (d *skein) KillContainer(ctx context.Context, r *pb.ContainerInstance) (*pb.Empty, error) {
	_, err := d.do(ctx, "SKEIN.CONTAINER", "KILL", d.app(), containerID(r))
	return &pb.Empty{}, err
}

// containers reads a reply with several containers.
func containers(reply resp.Reply, err error) (*pb.ContainersResponse, error) {
	if err != nil {
		return nil, err
	}
	list, err := reply.Slice()
	if err != nil {
		return nil, err
	}
	response := &pb.ContainersResponse{Containers: make([]*pb.Container, len(list))}
	for i, one := range list {
		if response.Containers[i], err = container(one); err != nil {
			return nil, err
		}
	}
	return response, nil
}

// container reads a reply with one container.
func container(reply resp.Reply) (*pb.Container, error) {
	fields, err := reply.Map()
	if err != nil {
		return nil, err
	}
	word := func(name string) string {
		s, failed := fields[name].Text()
		if err == nil {
			err = failed
		}
		return s
	}
	number := func(name string) int64 {
		n, failed := fields[name].Int()
		if err == nil {
			err = failed
		}
		return n
	}
	return &pb.Container{
		ServiceName: text(word("service")), Instance: int32(number("instance")),
		State:     pb.Container_State(pb.Container_State_value[word("state")]),
		StartTime: number("start"), FinishTime: number("finish"), ExitMessage: text(word("message")),
	}, err
}

// GetApplicationSpec implements pb.AppMasterServer. It only has the name; the fields for YARN are empty.
func (d *skein) GetApplicationSpec(context.Context, *pb.Empty) (*pb.ApplicationSpec, error) {
	return &pb.ApplicationSpec{Name: d.app()}, nil
}

// SetProgress implements pb.AppMasterServer.
func (d *skein) SetProgress(ctx context.Context, r *pb.SetProgressRequest) (*pb.Empty, error) {
	number := strconv.FormatFloat(float64(r.Progress), 'f', -1, 32)
	if !(r.Progress >= 0 && r.Progress <= 1) {
		if !strings.Contains(number, ".") {
			number += ".0" // as Java writes it
		}
		return nil, invalid("progress must be between 0 and 1, got %s", number)
	}
	_, err := d.do(ctx, "SET", keys.Of(d.app(), progress), number)
	return &pb.Empty{}, err
}

// Shutdown implements pb.AppMasterServer. The door ends after the answer. With skein-shutdown server the server ends
// too, and the peer's user needs the permission for that.
func (d *skein) Shutdown(ctx context.Context, r *pb.ShutdownRequest) (*pb.Empty, error) {
	final, ok := pb.FinalStatus_Type_name[int32(r.FinalStatus)]
	if !ok {
		return nil, invalid("Unknown status %d", r.FinalStatus)
	}
	message := r.Diagnostics
	if message == "" {
		message = "Shutdown requested by user."
	}
	if d.endsServer() {
		if err := rpc.PeerOf(ctx).Permitted("SHUTDOWN"); err != nil {
			return nil, err
		}
	}
	if _, err := d.do(ctx, "SKEIN.FINISH", d.app(), final, message); err != nil {
		return nil, err
	}
	return &pb.Empty{}, nil
}

// AddProxy implements pb.AppMasterServer.
func (d *skein) AddProxy(ctx context.Context, r *pb.Proxy) (*pb.Empty, error) {
	reply, err := d.do(ctx, "HSETNX", keys.Of(d.app(), proxies), r.Route, r.Target+" "+r.LinkName)
	if err != nil {
		return nil, err
	}
	if n, err := reply.Int(); err != nil || n == 0 {
		return nil, status.Errorf(codes.AlreadyExists, "Proxy '%s' already exists", r.Route)
	}
	return &pb.Empty{}, nil
}

// RemoveProxy implements pb.AppMasterServer.
func (d *skein) RemoveProxy(ctx context.Context, r *pb.RemoveProxyRequest) (*pb.Empty, error) {
	reply, err := d.do(ctx, "HDEL", keys.Of(d.app(), proxies), r.Route)
	if err != nil {
		return nil, err
	}
	if n, err := reply.Int(); err != nil || n == 0 {
		return nil, status.Errorf(codes.NotFound, "Proxy '%s' doesn't exist", r.Route)
	}
	return &pb.Empty{}, nil
}

// GetProxies implements pb.AppMasterServer.
func (d *skein) GetProxies(ctx context.Context, _ *pb.GetProxiesRequest) (*pb.GetProxiesResponse, error) {
	reply, err := d.do(ctx, "HGETALL", keys.Of(d.app(), proxies))
	if err != nil {
		return nil, err
	}
	fields, err := reply.Map()
	if err != nil {
		return nil, err
	}
	response := new(pb.GetProxiesResponse)
	for _, route := range slices.Sorted(maps.Keys(fields)) {
		value, err := fields[route].Text()
		if err != nil {
			return nil, err
		}
		target, name, _ := strings.Cut(value, " ")
		response.Proxy = append(response.Proxy, &pb.Proxy{Route: text(route), Target: text(target), LinkName: text(name)})
	}
	return response, nil
}

// UiInfo implements pb.AppMasterServer. The door has no web pages.
func (d *skein) UiInfo(context.Context, *pb.UIInfoRequest) (*pb.UIInfoResponse, error) {
	return &pb.UIInfoResponse{}, nil
}
