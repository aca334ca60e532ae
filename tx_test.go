package atomredis_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis"
)

func TestTxExecutesAllOrNothing(t *testing.T) {
	db := open(t, atomredis.Options{})
	var early error
	var n, m *atomredis.Reply
	require.NoError(t, db.Tx(t.Context(), func(tx *atomredis.Tx) error {
		n, m = tx.Do("INCR", "n"), tx.Do("RPUSH", "l", "a", "b")
		_, early = n.Int()
		return nil
	}))
	require.Equal(t, atomredis.ErrNoReply, early)
	require.Equal(t, "1", text(t, *n))
	require.Equal(t, "2", text(t, *m))

	refused := errors.New("no")
	require.Equal(t, refused, db.Tx(t.Context(), func(tx *atomredis.Tx) error {
		tx.Do("INCR", "n")
		return refused
	}))
	require.ErrorContains(t, db.Tx(t.Context(), func(tx *atomredis.Tx) error {
		tx.Do("INCR", "n")
		tx.Do("INCR", struct{}{})
		return nil
	}), "argument 1 of INCR")
	require.Equal(t, atomredis.Error("ERR wrong number of arguments for 'incr' command"),
		db.Tx(t.Context(), func(tx *atomredis.Tx) error {
			tx.Do("INCR", "n")
			tx.Do("INCR")
			return nil
		}))
	require.Panics(t, func() {
		db.Tx(t.Context(), func(tx *atomredis.Tx) error {
			tx.Watch("n")
			panic("a bug of the caller")
		})
	})
	require.Equal(t, "1", text(t, do(t, db, "GET", "n")))

	err := db.Tx(t.Context(), func(tx *atomredis.Tx) error {
		n, m = tx.Do("LPUSH", "n", "x"), tx.Do("INCR", "n")
		return nil
	})
	require.ErrorContains(t, err, "WRONGTYPE")
	require.Equal(t, err, n.Err())
	require.Equal(t, "2", text(t, *m), "as in Redis, the others are executed")
	var kept *atomredis.Tx
	require.NoError(t, db.Tx(t.Context(), func(tx *atomredis.Tx) error {
		kept = tx
		return nil
	}), "nothing to do")
	require.ErrorContains(t, kept.Watch("n"), "has ended")
	_, err = kept.Query("GET", "n")
	require.ErrorContains(t, err, "has ended")
}

func TestTxBeginsAnewWhenWatchedKeysChange(t *testing.T) {
	db := open(t, atomredis.Options{Config: map[string]string{"shards": "16"}})
	attempts := 0
	err := db.Tx(t.Context(), func(tx *atomredis.Tx) error {
		attempts++
		if err := tx.Watch("watched", "other"); err != nil {
			return err
		}
		do(t, db, "INCR", "watched")
		tx.Do("SET", "k", "never")
		return nil
	})
	require.Equal(t, atomredis.ErrTxFailed, err)
	require.Equal(t, 16, attempts)
	require.True(t, do(t, db, "GET", "k").IsNull())

	// Many goroutines count without INCR; no increment may be lost.
	const workers, steps = 4, 25
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for done := 0; done < steps; {
				err := db.Tx(t.Context(), func(tx *atomredis.Tx) error {
					if err := tx.Watch("counter"); err != nil {
						return err
					}
					n := int64(0)
					r, err := tx.Query("GET", "counter")
					if err != nil {
						return err
					}
					if !r.IsNull() {
						if n, err = r.Int(); err != nil {
							return err
						}
					}
					tx.Do("SET", "counter", n+1)
					return nil
				})
				switch {
				case err == nil:
					done++
				case !errors.Is(err, atomredis.ErrTxFailed):
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	require.Equal(t, strconv.Itoa(workers*steps), text(t, do(t, db, "GET", "counter")))
}

func TestSubscribersGetAllMessagesInOrder(t *testing.T) {
	db := open(t, atomredis.Options{})
	messages := db.PSubscribe(t.Context(), "news.*", "exact")
	require.Equal(t, "2", text(t, do(t, db, "PUBSUB", "NUMPAT")), "they are subscribed before anybody iterates")
	const n = 1000
	go func() {
		for i := range n {
			db.Do(t.Context(), "PUBLISH", "news.go", i)
			db.Do(t.Context(), "PUBLISH", "elsewhere", i)
		}
		db.Do(t.Context(), "PUBLISH", "exact", "end")
	}()
	next := 0
	for m, err := range messages {
		require.NoError(t, err)
		if m.Payload == "end" {
			require.Equal(t, atomredis.Message{Pattern: "exact", Channel: "exact", Payload: "end"}, m)
			break
		}
		require.Equal(t, atomredis.Message{Pattern: "news.*", Channel: "news.go", Payload: fmt.Sprint(next)}, m)
		next++
	}
	require.Equal(t, n, next)
	require.Equal(t, "0", text(t, do(t, db, "PUBSUB", "NUMPAT")), "the loop has ended the subscription")
	for _, err := range messages {
		require.ErrorIs(t, err, atomredis.ErrSubscriptionEnded, "it can be used once")
	}
}

func TestChannelsAreNoPatterns(t *testing.T) {
	db := open(t, atomredis.Options{})
	messages := db.Subscribe(t.Context(), "news.*", "exact")
	require.Equal(t, `1) "news.*"
2) (integer) 1`, do(t, db, "PUBSUB", "NUMSUB", "news.*").String())
	for _, channel := range []string{"news.go", "news.*", "exact"} {
		do(t, db, "PUBLISH", channel, "x")
	}
	var got []atomredis.Message
	for m, err := range messages {
		require.NoError(t, err)
		if got = append(got, m); len(got) == 2 {
			break
		}
	}
	require.Equal(t, []atomredis.Message{{Channel: "news.*", Payload: "x"}, {Channel: "exact", Payload: "x"}}, got)
}

func TestSubscriptionsEndWithTheirContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := open(t, atomredis.Options{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		db.PSubscribe(ctx, "nobody iterates")
		count := 0
		for m, err := range db.PSubscribe(ctx, "*") {
			count++
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.Empty(t, m)
		}
		require.Equal(t, 1, count)
		synctest.Wait()
		require.Equal(t, "0", text(t, do(t, db, "PUBSUB", "NUMPAT")))
		for _, err := range db.Subscribe(ctx, "x") {
			require.ErrorIs(t, err, context.DeadlineExceeded)
		}
		for _, err := range db.Subscribe(t.Context()) {
			require.Equal(t, atomredis.Error("ERR wrong number of arguments for 'subscribe' command"), err)
		}
	})
}

func TestSubscriberThatTakesNothingIsDropped(t *testing.T) {
	db := open(t, atomredis.Options{Config: map[string]string{"client-output-buffer-limit": "pubsub 10kb 0 0"}})
	messages := db.PSubscribe(t.Context(), "*")
	for range 100 {
		do(t, db, "PUBLISH", "c", make([]byte, 1000))
	}
	for _, err := range messages {
		require.ErrorIs(t, err, atomredis.ErrKilled)
	}
}
