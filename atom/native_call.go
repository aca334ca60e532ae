package atom

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// caller sends commands with ATOM.CALL, which spares the round trips for the acknowledgement and the response but
// occupies a connection for as long as it waits. So only a part of the pool may be occupied; other calls go through
// the inbox.
type caller struct {
	client *redis.Client // shares the pool of the element's client, but waits for replies without a limit
	room   chan struct{} // holds one for each call that is under way
}

const (
	// poolShare is which part of the pool calls may occupy: loops, workers and everything else need connections too.
	poolShare = 4
	// maxCalls is how many calls may be under way at most: with many at once the shared reader of the inbox is as fast.
	maxCalls = 4
)

// checkInterval is after how long without a reply the server is asked whether it is there at all.
const checkInterval = 10 * time.Second

// newCaller returns nil if the client is of a kind that cannot wait without a limit.
func newCaller(client redis.UniversalClient) *caller {
	c, ok := client.(*redis.Client)
	if !ok {
		return nil
	}
	return &caller{c.WithTimeout(0), make(chan struct{}, min(max(c.Options().PoolSize/poolShare, 1), maxCalls))}
}

// callCmd is a command that is not sent again if the connection breaks: the element may have it already.
type callCmd struct{ *redis.Cmd }

// NoRetry implements redis.Cmder.
func (callCmd) NoRetry() bool { return true }

// call sends a command and returns the response, or as an error the code of what did not come in time. ok is false,
// and nothing has happened, if the command must be sent in the other way.
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
	// The call itself cannot be taken back. If the context ends it goes on by itself, at the longest until the client is
	// closed.
	patient := context.WithoutCancel(ctx)
	cmd := callCmd{redis.NewCmd(patient, "atom.call", element, command, "data", data, "from", from,
		"timeout", milliseconds(ackTimeout))}
	answered := make(chan struct{})
	go func() {
		_ = p.caller.client.Process(patient, cmd) // cmd has the error
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
	case "NOELEMENT": // it may come up while we wait
		return packet{}, false, nil
	}
	if isUnknownCommand(err) {
		p.commands.state.Store(nativeAbsent)
		return packet{}, false, nil
	}
	return packet{}, true, err
}

// responsePacket makes of the reply to ATOM.CALL the packet that the element has sent.
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
