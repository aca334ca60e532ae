package old

import (
	"encoding/binary"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/cluster"
	"github.com/atomredis/atomredis/internal/memconn"
	"github.com/atomredis/atomredis/internal/replication/quorum"
	"github.com/atomredis/atomredis/internal/wire/peer"
)

func soon() time.Time { return time.Now().Add(30 * time.Second) }

// step is a frame, and its form on an old connection.
type step struct {
	byDialler bool
	kind      peer.Kind
	payload   string // of the sender
	got       string // of the receiver, "" if it is the same
	bytes     string
}

// failedOf is the payload of a frame peer.Failed.
func failedOf(code peer.Code, text string) string {
	return string(append(peer.AppendPart(nil, []byte(code)), text...))
}

const busy = "slots are on their way from one shard to another"

// The exact bytes of connections of servers before the hello.
var connections = []struct {
	name    string
	purpose peer.Purpose
	begin   string
	steps   []step
}{
	{"question about the group", peer.Members, "Q", []step{
		{true, peer.Request, `{"From":"a:1"}`, "", `{"From":"a:1"}` + "\n"},
		{false, peer.Reply, `{"Client":"b:2","Error":""}`, "", `{"Client":"b:2","Error":""}` + "\n"},
	}},
	{"refused question about the group", peer.Members, "Q", []step{
		{true, peer.Request, `{"Join":"a:1"}`, "", `{"Join":"a:1"}` + "\n"},
		{false, peer.Failed, failedOf("", "this server does not lead its group"),
			failedOf(peer.NotLeading, "this server does not lead its group"), `{"Error":"this server does not lead its group"}` + "\n"},
	}},
	{"question of a shard", peer.Shards, "S", []step{
		{true, peer.Request, `{"Ask":"news"}`, "", `{"Ask":"news"}` + "\n"},
		{false, peer.Reply, `{"Leader":"b:2"}`, "", `{"Leader":"b:2"}` + "\n"},
	}},
	{"stream", peer.Stream, `S{"Ask":"stream"}` + "\n", nil},
	{"messages", peer.Broadcast, `S{"Ask":"publish"}` + "\n", []step{
		{true, message, "\x01c\x02mm", "", "\x01c\x02mm"},
		{true, message, "\x00\x00", "", "\x00\x00"},
	}},
	{"messages of shard channels", peer.BroadcastShard, `S{"Ask":"publish-shard"}` + "\n", []step{
		{true, message, "\x01c\x02mm", "", "\x01c\x02mm"},
	}},
	{"migration", peer.Migration, "S", []step{
		{true, peer.Request, `{"Task":"t"}`, `{"Ask":"give","Task":"t"}`, `{"Ask":"give","Task":"t"}` + "\n"},
		{false, peer.Reply, `{}`, "", "{}\n"},
		{false, state, "\x00\x02\x03key\x04body", "", "s\x00\x02\x03key\x04body"},
		{false, gone, "\x01\x03key", "", "g\x01\x03key"},
		{false, round, "\x01", "", "r\x01"},
		{true, ack, "\x01", "", `{"Round":1}` + "\n"},
		{false, lastRound, "\xff\x01", "", "l\xff\x01"},
		{true, ack, "\xff\x01", "", `{"Round":255}` + "\n"},
		{false, exported, `{"ID":"x"}`, "", "d\x0a" + `{"ID":"x"}`},
		{true, ack, "\x00", "", `{"Round":0}` + "\n"},
	}},
	{"refused migration", peer.Migration, "S", []step{
		{true, peer.Request, `{"Task":"t"}`, `{"Ask":"give","Task":"t"}`, `{"Ask":"give","Task":"t"}` + "\n"},
		{false, peer.Failed, failedOf(peer.Busy, busy), "", `{"Error":"` + busy + `"}` + "\n"},
	}},
	{"failed migration", peer.Migration, "S", []step{
		{true, peer.Request, `{"Task":"t"}`, `{"Ask":"give","Task":"t"}`, `{"Ask":"give","Task":"t"}` + "\n"},
		{false, peer.Reply, `{}`, "", "{}\n"},
		{false, peer.Failed, failedOf("", "why"), "", "e\x03why"},
	}},
	{"forwarded commands", peer.Forward, `S{"Ask":"proxy"}` + "\n", []step{
		{true, client, `{"DB":1}`, "", "I\x00\x00\x00\x08" + `{"DB":1}`},
		{false, answer, "\x04\x01\x00", "", "\x00\x00\x00\x00\x04\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00"},
		{true, commands, "PING\r\n", "", "C\x00\x00\x00\x06PING\r\n"},
		{false, answer, "\x02\x00\x80\x02+PONG\r\n", "",
			"\x00\x00\x00\x07\x02\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00+PONG\r\n"},
	}},
	{"forwarded commands to one that does not lead", peer.Forward, `S{"Ask":"proxy"}` + "\n", []step{
		{false, peer.Failed, failedOf(peer.NotLeading, "the server does not lead"), "",
			"\x00\x00\x00\x00\x10\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"},
	}},
}

// parts returns a payload in the parts that its sender makes: an answer's head and replies are separate.
func parts(s step) [][]byte {
	if s.kind != answer {
		return [][]byte{[]byte(s.payload)}
	}
	head := 2
	for s.payload[head]&0x80 != 0 {
		head++
	}
	return [][]byte{[]byte(s.payload[:head+1]), []byte(s.payload[head+1:])}
}

func TestOldConnectionsByteByByte(t *testing.T) {
	for _, c := range connections {
		t.Run(c.name, func(t *testing.T) {
			for _, dials := range []bool{true, false} { // this server
				here, there := memconn.Pipe(1 << 20)
				say := func(s string) {
					_, err := io.WriteString(there, s)
					require.NoError(t, err)
				}
				hear := func(s string) {
					b := make([]byte, len(s))
					_, err := io.ReadFull(there, b)
					require.NoError(t, err)
					require.Equal(t, s, string(b))
				}
				var conn *peer.Conn
				var err error
				steps := c.steps
				if dials {
					conn, err = Open(here, c.purpose, soon())
					hear(c.begin)
				} else {
					said := c.begin[1:]
					if len(steps) > 0 && steps[0].kind == peer.Request { // it names the purpose
						said += steps[0].bytes
					}
					say(said)
					conn, err = Accept(here, c.begin[0], soon())
				}
				require.NoError(t, err)
				require.Equal(t, c.purpose, conn.Purpose())
				require.Zero(t, conn.Version())
				for i, s := range steps {
					if s.byDialler == dials {
						require.NoError(t, conn.Send(s.kind, parts(s)...))
						require.NoError(t, conn.Flush())
						hear(s.bytes)
						continue
					}
					if s.kind != peer.Request || i > 0 {
						say(s.bytes)
					}
					kind, payload, err := conn.Receive()
					require.NoError(t, err)
					require.Equal(t, s.kind, kind)
					want := s.got
					if want == "" {
						want = s.payload
					}
					require.Equal(t, want, string(payload))
				}
				there.Close()
				_, err = conn.Next()
				require.Equal(t, io.EOF, err)
				here.Close()
			}
		})
	}
}

// The texts of the errors that have codes are those of old servers.
func TestErrorsHaveTheirCodes(t *testing.T) {
	require.Equal(t, peer.Busy, codes[cluster.ErrBusy.Error()])
	require.Equal(t, peer.NotLeading, codes[quorum.ErrNotLeader.Error()])
}

func TestFramesThatOldServersDoNotKnowAreNotSent(t *testing.T) {
	for _, c := range connections {
		here, there := memconn.Pipe(1 << 20)
		conn, err := Open(here, c.purpose, soon())
		require.NoError(t, err)
		require.ErrorIs(t, conn.Send('?', nil), errKind)
		here.Close()
		there.Close()
	}
}

func TestBrokenOldConnections(t *testing.T) {
	accept := func(sent string) (*peer.Conn, error) {
		here, there := memconn.Pipe(2 << 20)
		t.Cleanup(func() { here.Close() })
		_, err := io.WriteString(there, sent[1:])
		require.NoError(t, err)
		there.Close()
		return Accept(here, sent[0], soon())
	}
	for _, sent := range []string{"?", "S", "S{\n", "S" + strings.Repeat("x", 100), "S[]\n"} {
		_, err := accept(sent)
		require.Error(t, err, "%q", sent)
	}
	for sent, want := range map[string]error{
		"Q{":                             io.ErrUnexpectedEOF,
		`S{"Ask":"publish"}` + "\n\x01c": io.ErrUnexpectedEOF,
		`S{"Ask":"publish"}` + "\n\x05c": io.ErrUnexpectedEOF,
		`S{"Ask":"publish"}` + "\n" + string(binary.AppendUvarint(nil, 1<<40)): peer.ErrTooLong,
		`S{"Ask":"proxy"}` + "\nI\x00":                                         io.ErrUnexpectedEOF,
		`S{"Ask":"proxy"}` + "\nC\xff\xff\xff\xff":                             peer.ErrTooLong,
	} {
		c, err := accept(sent)
		require.NoError(t, err)
		_, _, err = c.Receive()
		require.ErrorIs(t, err, want, "%q", sent)
	}
	for sent, want := range map[string]error{
		"s\x00":                         io.ErrUnexpectedEOF,
		"g\x00\x05k":                    io.ErrUnexpectedEOF,
		"?":                             peer.ErrFrame,
		"d\xff\xff\xff\xff\xff\xff\x0f": peer.ErrTooLong,
	} {
		here, there := memconn.Pipe(1 << 20)
		c, err := Open(here, peer.Migration, soon())
		require.NoError(t, err)
		_, err = io.WriteString(there, "{}\n"+sent)
		require.NoError(t, err)
		there.Close()
		require.NoError(t, c.ReadReply(&struct{}{}))
		_, _, err = c.Receive()
		require.ErrorIs(t, err, want, "%q", sent)
		here.Close()
	}
	_, err := accept("S" + strings.Repeat("x", maxQuestion+10))
	require.ErrorIs(t, err, peer.ErrTooLong)
}

func TestOldServersAreRememberedForAWhile(t *testing.T) {
	var p Peers
	require.False(t, p.Has("a"))
	p.Add("a")
	require.True(t, p.Has("a"))
	require.False(t, p.Has("b"))
	p.until["a"] = time.Now().Add(-time.Second)
	require.False(t, p.Has("a"))
	require.Empty(t, p.until)
}

// With any input no form panics, runs without end, or returns more bytes than have arrived.
func FuzzForms(f *testing.F) {
	for _, c := range connections {
		for _, dials := range []bool{true, false} {
			sent := ""
			if !dials {
				sent = c.begin[1:]
			}
			for _, s := range c.steps {
				if s.byDialler != dials {
					sent += s.bytes
				}
			}
			f.Add(string(c.purpose), dials, []byte(sent))
		}
	}
	f.Fuzz(func(t *testing.T, purpose string, dials bool, sent []byte) {
		here, there := memconn.Pipe(len(sent) + 1<<10)
		defer here.Close()
		if _, err := there.Write(sent); err != nil {
			t.Fatal(err)
		}
		there.CloseWrite()
		var c *peer.Conn
		var err error
		switch {
		case dials:
			c, err = Open(here, peer.Purpose(purpose), soon())
		case purpose == string(peer.Members):
			c, err = Accept(here, forQuestions, soon())
		default:
			c, err = Accept(here, forServer, soon())
		}
		if err != nil {
			return
		}
		c.SetLimit(1000)
		total := 0
		for n := range len(sent) + 2 {
			_, payload, err := c.Receive()
			if err != nil {
				return
			}
			if total += len(payload); total > len(sent)+(n+1)*60 { // the code of an error, and its text
				t.Fatal(total, len(sent))
			}
		}
		t.Fatal("there is no end")
	})
}
