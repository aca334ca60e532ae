package atom

import (
	"context"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/atomredis/atomredis/internal/protocols/atom/keys"
)

// missedBeats is after how many intervals without a heartbeat an element is dead.
const missedBeats = 3

// beat says that an element lives. An element that does not say so again is dead when the key has expired.
func (p *protocol) beat(ctx context.Context, name string, interval time.Duration) error {
	pipe := p.client.Pipeline()
	pipe.SAdd(ctx, keys.Heartbeats, name)
	pipe.Set(ctx, keys.Heartbeat+name, milliseconds(interval), missedBeats*interval)
	_, err := pipe.Exec(ctx)
	return err
}

// beat says again and again that the element lives, until it is closed. Another element of the name says so itself.
func (e *Element) beat(interval time.Duration) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			e.report("send a heartbeat", "", e.protocol.beat(e.life, e.name, interval))
		case <-e.life.Done():
			ctx := context.WithoutCancel(e.life)
			pipe := e.protocol.client.Pipeline()
			pipe.SRem(ctx, keys.Heartbeats, e.name)
			pipe.Del(ctx, keys.Heartbeat+e.name)
			_, err := pipe.Exec(ctx)
			e.report("end the heartbeat", "", err)
			return
		}
	}
}

// DeadElements returns the names of the elements, in order, that had heartbeats (Options.Heartbeat), have none any more,
// and were not closed. Elements without heartbeats are unknown to it.
func (e *Element) DeadElements(ctx context.Context) (dead []string, err error) {
	const op = "find dead elements"
	names, err := e.protocol.client.SMembers(ctx, keys.Heartbeats).Result()
	if err != nil || len(names) == 0 {
		return nil, failed(ctx, op, err)
	}
	slices.Sort(names)
	pipe := e.protocol.client.Pipeline()
	lives := make([]*redis.IntCmd, len(names))
	for i, name := range names {
		lives[i] = pipe.Exists(ctx, keys.Heartbeat+name)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, failed(ctx, op, err)
	}
	for i, name := range names {
		if lives[i].Val() == 0 {
			dead = append(dead, name)
		}
	}
	return dead, nil
}
