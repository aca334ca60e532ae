package protocols_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/atomredis/atomredis/pressure"
)

// The kinds of clients that share queues.
const (
	cKind       = "c"       // the steps of the protocol's C client, one by one
	packageKind = "package" // package pressure with only the commands of Redis
	nativeKind  = "native"  // the server's own commands
	reserveKind = "reserve" // like native, but each message is reserved, and then acknowledged
)

// leaseMillis is how long messages are reserved.
const leaseMillis = 300

// user is a client of one queue.
type user interface {
	put(ctx context.Context, value string) error
	// get returns a message and its place in the order in which messages were taken. The place is exact, or may be
	// slightly too great; it is 0 if the message was not counted.
	get(ctx context.Context) (value string, place int64, exact bool, err error)
}

// newUser returns a client of the kind that uses one connection made by dial.
func newUser(ctx context.Context, kind, name, id string,
	dial func(ctx context.Context, network, addr string) (net.Conn, error),
	addr string) (u user, close func() error, err error) {
	pool := 1
	if kind == packageKind {
		pool = 2 // the second one ends long waits
	}
	r := redis.NewClient(&redis.Options{Addr: addr, Dialer: dial, DisableIdentity: true, Protocol: 2, PoolSize: pool,
		MaxRetries:    -1,
		DialerRetries: 1, ReadTimeout: -1})
	q := queue{r: r, name: name, id: id}
	switch kind {
	case cKind:
		c := &cUser{queue: q}
		c.bound, err = r.Get(ctx, q.key(":bound")).Int64()
		u = c
	case packageKind:
		p := &packageUser{key: q.key(":stats:consumed_messages")}
		r.AddHook(p)
		p.queue, err = pressure.Open(ctx, r, name, pressure.Options{ClientID: id, OnlyRedisCommands: true})
		u = p
	case nativeKind, reserveKind:
		u = &nativeUser{queue: q, reserve: kind == reserveKind}
	default:
		err = fmt.Errorf("no clients are called %q", kind)
	}
	return u, r.Close, err
}

// cUser acts like the protocol's C client, which departs from the specification in these points: the bound is read
// once; without a bound Put leaves :not_full alone; a message from a closed queue is neither counted nor marked in
// :not_full.
type cUser struct {
	queue
	bound int64
}

func (c *cUser) put(ctx context.Context, value string) error {
	if err := c.take(ctx, "producer"); err != nil {
		return err
	}
	return c.giveBack(ctx, "producer", errors.Join(c.putAsProducer(ctx, value), c.alone(ctx, "producer")))
}

func (c *cUser) putAsProducer(ctx context.Context, value string) error {
	if closed, err := c.exists(ctx, ":closed"); err != nil || closed {
		return errors.Join(err, errClosed)
	}
	if c.bound > 0 {
		if err := c.r.BRPop(ctx, 0, c.key(":not_full")).Err(); err != nil {
			return err
		}
	}
	length, err := c.r.LPush(ctx, c.key(""), value).Result()
	if err != nil {
		return err
	}
	if c.bound > 0 && length < c.bound {
		if err := c.markNotFull(ctx); err != nil {
			return err
		}
	}
	if err := c.r.Incr(ctx, c.key(":stats:produced_messages")).Err(); err != nil {
		return err
	}
	return c.r.IncrBy(ctx, c.key(":stats:produced_bytes"), int64(len(value))).Err()
}

func (c *cUser) get(ctx context.Context) (value string, place int64, exact bool, err error) {
	if err := c.take(ctx, "consumer"); err != nil {
		return "", 0, false, err
	}
	value, place, err = c.getAsConsumer(ctx)
	return value, place, true, c.giveBack(ctx, "consumer", errors.Join(err, c.alone(ctx, "consumer")))
}

func (c *cUser) getAsConsumer(ctx context.Context) (string, int64, error) {
	closed, err := c.exists(ctx, ":closed")
	if err != nil {
		return "", 0, err
	}
	if !closed {
		return c.queue.getAsConsumer(ctx)
	}
	if some, err := c.exists(ctx, ""); err != nil || !some {
		return "", 0, errors.Join(err, errClosed)
	}
	popped, err := c.r.BRPop(ctx, 0, c.key("")).Result()
	if err != nil {
		return "", 0, err
	}
	return popped[1], 0, nil
}

// alone fails if another client has had the role since this one took it: a client that has it writes down its name.
func (c *cUser) alone(ctx context.Context, role string) error {
	who, err := c.r.Get(ctx, c.key(":"+role)).Result()
	if err == nil && who != c.id {
		err = fmt.Errorf("while %s was the %s, so was %s", c.id, role, who)
	}
	return err
}

// packageUser uses package pressure. A hook of the package's client sees the counter of messages.
type packageUser struct {
	queue *pressure.Queue
	key   string // of the counter
	place int64  // its value after the last increment
}

func (p *packageUser) put(ctx context.Context, value string) error {
	return ownError(p.queue.Put(ctx, []byte(value)))
}

func (p *packageUser) get(ctx context.Context) (string, int64, bool, error) {
	p.place = 0
	message, err := p.queue.Get(ctx)
	return string(message), p.place, true, ownError(err)
}

// ownError converts an error of package pressure to one of this package.
func ownError(err error) error {
	if errors.Is(err, pressure.ErrClosed) {
		return errClosed
	}
	return err
}

// DialHook implements redis.Hook.
func (p *packageUser) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements redis.Hook.
func (p *packageUser) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

// ProcessPipelineHook implements redis.Hook.
func (p *packageUser) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		for _, cmd := range cmds {
			if n, ok := cmd.(*redis.IntCmd); ok && cmd.Name() == "incrby" && cmd.Args()[1] == p.key {
				p.place = n.Val()
			}
		}
		return err
	}
}

// nativeUser uses the server's commands on queues.
type nativeUser struct {
	queue
	reserve bool
}

func (n *nativeUser) put(ctx context.Context, value string) error {
	put, err := n.r.Do(ctx, "PRESSURE.PUT", n.name, value, "TIMEOUT", 0, "CLIENT", n.id, "PREFIX", pressurePrefix).Int()
	if err == nil && put != 1 {
		err = fmt.Errorf("PRESSURE.PUT gave %d", put)
	}
	return nativeClosed(err)
}

// get reads the counter right after the message: another client is unlikely to have taken a message in between.
func (n *nativeUser) get(ctx context.Context) (string, int64, bool, error) {
	p := n.r.Pipeline()
	message := p.Do(ctx, "PRESSURE.GET", n.name, "CLIENT", n.id)
	counted := p.Get(ctx, n.key(":stats:consumed_messages"))
	p.Exec(ctx)
	value, err := message.Text()
	if err != nil {
		return "", 0, false, nativeClosed(err)
	}
	place, err := counted.Int64()
	return value, place, false, err
}

// getReserved reserves a message. The caller must acknowledge it.
func (n *nativeUser) getReserved(ctx context.Context) (id, value string, err error) {
	pair, err := n.r.Do(ctx, "PRESSURE.GET", n.name, "CLIENT", n.id, "RESERVE", leaseMillis).StringSlice()
	if err == nil && len(pair) != 2 {
		err = fmt.Errorf("PRESSURE.GET with RESERVE gave %q", pair)
	}
	if err != nil {
		return "", "", nativeClosed(err)
	}
	return pair[0], pair[1], nil
}

func (n *nativeUser) acknowledge(ctx context.Context, id string) error {
	return n.r.Do(ctx, "PRESSURE.ACK", n.name, id).Err()
}

func nativeClosed(err error) error {
	if err != nil && strings.HasPrefix(err.Error(), "QUEUECLOSED ") {
		return errClosed
	}
	return err
}

// kindVariable makes a client process one of the kind.
const kindVariable = "ATOMREDIS_PRESSURE_KIND"

// work has a client put count messages, or get messages until the queue is closed. It writes a line at once for each
// successful operation: "put <number>", or "got <place> <whether it is exact> <message>".
func work(ctx context.Context, u user, role, id string, count int, out io.Writer) error {
	if role == "producer" {
		for i := range count {
			if err := u.put(ctx, fmt.Sprintf("%s %d", id, i)); err != nil {
				return err
			}
			if _, err := fmt.Fprintln(out, "put", i); err != nil {
				return err
			}
		}
		return nil
	}
	for {
		value, place, exact, err := u.get(ctx)
		if errors.Is(err, errClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintln(out, "got", place, exact, value); err != nil {
			return err
		}
	}
}

// userProcess is the main function of a process that is one client, or a server.
func userProcess(kind string) error {
	if kind == serverKind {
		return serverProcess()
	}
	ctx := context.Background()
	id := os.Getenv(nameVariable)
	count, err := strconv.Atoi(os.Getenv(countVariable))
	if err != nil {
		return err
	}
	u, closeUser, err := newUser(ctx, kind, os.Getenv(queueVariable), id, nil, os.Getenv(addrVariable))
	if err != nil {
		return err
	}
	defer closeUser()
	return work(ctx, u, os.Getenv(roleVariable), id, count, os.Stdout)
}
