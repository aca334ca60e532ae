package servertest

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Listening is a Stepped with a client, and a subscriber to keyspace events.
type Listening struct {
	*Stepped
	t *testing.T
}

// NewListening returns a Listening, which ends with the test.
func NewListening(t *testing.T, settings ...string) Listening {
	l := Listening{NewStepped(t, settings...), t}
	t.Cleanup(l.Finish)
	return l
}

// keyEvent is a message about an event.
var keyEvent = regexp.MustCompile(`__keyevent@0__:(\w+)\r\n\$\d+\r\n(\w+)`)

// Step executes a line: "+1000" moves the clock by so many ms, "listen" subscribes to events, "events" returns the events
// since then, and anything else is a command. It returns the reply on one line.
func (l Listening) Step(line string) string {
	switch line {
	case "events":
		l.Pass(0)
		var words []string
		for _, m := range keyEvent.FindAllStringSubmatch(l.Reply("events"), -1) {
			words = append(words, m[1]+"="+m[2])
		}
		return strings.Join(words, " ")
	case "listen":
		l.Send("0", "CONFIG", "SET", "notify-keyspace-events", "EA")
		l.Send("events", "PSUBSCRIBE", "__keyevent@0__:*")
		return ""
	}
	return strings.TrimSpace(OnOneLine(l.Stepped.Step(line)))
}

// Steps executes lines and compares the replies: steps are a line and its reply in turn. Those in anyOrder have words in
// any order.
func (l Listening) Steps(steps []string, anyOrder ...string) {
	for i := 0; i < len(steps); i += 2 {
		line, want := steps[i], steps[i+1]
		got := l.Step(line)
		for _, unordered := range anyOrder {
			if line == unordered {
				require.ElementsMatch(l.t, strings.Fields(want), strings.Fields(got), line)
				want = got
			}
		}
		require.Equal(l.t, want, got, line)
	}
}
