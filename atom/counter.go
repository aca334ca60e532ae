package atom

import (
	"context"
	"fmt"
)

func counterKey(key string) string { return "counter:" + key }

// CounterSet sets a counter and returns its value.
func (e *Element) CounterSet(ctx context.Context, key string, value int64) (int64, error) {
	err := e.protocol.client.Set(ctx, counterKey(key), value, 0).Err()
	return value, failed(ctx, fmt.Sprintf("set counter %q", key), err)
}

// CounterGet returns the value of a counter. The error is ErrNotFound if there is none.
func (e *Element) CounterGet(ctx context.Context, key string) (int64, error) {
	value, err := e.protocol.client.Get(ctx, counterKey(key)).Int64()
	return value, found(ctx, fmt.Sprintf("get counter %q", key), err)
}

// CounterUpdate adds change to a counter and returns its new value. A missing counter counts as 0.
func (e *Element) CounterUpdate(ctx context.Context, key string, change int64) (int64, error) {
	value, err := e.protocol.client.IncrBy(ctx, counterKey(key), change).Result()
	return value, failed(ctx, fmt.Sprintf("update counter %q", key), err)
}

// CounterDelete deletes a counter. It is no error if the counter does not exist.
func (e *Element) CounterDelete(ctx context.Context, key string) error {
	return failed(ctx, fmt.Sprintf("delete counter %q", key), e.protocol.client.Del(ctx, counterKey(key)).Err())
}
