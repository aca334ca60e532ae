package atom

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// caller sends commands with ATOM.CALL. This saves the round trips for the acknowledgement and the response, but
// occupies a connection while it waits. So calls may occupy only a part of the pool; others go through the inbox.
type caller struct {
	client *redis.Client // shares the pool of the element's client, but has no read timeout
	room   chan struct{} // has one element for each running call
}

const (
	// poolShare: calls may occupy 1/poolShare of the pool, because loops, workers and other operations need connections
	// too.
	poolShare = 4
	// maxCalls limits the running calls: with more, the shared reader of the inbox is as fast.
	maxCalls = 4
)

// checkInterval is the time without a reply after which the server gets a PING.
const checkInterval = 10 * time.Second

// newCaller returns nil if the client's type cannot wait without a limit.
func newCaller(client redis.UniversalClient) *caller {
	c, ok := client.(*redis.Client)
	if !ok {
		return nil
	}
	return &caller{c.WithTimeout(0), make(chan struct{}, min(max(c.Options().PoolSize/poolShare, 1), maxCalls))}
}

// callCmd is a command that is not sent again when the connection breaks: the element may have it already.
type callCmd struct{ *redis.Cmd }

// NoRetry implements redis.Cmder.
func (callCmd) NoRetry() bool { return true }

// call sends a command and returns the response. If that does not come in time, the error is NoAck or NoResponse. ok is
// false, and nothing has happened, if the command must go through the inbox.
func (p *protocol) call(ctx context.Context, from, element, command string, data []byte, ackTimeout time.Duration) (
	response packet, ok bool, err error,
) {
	if p.caller == nil || !p.hasCommands(ctx) {
		return packet{}, false, nil
	}
	select {
	case p.caller.room <- struct{}{}:
	default:
		return packet{}, false, nil
	}
	// The call itself cannot be cancelled. If the context ends, it continues in the background, at most until the
	// client is closed.
	patient := context.WithoutCancel(ctx)
	cmd := callCmd{redis.NewCmd(patient, "atom.call", element, command, "data", data, "from", from,
		"timeout", milliseconds(ackTimeout))}
	answered := make(chan struct{})
	go func() {
		_ = p.caller.client.Process(patient, cmd) // the error is in cmd
		<-p.caller.room
		close(answered)
	}()
	check := time.NewTicker(checkInterval)
	defer check.Stop()
	for {
		select {
		case <-answered:
			return p.callResult(cmd.Cmd)
		case <-ctx.Done():
			return packet{}, true, context.Cause(ctx)
		case <-check.C:
			if err := p.client.Ping(ctx).Err(); err != nil {
				return packet{}, true, err
			}
		}
	}
}

// callResult reads the reply to ATOM.CALL.
func (p *protocol) callResult(cmd *redis.Cmd) (response packet, ok bool, err error) {
	reply, err := cmd.Result()
	if err == nil {
		response, err = responsePacket(reply)
		return response, true, err
	}
	switch word, _, _ := strings.Cut(err.Error(), " "); word {
	case "NOACK":
		return packet{}, true, NoAck
	case "NORESPONSE":
		return packet{}, true, NoResponse
	case "NOELEMENT": // the element may come up during the wait
		return packet{}, false, nil
	}
	if isUnknownCommand(err) {
		p.commands.state.Store(nativeAbsent)
		return packet{}, false, nil
	}
	return packet{}, true, err
}

// responsePacket converts the reply to ATOM.CALL into the packet that the element has sent.
func responsePacket(reply any) (packet, error) {
	fields := map[string]any{}
	err := eachPair("ATOM.CALL", reply, func(name string, value any) {
		switch v := value.(type) {
		case string:
			fields[name] = v
		case int64:
			fields[name] = strconv.FormatInt(v, 10)
		}
	})
	return packet{XMessage: redis.XMessage{Values: fields}}, err
}
