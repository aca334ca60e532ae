package server

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/command"
)

// TestPipelinesPublishInOrder compares what clients with all kinds of subscriptions are sent with what they should
// be, for pipelines that publish to several channels and do other things in between.
func TestPipelinesPublishInOrder(t *testing.T) {
	eachTransport(t, func(t *testing.T, o Options, settings ...string) {
		t.Run("channels", func(t *testing.T) { publishInOrder(t, startTestServer(t, o, settings...), false) })
		t.Run("patterns too", func(t *testing.T) { publishInOrder(t, startTestServer(t, o, settings...), true) })
	})
}

func publishInOrder(t *testing.T, s *testServer, patterns bool) {
	random := rand.New(rand.NewPCG(1, 2))
	type subscriber struct {
		*testClient
		gets map[string]string // for a command and a channel the first words of the message
		want []string
	}
	var all []*subscriber
	subscribe := func(proto string, gets map[string]string, command ...string) {
		c := &subscriber{testClient: s.connect(), gets: gets}
		c.do("HELLO " + proto)
		c.send(command...)
		for range command[1:] {
			c.read()
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

	publisher, n := s.connect(), 0
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
			require.Equal(t, want, publisher.read(), i)
		}
	}
	for _, c := range all {
		for i, want := range c.want {
			v, err := c.Read(testTimeout)
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

// TestMessagesAreKeptOnlyWhileNobodyCanTell looks into the mailboxes between the commands of pipelines.
func TestMessagesAreKeptOnlyWhileNobodyCanTell(t *testing.T) {
	b := newHarness(t)
	publisher, listener := b.session(), b.session()
	b.feed(listener, request("SUBSCRIBE", "c"))
	var seen []string
	require.NoError(t, b.Handle(command.Command{Name: "look", Arity: 1},
		func(*Caller) { seen = append(seen, string(listener.box.push)) }))
	req := func(args ...string) string { return string(request(args...)) }
	publish := func(payload string) string { return req("PUBLISH", "c", payload) }
	message := func(payload string) string { return "*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\n" + payload + "\r\n" }
	for pipeline, want := range map[string]string{
		publish("1") + req("LOOK"):                             "1",
		publish("1") + publish("2") + req("LOOK"):              "12",
		publish("1") + req("PUBLISH", "c") + req("LOOK"):       "1",
		publish("1") + req("PUBLISH", "d", "2") + req("LOOK"):  "1",
		publish("1") + req("SPUBLISH", "c", "2") + req("LOOK"): "1",
		strings.Repeat(publish("1"), 3*maxAhead) + req("LOOK"): strings.Repeat("1",
			3*maxAhead),
		req("MULTI") + publish("1") + req("LOOK") + req("EXEC"):                                "1",
		req("EVAL", "redis.call('publish', 'c', '1'); redis.call('look')", "0") + publish("2"): "1",
	} {
		b.feed(publisher, []byte(pipeline))
		messages := ""
		for _, payload := range want {
			messages += message(string(payload))
		}
		require.Equal(t, []string{messages}, seen, pipeline)
		b.feed(listener)
		seen = nil
	}
	listener.Close()
	b.finish(t, publisher)
}

// TestWhatWasPublishedArrivesHoweverThePipelineGoesOn has something other than the next PUBLISH come behind a message
// that waits for it.
func TestWhatWasPublishedArrivesHoweverThePipelineGoesOn(t *testing.T) {
	eachTransport(t, func(t *testing.T, o Options, settings ...string) {
		s := startTestServer(t, o, settings...)
		listener, publisher, other := s.connect(), s.connect(), s.connect()
		listener.do("SUBSCRIBE c")

		// The client is to be closed between two of them.
		id := publisher.do("CLIENT ID")
		publisher.Append("PUBLISH", "c", "1")
		publisher.Append("CLIENT", "KILL", "ID", id, "SKIPME", "no")
		publisher.Append("PUBLISH", "c", "not sent")
		require.NoError(t, publisher.Flush())
		require.Equal(t, `["message" "c" "1"]`, listener.read())

		// The second must wait: it may, because the first has paused all.
		publisher = s.connect()
		publisher.Append("PUBLISH", "c", "2")
		publisher.Append("CLIENT", "PAUSE", "1000000", "WRITE")
		publisher.Append("PUBLISH", "c", "3")
		publisher.Append("PUBLISH", "c", "4")
		require.NoError(t, publisher.Flush())
		require.Equal(t, `["message" "c" "2"]`, listener.read())
		require.Equal(t, "1", publisher.read())
		require.Equal(t, "+OK", publisher.read()) // the pause has begun
		require.Equal(t, "OK", strings.TrimPrefix(other.do("CLIENT UNPAUSE"), "+"))
		require.Equal(t, `["message" "c" "3"]`, listener.read())
		require.Equal(t, `["message" "c" "4"]`, listener.read())

		// The protocol is violated behind it.
		publisher = s.connect()
		publisher.Append("PUBLISH", "c", "5")
		publisher.Append("PUBLISH", "c", "6")
		publisher.AppendRaw("*2\r\n!")
		require.NoError(t, publisher.Flush())
		require.Equal(t, `["message" "c" "5"]`, listener.read())
		require.Equal(t, `["message" "c" "6"]`, listener.read())

		// The publisher listens too: its messages come behind the replies to what published them.
		publisher = s.connect()
		publisher.do("HELLO 3")
		publisher.do("SUBSCRIBE c")
		publisher.Append("PUBLISH", "c", "7")
		publisher.Append("PUBLISH", "c", "8")
		require.NoError(t, publisher.Flush())
		for _, want := range []string{"2", `push["message" "c" "7"]`, "2", `push["message" "c" "8"]`} {
			require.Equal(t, want, publisher.read())
		}
		for _, payload := range []string{"7", "8"} {
			require.Equal(t, `["message" "c" "`+payload+`"]`, listener.read())
		}
	})
}

// TestPublishersOfManyLoopsAreHeardInTheirOrder has several clients publish to the same channels at once, while
// others subscribe and end it: each listener gets each publisher's messages in order, none twice, and those that
// listen all the time get all.
func TestPublishersOfManyLoopsAreHeardInTheirOrder(t *testing.T) {
	eachTransport(t, func(t *testing.T, o Options, settings ...string) {
		s := startTestServer(t, o, settings...)
		const publishers, pipelines, depth = 3, 40, 20
		listener, passer := s.connect(), s.connect()
		listener.send("SUBSCRIBE", "c", "d")
		listener.read()
		listener.read()
		done := make(chan error, publishers)
		for p := range publishers {
			c := s.connect()
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
						if _, err := c.Read(testTimeout); err != nil {
							done <- err
							return
						}
					}
				}
				done <- nil
			}()
		}
		for range 100 {
			passer.send("SUBSCRIBE", "c")
			passer.send("UNSUBSCRIBE", "c")
			last := []int{-1, -1, -1}
			for ended := false; !ended; {
				v, err := passer.Read(testTimeout)
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
			v, err := listener.Read(testTimeout)
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

// Whoever reads its mailbox while its reply is being made gets what came before the reply, and the rest behind it.
func TestMessagesKeepTheirPlaceAroundAReply(t *testing.T) {
	b := newHarness(t)
	s, other := b.session(), b.session()
	b.feed(s, request("HELLO", "3"), request("BLPOP", "l", "0"))
	s.post(0, []byte("before,"))
	s.beginAnswer()
	s.post(0, []byte("behind,"))
	s.SetOutput(nil)
	s.Advance(b.ks.Now())
	require.Equal(t, "before,", string(s.Output()))
	s.endAnswer()
	s.Advance(b.ks.Now())
	require.Equal(t, "before,behind,", string(s.Output()))

	s.SetOutput(nil)
	s.post(0, []byte("before,"))
	b.feed(other, request("RPUSH", "l", "v"))
	s.post(0, []byte("behind"))
	s.Advance(b.ks.Now())
	require.Equal(t, "before,*2\r\n$1\r\nl\r\n$1\r\nv\r\nbehind", string(s.Output()))
	require.False(t, s.box.answered)
	b.finish(t, s)
	b.finish(t, other)
}
