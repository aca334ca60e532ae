package perpergrpc

import (
	"context"
	"strconv"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/atomredis/atomredis/doors/door"
	"github.com/atomredis/atomredis/internal/protocols/perper/keys"
	"github.com/atomredis/atomredis/internal/wire/externalscaler"
)

// scaler is the external scaler of KEDA: it reports the number of instances and executions of an agent.
type scaler struct {
	externalscaler.UnimplementedExternalScalerServer
}

// Keys in the metadata of a scaled object.
const (
	agentMetadata            = "agent"
	targetInstancesMetadata  = "targetInstances"
	targetExecutionsMetadata = "targetExecutions"
)

// agentOf returns the agent that an object scales.
func agentOf(r *externalscaler.ScaledObjectRef) string {
	if agent, ok := r.GetScalerMetadata()[agentMetadata]; ok {
		return agent
	}
	return r.GetName()
}

// load returns the numbers of instances and executions of an agent, including finished ones.
func load(ctx context.Context, agent string) (instances, executions int64, err error) {
	reply, err := do(ctx, "PERPER.AGENT", agent)
	if err != nil {
		return 0, 0, err
	}
	fields, err := reply.Map()
	if err != nil {
		return 0, 0, err
	}
	if instances, err = fields["instances"].Int(); err != nil {
		return 0, 0, err
	}
	executions, err = fields["executions"].Int()
	return instances, executions, err
}

// IsActive implements externalscaler.ExternalScalerServer.
func (scaler) IsActive(ctx context.Context, r *externalscaler.ScaledObjectRef) (*externalscaler.IsActiveResponse, error) {
	instances, executions, err := load(ctx, agentOf(r))
	if err != nil {
		return nil, err
	}
	return &externalscaler.IsActiveResponse{Result: instances > 0 || executions > 0}, nil
}

// calm is how long the state must be stable before StreamIsActive reports it.
const calm = 100 * time.Millisecond

// StreamIsActive implements externalscaler.ExternalScalerServer.
func (scaler) StreamIsActive(
	r *externalscaler.ScaledObjectRef, out grpc.ServerStreamingServer[externalscaler.IsActiveResponse],
) error {
	ctx, agent := out.Context(), agentOf(r)
	sub, err := subscribe(ctx, keys.Agent(agent), keys.Instances(agent))
	if err != nil {
		return err
	}
	box := newOutbox(out, sub)
	defer box.close()
	return box.why(tellActive(ctx, agent, sub, box))
}

func tellActive(ctx context.Context, agent string, sub *door.Subscription,
	box *outbox[externalscaler.IsActiveResponse],
) error {
	active, told, changed := false, false, time.Now()
	for {
		instances, executions, err := load(ctx, agent)
		if err != nil {
			return err
		}
		if now := instances > 0 || executions > 0; now != active {
			active, told, changed = now, false, time.Now()
		}
		wait, stop := context.WithCancel(ctx)
		if !told {
			wait, stop = context.WithDeadline(ctx, changed.Add(calm))
		}
		_, err = sub.Next(wait)
		stop()
		switch {
		case err == nil:
		case told || ctx.Err() != nil || wait.Err() == nil:
			return err
		default:
			told = true
			if err := box.send(&externalscaler.IsActiveResponse{Result: active}); err != nil {
				return err
			}
		}
	}
}

// GetMetricSpec implements externalscaler.ExternalScalerServer.
func (scaler) GetMetricSpec(
	_ context.Context, r *externalscaler.ScaledObjectRef,
) (*externalscaler.GetMetricSpecResponse, error) {
	out := &externalscaler.GetMetricSpecResponse{}
	for _, m := range []struct{ metric, target string }{
		{instancesMetric(agentOf(r)), targetInstancesMetadata}, {executionsMetric(agentOf(r)), targetExecutionsMetadata},
	} {
		text, ok := r.GetScalerMetadata()[m.target]
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, status.Errorf(codes.InvalidArgument, "%s is not a number", m.target)
		}
		out.MetricSpecs = append(out.MetricSpecs, &externalscaler.MetricSpec{MetricName: m.metric, TargetSize: n})
	}
	return out, nil
}

func instancesMetric(agent string) string  { return agent + "-instances" }
func executionsMetric(agent string) string { return agent + "-executions" }

// GetMetrics implements externalscaler.ExternalScalerServer.
func (scaler) GetMetrics(ctx context.Context, r *externalscaler.GetMetricsRequest) (*externalscaler.GetMetricsResponse, error) {
	agent := agentOf(r.GetScaledObjectRef())
	instances, executions, err := load(ctx, agent)
	if err != nil {
		return nil, err
	}
	return &externalscaler.GetMetricsResponse{MetricValues: []*externalscaler.MetricValue{
		{MetricName: instancesMetric(agent), MetricValue: instances},
		{MetricName: executionsMetric(agent), MetricValue: executions},
	}}, nil
}
