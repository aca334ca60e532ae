package conformance

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/conformance/oracle"
	"github.com/atomredis/atomredis/server"
)

// ours are commands that Redis 7.0 does not have, by their beginnings.
var ours = []string{"atom.", "pressure."}

// knownFacts are the differences in COMMAND INFO that docs/compatibility.md explains, as "command: field".
var knownFacts = func() map[string]bool {
	known := map[string]bool{"sinterstore: key specs": true, "zrank: arity": true, "zrevrank: arity": true, "wait: flags": true, "wait: categories": true}
	for _, name := range []string{"blmove", "blmpop", "blpop", "brpop", "brpoplpush", "bzmpop", "bzpopmax", "bzpopmin"} {
		known[name+": flags"] = true
	}
	return known
}()

// TestCommandInfoIsThatOfRedis compares the facts about all commands that both have.
func TestCommandInfoIsThatOfRedis(t *testing.T) {
	addr := oracle.Start(t)
	theirs := commandInfo(t, func() (*Conn, error) { return connect(addr) })
	dial := startServer(t, server.Options{})
	here := commandInfo(t, func() (*Conn, error) {
		nc, err := dial()
		return NewConn(nc), err
	})
	common := 0
	for name, facts := range here {
		if theirs[name] == nil || slices.ContainsFunc(ours, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
			continue
		}
		common++
		for field, want := range theirs[name] {
			if got := facts[field]; got != want && !knownFacts[name+": "+field] {
				t.Errorf("%s: %s is %s, want %s", name, field, got, want)
			}
		}
	}
	require.Greater(t, common, 200)
}

func connect(addr string) (*Conn, error) {
	nc, err := Dial(addr)
	return NewConn(nc), err
}

// commandInfo returns the facts about all commands and sub-commands, by their names.
func commandInfo(t *testing.T, dial func() (*Conn, error)) map[string]map[string]string {
	c, err := dial()
	require.NoError(t, err)
	defer c.Close()
	v, err := c.Do(10*time.Second, "COMMAND")
	require.NoError(t, err)
	all := map[string]map[string]string{}
	var add func(v Value)
	add = func(v Value) {
		e := v.Elems
		all[e[0].Text] = map[string]string{
			"arity": e[1].Text, "flags": sortedText(e[2]), "first": e[3].Text, "last": e[4].Text, "step": e[5].Text,
			"categories": sortedText(e[6]), "tips": sortedText(e[7]), "key specs": keySpecs(e[8]),
		}
		for _, sub := range e[9].Elems {
			add(sub)
		}
	}
	for _, command := range v.Elems {
		add(command)
	}
	return all
}

// keySpecs returns the specs without their notes, which are for people, and the flags in order.
func keySpecs(specs Value) string {
	var out []string
	for _, spec := range specs.Elems {
		for i := 0; i+1 < len(spec.Elems); i += 2 {
			switch value := spec.Elems[i+1]; spec.Elems[i].Text {
			case "notes":
			case "flags":
				out = append(out, "["+sortedText(value)+"]")
			default:
				out = append(out, value.String())
			}
		}
	}
	return strings.Join(out, " ")
}

// sortedText returns the elements, whose order means nothing, in the order of their texts.
func sortedText(v Value) string {
	words := make([]string, len(v.Elems))
	for i, e := range v.Elems {
		words[i] = e.Text
	}
	slices.Sort(words)
	return strings.Join(words, " ")
}
