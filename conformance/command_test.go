package conformance

import (
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/testing/oracle"
	"github.com/atomredis/atomredis/internal/testing/transcript"
	"github.com/atomredis/atomredis/server"
)

// knownFacts are the differences in COMMAND INFO that docs/compatibility.md explains, as "command: field".
var knownFacts = map[string]bool{
	"zrank: arity": true, "zrevrank: arity": true,
	"command|getkeys: arity": true, "command|getkeysandflags: arity": true,
	// Scripts may call blocking commands, as since Redis 7.2.
	"blpop: flags": true, "brpop: flags": true, "blmove: flags": true, "brpoplpush: flags": true, "bzpopmin: flags": true,
	"bzpopmax: flags": true, "wait: flags": true, "wait: categories": true,
	// script_runner, and denyoom of subscribing commands, are those of Redis 8.
	"eval: flags": true, "eval_ro: flags": true, "evalsha: flags": true, "evalsha_ro: flags": true, "fcall: flags": true,
	"fcall_ro: flags": true, "psubscribe: flags": true, "ssubscribe: flags": true, "subscribe: flags": true,
	// They are allowed while data is loaded, as since Redis 8.
	"cluster|count-failure-reports: flags": true, "cluster|info: flags": true, "cluster|keyslot: flags": true,
	"cluster|links: flags": true, "cluster|myid: flags": true, "cluster|nodes: flags": true, "cluster|replicas: flags": true,
	"cluster|shards: flags": true, "cluster|slaves: flags": true, "cluster|slots: flags": true,
	// Tips and key specs are those of Redis 8.6; a test of package server compares them with it.
	"sinterstore: key specs": true, "msetnx: tips": true, "latency|reset: tips": true, "acl|deluser: tips": true,
	"acl|save: tips": true, "acl|setuser: tips": true, "scan: tips": true, "randomkey: tips": true,
	"config|resetstat: tips": true, "config|rewrite: tips": true, "client|setname: tips": true,
}

// TestCommandInfoIsThatOfRedis compares the facts about all commands that both servers have.
func TestCommandInfoIsThatOfRedis(t *testing.T) {
	redis, ours := bothServers(t)
	theirs, here := commandInfo(t, redis), commandInfo(t, ours)
	common := 0
	for name, facts := range here {
		if theirs[name] == nil {
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

// bothServers returns connections to a Redis and to a server of ours.
func bothServers(t *testing.T) (redis, ours *transcript.Conn) {
	addr := oracle.Start(t)
	open := func(dial transcript.Dialer) *transcript.Conn {
		nc, err := dial()
		require.NoError(t, err)
		t.Cleanup(func() { nc.Close() })
		return transcript.NewConn(nc)
	}
	return open(func() (net.Conn, error) { return transcript.Dial(addr) }), open(startServer(t, server.Options{}))
}

// reply returns the server's reply to a command.
func reply(t *testing.T, c *transcript.Conn, words ...string) transcript.Value {
	v, err := c.Do(time.Minute, words...)
	require.NoError(t, err)
	return v
}

// commandInfo returns the facts about all commands and sub-commands, by name.
func commandInfo(t *testing.T, c *transcript.Conn) map[string]map[string]string {
	all := map[string]map[string]string{}
	var add func(v transcript.Value)
	add = func(v transcript.Value) {
		e := v.Elems
		all[e[0].Text] = map[string]string{
			"arity": e[1].Text, "flags": sortedText(e[2]), "first": e[3].Text, "last": e[4].Text, "step": e[5].Text,
			"categories": sortedText(e[6]), "tips": sortedText(e[7]), "key specs": keySpecs(e[8]),
		}
		for _, sub := range e[9].Elems {
			add(sub)
		}
	}
	for _, command := range reply(t, c, "COMMAND").Elems {
		add(command)
	}
	return all
}

// keySpecs returns the specs without their notes, which are for humans, and with sorted flags.
func keySpecs(specs transcript.Value) string {
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

// sortedText returns the elements, whose order is meaningless, sorted by their texts.
func sortedText(v transcript.Value) string {
	words := make([]string, len(v.Elems))
	for i, e := range v.Elems {
		words[i] = e.Text
	}
	slices.Sort(words)
	return strings.Join(words, " ")
}
