package pressure

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// commands implements operations with the queue commands of atomredis; each is one atomic step.
type commands struct {
	connections
	name, prefix, id string
	policy           Policy
}

// hasCommands asks a server whether it has the queue commands.
func hasCommands(ctx context.Context, client redis.UniversalClient) (bool, error) {
	cmd := redis.NewSliceCmd(ctx, "command", "info", "pressure.put")
	err := client.Process(ctx, cmd)
	if isReply(err) {
		return false, nil // the server refuses to say
	}
	return len(cmd.Val()) == 1 && cmd.Val()[0] != nil, err
}

// run runs a command that does not wait.
func (q *commands) run(ctx context.Context, cmd redis.Cmder) error {
	return nativeError(q.client.Process(ctx, cmd))
}

// wait runs blocking commands until one succeeds. command makes each, given its timeout in ms; done reads its reply.
func (q *commands) wait(ctx context.Context, command func(ms int64) redis.Cmder, done func() (bool, error)) error {
	c := q.begin(ctx)
	defer c.end()
	return c.wait(ctx, nil, func(block time.Duration) (bool, error) {
		if err := c.do(command(milliseconds(block))); err != nil {
			return false, nativeError(err)
		}
		return done()
	})
}

// milliseconds rounds up, because 0 has a meaning of its own.
func milliseconds(d time.Duration) int64 { return int64((d + time.Millisecond - 1) / time.Millisecond) }

func (q *commands) create(ctx context.Context, bound int64) error {
	args := []any{"pressure.create", q.name, "bound", bound, "prefix", q.prefix}
	return q.run(ctx, redis.NewCmd(ctx, append(args, q.policy.words()...)...))
}

func (q *commands) exists(ctx context.Context) error {
	_, err := q.length(ctx)
	return err
}

func (q *commands) put(ctx context.Context, messages [][]byte) (n int, err error) {
	var cmd *redis.IntCmd
	err = q.wait(ctx, func(ms int64) redis.Cmder {
		args := make([]any, 0, len(messages)-n+8)
		args = append(args, "pressure.put", q.name)
		for _, m := range messages[n:] {
			args = append(args, m)
		}
		// The server reads options from the end, each once. All are given, so that it takes no message for an option.
		cmd = redis.NewIntCmd(ctx, append(args, "timeout", ms, "client", q.id, "prefix", q.prefix)...)
		return cmd
	}, func() (bool, error) {
		n += int(cmd.Val())
		return n == len(messages), nil
	})
	return n, err
}

func (q *commands) get(ctx context.Context, n int) (messages [][]byte, err error) {
	err = q.take(ctx, n, nil, func(reply any) error {
		message, ok := reply.(string)
		if !ok {
			return fmt.Errorf("the server sent a message as %T", reply)
		}
		messages = append(messages, []byte(message))
		return nil
	})
	return messages, err
}

func (q *commands) reserve(ctx context.Context, n int, d time.Duration) (reservations []Reservation, err error) {
	err = q.take(ctx, n, []any{"reserve", milliseconds(d)}, func(reply any) error {
		pair, _ := reply.([]any)
		if len(pair) != 2 {
			return fmt.Errorf("the server sent a reservation as %T", reply)
		}
		id, _ := pair[0].(string)
		message, _ := pair[1].(string)
		reservations = append(reservations, Reservation{id, []byte(message)})
		return nil
	})
	return reservations, err
}

// take takes up to n messages, and passes the server's reply for each to add.
func (q *commands) take(ctx context.Context, n int, options []any, add func(reply any) error) error {
	var cmd *redis.SliceCmd
	return q.wait(ctx, func(ms int64) redis.Cmder {
		args := append([]any{"pressure.get", q.name, "count", n, "timeout", ms, "client", q.id, "prefix", q.prefix},
			options...)
		cmd = redis.NewSliceCmd(ctx, args...)
		return cmd
	}, func() (bool, error) {
		for _, reply := range cmd.Val() {
			if err := add(reply); err != nil {
				return false, err
			}
		}
		return len(cmd.Val()) > 0, nil
	})
}

func (q *commands) settle(ctx context.Context, acknowledge bool, ids []string) (int, error) {
	args := []any{"pressure.return", q.name}
	if acknowledge {
		args[0] = "pressure.ack"
	}
	for _, id := range ids {
		args = append(args, id)
	}
	cmd := redis.NewIntCmd(ctx, append(args, "prefix", q.prefix)...)
	err := q.run(ctx, cmd)
	return int(cmd.Val()), err
}

func (q *commands) close(ctx context.Context) error {
	return q.end(ctx, "pressure.close", "client", q.id)
}
func (q *commands) delete(ctx context.Context) error { return q.end(ctx, "pressure.delete") }

func (q *commands) end(ctx context.Context, command string, options ...any) error {
	var cmd *redis.Cmd
	return q.wait(ctx, func(ms int64) redis.Cmder {
		cmd = redis.NewCmd(ctx, append([]any{command, q.name, "timeout", ms, "prefix", q.prefix}, options...)...)
		return cmd
	}, func() (bool, error) { return cmd.Val() == "OK", nil })
}

func (q *commands) length(ctx context.Context) (int64, error) {
	cmd := redis.NewIntCmd(ctx, "pressure.len", q.name, "prefix", q.prefix)
	err := q.run(ctx, cmd)
	return cmd.Val(), err
}

func (q *commands) info(ctx context.Context) (*Info, error) {
	cmd := redis.NewMapStringInterfaceCmd(ctx, "pressure.info", q.name, "prefix", q.prefix)
	if err := q.run(ctx, cmd); err != nil {
		return nil, err
	}
	text := func(name string) string {
		s, _ := cmd.Val()[name].(string)
		return s
	}
	number := func(name string) int64 {
		n, _ := cmd.Val()[name].(int64)
		return n
	}
	flag := func(name string) bool { return number(name) != 0 || cmd.Val()[name] == true }
	return &Info{
		Length: number("length"), Bound: number("bound"), Closed: flag("closed"), Producer: text("producer"),
		Consumer:     text("consumer"),
		ProducerFree: flag("producer_free"), ConsumerFree: flag("consumer_free"),
		ProducedMessages: number("produced_messages"), ProducedBytes: number("produced_bytes"),
		ConsumedMessages: number("consumed_messages"), ConsumedBytes: number("consumed_bytes"),
		BlockedProducers: number("blocked_producers"), BlockedConsumers: number("blocked_consumers"),
		Reserved: number("reserved"), Redelivered: number("redelivered"),
		Delayed: number("delayed"), Dead: number("dead"), Schedules: number("schedules"),
	}, nil
}

func (q *commands) list(ctx context.Context) ([]string, error) {
	cmd := redis.NewStringSliceCmd(ctx, "pressure.list", "prefix", q.prefix)
	err := q.run(ctx, cmd)
	return cmd.Val(), err
}
