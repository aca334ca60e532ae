package session

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/command"
)

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

// If a session reads its mailbox while its reply is being made, earlier messages come before the reply and later
// ones after it.
func TestMessagesKeepTheirPlaceAroundAReply(t *testing.T) {
	b := newHarness(t)
	s, other := b.session(), b.session()
	b.feed(s, request("HELLO", "3"), request("BLPOP", "l", "0"))
	s.post(0, []byte("before,"))
	s.beginAnswer()
	s.post(0, []byte("behind,"))
	s.SetOutput(nil)
	s.Advance(b.Keyspace.Now())
	require.Equal(t, "before,", string(s.Output()))
	s.endAnswer()
	s.Advance(b.Keyspace.Now())
	require.Equal(t, "before,behind,", string(s.Output()))

	s.SetOutput(nil)
	s.post(0, []byte("before,"))
	b.feed(other, request("RPUSH", "l", "v"))
	s.post(0, []byte("behind"))
	s.Advance(b.Keyspace.Now())
	require.Equal(t, "before,*2\r\n$1\r\nl\r\n$1\r\nv\r\nbehind", string(s.Output()))
	require.False(t, s.box.answered)
	b.finish(t, s)
	b.finish(t, other)
}
