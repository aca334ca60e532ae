package api_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestChangesAsEvents(t *testing.T) {
	a := open(t, t.TempDir(), map[string]string{"appendfsync": "always"})
	a.do("SET", "a", "1")
	next, _ := a.events("GET", "/changes?from=0&match=a", "")
	require.Regexp(t, "^id: [0-9a-f]{8}-", next(), "the position after the last change of a snapshot")
	require.Regexp(t, `^data: \{"position":"[^"]+","time":\d+,"commands":\[\{"db":0,"args":\["SET","a","1"\]\}\]\}$`, next())
	require.Empty(t, next())
	a.do("SET", "b", "1")
	a.do("SET", "a", "<\xff>")
	id, ok := strings.CutPrefix(next(), "id: ")
	require.True(t, ok)
	require.Regexp(t, `"args":\["SET","a","<\\ufffd>"\]\}\]\}$`, next())
	require.Empty(t, next())

	// A peer that connects again goes on.
	a.do("DEL", "a")
	again, _ := a.events("GET", "/changes?from=0", "", "Last-Event-ID", id)
	require.Regexp(t, "^id: [0-9a-f]{8}-", again())
	require.Contains(t, again(), `"args":["DEL","a"]`)

	a.require(400, `{"error":"ERR invalid position: it is what an earlier read returned, $ or 0"}`, "GET", "/changes?from=x", "")
	a.require(400, `{"error":"ERR syntax error"}`, "GET", "/changes?from=$&tree=1", "")
	// With a sub-command it is an ordinary command.
	a.require(200, `{"result":[]}`, "GET", "/changes/groups", "")
}
