package pubsub_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/testing/servertest"
	"github.com/atomredis/atomredis/internal/testing/testclient"
	"github.com/atomredis/atomredis/server"
)

func TestTranscripts(t *testing.T) { servertest.Transcripts(t, "pubsub") }

// TestPipelinesPublishInOrder checks the messages to clients with all kinds of subscriptions, for pipelines that
// publish to several channels with other commands in between.
func TestPipelinesPublishInOrder(t *testing.T) {
	servertest.EachTransport(t, func(t *testing.T, o server.Options, settings ...string) {
		t.Run("channels", func(t *testing.T) { publishInOrder(t, servertest.Start(t, o, settings...), false) })
		t.Run("patterns too", func(t *testing.T) { publishInOrder(t, servertest.Start(t, o, settings...), true) })
	})
}

func publishInOrder(t *testing.T, s *servertest.Server, patterns bool) {
	random := rand.New(rand.NewPCG(1, 2))
	type subscriber struct {
		*testclient.Client
		gets map[string]string // the first words of the message, by command and channel
		want []string
	}
	var all []*subscriber
	subscribe := func(proto string, gets map[string]string, command ...string) {
		c := &subscriber{Client: s.Connect(), gets: gets}
		c.Line("HELLO " + proto)
		c.Send(command...)
		for range command[1:] {
			c.Next()
		}
		all = append(all, c)
	}
	a, b := map[string]string{"PUBLISH a": "message a"}, map[string]string{"PUBLISH b": "message b"}
	subscribe("2", a, "SUBSCRIBE", "a")
	subscribe("3", map[string]string{"PUBLISH a": "message a", "PUBLISH b": "message b"}, "SUBSCRIBE", "a", "b")
	subscribe("2", b, "SUBSCRIBE", "b")
	subscribe("2", map[string]string{"SPUBLISH b": "smessage b"}, "SSUBSCRIBE", "b")
	if patterns {
		subscribe("3", map[string]string{"PUBLISH a": "pmessage [ac] a", "PUBLISH c": "pmessage [ac] c"}, "PSUBSCRIBE",
			"[ac]")
	}

	publisher, n := s.Connect(), 0
	for range 50 {
		var replies, queued []string
		transaction := false
		reply := func(text string) {
			if transaction {
				queued = append(queued, text)
				text = "+QUEUED"
			}
			replies = append(replies, text)
		}
		execute := func() {
			publisher.Append("EXEC")
			replies, queued, transaction = append(replies, "["+strings.Join(queued, " ")+"]"), nil, false
		}
		for range 1 + random.IntN(50) {
			switch k := random.IntN(20); {
			case k == 0 && !transaction:
				publisher.Append("MULTI")
				reply("+OK")
				transaction = true
			case k == 1 && transaction:
				execute()
			case k == 2:
				publisher.Append("GET", "key")
				reply("nil")
			case k == 4 && !transaction:
				publisher.Append("EVAL", "redis.call('publish', 'a', KEYS[1] .. 'x'); return redis.call('publish', 'a', KEYS[1] .. 'y')", "1", fmt.Sprint(n))
				count := 0
				for _, c := range all {
					if words, ok := c.gets["PUBLISH a"]; ok {
						count++
						c.want = append(c.want, fmt.Sprint(words, " ", n, "x"), fmt.Sprint(words, " ", n, "y"))
					}
				}
				reply(fmt.Sprint(count))
				n++
			case k == 3 && !transaction:
				publisher.Append("PUBLISH", "a")
				reply("-ERR wrong number of arguments for 'publish' command")
			default:
				command := []string{"PUBLISH", "PUBLISH", "PUBLISH", "SPUBLISH"}[random.IntN(4)]
				channel := []string{"a", "a", "b", "c"}[random.IntN(4)]
				payload := fmt.Sprint(n)
				if n++; random.IntN(20) == 0 {
					payload += strings.Repeat("x", random.IntN(8<<10))
				}
				publisher.Append(command, channel, payload)
				count := 0
				for _, c := range all {
					if words, ok := c.gets[command+" "+channel]; ok {
						count++
						c.want = append(c.want, words+" "+payload)
					}
				}
				reply(fmt.Sprint(count))
			}
		}
		if transaction {
			execute()
		}
		require.NoError(t, publisher.Flush())
		for i, want := range replies {
			require.Equal(t, want, publisher.Next(), i)
		}
	}
	for _, c := range all {
		for i, want := range c.want {
			v, err := c.Read(testclient.Timeout)
			require.NoError(t, err)
			var words []string
			for _, e := range v.Elems {
				words = append(words, e.Text)
			}
			require.Equal(t, want, strings.Join(words, " "), i)
		}
		c.want = nil
	}
}

// TestWhatWasPublishedArrivesHoweverThePipelineGoesOn lets other input than the next PUBLISH follow a kept message.
func TestWhatWasPublishedArrivesHoweverThePipelineGoesOn(t *testing.T) {
	servertest.EachTransport(t, func(t *testing.T, o server.Options, settings ...string) {
		s := servertest.Start(t, o, settings...)
		listener, publisher, other := s.Connect(), s.Connect(), s.Connect()
		listener.Line("SUBSCRIBE c")

		// The client is closed between two messages.
		id := publisher.Line("CLIENT ID")
		publisher.Append("PUBLISH", "c", "1")
		publisher.Append("CLIENT", "KILL", "ID", id, "SKIPME", "no")
		publisher.Append("PUBLISH", "c", "not sent")
		require.NoError(t, publisher.Flush())
		require.Equal(t, `["message" "c" "1"]`, listener.Next())

		// The second command waits, because the first has paused all clients.
		publisher = s.Connect()
		publisher.Append("PUBLISH", "c", "2")
		publisher.Append("CLIENT", "PAUSE", "1000000", "WRITE")
		publisher.Append("PUBLISH", "c", "3")
		publisher.Append("PUBLISH", "c", "4")
		require.NoError(t, publisher.Flush())
		require.Equal(t, `["message" "c" "2"]`, listener.Next())
		require.Equal(t, "1", publisher.Next())
		require.Equal(t, "+OK", publisher.Next()) // clients are paused now
		require.Equal(t, "OK", strings.TrimPrefix(other.Line("CLIENT UNPAUSE"), "+"))
		require.Equal(t, `["message" "c" "3"]`, listener.Next())
		require.Equal(t, `["message" "c" "4"]`, listener.Next())

		// A protocol error follows the message.
		publisher = s.Connect()
		publisher.Append("PUBLISH", "c", "5")
		publisher.Append("PUBLISH", "c", "6")
		publisher.AppendRaw("*2\r\n!")
		require.NoError(t, publisher.Flush())
		require.Equal(t, `["message" "c" "5"]`, listener.Next())
		require.Equal(t, `["message" "c" "6"]`, listener.Next())

		// The publisher also subscribes: its messages follow the replies to its PUBLISH.
		publisher = s.Connect()
		publisher.Line("HELLO 3")
		publisher.Line("SUBSCRIBE c")
		publisher.Append("PUBLISH", "c", "7")
		publisher.Append("PUBLISH", "c", "8")
		require.NoError(t, publisher.Flush())
		for _, want := range []string{"2", `push["message" "c" "7"]`, "2", `push["message" "c" "8"]`} {
			require.Equal(t, want, publisher.Next())
		}
		for _, payload := range []string{"7", "8"} {
			require.Equal(t, `["message" "c" "`+payload+`"]`, listener.Next())
		}
	})
}

// TestPublishersOfManyLoopsAreHeardInTheirOrder lets several clients publish to the same channels at once, while
// others subscribe and unsubscribe. Each subscriber gets each publisher's messages in order, none twice; those that
// are always subscribed get all.
func TestPublishersOfManyLoopsAreHeardInTheirOrder(t *testing.T) {
	servertest.EachTransport(t, func(t *testing.T, o server.Options, settings ...string) {
		s := servertest.Start(t, o, settings...)
		const publishers, pipelines, depth = 3, 40, 20
		listener, passer := s.Connect(), s.Connect()
		listener.Send("SUBSCRIBE", "c", "d")
		listener.Next()
		listener.Next()
		done := make(chan error, publishers)
		for p := range publishers {
			c := s.Connect()
			go func() {
				for i := range pipelines {
					for j := range depth {
						c.Append("PUBLISH", string("ccd"[j%3]), fmt.Sprint(p, " ", i*depth+j))
					}
					if err := c.Flush(); err != nil {
						done <- err
						return
					}
					for range depth {
						if _, err := c.Read(testclient.Timeout); err != nil {
							done <- err
							return
						}
					}
				}
				done <- nil
			}()
		}
		for range 100 {
			passer.Send("SUBSCRIBE", "c")
			passer.Send("UNSUBSCRIBE", "c")
			last := []int{-1, -1, -1}
			for ended := false; !ended; {
				v, err := passer.Read(testclient.Timeout)
				require.NoError(t, err)
				switch v.Elems[0].Text {
				case "message":
					var p, n int
					fmt.Sscan(v.Elems[2].Text, &p, &n)
					require.Greater(t, n, last[p])
					last[p] = n
				case "unsubscribe":
					ended = true
				}
			}
		}
		heard := make([][]int, publishers)
		for range publishers * pipelines * depth {
			v, err := listener.Read(testclient.Timeout)
			require.NoError(t, err)
			var p, n int
			fmt.Sscan(v.Elems[2].Text, &p, &n)
			heard[p] = append(heard[p], n)
		}
		for p := range publishers {
			require.NoError(t, <-done)
			require.Len(t, heard[p], pipelines*depth)
			require.True(t, slices.IsSorted(heard[p]))
		}
	})
}
