package pubsub_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/clients/pubsub"
)

// client records the messages that it gets, and which of them are its own.
type client struct {
	pubsub.Subscriptions
	door     bool
	got, own string
}

func (c *client) ThroughDoor() bool { return c.door }
func (c *client) Deliver(messages []byte, own bool) {
	if c.got += string(messages); own {
		c.own += string(messages)
	}
}

// take returns what the client got since the last call.
func (c *client) take() string {
	got := c.got
	c.got = ""
	return got
}

func join(h *pubsub.Hub, proto int) *client {
	c := new(client)
	c.Join(h, c)
	c.SetProtocol(proto)
	return c
}

func message(payloads ...string) (text string) {
	for _, p := range payloads {
		text += "*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\n" + p + "\r\n"
	}
	return text
}

// A message is kept only as long as no client can notice.
func TestKeptMessagesAreSentBeforeAnythingElseHappens(t *testing.T) {
	h := new(pubsub.Hub)
	publisher, listener, other := join(h, 2), join(h, 2), join(h, 3)
	listener.Subscribe(pubsub.Channel, "c")
	c := []byte("c")
	keep := func(payload string) {
		require.Equal(t, 1, publisher.Publish(c, []byte(payload), true))
		require.True(t, publisher.Publishing())
	}

	keep("1")
	require.Empty(t, listener.take())
	other.Subscribe(pubsub.Channel, "c")
	require.Equal(t, message("1"), listener.take())
	require.Empty(t, other.take())

	other.Unsubscribe(pubsub.Channel, "c")
	keep("2")
	keep("3")
	listener.Unsubscribe(pubsub.Channel, "c")
	require.Equal(t, message("2", "3"), listener.take())

	other.Subscribe(pubsub.Channel, "c")
	keep("4")
	require.Equal(t, 1, other.Publish(c, []byte("5"), true), "nobody keeps the messages of a subscriber")
	require.Regexp(t, `(?s)^>3.*\n4\r\n>3.*\n5\r\n$`, other.take())
	require.NotContains(t, other.own, "4")
	require.Contains(t, other.own, "5")

	keep("6")
	require.Empty(t, other.take())
	publisher.EndPublishing()
	require.Contains(t, other.take(), "6")
	require.False(t, publisher.Publishing())

	keep("7")
	require.Equal(t, 1, publisher.Publish(c, []byte(strings.Repeat("x", 5000)), true))
	require.Contains(t, other.take(), "7", "a long message is not kept")
}

func TestNobodyHearsAPipelineThatHasNoSubscribers(t *testing.T) {
	h := new(pubsub.Hub)
	publisher := join(h, 2)
	require.Zero(t, publisher.Publish([]byte("c"), []byte("1"), true))
	require.Zero(t, publisher.PublishShard([]byte("c"), []byte("1"), true))
	require.False(t, publisher.Publishing(), "nothing was kept")
}

func TestPublishReachesChannelsPatternsAndDoors(t *testing.T) {
	h := new(pubsub.Hub)
	a, b, door := join(h, 2), join(h, 2), join(h, 2)
	door.door = true
	a.Subscribe(pubsub.Channel, "c")
	a.Subscribe(pubsub.Pattern, "?")
	b.Subscribe(pubsub.Pattern, "*")
	b.Subscribe(pubsub.ShardChannel, "c")
	door.Subscribe(pubsub.Channel, "c")
	require.Equal(t, 4, h.Publish(nil, []byte("c"), []byte("1"), false))
	require.Equal(t, 2, strings.Count(a.take(), "message"))
	require.Equal(t, 1, strings.Count(b.take(), "pmessage"))
	require.Equal(t, message("1"), door.take())

	h.PublishToDoors(nil, []byte("c"), []byte("2"))
	require.Empty(t, a.take()+b.take())
	require.Equal(t, message("2"), door.take())

	require.Equal(t, 1, h.PublishShard(nil, []byte("c"), []byte("3"), false))
	require.Contains(t, b.take(), "smessage")
	require.Empty(t, a.take()+door.take())
}

func TestExceptFindsThoseWhoHearWhatTheyMayNot(t *testing.T) {
	h := new(pubsub.Hub)
	a, b := join(h, 2), join(h, 2)
	a.Subscribe(pubsub.Channel, "open")
	b.Subscribe(pubsub.Channel, "open")
	b.Subscribe(pubsub.Pattern, "o*")
	found := h.Except(func(kind pubsub.Kind, name string) bool { return kind == pubsub.Channel && name == "open" })
	require.Equal(t, map[pubsub.Subscriber]bool{b: true}, found)
	b.UnsubscribeAll()
	require.False(t, b.Any())
	require.Equal(t, []int{1, 0}, h.Counts(pubsub.Channel, [][]byte{[]byte("open"), []byte("o")}))
	a.UnsubscribeAll()
	require.False(t, h.Heard())
}
