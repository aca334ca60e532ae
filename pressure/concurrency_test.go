package pressure_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/pressure"
)

// TestExactlyOnceInOrder runs several producers and consumers on a queue. Each message must arrive once, each consumer
// must see those of each producer in their order, and the queue must never hold more than its bound.
func TestExactlyOnceInOrder(t *testing.T) {
	const producers, consumers, each = 4, 3, 40
	for _, bound := range []int64{1, 10, 0} {
		for _, batch := range []int{1, 7} {
			t.Run(fmt.Sprintf("bound %d batch %d", bound, batch), func(t *testing.T) {
				onEachServer(t, func(t *testing.T, s server) {
					ctx := t.Context()
					s.create(t, "q", bound)
					var produce, consume sync.WaitGroup
					failures := make(chan error, producers+consumers)
					for p := range producers {
						q := s.open(t, "q")
						produce.Go(func() {
							for i := 0; i < each; i += batch {
								var list []string
								for j := i; j < min(i+batch, each); j++ {
									list = append(list, fmt.Sprintf("%d:%d", p, j))
								}
								if _, err := q.PutAll(ctx, messages(list...)...); err != nil {
									failures <- err
									return
								}
							}
						})
					}
					var mu sync.Mutex
					seen := map[string]int{}
					for range consumers {
						q := s.open(t, "q")
						consume.Go(func() {
							var last [producers]int
							for {
								got, err := q.GetN(ctx, batch)
								if errors.Is(err, pressure.ErrClosed) {
									return
								}
								if err != nil {
									failures <- err
									return
								}
								for _, m := range texts(got) {
									from, place, _ := strings.Cut(m, ":")
									p, _ := strconv.Atoi(from)
									i, _ := strconv.Atoi(place)
									if i+1 <= last[p] {
										failures <- fmt.Errorf("%s came after %d of the same producer", m, last[p]-1)
									}
									last[p] = i + 1
									mu.Lock()
									seen[m]++
									mu.Unlock()
								}
								if n, err := q.Len(ctx); err != nil || bound > 0 && n > bound {
									failures <- errors.Join(err, fmt.Errorf("%d messages", n))
								}
							}
						})
					}
					produce.Wait()
					require.NoError(t, s.open(t, "q").Close(ctx))
					consume.Wait()
					select {
					case err := <-failures:
						require.NoError(t, err)
					default:
					}
					require.Len(t, seen, producers*each)
					for m, n := range seen {
						require.Equal(t, 1, n, m)
					}
					info, err := s.open(t, "q").Info(ctx)
					require.NoError(t, err)
					require.EqualValues(t, producers*each, info.ProducedMessages)
					require.EqualValues(t, producers*each, info.ConsumedMessages)
					require.Equal(t, info.ProducedBytes, info.ConsumedBytes)
					s.rolesAreFree(t, "q")
				})
			})
		}
	}
}

// onEachClient runs a test on each server with three clients: one with dedicated connections, one that splits most
// waits into several short commands, and one without dedicated connections.
func onEachClient(t *testing.T, test func(t *testing.T, s server, c redis.UniversalClient)) {
	onEachServer(t, func(t *testing.T, s server) {
		t.Run("connections of their own", func(t *testing.T) {
			test(t, s, s.Client)
		})
		t.Run("short pieces", func(t *testing.T) {
			c := redis.NewClient(&redis.Options{Addr: s.Options().Addr, PoolSize: 100, ReadTimeout: time.Second})
			defer c.Close()
			test(t, s, c)
		})
		t.Run("any connection", func(t *testing.T) {
			test(t, s, struct{ redis.UniversalClient }{s.Client})
		})
	})
}

// TestCancelledAtAnyMoment ends the contexts of operations at random moments. A message that was put without an error
// must arrive once, any other not at all, and the queue must be usable at the end.
func TestCancelledAtAnyMoment(t *testing.T) {
	onEachClient(t, func(t *testing.T, s server, client redis.UniversalClient) {
		for _, bound := range []int64{1, 10, 0} {
			ctx := t.Context()
			name := fmt.Sprint("q", bound)
			q, err := pressure.Create(ctx, client, name, bound, s.o)
			require.NoError(t, err)
			var mu sync.Mutex
			put, got := map[string]int{}, map[string]int{}
			note := func(in map[string]int, m string) {
				mu.Lock()
				defer mu.Unlock()
				in[m]++
			}
			var failure error
			fail := func(err error) {
				mu.Lock()
				defer mu.Unlock()
				failure = errors.Join(failure, err)
			}
			cause := errors.New("enough")
			// attempt calls op with a context that ends soon, in one of the ways in which contexts end.
			attempt := func(r *rand.Rand, op func(ctx context.Context) error) error {
				d := time.Duration(r.Intn(3000)) * time.Microsecond
				switch r.Intn(3) {
				case 0:
					ctx, cancel := context.WithTimeoutCause(ctx, d, cause)
					defer cancel()
					return op(ctx)
				case 1:
					ctx, cancel := context.WithCancelCause(ctx)
					defer time.AfterFunc(d, func() { cancel(cause) }).Stop()
					defer cancel(nil)
					return op(ctx)
				}
				return op(ctx)
			}
			expected := func(err error) bool { return errors.Is(err, cause) || errors.Is(err, pressure.ErrTimeout) }
			var producers, consumers sync.WaitGroup
			for p := range 3 {
				r := rand.New(rand.NewSource(int64(p)))
				producers.Go(func() {
					for i := range 60 {
						list := []string{fmt.Sprintf("%d:%d:0", p, i), fmt.Sprintf("%d:%d:1", p, i), fmt.Sprintf("%d:%d:2", p, i)}
						var n int
						err := attempt(r, func(ctx context.Context) (err error) {
							n, err = q.WithTimeout(time.Duration(1+r.Intn(5))*time.Millisecond).PutAll(ctx, messages(list...)...)
							return err
						})
						if err != nil && !expected(err) || err == nil && n != len(list) {
							fail(fmt.Errorf("put: %d, %w", n, err))
						}
						for _, m := range list[:n] {
							note(put, m)
						}
					}
				})
			}
			stop, stopped := context.WithCancel(ctx)
			for p := range 3 {
				r := rand.New(rand.NewSource(int64(100 + p)))
				consumers.Go(func() {
					for stop.Err() == nil {
						var messages [][]byte
						err := attempt(r, func(ctx context.Context) (err error) {
							messages, err = q.WithTimeout(time.Duration(1+r.Intn(5))*time.Millisecond).GetN(ctx, 1+r.Intn(2))
							return err
						})
						if err != nil && !expected(err) {
							fail(err)
						}
						for _, m := range texts(messages) {
							note(got, m)
						}
					}
				})
			}
			producers.Wait()
			stopped()
			consumers.Wait()
			require.NoError(t, failure)
			s.rolesAreFree(t, name)
			require.NoError(t, q.WithTimeout(long).Close(ctx))
			for m, err := range q.WithTimeout(long).Messages(ctx) {
				require.NoError(t, err)
				note(got, string(m))
			}
			require.NotEmpty(t, put)
			require.Equal(t, put, got)
			require.NoError(t, q.WithTimeout(long).Delete(ctx))
			require.Empty(t, s.keys(t, name))
		}
	})
}

// TestLongWaits ends waits of several pieces in every way.
func TestLongWaits(t *testing.T) {
	onEachServer(t, func(t *testing.T, s server) {
		for name, client := range map[string]redis.UniversalClient{
			"own": redis.NewClient(&redis.Options{Addr: s.Options().Addr, ReadTimeout: 2 * time.Second, PoolSize: 20,
				MaxRetries: -1}),
			"any": struct{ redis.UniversalClient }{s.Client},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				if own, ok := client.(*redis.Client); ok {
					defer own.Close()
				}
				longWaits(t, s, name, client)
			})
		}
	})
}

func longWaits(t *testing.T, s server, name string, client redis.UniversalClient) {
	ctx := t.Context()
	q, err := pressure.Create(ctx, client, name, 1, s.o)
	require.NoError(t, err)
	const secondPiece = 250 * time.Millisecond // a wait that began before is in a later piece now
	// start begins an operation and returns when it has waited for some time with its role.
	start := func(role string, op func(ctx context.Context) error) (done chan error, cancel context.CancelCauseFunc) {
		ctx, cancel := context.WithCancelCause(ctx)
		done = make(chan error, 1)
		go func() { done <- op(ctx) }()
		waitFor(t, role+" is taken", func() bool { return s.Exists(ctx, key(name, ":"+role+"_free")).Val() == 0 })
		time.Sleep(secondPiece)
		return done, cancel
	}
	get := func(ctx context.Context) error { _, err := q.Get(ctx); return err }
	put := func(ctx context.Context) error { return q.Put(ctx, []byte("two")) }

	done, cancel := start("consumer", get)
	cancel(errors.New("enough"))
	require.ErrorContains(t, <-done, "enough")
	s.rolesAreFree(t, name)

	require.NoError(t, q.Put(ctx, []byte("one")))
	done, cancel = start("producer", put)
	cancel(errors.New("enough"))
	require.ErrorContains(t, <-done, "enough")
	s.rolesAreFree(t, name)

	done, cancel = start("producer", put)
	message, err := q.Get(ctx)
	require.NoError(t, err)
	require.Equal(t, "one", string(message))
	require.NoError(t, <-done)
	cancel(nil)
	s.rolesAreFree(t, name)

	// The deletion must wake the producer that waits for room and the consumer that waits for its role.
	producer, cancelProducer := start("producer", put)
	defer cancelProducer(nil)
	another, cancelAnother := start("producer", put)
	defer cancelAnother(nil)
	require.NoError(t, q.Delete(ctx))
	require.ErrorIs(t, <-producer, pressure.ErrNoQueue)
	require.ErrorIs(t, <-another, pressure.ErrNoQueue)
	waitFor(t, "no keys", func() bool { return len(s.Keys(ctx, key(name, "*")).Val()) == 0 })
}

// TestWaitsAreServedInTheOrderOfArrival starts three waiting consumers, each after the first piece of the one before.
func TestWaitsAreServedInTheOrderOfArrival(t *testing.T) {
	onEachServer(t, func(t *testing.T, s server) {
		ctx := t.Context()
		c := redis.NewClient(&redis.Options{Addr: s.Options().Addr, ReadTimeout: long})
		defer c.Close()
		q, err := pressure.Create(ctx, c, "q", 0, s.o)
		require.NoError(t, err)
		got := make([]chan string, 3)
		for i := range got {
			got[i] = make(chan string, 1)
			go func() {
				m, err := q.Get(ctx)
				got[i] <- fmt.Sprint(string(m), err)
			}()
			time.Sleep(500 * time.Millisecond) // it has begun the long wait, which keeps its place
		}
		for i := range got {
			require.NoError(t, q.Put(ctx, fmt.Appendf(nil, "%d:", i)))
			require.Equal(t, fmt.Sprintf("%d:<nil>", i), <-got[i])
		}
	})
}

// TestWaitsEndWithTheQueue lets a client wait for a role that never becomes free, in a queue that disappears without
// notice.
func TestWaitsEndWithTheQueue(t *testing.T) {
	onSequences(t, func(t *testing.T, s server) {
		ctx := t.Context()
		for _, piece := range []time.Duration{0, 150 * time.Millisecond} {
			// in the first piece of the wait, and in a long one
			q := s.create(t, "q", 1)
			holder := s.Conn()
			defer holder.Close()
			require.NoError(t, holder.RPop(ctx, key("q", ":producer_free")).Err())
			done := make(chan error, 1)
			go func() { done <- q.Put(ctx, []byte("m")) }()
			waitFor(t, "the client waits", func() bool {
				return strings.Contains(s.Info(ctx, "clients").Val(),
					"blocked_clients:1")
			})
			time.Sleep(piece)
			s.Del(ctx, key("q", ":bound"), key("q", ":consumer_free"), key("q", ":not_full"))
			require.ErrorIs(t, <-done, pressure.ErrNoQueue)
			require.Empty(t, s.keys(t, "q"))
		}
	})
}

func TestUsersWithoutThePermissionToReleaseCommands(t *testing.T) {
	onEachServer(t, func(t *testing.T, s server) {
		ctx := t.Context()
		if err := s.Do(ctx, "acl", "setuser", "plain", "on", ">secret", "~*", "+@all", "-client|unblock").Err(); err != nil {
			t.Skip("the server has no users:", err)
		}
		t.Cleanup(func() { s.Do(context.Background(), "acl", "deluser", "plain") })
		c := redis.NewClient(&redis.Options{Addr: s.Options().Addr, Username: "plain", Password: "secret"})
		defer c.Close()
		q, err := pressure.Create(ctx, c, "q", 1, s.o)
		require.NoError(t, err)
		_, err = q.WithTimeout(250 * time.Millisecond).Get(ctx)
		require.ErrorIs(t, err, pressure.ErrTimeout)
		s.rolesAreFree(t, "q")
	})
}

func TestContextsThatHaveEnded(t *testing.T) {
	onEachServer(t, func(t *testing.T, s server) {
		q := s.create(t, "q", 0)
		cause := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(cause)
		require.ErrorIs(t, q.Put(ctx, []byte("m")), cause)
		_, err := q.Get(ctx)
		require.ErrorIs(t, err, cause)
		require.ErrorIs(t, q.Close(ctx), cause)
		require.ErrorIs(t, q.Delete(ctx), cause)
		_, err = q.Len(ctx)
		require.ErrorIs(t, err, cause)
		for _, err := range q.Messages(ctx) {
			require.ErrorIs(t, err, cause)
		}
		_, err = pressure.Open(ctx, s.Client, "q", s.o)
		require.ErrorIs(t, err, cause)
		_, err = pressure.Create(ctx, s.Client, "r", 0, s.o)
		require.ErrorIs(t, err, cause)
		require.Equal(t, map[string]string{":bound": "string", ":producer_free": "list", ":consumer_free": "list",
			":not_full": "list"}, s.keys(t, "q"))
	})
}

func TestLeavingTheLoopOverMessagesLosesNone(t *testing.T) {
	onEachServer(t, func(t *testing.T, s server) {
		ctx := t.Context()
		q := s.create(t, "q", 0)
		_, err := q.PutAll(ctx, messages("a", "b", "c")...)
		require.NoError(t, err)
		for m, err := range q.Messages(ctx) {
			require.NoError(t, err)
			require.Equal(t, "a", string(m))
			break
		}
		n, err := q.Len(ctx)
		require.NoError(t, err)
		require.EqualValues(t, 2, n)
	})
}

// TestKeysOfOtherTypes gives the keys of a queue other types: operations fail, and both roles stay free.
func TestKeysOfOtherTypes(t *testing.T) {
	onEachServer(t, func(t *testing.T, s server) {
		ctx := t.Context()
		for _, suffix := range []string{"", ":not_full", ":producer_free", ":consumer_free"} {
			q := s.create(t, "q", 1)
			s.Del(ctx, key("q", suffix))
			s.Set(ctx, key("q", suffix), "text", 0)
			_, getErr := q.WithTimeout(200 * time.Millisecond).Get(ctx)
			putErr := q.WithTimeout(200*time.Millisecond).Put(ctx, []byte("m"))
			require.ErrorContains(t, errors.Join(putErr, getErr), "WRONGTYPE", suffix)
			if suffix != ":producer_free" {
				require.EqualValues(t, 1, s.LLen(ctx, key("q", ":producer_free")).Val(), suffix)
			}
			if suffix != ":consumer_free" {
				require.EqualValues(t, 1, s.LLen(ctx, key("q", ":consumer_free")).Val(), suffix)
			}
			s.FlushAll(ctx)
		}
		s.Set(ctx, key("q", ":bound"), "many", 0)
		_, err := pressure.Create(ctx, s.Client, "q", 1, s.o)
		require.Error(t, err)
	})
}

// TestSequencesAndCommandsShareAQueue runs producers and consumers of both kinds on one queue.
func TestSequencesAndCommandsShareAQueue(t *testing.T) {
	ctx := t.Context()
	c := client(t, startAtomredis(t))
	kinds := []pressure.Options{{}, {OnlyRedisCommands: true}}
	q, err := pressure.Create(ctx, c, "q", 5, kinds[0])
	require.NoError(t, err)
	const each = 200
	var producers, consumers sync.WaitGroup
	var mu sync.Mutex
	seen := map[string]int{}
	var failure error
	fail := func(err error) {
		mu.Lock()
		defer mu.Unlock()
		failure = errors.Join(failure, err)
	}
	for kind, o := range kinds {
		producer, err := pressure.Open(ctx, c, "q", o)
		require.NoError(t, err)
		producers.Go(func() {
			for i := range each {
				if err := producer.Put(ctx, fmt.Appendf(nil, "%d:%d", kind, i)); err != nil {
					fail(err)
					return
				}
			}
		})
		consumer, err := pressure.Open(ctx, c, "q", o)
		require.NoError(t, err)
		consumers.Go(func() {
			for m, err := range consumer.Messages(ctx) {
				if err != nil {
					fail(err)
					return
				}
				mu.Lock()
				seen[string(m)]++
				mu.Unlock()
			}
		})
	}
	producers.Wait()
	require.NoError(t, q.Close(ctx))
	consumers.Wait()
	require.NoError(t, failure)
	require.Len(t, seen, 2*each)
	for m, n := range seen {
		require.Equal(t, 1, n, m)
	}
}
