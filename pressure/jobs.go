package pressure

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// This file has what queues of jobs need beyond the protocol. It works with atomredis only; on other servers the error
// is errors.ErrUnsupported.

// Policy says how often a message is handed out that is reserved and not acknowledged. The zero value is no limit, and
// no pause.
type Policy struct {
	// Attempts is how often a message is handed out at most. After the last failed attempt it is dead.
	Attempts int
	// Backoff is the pause after the first failed attempt. It doubles with each further one, up to a day.
	Backoff time.Duration
}

// words returns the policy as options of a command.
func (p Policy) words() (args []any) {
	if p.Attempts != 0 {
		args = append(args, "attempts", p.Attempts)
	}
	if p.Backoff != 0 {
		args = append(args, "backoff", milliseconds(p.Backoff))
	}
	return args
}

// Job says how a message is put. The zero value is an ordinary message.
type Job struct {
	// Delay keeps the message back for this time.
	Delay time.Duration
	// At keeps the message back until a time, if it is not zero. Either Delay or At may be set.
	At time.Time
	// Priority is from 0 to 9. Messages with a higher priority are handed out first, those with the same one in their order.
	Priority int
	// Policy replaces that of the queue.
	Policy
	// Key identifies the job: for the time Within, a further one with the same key fails with ErrDuplicate.
	Key    string
	Within time.Duration
}

// State is where a message of a queue is.
type State string

// The states of messages.
const (
	Ready    State = "READY"    // in the queue
	Delayed  State = "DELAYED"  // it comes due later
	Reserved State = "RESERVED" // handed out and not acknowledged yet
	Dead     State = "DEAD"     // failed for good
)

// Message is a message that Peek shows.
type Message struct {
	ID       string    `json:"id,omitempty"` // empty for ready messages
	Message  []byte    `json:"message"`
	At       time.Time `json:"at,omitzero"` // when it comes due, when its reservation ends, or when it died
	Attempts int       `json:"attempts"`    // that have failed
	Limit    int       `json:"limit"`       // of its attempts; 0 means no limit
	Priority int       `json:"priority"`
	Reason   string    `json:"reason,omitempty"` // of a dead message
}

// Minute is what happened in a queue in a minute.
type Minute struct {
	At     time.Time `json:"at"` // its beginning
	Put    int64     `json:"put"`
	Taken  int64     `json:"taken"`
	Acked  int64     `json:"acked"`
	Failed int64     `json:"failed"`
	Dead   int64     `json:"dead"`
}

// Schedule puts a message into a queue at the times of a cron expression.
type Schedule struct {
	Name    string    `json:"name"`
	Cron    string    `json:"cron"`
	Message []byte    `json:"message"`
	Next    time.Time `json:"next"`
}

// errNoJobs is the error on other servers.
var errNoJobs = fmt.Errorf("this needs the commands of atomredis: %w", errors.ErrUnsupported)

// commands returns the commands of atomredis for the queue.
func (q *Queue) commands() (*commands, error) {
	if c, ok := q.protocol.(*commands); ok {
		return c, nil
	}
	return nil, errNoJobs
}

// call runs a command on the queue that does not wait, and returns its reply.
func (q *Queue) call(ctx context.Context, op, command string, args ...any) (reply any, err error) {
	c, err := q.commands()
	if err == nil {
		err = context.Cause(ctx)
	}
	if err == nil {
		cmd := redis.NewCmd(ctx, append(append([]any{command, q.name}, args...), "prefix", c.prefix)...)
		if err = c.run(ctx, cmd); errors.Is(err, redis.Nil) {
			err = nil
		}
		reply = cmd.Val()
	}
	return reply, failed(ctx, op, q.name, err)
}

// number is call for a command that returns a number.
func (q *Queue) number(ctx context.Context, op, command string, args ...any) (int, error) {
	reply, err := q.call(ctx, op, command, args...)
	n, _ := reply.(int64)
	return int(n), err
}

// maps is call for a command that returns maps.
func (q *Queue) maps(ctx context.Context, op, command string, args ...any) (all []fields, err error) {
	reply, err := q.call(ctx, op, command, args...)
	list, _ := reply.([]any)
	for _, item := range list {
		m := fields{}
		switch item := item.(type) {
		case map[any]any:
			for k, v := range item {
				m[fmt.Sprint(k)] = v
			}
		case []any: // RESP2
			for i := 0; i+1 < len(item); i += 2 {
				m[fmt.Sprint(item[i])] = item[i+1]
			}
		}
		all = append(all, m)
	}
	return all, err
}

// fields is a map in a reply.
type fields map[string]any

func (f fields) text(name string) string {
	s, _ := f[name].(string)
	return s
}

func (f fields) number(name string) int64 {
	n, _ := f[name].(int64)
	return n
}

// time returns a time; the zero time stands for an absent one.
func (f fields) time(name string) (t time.Time) {
	if ms, ok := f[name].(int64); ok {
		t = time.UnixMilli(ms)
	}
	return t
}

// PutJob is Put for a message that comes due later, has a priority, a limit of attempts or a key.
func (q *Queue) PutJob(ctx context.Context, message []byte, j Job) error {
	ctx, cancel := q.within(ctx)
	defer cancel()
	c, err := q.commands()
	if err == nil {
		err = context.Cause(ctx)
	}
	if err == nil {
		err = c.putJob(ctx, message, j)
	}
	return failed(ctx, "put into", q.name, err)
}

func (q *commands) putJob(ctx context.Context, message []byte, j Job) error {
	options := j.words()
	if j.Delay != 0 {
		options = append(options, "delay", milliseconds(j.Delay))
	}
	if !j.At.IsZero() {
		options = append(options, "at", max(j.At.UnixMilli(), 0))
	}
	if j.Priority != 0 {
		options = append(options, "priority", j.Priority)
	}
	if j.Key != "" || j.Within != 0 {
		options = append(options, "dedup", j.Key, "within", milliseconds(j.Within))
	}
	var cmd *redis.IntCmd
	return q.wait(ctx, func(ms int64) redis.Cmder {
		args := append([]any{"pressure.put", q.name, message, "timeout", ms, "client", q.id, "prefix", q.prefix}, options...)
		cmd = redis.NewIntCmd(ctx, args...)
		return cmd
	}, func() (bool, error) { return cmd.Val() == 1, nil })
}

// Fail ends an attempt at a reserved message. The state says what became of the message: Ready or Delayed, by its
// back-off, or Dead after its last attempt, with the reason. The error is ErrNotReserved if it is not reserved any
// more.
func (q *Queue) Fail(ctx context.Context, id, reason string) (State, error) {
	return q.fail(ctx, id, reason)
}

// FailFor is Fail with a pause of its own instead of the back-off.
func (q *Queue) FailFor(ctx context.Context, id, reason string, pause time.Duration) (State, error) {
	return q.fail(ctx, id, reason, "delay", milliseconds(pause))
}

func (q *Queue) fail(ctx context.Context, id, reason string, options ...any) (State, error) {
	const op = "fail a message of"
	reply, err := q.call(ctx, op, "pressure.fail", append([]any{id, reason}, options...)...)
	state, ok := reply.(string)
	if err == nil && !ok {
		err = failed(ctx, op, q.name, ErrNotReserved)
	}
	return State(state), err
}

// Extend lets reservations last for d from now on. It returns how many there still were.
func (q *Queue) Extend(ctx context.Context, d time.Duration, ids ...string) (int, error) {
	if len(ids) == 0 {
		return 0, nil
	}
	return q.number(ctx, "extend reservations of", "pressure.extend", append([]any{milliseconds(d)}, words(ids)...)...)
}

// words returns strings as arguments.
func words(list []string) []any {
	args := make([]any, len(list))
	for i, s := range list {
		args[i] = s
	}
	return args
}

// Peek returns up to n messages in a state, in the order in which they leave it. They stay where they are.
func (q *Queue) Peek(ctx context.Context, state State, n int) ([]Message, error) {
	list, err := q.maps(ctx, "peek into", "pressure.peek", "state", string(state), "count", n)
	messages := make([]Message, len(list))
	for i, f := range list {
		messages[i] = Message{ID: f.text("id"), Message: []byte(f.text("message")), At: f.time("at"),
			Attempts: int(f.number("attempts")), Limit: int(f.number("limit")), Priority: int(f.number("priority")),
			Reason: f.text("reason")}
	}
	return messages, err
}

// Retry puts dead messages back into the queue, with all their attempts. It returns how many: ids that are not dead do
// not count, and it stops when the queue is full.
func (q *Queue) Retry(ctx context.Context, ids ...string) (int, error) {
	if len(ids) == 0 {
		return 0, nil
	}
	return q.number(ctx, "retry messages of", "pressure.retry", words(ids)...)
}

// retryBatch is how many messages the server puts back at once.
const retryBatch = 1000

// RetryAll is Retry for all dead messages. It puts many back in several steps.
func (q *Queue) RetryAll(ctx context.Context) (total int, err error) {
	for {
		n, err := q.number(ctx, "retry messages of", "pressure.retry", "all")
		if total += n; err != nil || n < retryBatch {
			return total, err
		}
	}
}

// Purge removes all messages in a state, Ready, Delayed or Dead, and returns how many.
func (q *Queue) Purge(ctx context.Context, state State) (int, error) {
	return q.number(ctx, "purge", "pressure.purge", "state", string(state))
}

// Stats returns what happened in the last minutes, up to 60, the present one as the last.
func (q *Queue) Stats(ctx context.Context, minutes int) ([]Minute, error) {
	list, err := q.maps(ctx, "get statistics of", "pressure.stats", "minutes", minutes)
	all := make([]Minute, len(list))
	for i, f := range list {
		all[i] = Minute{f.time("at"), f.number("put"), f.number("taken"), f.number("acked"), f.number("failed"), f.number("dead")}
	}
	return all, err
}

// Schedule puts a message into the queue at the times of a cron expression, such as "30 6 * * 1-5" or "@every 10m",
// until Unschedule is called with the name. The times are in UTC unless the expression begins with a zone:
// "CRON_TZ=Europe/Sofia 30 6 * * *". It replaces a schedule of that name, and returns the first time.
func (q *Queue) Schedule(ctx context.Context, name, cron string, message []byte) (next time.Time, err error) {
	reply, err := q.call(ctx, "schedule for", "pressure.schedule", name, cron, message)
	return fields{"next": reply}.time("next"), err
}

// Unschedule removes schedules, and returns how many there were.
func (q *Queue) Unschedule(ctx context.Context, names ...string) (int, error) {
	if len(names) == 0 {
		return 0, nil
	}
	return q.number(ctx, "unschedule from", "pressure.unschedule", words(names)...)
}

// Schedules returns the schedules of the queue, by name.
func (q *Queue) Schedules(ctx context.Context) ([]Schedule, error) {
	list, err := q.maps(ctx, "list the schedules of", "pressure.schedules")
	all := make([]Schedule, len(list))
	for i, f := range list {
		all[i] = Schedule{f.text("name"), f.text("cron"), []byte(f.text("message")), f.time("next")}
	}
	return all, err
}
