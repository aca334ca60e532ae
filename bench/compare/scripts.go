//go:build linux

package main

import (
	"crypto/sha1"
	"fmt"
	"strings"

	"github.com/atomredis/atomredis/bench/internal/load"
	"github.com/atomredis/atomredis/bench/internal/servers"
)

// The scripts of the workloads, similar to those of real programs.
const (
	getScript     = `return redis.call('GET', KEYS[1])`
	threeCalls    = `redis.call('INCR', KEYS[1]) redis.call('SET', KEYS[2], ARGV[1]) return redis.call('GET', KEYS[2])`
	releaseScript = `if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('PUBLISH', KEYS[1], 'released')
return redis.call('DEL', KEYS[1])`
	bucketScript = `local rate, capacity, now = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local bucket = redis.call('HMGET', KEYS[1], 'tokens', 'at')
local tokens, at = tonumber(bucket[1]) or capacity, tonumber(bucket[2]) or now
tokens = math.min(capacity, tokens + math.max(0, now - at) * rate)
local allowed = tokens >= 1
if allowed then tokens = tokens - 1 end
redis.call('HSET', KEYS[1], 'tokens', tokens, 'at', now)
redis.call('EXPIRE', KEYS[1], math.ceil(capacity / rate) * 2)
return allowed and 1 or 0`
	jsonScript = `return #cjson.encode(cjson.decode(ARGV[1]))`
	loopScript = `local s = 0 for i = 1, 1000 do s = s + i % 7 * 2 end return s`
)

// document is JSON of about a kilobyte.
var document = `[` + strings.TrimSuffix(strings.Repeat(`{"id":255230422,"name":"user 606","email":"user759@example.com","active":true,"balance":625.72,`+
	`"tags":["a","b","c"],"address":{"street":"Main Street 5","city":"Springfield","zip":"12345","geo":null}},`, 5),
	",") + `]`

// scriptWorkloads returns the workloads that call scripts. fill fills the server with keys and counters.
func scriptWorkloads(c settings, value, bulk string, fill func(s *servers.Server)) []workload {
	loaded := func(script string, fill func(s *servers.Server)) func(s *servers.Server) {
		return func(s *servers.Server) {
			if fill != nil {
				fill(s)
			}
			s.Do("SCRIPT", "LOAD", script)
		}
	}
	call := func(script string, args ...string) []string {
		return append([]string{"EVALSHA", fmt.Sprintf("%x", sha1.Sum([]byte(script)))}, args...)
	}
	return []workload{
		{name: "evalsha", bytes: c.Size, keyed: true, fill: loaded(threeCalls, fill),
			operation: [][]string{call(threeCalls, "2", counter, key, value)}, want: []string{bulk}},
		{name: "script-get", bytes: c.Size, keyed: true, fill: loaded(getScript, fill),
			operation: [][]string{call(getScript, "1", key)}, want: []string{bulk}},
		{name: "script-release", commands: 2, keyed: true, fill: loaded(releaseScript, nil),
			operation: [][]string{{"SET", "lock:" + load.Random, "token", "PX", "30000"},
				call(releaseScript, "1", "lock:"+load.Random, "token")},
			want: []string{"+OK", ":"}},
		{name: "script-bucket", keyed: true, fill: loaded(bucketScript, nil),
			operation: [][]string{call(bucketScript, "1", "bucket:"+load.Random, "5", "10", "1"+load.Random)},
			want:      []string{":"}},
		{name: "script-json", bytes: len(document), fill: loaded(jsonScript, nil),
			operation: [][]string{call(jsonScript, "0", document)}, want: []string{":"}},
		{name: "script-loop", fill: loaded(loopScript, nil), operation: [][]string{call(loopScript, "0")},
			want: []string{":"}},
	}
}
