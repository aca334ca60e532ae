package pressure_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/pressure"
)

// This file goes through the specification: its keys and the steps of its operations, in its order and with its names.

func TestCreate(t *testing.T) {
	onEachServer(t, func(t *testing.T, s server) {
		ctx := t.Context()
		q := s.create(t, "q", 5)
		require.Equal(t, "q", q.Name())
		t.Run(":bound is saved", func(t *testing.T) {
			require.Equal(t, "5", s.Get(ctx, key("q", ":bound")).Val())
		})
		t.Run(":producer_free, :consumer_free and :not_full have one element, and empty lists do not exist",
			func(t *testing.T) {
				require.Equal(t, map[string]string{":bound": "string", ":producer_free": "list", ":consumer_free": "list",
					":not_full": "list"},
					s.keys(t, "q"))
				for _, suffix := range []string{":producer_free", ":consumer_free", ":not_full"} {
					require.EqualValues(t, 1, s.LLen(ctx, key("q", suffix)).Val(), suffix)
				}
			})
		t.Run("a bound that is not empty is an error", func(t *testing.T) {
			_, err := pressure.Create(ctx, s.Client, "q", 7, s.o)
			require.ErrorIs(t, err, pressure.ErrQueueExists)
			require.EqualError(t, err, `pressure: create "q": the queue exists already`)
			require.Equal(t, "5", s.Get(ctx, key("q", ":bound")).Val())
		})
		t.Run("bound 0 is saved as well", func(t *testing.T) {
			s.FlushAll(ctx)
			s.create(t, "q", 0)
			require.Equal(t, "0", s.Get(ctx, key("q", ":bound")).Val())
		})
		t.Run("a negative bound is refused", func(t *testing.T) {
			_, err := pressure.Create(ctx, s.Client, "other", -1, s.o)
			require.ErrorContains(t, err, "the bound -1 is negative")
			require.EqualValues(t, 0, s.Exists(ctx, key("other", ":bound")).Val())
		})
		t.Run("what is left of an unfinished deletion goes", func(t *testing.T) {
			s.FlushAll(ctx)
			s.LPush(ctx, key("q", ":closed"), "0", "0", "0")
			s.LPush(ctx, key("q", ":not_full"), "0", "0")
			s.Set(ctx, key("q", ":stats:produced_bytes"), "9", 0)
			q := s.create(t, "q", 1)
			require.NoError(t, q.Put(ctx, []byte("m")))
			info, err := q.Info(ctx)
			require.NoError(t, err)
			require.EqualValues(t, 1, info.ProducedBytes)
		})
	})
}

func TestKeys(t *testing.T) {
	onEachServer(t, func(t *testing.T, s server) {
		ctx := t.Context()
		q := s.create(t, "q", 2)
		require.NoError(t, q.Put(ctx, []byte("one")))
		require.NoError(t, q.Put(ctx, []byte("two")))
		_, err := q.Get(ctx)
		require.NoError(t, err)
		require.NoError(t, q.Close(ctx))
		t.Run("the twelve keys, and no other", func(t *testing.T) {
			require.Equal(t, map[string]string{
				"": "list", ":bound": "string", ":producer": "string", ":consumer": "string", ":producer_free": "list",
				":consumer_free":           "list",
				":stats:produced_messages": "string", ":stats:produced_bytes": "string", ":stats:consumed_messages": "string",
				":stats:consumed_bytes": "string", ":not_full": "list", ":closed": "list",
			}, s.keys(t, "q"))
		})
		t.Run(":stats count messages and bytes", func(t *testing.T) {
			for suffix, want := range map[string]string{":stats:produced_messages": "2", ":stats:produced_bytes": "6",
				":stats:consumed_messages": "1", ":stats:consumed_bytes": "3"} {
				require.Equal(t, want, s.Get(ctx, key("q", suffix)).Val(), suffix)
			}
		})
		t.Run(":producer and :consumer are the clients' unique identifying values", func(t *testing.T) {
			host, err := os.Hostname()
			require.NoError(t, err)
			require.Regexp(t, fmt.Sprintf(`^%s_pid%d_\d+$`, host, os.Getpid()), q.ClientID())
			require.Equal(t, q.ClientID(), s.Get(ctx, key("q", ":producer")).Val())
			require.Equal(t, q.ClientID(), s.Get(ctx, key("q", ":consumer")).Val())
			require.NotEqual(t, q.ClientID(), s.open(t, "q").ClientID())
			o := s.o
			o.ClientID = "me"
			mine, err := pressure.Open(ctx, s.Client, "q", o)
			require.NoError(t, err)
			_, err = mine.Get(ctx)
			require.NoError(t, err)
			require.Equal(t, "me", s.Get(ctx, key("q", ":consumer")).Val())
		})
		t.Run("PRESSURE_PREFIX", func(t *testing.T) {
			s.FlushAll(ctx)
			o := s.o
			o.Prefix = "mine"
			mine, err := pressure.Create(ctx, s.Client, "q", 0, o)
			require.NoError(t, err)
			require.NoError(t, mine.Put(ctx, []byte("m")))
			require.Equal(t, "m", s.LIndex(ctx, "mine:q", 0).Val())
			_, err = pressure.Open(ctx, s.Client, "q", s.o)
			require.ErrorIs(t, err, pressure.ErrNoQueue)
			message, err := mine.Get(ctx)
			require.NoError(t, err)
			require.Equal(t, "m", string(message))
			require.NoError(t, mine.Close(ctx))
			require.NoError(t, mine.Delete(ctx))
			require.Empty(t, s.Keys(ctx, "*").Val())
		})
	})
}

func TestPut(t *testing.T) {
	onEachServer(t, func(t *testing.T, s server) {
		ctx := t.Context()
		rec := record(s.Client)
		q := s.create(t, "q", 2)
		rec.take()
		require.NoError(t, q.Put(ctx, []byte("one")))
		if s.native {
			require.Equal(t, []string{"PRESSURE.PUT q one timeout 100 client " + q.ClientID() + " prefix __pressure__"},
				rec.take())
		} else {
			require.Equal(t, []string{
				"EXISTS :bound", "RPOP :producer_free", "SET :producer " + q.ClientID(), "GET :bound", "EXISTS :closed",
				"RPOP :not_full", "LLEN ",
				"LPUSH  one", "INCRBY :stats:produced_messages 1", "INCRBY :stats:produced_bytes 3", "LPUSH :not_full 0",
				"LTRIM :not_full 0 0",
				"LPUSH :producer_free 0",
			}, rec.take())
		}
		t.Run("elements are pushed at the left", func(t *testing.T) {
			require.NoError(t, q.Put(ctx, []byte("two")))
			require.Equal(t, []string{"two", "one"}, s.LRange(ctx, key("q", ""), 0, -1).Val())
		})
		t.Run("a full queue has no element in :not_full", func(t *testing.T) {
			require.EqualValues(t, 0, s.Exists(ctx, key("q", ":not_full")).Val())
			s.rolesAreFree(t, "q")
		})
		t.Run("a full queue makes it wait, and after the timeout :producer_free gets its element back", func(t *testing.T) {
			err := q.WithTimeout(30*time.Millisecond).Put(ctx, []byte("three"))
			require.ErrorIs(t, err, pressure.ErrTimeout)
			require.EqualError(t, err, `pressure: put into "q": timed out`)
			s.rolesAreFree(t, "q")
			require.EqualValues(t, 2, s.LLen(ctx, key("q", "")).Val())
		})
		t.Run("it waits until :not_full has an element", func(t *testing.T) {
			done := make(chan error, 1)
			go func() { done <- q.Put(ctx, []byte("three")) }()
			waitFor(t, "the producer has the role", func() bool { return s.Exists(ctx, key("q", ":producer_free")).Val() == 0 })
			message, err := q.Get(ctx)
			require.NoError(t, err)
			require.Equal(t, "one", string(message))
			require.NoError(t, <-done)
			require.Equal(t, []string{"three", "two"}, s.LRange(ctx, key("q", ""), 0, -1).Val())
		})
		t.Run("it waits while another producer has the role", func(t *testing.T) {
			_, err := q.GetN(ctx, 2)
			require.NoError(t, err)
			require.NoError(t, s.RPop(ctx, key("q", ":producer_free")).Err())
			s.Set(ctx, key("q", ":producer"), "another", 0)
			require.ErrorIs(t, q.WithTimeout(30*time.Millisecond).Put(ctx, []byte("m")), pressure.ErrTimeout)
			require.Equal(t, "another", s.Get(ctx, key("q", ":producer")).Val())
			done := make(chan error, 1)
			go func() { done <- q.Put(ctx, []byte("m")) }()
			s.LPush(ctx, key("q", ":producer_free"), "1")
			require.NoError(t, <-done)
			require.Equal(t, q.ClientID(), s.Get(ctx, key("q", ":producer")).Val())
			s.rolesAreFree(t, "q")
		})
		t.Run("a closed queue is an error", func(t *testing.T) {
			require.NoError(t, q.Close(ctx))
			require.ErrorIs(t, q.Put(ctx, []byte("late")), pressure.ErrClosed)
			s.rolesAreFree(t, "q")
			require.EqualValues(t, 1, s.LLen(ctx, key("q", ":not_full")).Val())
		})
		t.Run("an empty :bound is an error", func(t *testing.T) {
			require.NoError(t, q.Delete(ctx))
			require.ErrorIs(t, q.Put(ctx, []byte("m")), pressure.ErrNoQueue)
			require.Empty(t, s.keys(t, "q"))
		})
		t.Run("bound 0 never waits", func(t *testing.T) {
			q := s.create(t, "q", 0)
			s.Del(ctx, key("q", ":not_full")) // as C clients leave it
			n, err := q.PutAll(ctx, messages("a", "b", "c")...)
			require.NoError(t, err)
			require.Equal(t, 3, n)
			require.EqualValues(t, 1, s.LLen(ctx, key("q", ":not_full")).Val())
		})
	})
}

func TestGet(t *testing.T) {
	onEachServer(t, func(t *testing.T, s server) {
		ctx := t.Context()
		rec := record(s.Client)
		q := s.create(t, "q", 2)
		require.NoError(t, q.Put(ctx, []byte("one")))
		require.NoError(t, q.Put(ctx, []byte("two")))
		rec.take()
		message, err := q.Get(ctx)
		require.NoError(t, err)
		require.Equal(t, "one", string(message), "elements are popped at the right")
		if s.native {
			require.Equal(t, []string{"PRESSURE.GET q count 1 timeout 100 client " + q.ClientID() + " prefix __pressure__"},
				rec.take())
		} else {
			require.Equal(t, []string{
				"EXISTS :bound", "RPOP :consumer_free", "SET :consumer " + q.ClientID(), "EXISTS :bound", "EXISTS :closed",
				"RPOPLPUSH  :not_full", "LPUSHX :not_full 0", "LTRIM :not_full 0 0",
				"INCRBY :stats:consumed_messages 1", "INCRBY :stats:consumed_bytes 3", "LPUSH :consumer_free 0",
			}, rec.take())
		}
		t.Run(":not_full has a value", func(t *testing.T) {
			require.Equal(t, []string{"0"}, s.LRange(ctx, key("q", ":not_full"), 0, -1).Val())
			s.rolesAreFree(t, "q")
		})
		t.Run("an empty queue makes it wait, and after the timeout :consumer_free gets its element back", func(t *testing.T) {
			_, err := q.Get(ctx)
			require.NoError(t, err)
			_, err = q.WithTimeout(30 * time.Millisecond).Get(ctx)
			require.EqualError(t, err, `pressure: get from "q": timed out`)
			s.rolesAreFree(t, "q")
		})
		t.Run("it waits for a message", func(t *testing.T) {
			for _, message := range []string{"three", "", "\x00\r\n\xff"} {
				got := make(chan string, 1)
				go func() {
					m, err := q.Get(ctx)
					got <- fmt.Sprint(string(m), err)
				}()
				waitFor(t, "the consumer has the role", func() bool { return s.Exists(ctx, key("q", ":consumer_free")).Val() == 0 })
				require.NoError(t, q.Put(ctx, []byte(message)))
				require.Equal(t, message+"<nil>", <-got)
				require.EqualValues(t, 1, s.LLen(ctx, key("q", ":not_full")).Val())
			}
			s.rolesAreFree(t, "q")
		})
		t.Run("it waits while another consumer has the role", func(t *testing.T) {
			require.NoError(t, q.Put(ctx, []byte("m")))
			require.NoError(t, s.RPop(ctx, key("q", ":consumer_free")).Err())
			_, err := q.WithTimeout(30 * time.Millisecond).Get(ctx)
			require.ErrorIs(t, err, pressure.ErrTimeout)
			got := make(chan string, 1)
			go func() {
				m, err := q.Get(ctx)
				got <- fmt.Sprint(string(m), err)
			}()
			s.LPush(ctx, key("q", ":consumer_free"), "1")
			require.Equal(t, "m<nil>", <-got)
			s.rolesAreFree(t, "q")
		})
		t.Run("it waits until :closed has elements", func(t *testing.T) {
			failure := make(chan error, 1)
			go func() {
				_, err := q.Get(ctx)
				failure <- err
			}()
			waitFor(t, "the consumer has the role", func() bool { return s.Exists(ctx, key("q", ":consumer_free")).Val() == 0 })
			require.NoError(t, q.Close(ctx))
			require.ErrorIs(t, <-failure, pressure.ErrClosed)
			require.EqualValues(t, 1, s.Exists(ctx, key("q", ":closed")).Val(), "it is still closed")
			s.rolesAreFree(t, "q")
		})
		t.Run("an empty :bound is an error", func(t *testing.T) {
			require.NoError(t, q.Delete(ctx))
			_, err := q.Get(ctx)
			require.ErrorIs(t, err, pressure.ErrNoQueue)
			require.Empty(t, s.keys(t, "q"))
		})
		t.Run("a closed queue is drained, and counts", func(t *testing.T) {
			q := s.create(t, "q", 5)
			_, err := q.PutAll(ctx, messages("a", "b", "c")...)
			require.NoError(t, err)
			require.NoError(t, q.Close(ctx))
			var got []string
			for m, err := range q.Messages(ctx) {
				require.NoError(t, err)
				got = append(got, string(m))
			}
			require.Equal(t, []string{"a", "b", "c"}, got)
			_, err = q.Get(ctx)
			require.ErrorIs(t, err, pressure.ErrClosed)
			require.Equal(t, "3", s.Get(ctx, key("q", ":stats:consumed_messages")).Val())
			s.rolesAreFree(t, "q")
		})
	})
}

func TestClose(t *testing.T) {
	onEachServer(t, func(t *testing.T, s server) {
		ctx := t.Context()
		q := s.create(t, "q", 1)
		t.Run("it waits while another producer has the role", func(t *testing.T) {
			s.RPop(ctx, key("q", ":producer_free"))
			require.ErrorIs(t, q.WithTimeout(30*time.Millisecond).Close(ctx), pressure.ErrTimeout)
			require.EqualValues(t, 0, s.Exists(ctx, key("q", ":closed")).Val())
			s.LPush(ctx, key("q", ":producer_free"), "0")
		})
		t.Run("it sets :producer, pushes two elements to :closed, and gives the role back", func(t *testing.T) {
			require.NoError(t, q.Close(ctx))
			require.Equal(t, q.ClientID(), s.Get(ctx, key("q", ":producer")).Val())
			require.EqualValues(t, 2, s.LLen(ctx, key("q", ":closed")).Val())
			s.rolesAreFree(t, "q")
		})
		t.Run("queues can be closed at most once", func(t *testing.T) {
			require.EqualError(t, q.Close(ctx), `pressure: close "q": the queue is closed`)
			require.EqualValues(t, 2, s.LLen(ctx, key("q", ":closed")).Val())
			s.rolesAreFree(t, "q")
		})
		t.Run("an empty :bound is an error", func(t *testing.T) {
			require.NoError(t, q.Delete(ctx))
			require.ErrorIs(t, q.Close(ctx), pressure.ErrNoQueue)
			require.Empty(t, s.keys(t, "q"))
		})
	})
}

func TestDelete(t *testing.T) {
	onEachServer(t, func(t *testing.T, s server) {
		ctx := t.Context()
		t.Run("no key is left, in either spelling", func(t *testing.T) {
			q := s.create(t, "q", 3)
			_, err := q.PutAll(ctx, messages("a", "b")...)
			require.NoError(t, err)
			_, err = q.Get(ctx)
			require.NoError(t, err)
			s.Set(ctx, key("q", ":produced_messages"), "1", 0)
			require.NoError(t, q.Close(ctx))
			require.NoError(t, q.Delete(ctx))
			require.Empty(t, s.keys(t, "q"))
		})
		t.Run("an empty :bound is an error", func(t *testing.T) {
			q := s.create(t, "q", 3)
			require.NoError(t, q.Delete(ctx))
			require.EqualError(t, q.Delete(ctx), `pressure: delete "q": the queue does not exist`)
			require.Empty(t, s.keys(t, "q"))
		})
		t.Run("a producer that waits for room ends", func(t *testing.T) {
			q := s.create(t, "q", 1)
			require.NoError(t, q.Put(ctx, []byte("m")))
			failure := make(chan error, 1)
			go func() { failure <- q.Put(ctx, []byte("n")) }()
			waitFor(t, "the producer has the role", func() bool { return s.Exists(ctx, key("q", ":producer_free")).Val() == 0 })
			require.NoError(t, s.open(t, "q").Delete(ctx))
			require.ErrorIs(t, <-failure, pressure.ErrNoQueue)
			require.Empty(t, s.keys(t, "q"))
		})
		t.Run("a consumer that waits for a message ends", func(t *testing.T) {
			q := s.create(t, "q", 1)
			failure := make(chan error, 1)
			go func() {
				_, err := q.Get(ctx)
				failure <- err
			}()
			waitFor(t, "the consumer has the role", func() bool { return s.Exists(ctx, key("q", ":consumer_free")).Val() == 0 })
			require.NoError(t, q.Delete(ctx))
			require.ErrorIs(t, <-failure, pressure.ErrNoQueue)
			require.Empty(t, s.keys(t, "q"))
		})
		t.Run("a client that waits for a role ends", func(t *testing.T) {
			q := s.create(t, "q", 1)
			s.RPop(ctx, key("q", ":producer_free"))
			failure := make(chan error, 1)
			go func() { failure <- q.Put(ctx, []byte("n")) }()
			deleted := make(chan error, 1)
			go func() { deleted <- q.Delete(ctx) }()
			waitFor(t, "the deletion has begun", func() bool { return s.Exists(ctx, key("q", ":bound")).Val() == 0 })
			s.LPush(ctx, key("q", ":producer_free"), "0")
			require.NoError(t, <-deleted)
			require.ErrorIs(t, <-failure, pressure.ErrNoQueue)
			waitFor(t, "no keys", func() bool { return len(s.keys(t, "q")) == 0 })
		})
		t.Run("it blocks for the roles, and can be called again for the rest", func(t *testing.T) {
			for _, suffix := range []string{":producer_free", ":consumer_free"} {
				q := s.create(t, "q", 1)
				s.RPop(ctx, key("q", suffix))
				require.ErrorIs(t, q.WithTimeout(30*time.Millisecond).Delete(ctx), pressure.ErrTimeout)
				_, err := pressure.Open(ctx, s.Client, "q", s.o)
				require.ErrorIs(t, err, pressure.ErrNoQueue)
				deleted := make(chan error, 1)
				go func() { deleted <- pressure.Delete(ctx, s.Client, "q", s.o) }()
				s.LPush(ctx, key("q", suffix), "0")
				require.NoError(t, <-deleted)
				require.Empty(t, s.keys(t, "q"))
			}
		})
	})
}

func TestOpenLenInfoList(t *testing.T) {
	onEachServer(t, func(t *testing.T, s server) {
		ctx := t.Context()
		_, err := pressure.Open(ctx, s.Client, "q", s.o)
		require.EqualError(t, err, `pressure: open "q": the queue does not exist`)
		q := s.create(t, "q", 4)
		_, err = q.PutAll(ctx, messages("a", "bb", "ccc")...)
		require.NoError(t, err)
		_, err = s.open(t, "q").Get(ctx)
		require.NoError(t, err)
		n, err := q.Len(ctx)
		require.NoError(t, err)
		require.EqualValues(t, 2, n)
		info, err := q.Info(ctx)
		require.NoError(t, err)
		want := pressure.Info{Length: 2, Bound: 4, Producer: q.ClientID(), Consumer: s.Get(ctx, key("q", ":consumer")).Val(),
			ProducerFree: true, ConsumerFree: true, ProducedMessages: 3, ProducedBytes: 6, ConsumedMessages: 1, ConsumedBytes: 1}
		if !s.native {
			want.BlockedProducers, want.BlockedConsumers, want.Reserved, want.Redelivered = -1, -1, -1, -1
			want.Delayed, want.Dead, want.Schedules = -1, -1, -1
		}
		require.Equal(t, want, *info)
		require.NoError(t, q.Close(ctx))
		s.RPop(ctx, key("q", ":consumer_free"))
		info, err = q.Info(ctx)
		require.NoError(t, err)
		require.True(t, info.Closed)
		require.False(t, info.ConsumerFree)

		for _, name := range strange {
			s.create(t, name, 1)
		}
		s.Set(ctx, "other:z:bound", "1", 0)
		names, err := pressure.List(ctx, s.Client, s.o)
		require.NoError(t, err)
		require.ElementsMatch(t, append([]string{"q"}, strange...), names)
		require.IsIncreasing(t, names)

		require.NoError(t, s.FlushAll(ctx).Err())
		_, err = q.Len(ctx)
		require.ErrorIs(t, err, pressure.ErrNoQueue)
		_, err = q.Info(ctx)
		require.ErrorIs(t, err, pressure.ErrNoQueue)
		names, err = pressure.List(ctx, s.Client, s.o)
		require.NoError(t, err)
		require.Empty(t, names)
	})
}

// strange are unusual names that must work: spaces, colons, glob characters, NUL, line ends, invalid UTF-8.
var strange = []string{"two words", "a:b:c", "*", "[a-z]?", `back\slash`, "nul\x00byte", "line\r\nend", "\xff\xfe",
	strings.Repeat("long", 1000)}

func TestStrangeNamesAndMessages(t *testing.T) {
	onEachServer(t, func(t *testing.T, s server) {
		ctx := t.Context()
		// Options of the queue commands, and characters that could end a text.
		values := append([]string{"", "TIMEOUT", "1", "CLIENT", "PREFIX", "COUNT", "RESERVE", strings.Repeat("x", 1<<20)},
			strange...)
		for _, name := range append([]string{""}, strange...) {
			q := s.create(t, name, 0)
			n, err := q.PutAll(ctx, messages(values...)...)
			require.NoError(t, err)
			require.Equal(t, len(values), n)
			got, err := q.GetN(ctx, 100)
			require.NoError(t, err)
			require.Equal(t, values, texts(got))
			require.NoError(t, q.Delete(ctx))
		}
		require.Empty(t, s.Keys(ctx, "*").Val())
	})
}

func TestManyMessagesAtOnce(t *testing.T) {
	onEachServer(t, func(t *testing.T, s server) {
		ctx := t.Context()
		q := s.create(t, "q", 3)
		n, err := q.WithTimeout(500*time.Millisecond).PutAll(ctx, messages("a", "b", "c", "d", "e")...)
		require.ErrorIs(t, err, pressure.ErrTimeout)
		require.Equal(t, 3, n, "as many as there was room for")
		s.rolesAreFree(t, "q")
		n, err = q.PutAll(ctx)
		require.NoError(t, err)
		require.Zero(t, n)
		_, err = q.GetN(ctx, 0)
		require.ErrorContains(t, err, "0 messages")
		got, err := q.GetN(ctx, 2)
		require.NoError(t, err)
		require.Equal(t, []string{"a", "b"}, texts(got))
		got, err = q.GetN(ctx, 2)
		require.NoError(t, err)
		require.Equal(t, []string{"c"}, texts(got), "as many as there are")

		done := make(chan error, 1)
		var all []string
		for i := range 2000 {
			all = append(all, fmt.Sprint(i))
		}
		go func() {
			n, err := q.PutAll(ctx, messages(all...)...)
			if n != len(all) {
				err = errors.Join(err, fmt.Errorf("%d messages were put", n))
			}
			done <- errors.Join(err, q.Close(ctx))
		}()
		var received []string
		for {
			got, err := q.GetN(ctx, 7)
			if errors.Is(err, pressure.ErrClosed) {
				break
			}
			require.NoError(t, err)
			received = append(received, texts(got)...)
		}
		require.NoError(t, <-done)
		require.Equal(t, all, received)
		require.Equal(t, "2003", s.Get(ctx, key("q", ":stats:consumed_messages")).Val())
		require.Equal(t, s.Get(ctx, key("q", ":stats:produced_bytes")).Val(),
			s.Get(ctx, key("q", ":stats:consumed_bytes")).Val())
	})
}

// TestBothSpellingsOfStatistics sets counters under the names in the specification's sample commands.
func TestBothSpellingsOfStatistics(t *testing.T) {
	onSequences(t, func(t *testing.T, s server) {
		ctx := t.Context()
		q := s.create(t, "q", 0)
		require.NoError(t, q.Put(ctx, []byte("one")))
		s.MSet(ctx, key("q", ":produced_messages"), 10, key("q", ":produced_bytes"), 20, key("q", ":consumed_messages"), 30,
			key("q", ":consumed_bytes"), 40)
		info, err := q.Info(ctx)
		require.NoError(t, err)
		require.Equal(t, []int64{11, 23, 30, 40}, []int64{info.ProducedMessages, info.ProducedBytes, info.ConsumedMessages,
			info.ConsumedBytes})
	})
}

// TestReservations checks that reserved messages return unless they are acknowledged.
func TestReservations(t *testing.T) {
	ctx := t.Context()
	s := server{client(t, startAtomredis(t)), pressure.Options{}, true}
	q := s.create(t, "q", 0)
	_, err := q.PutAll(ctx, messages("a", "", "c")...)
	require.NoError(t, err)
	a, err := q.Reserve(ctx, time.Minute)
	require.NoError(t, err)
	require.Equal(t, "a", string(a.Message))
	rest, err := q.ReserveN(ctx, 5, time.Minute)
	require.NoError(t, err)
	require.Len(t, rest, 2)
	info, err := q.Info(ctx)
	require.NoError(t, err)
	require.EqualValues(t, 3, info.Reserved)
	n, err := q.Ack(ctx, a.ID)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	n, err = q.Ack(ctx, a.ID)
	require.NoError(t, err)
	require.Zero(t, n, "acknowledged already")
	n, err = q.Return(ctx, rest[0].ID, rest[1].ID, "1-1")
	require.NoError(t, err)
	require.Equal(t, 2, n)
	got, err := q.GetN(ctx, 5)
	require.NoError(t, err)
	require.Equal(t, []string{"", "c"}, texts(got))

	require.NoError(t, q.Put(ctx, []byte("d")))
	_, err = q.Reserve(ctx, time.Millisecond)
	require.NoError(t, err)
	d, err := q.Get(ctx) // waits until it returns
	require.NoError(t, err)
	require.Equal(t, "d", string(d))
	_, err = q.Reserve(ctx, 0)
	require.Error(t, err)
	n, err = q.Ack(ctx)
	require.NoError(t, err)
	require.Zero(t, n)
}

func TestServersWithoutReservationsSaySo(t *testing.T) {
	onSequences(t, func(t *testing.T, s server) {
		q := s.create(t, "q", 0)
		_, err := q.Reserve(t.Context(), time.Second)
		require.ErrorIs(t, err, errors.ErrUnsupported)
		_, err = q.Ack(t.Context(), "1-1")
		require.ErrorIs(t, err, errors.ErrUnsupported)
		_, err = q.Return(t.Context(), "1-1")
		require.ErrorIs(t, err, errors.ErrUnsupported)
	})
}
