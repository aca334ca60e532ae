package perpergrpc

import (
	"context"
	"encoding/json"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/atomredis/atomredis/doors/door"
	"github.com/atomredis/atomredis/doors/internal/rpc"
	"github.com/atomredis/atomredis/internal/protocols/perper/event"
	"github.com/atomredis/atomredis/internal/protocols/perper/keys"
	"github.com/atomredis/atomredis/internal/wire/fabric"
	"github.com/atomredis/atomredis/resp"
)

// filterArgs appends the agent and the arguments that select executions.
func filterArgs(args []any, r *fabric.ExecutionsRequest) []any {
	args = append(args, r.GetAgent())
	if r.GetInstance() != "" {
		args = append(args, "INSTANCE", r.Instance)
	}
	if r.GetDelegate() != "" {
		args = append(args, "DELEGATE", r.Delegate)
	}
	return args
}

// valid replaces invalid UTF-8, which gRPC messages cannot contain.
func valid(s string) string { return strings.ToValidUTF8(s, "�") }

// response returns the message of an execution.
func response(id, instance, delegate string) *fabric.ExecutionsResponse {
	return &fabric.ExecutionsResponse{Execution: valid(id), Instance: valid(instance), Delegate: valid(delegate)}
}

// responses returns the executions in a reply.
func responses(list resp.Reply) ([]*fabric.ExecutionsResponse, error) {
	all, err := list.Slice()
	if err != nil {
		return nil, err
	}
	out := make([]*fabric.ExecutionsResponse, len(all))
	for i, r := range all {
		e, err := r.Texts()
		if err != nil {
			return nil, err
		}
		out[i] = response(e[0], e[1], e[2])
	}
	return out, nil
}

// AllExecutions implements fabric.FabricServer.
func (service) AllExecutions(ctx context.Context, r *fabric.ExecutionsRequest) (*fabric.AllExecutionsResponse, error) {
	list, err := do(ctx, filterArgs([]any{"PERPER.EXECUTIONS"}, r)...)
	if err != nil {
		return nil, err
	}
	all, err := responses(list)
	return &fabric.AllExecutionsResponse{Executions: all}, err
}

// Executions implements fabric.FabricServer.
func (service) Executions(r *fabric.ExecutionsRequest, out grpc.ServerStreamingServer[fabric.ExecutionsResponse]) error {
	ctx := out.Context()
	sub, err := subscribe(ctx, keys.Agent(r.Agent))
	if err != nil {
		return err
	}
	box := newOutbox(out, sub)
	defer box.close()
	return box.why(sendExecutions(ctx, r, sub, box))
}

func sendExecutions(ctx context.Context, r *fabric.ExecutionsRequest, sub *door.Subscription,
	box *outbox[fabric.ExecutionsResponse],
) error {
	reply, err := do(ctx, append(filterArgs([]any{"PERPER.EXECUTIONS"}, r), "WITHSERIAL")...)
	if err != nil {
		return err
	}
	serial, list, err := withSerial(reply)
	if err != nil {
		return err
	}
	sent := map[string]bool{}
	for _, e := range list {
		sent[e.Execution] = true
		if err := box.send(e); err != nil {
			return err
		}
	}
	if err := box.send(&fabric.ExecutionsResponse{StartOfStream: true}); err != nil {
		return err
	}
	for {
		e, err := nextEvent(ctx, sub)
		if err != nil {
			return err
		}
		m := response(e.Execution, e.Instance, e.Delegate)
		known := sent[m.Execution]
		switch {
		case e.Serial <= serial:
			continue
		case e.Kind == event.ExecutionCreated && !known && matches(r, e):
			sent[m.Execution] = true
		case e.Kind == event.ExecutionRemoved && known:
			delete(sent, m.Execution)
			m.Cancelled = true
		default:
			continue
		}
		if err := box.send(m); err != nil {
			return err
		}
	}
}

// withSerial reads a reply of PERPER.EXECUTIONS with WITHSERIAL.
func withSerial(reply resp.Reply) (serial int64, list []*fabric.ExecutionsResponse, err error) {
	parts, err := reply.Slice()
	if err != nil {
		return 0, nil, err
	}
	if serial, err = parts[0].Int(); err != nil {
		return 0, nil, err
	}
	list, err = responses(parts[1])
	return serial, list, err
}

// matches reports whether the request selects an execution of its agent.
func matches(r *fabric.ExecutionsRequest, e event.Execution) bool {
	return (r.GetInstance() == "" || r.Instance == e.Instance) && (r.GetDelegate() == "" || r.Delegate == e.Delegate)
}

// nextEvent waits for the next event of the executions of an agent.
func nextEvent(ctx context.Context, sub *door.Subscription) (e event.Execution, err error) {
	for {
		m, err := sub.Next(ctx)
		if err != nil {
			return e, err
		}
		if json.Unmarshal([]byte(m.Payload), &e) == nil { // other clients may publish anything
			return e, nil
		}
	}
}

// ReserveExecution implements fabric.FabricServer.
func (service) ReserveExecution(r *fabric.ReserveExecutionRequest, out grpc.ServerStreamingServer[emptypb.Empty]) error {
	ctx := out.Context()
	p := rpc.PeerOf(ctx)
	c, err := p.Get()
	if err != nil {
		return err
	}
	defer p.Put(c)
	reply, err := c.Do(ctx, "PERPER.RESERVE", r.WorkGroup, r.Execution)
	if err != nil {
		return err
	}
	if got, err := reply.Bool(); err != nil || !got {
		return err
	}
	defer release(c, r.WorkGroup)
	if err := out.Send(&emptypb.Empty{}); err != nil {
		return err
	}
	<-ctx.Done()
	return ctx.Err()
}

// release ends a client's reservations in a group. If it fails, the client has ended, and its reservations with it.
func release(c *door.Client, group string) { c.Do(context.Background(), "PERPER.RELEASE", group) }
