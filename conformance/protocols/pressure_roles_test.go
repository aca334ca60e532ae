package protocols_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// roleChecker follows a queue by the events of its keys, which report every change in one order, and fails if a role
// was not exclusive. A client has a role from when it pops the role's element until it pushes it back. The server's own
// commands act as producer or consumer in one step if the element is there, and no other event comes between theirs. So
// at any instant there is at most one turn of a producer and one of a consumer, and each turn goes through its stages
// in order.
type roleChecker struct {
	producer, consumer turn
	closed             bool
}

// turn is a turn of the producer or the consumer.
type turn struct {
	taken bool // the role's element was popped
	stage stage

	heldMoves, instantMoves int // messages put or got in turns with the element popped, and without
}

// stage is the progress of a turn.
type stage uint8

const (
	noTurn  stage = iota // or one that began by popping the role's element
	named                // the client's name was written
	moved                // the message is in, or out
	counted              // as a message
	weighed              // and its bytes; the next message can follow
)

// event handles an event of the key base+suffix. It fails if the event cannot happen while roles are exclusive.
func (r *roleChecker) event(suffix, event string) error {
	t, other := &r.producer, &r.consumer
	switch suffix {
	case ":consumer", ":consumer_free", ":stats:consumed_messages", ":stats:consumed_bytes":
		t, other = other, t
	case "":
		if event == "rpop" {
			t, other = other, t
		}
	case ":not_full", ":bound":
		return nil // they belong to both roles
	}
	if event == "del" {
		return nil // of lists that became empty
	}
	if other.stage != noTurn && !other.taken {
		return fmt.Errorf("%s %q in the middle of a single step of the other role", event, suffix)
	}
	from := t.stage
	ok := false
	switch what := event + " " + suffix; what {
	case "rpop :producer_free", "rpop :consumer_free":
		ok = !t.taken && (from == noTurn || from == named) // a waiting client writes down its name first
		t.taken = true
	case "lpush :producer_free", "lpush :consumer_free":
		ok = t.taken && (from != moved && from != counted || from == moved && t == &r.consumer && r.closed)
		*t = turn{heldMoves: t.heldMoves, instantMoves: t.instantMoves}
	case "set :producer", "set :consumer":
		ok = from == noTurn
		t.stage = named
	case "lpush ", "rpop ":
		ok = from == named || from == weighed
		t.stage = moved
		if t.taken {
			t.heldMoves++
		} else {
			t.instantMoves++
		}
	case "incrby :stats:produced_messages", "incrby :stats:consumed_messages":
		ok = from == moved
		t.stage = counted
	case "incrby :stats:produced_bytes", "incrby :stats:consumed_bytes":
		ok = from == counted
		t.stage = weighed
	case "lpush :closed":
		ok = from == named
		t.stage, r.closed = weighed, true
	case "rpop :closed": // by a consumer that had waited for a message
		return nil
	}
	if t.stage == weighed && !t.taken {
		t.stage = noTurn
	}
	if !ok {
		return fmt.Errorf("%s %q at stage %d of a turn (role taken: %v)", event, suffix, from, t.taken)
	}
	return nil
}

func TestRoleCheckerNoticesRolesThatAreNotExclusive(t *testing.T) {
	const (
		putHeld = "rpop :producer_free,del :producer_free,set :producer,rpop :not_full,lpush ,lpush :not_full,ltrim :not_full," +
			"incrby :stats:produced_messages,incrby :stats:produced_bytes,lpush :producer_free"
		putAtOnce = "set :producer,lpush ,incrby :stats:produced_messages,incrby :stats:produced_bytes"
		getHeld   = "rpop :consumer_free,set :consumer,rpop ,del ,incrby :stats:consumed_messages,incrby :stats:consumed_bytes,lpush :consumer_free"
		getAtOnce = "set :consumer,rpop ,incrby :stats:consumed_messages,incrby :stats:consumed_bytes"
		putWaits  = "set :producer,rpop :producer_free,lpush ,incrby :stats:produced_messages,incrby :stats:produced_bytes,lpush :producer_free"
		closes    = "set :producer,lpush :closed"
	)
	check := func(events string) error {
		var r roleChecker
		for _, e := range strings.Split(events, ",") {
			event, suffix, _ := strings.Cut(e, " ")
			if err := r.event(suffix, event); err != nil {
				return err
			}
		}
		return nil
	}
	for _, good := range []string{
		strings.Join([]string{putHeld, putAtOnce, getHeld, putWaits, getAtOnce, putHeld, closes, getAtOnce}, ","),
		"rpop :producer_free," + getAtOnce + ",set :producer,rpop :consumer_free,lpush ,rpop :not_full",
		"rpop :producer_free,set :producer,lpush :producer_free",
		closes + ",rpop :consumer_free,set :consumer,rpop ,lpush :consumer_free",
	} {
		require.NoError(t, check(good), good)
	}
	for name, bad := range map[string]string{
		"a step by another while the role is taken": "rpop :producer_free,set :producer," + putAtOnce,
		"a put by another before the name":          "rpop :producer_free,lpush ",
		"popped twice":                              "rpop :producer_free,rpop :producer_free",
		"given back by who has not had it":          "lpush :consumer_free",
		"two names":                                 "rpop :consumer_free,set :consumer,set :consumer",
		"two messages, one counted":                 "rpop :consumer_free,set :consumer,rpop ,rpop ",
		"given back uncounted":                      "rpop :consumer_free,set :consumer,rpop ,lpush :consumer_free",
		"a single step torn apart":                  "set :producer,set :consumer",
		"a message without a turn":                  "lpush ",
		"given back twice":                          putHeld + ",lpush :producer_free",
	} {
		require.Error(t, check(bad), name)
	}
}

// watchRoles checks the events of a queue that is not in use yet, until the returned function is called. That function
// returns the checker; the first violation fails the test.
func watchRoles(t *testing.T, r *redis.Client, q *queue) (end func() *roleChecker) {
	ctx := t.Context()
	for name, value := range map[string]string{"notify-keyspace-events": "KA",
		"client-output-buffer-limit": "pubsub 0 0 0"} {
		before, err := r.ConfigGet(ctx, name).Result()
		require.NoError(t, err)
		require.NoError(t, r.ConfigSet(ctx, name, value).Err())
		t.Cleanup(func() { require.NoError(t, r.ConfigSet(context.Background(), name, before[name]).Err()) })
	}
	channel := "__keyspace@0__:" + q.key("")
	subscription := r.PSubscribe(ctx, channel+"*")
	_, err := subscription.Receive(ctx)
	require.NoError(t, err)
	const last = ":the end"
	checker := new(roleChecker)
	failure := make(chan error, 1)
	go func() {
		var first error
		for n := 0; ; n++ {
			m, err := subscription.ReceiveMessage(ctx)
			if err != nil {
				failure <- err
				return
			}
			suffix := strings.TrimPrefix(m.Channel, channel)
			if suffix == last {
				failure <- first
				return
			}
			if err := checker.event(suffix, m.Payload); err != nil && first == nil {
				first = fmt.Errorf("event %d: %w", n, err)
			}
		}
	}()
	return func() *roleChecker {
		require.NoError(t, r.Publish(ctx, channel+last, "").Err())
		require.NoError(t, <-failure)
		require.NoError(t, subscription.Close())
		return checker
	}
}
