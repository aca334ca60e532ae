package atom

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

func sortedSetKey(key string) string { return "sorted_set:" + key }

// Member is a member of a sorted set with its value. Members with the same value are ordered by the bytes of their
// names.
type Member struct {
	Name  string
	Value float64
}

func memberOf(z redis.Z) Member {
	name, _ := z.Member.(string)
	return Member{name, z.Score}
}

func membersOf(found []redis.Z) []Member {
	members := make([]Member, len(found))
	for i, z := range found {
		members[i] = memberOf(z)
	}
	return members
}

// SortedSetAdd adds a member or changes its value, and returns the new number of members.
func (e *Element) SortedSetAdd(ctx context.Context, key, member string, value float64) (size int64, err error) {
	pipe := e.protocol.client.Pipeline()
	pipe.ZAdd(ctx, sortedSetKey(key), redis.Z{Member: member, Score: value})
	count := pipe.ZCard(ctx, sortedSetKey(key))
	_, err = pipe.Exec(ctx)
	return count.Val(), failed(ctx, fmt.Sprintf("add to sorted set %q", key), err)
}

// SortedSetPop removes and returns the member with the smallest value, or the largest. The error is ErrNotFound if
// there is none.
func (e *Element) SortedSetPop(ctx context.Context, key string, maximum bool) (Member, error) {
	members, err := e.SortedSetPopN(ctx, key, 1, maximum)
	if err == nil && len(members) == 0 {
		return Member{}, found(ctx, fmt.Sprintf("pop from sorted set %q", key), ErrNotFound)
	}
	if err != nil {
		return Member{}, err
	}
	return members[0], nil
}

// SortedSetPopN removes and returns up to n members, as if popped one after the other.
func (e *Element) SortedSetPopN(ctx context.Context, key string, n int64, maximum bool) ([]Member, error) {
	op := fmt.Sprintf("pop from sorted set %q", key)
	if n < 0 {
		return nil, misuse(op, "%d members", n)
	}
	pop := e.protocol.client.ZPopMin
	if maximum {
		pop = e.protocol.client.ZPopMax
	}
	members, err := pop(ctx, sortedSetKey(key), n).Result()
	return membersOf(members), failed(ctx, op, err)
}

// popAndCount pops one member, if there is any, and counts those that are left.
func (e *Element) popAndCount(ctx context.Context, key string, maximum bool) (popped []Member, size int64, err error) {
	pipe := e.protocol.client.Pipeline()
	pop := pipe.ZPopMin
	if maximum {
		pop = pipe.ZPopMax
	}
	members, count := pop(ctx, sortedSetKey(key)), pipe.ZCard(ctx, sortedSetKey(key))
	_, err = pipe.Exec(ctx)
	return membersOf(members.Val()), count.Val(), failed(ctx, fmt.Sprintf("pop from sorted set %q", key), err)
}

// SortedSetPopWait is SortedSetPop that waits for a member up to limit; a negative limit waits until the context ends.
// Several waiting clients are served in no particular order.
func (e *Element) SortedSetPopWait(ctx context.Context, key string, maximum bool, limit time.Duration) (Member, error) {
	if limit == 0 {
		return e.SortedSetPop(ctx, key, maximum)
	}
	ctx, cancel := e.within(ctx)
	defer cancel()
	member, err := e.protocol.popWait(ctx, sortedSetKey(key), maximum, limit)
	if err == nil && member == nil {
		err = ErrNotFound
	}
	if err != nil {
		return Member{}, found(ctx, fmt.Sprintf("pop from sorted set %q", key), err)
	}
	return memberOf(member.Z), nil
}

// SortedSetRead returns the value of a member. The error is ErrNotFound if there is no such member.
func (e *Element) SortedSetRead(ctx context.Context, key, member string) (float64, error) {
	value, err := e.protocol.client.ZScore(ctx, sortedSetKey(key), member).Result()
	return value, found(ctx, fmt.Sprintf("read sorted set %q", key), err)
}

// SortedSetRemove removes a member. It is no error if there is no such member.
func (e *Element) SortedSetRemove(ctx context.Context, key, member string) error {
	err := e.protocol.client.ZRem(ctx, sortedSetKey(key), member).Err()
	return failed(ctx, fmt.Sprintf("remove from sorted set %q", key), err)
}

// SortedSetRange returns the members from index start to index stop, both included, in ascending order of their values,
// or in descending order with maximum. Negative indexes count from the end: -1 is the last member.
func (e *Element) SortedSetRange(ctx context.Context, key string, start, stop int64, maximum bool) ([]Member, error) {
	read := e.protocol.client.ZRangeWithScores
	if maximum {
		read = e.protocol.client.ZRevRangeWithScores
	}
	members, err := read(ctx, sortedSetKey(key), start, stop).Result()
	return membersOf(members), failed(ctx, fmt.Sprintf("read sorted set %q", key), err)
}

// SortedSetNames is SortedSetRange without the values.
func (e *Element) SortedSetNames(ctx context.Context, key string, start, stop int64, maximum bool) ([]string, error) {
	read := e.protocol.client.ZRange
	if maximum {
		read = e.protocol.client.ZRevRange
	}
	names, err := read(ctx, sortedSetKey(key), start, stop).Result()
	return names, failed(ctx, fmt.Sprintf("read sorted set %q", key), err)
}

// SortedSetSize returns the number of members.
func (e *Element) SortedSetSize(ctx context.Context, key string) (int64, error) {
	size, err := e.protocol.client.ZCard(ctx, sortedSetKey(key)).Result()
	return size, failed(ctx, fmt.Sprintf("size of sorted set %q", key), err)
}

// SortedSetDelete deletes a sorted set. It is no error if the set does not exist.
func (e *Element) SortedSetDelete(ctx context.Context, key string) error {
	return failed(ctx, fmt.Sprintf("delete sorted set %q", key), e.protocol.client.Unlink(ctx, sortedSetKey(key)).Err())
}
