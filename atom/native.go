package atom

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// nativeCommands is whether the server has the ATOM commands of atomredis, which do in one step what takes several of
// the commands that Redis has.
type nativeCommands struct{ state atomic.Int32 }

const (
	nativeUnknown int32 = iota
	nativePresent
	nativeAbsent
)

// native runs a command of atomredis. ok is false, and nothing has happened, if the server does not have such
// commands, or if it cannot tell: what is done instead then shows what is wrong.
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

// isUnknownCommand reports whether another server has taken the place of the one that has said what it knows.
func isUnknownCommand(err error) bool {
	return err != nil && strings.HasPrefix(err.Error(), "ERR unknown command")
}

// hasCommands reports whether the server has the commands, as far as is known.
func (p *protocol) hasCommands(ctx context.Context) bool {
	if p.commands.state.Load() == nativeUnknown {
		p.askForCommands(ctx)
	}
	return p.commands.state.Load() == nativePresent
}

// askForCommands asks the server whether it has the commands. An error is forgotten, so that it is asked again.
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

// eachPair goes through a reply that is a map, in either version of the client's protocol.
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
