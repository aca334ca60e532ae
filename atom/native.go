package atom

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// nativeCommands records whether the server has the ATOM commands of atomredis. Each replaces several commands of
// Redis.
type nativeCommands struct{ state atomic.Int32 }

const (
	nativeUnknown int32 = iota
	nativePresent
	nativeAbsent
)

// native runs an ATOM command. ok is false, and nothing has happened, if the server does not have it or gives no
// answer. The caller then uses the commands of Redis, which report what is wrong.
func (p *protocol) native(ctx context.Context, args ...any) (cmd *redis.Cmd, ok bool) {
	if !p.hasCommands(ctx) {
		return nil, false
	}
	cmd = p.client.Do(ctx, args...)
	if isUnknownCommand(cmd.Err()) {
		p.commands.state.Store(nativeAbsent)
		return nil, false
	}
	return cmd, true
}

// isUnknownCommand reports whether the server has no such command, because another server has replaced the one that was
// asked.
func isUnknownCommand(err error) bool {
	return err != nil && strings.HasPrefix(err.Error(), "ERR unknown command")
}

// hasCommands reports whether the server has the ATOM commands. It asks if that is unknown.
func (p *protocol) hasCommands(ctx context.Context) bool {
	if p.commands.state.Load() == nativeUnknown {
		p.askForCommands(ctx)
	}
	return p.commands.state.Load() == nativePresent
}

// askForCommands asks the server whether it has the ATOM commands. After an error it is asked again later.
func (p *protocol) askForCommands(ctx context.Context) {
	info, err := p.client.Do(ctx, "command", "info", "atom.next").Slice()
	switch {
	case err != nil || len(info) != 1:
	case info[0] == nil:
		p.commands.state.Store(nativeAbsent)
	default:
		p.commands.state.Store(nativePresent)
	}
}

// eachPair iterates over a map in a reply, in RESP2 or RESP3.
func eachPair(command string, reply any, each func(name string, value any)) error {
	switch r := reply.(type) {
	case map[any]any:
		for name, value := range r {
			text, _ := name.(string)
			each(text, value)
		}
	case []any:
		for i := 0; i+1 < len(r); i += 2 {
			text, _ := r[i].(string)
			each(text, r[i+1])
		}
	default:
		return fmt.Errorf("the server answers %s with %T", command, reply)
	}
	return nil
}
