//go:build linux

package main

import (
	"strconv"
	"strings"
	"time"

	"github.com/atomredis/atomredis/bench/internal/servers"
)

// Commands that take long because their data is large, which is what users fear most. -case long runs all of these.
var longCases = []hostileCase{
	{name: "long-keys", fill: keys(million), attack: asks("KEYS", "*")},
	{name: "long-scan", fill: keys(million), attack: asks("SCAN", "0", "COUNT", "1000000")},
	{name: "long-mget", fill: keys(million), attack: asks(append([]string{"MGET"}, names(100_000)...)...)},
	{name: "long-hscan", fill: large("HSET"), attack: asks("HSCAN", "large", "0", "COUNT", "1000000")},
	{name: "long-geosearch", fill: large("GEOADD"), attack: asks("GEOSEARCH", "large", "FROMLONLAT", "0", "0", "BYRADIUS", "400", "km",
		"ASC", "COUNT", "1000")},
	{name: "long-geosearchstore", fill: large("GEOADD"), attack: asks("GEOSEARCHSTORE", "to", "large", "FROMLONLAT", "0", "0",
		"BYRADIUS", "400", "km")},
	{name: "long-sort", fill: numbers, attack: asks("SORT", "numbers")},
	{name: "long-sort-store", fill: numbers, attack: asks("SORT", "numbers", "STORE", "sorted")},
	{name: "long-lrange", fill: numbers, attack: asks("LRANGE", "numbers", "0", "-1")},
	{name: "long-hgetall", fill: large("HSET"), attack: asks("HGETALL", "large")},
	{name: "long-smembers", fill: large("SADD"), attack: asks("SMEMBERS", "large")},
	{name: "long-zrange", fill: large("ZADD"), attack: asks("ZRANGE", "large", "0", "-1", "WITHSCORES")},
	{name: "long-xrange", fill: stream, attack: asks("XRANGE", "stream", "-", "+")},
	{name: "long-sunionstore", fill: large("SADD"), attack: asks("SUNIONSTORE", "to", "large", "other")},
	{name: "long-sinterstore", fill: large("SADD"), attack: asks("SINTERSTORE", "to", "large", "large")},
	{name: "long-zunionstore", fill: large("ZADD"), attack: asks("ZUNIONSTORE", "to", "2", "large", "other")},
	{name: "long-copy", fill: large("HSET"), attack: asks("COPY", "large", "to")},
	{name: "long-dump", fill: large("HSET"), attack: asks("DUMP", "large")},
	restoring("long-restore", "SADD"),
	restoring("long-restore-hash", "HSET"),
	{name: "long-del-hash", fill: large("HSET"), attack: asks("DEL", "large")},
	{name: "long-del-zset", fill: large("ZADD"), attack: asks("DEL", "large")},
	{name: "long-del-set", fill: large("SADD"), attack: asks("DEL", "large")},
	{name: "long-del-list", fill: numbers, attack: asks("DEL", "numbers")},
	{name: "long-unlink-hash", fill: large("HSET"), attack: asks("UNLINK", "large")},
	{name: "long-rename-over", fill: large("HSET"), attack: func(a *attack) {
		a.Do("SET", "small", "1")
		asks("RENAME", "small", "large")(a)
	}},
	{name: "long-expire", fill: large("HSET"), attack: func(a *attack) {
		a.Do("PEXPIRE", "large", "100")
		a.hold(time.Second)
	}},
	{name: "long-bitop", fill: func(s *servers.Server) {
		s.Do("SETBIT", "a", strconv.Itoa(8*64*mib-1), "1")
		s.Do("SETBIT", "b", strconv.Itoa(8*64*mib-1), "1")
	}, attack: asks("BITOP", "XOR", "to", "a", "b")},
	{name: "long-argrep", fill: array, attack: asks("ARGREP", "array", "-", "+", "RE", "^(1|2)+.*(a|b)?9 text$")},
	{name: "long-vsim", fill: vectors, attack: asks("VSIM", "vectors", "VALUES", "2", "1", "1", "TRUTH")},
	{name: "long-bitcount", fill: zeros, attack: asks("BITCOUNT", "zeros")},
	{name: "long-bitpos", fill: zeros, attack: asks("BITPOS", "zeros", "1")},
	{name: "long-eval", attack: asks("EVAL", "local n = 0 for i = 1, 1e7 do n = n + i end return n", "0")},
	{name: "long-flush", fill: keys(million), attack: asks("FLUSHALL", "SYNC")},
}

// large makes a hash, a set or a sorted set of a million elements, and a small one.
func large(command string) func(s *servers.Server) {
	return func(s *servers.Server) {
		const each = 100
		s.Fill(million/each+1, func(dst []byte, i int) []byte {
			args := []string{command, "large"}
			if i == million/each {
				args[1] = "other"
			}
			for k := range each {
				name := servers.Key(i*each + k)
				switch command {
				case "HSET":
					args = append(args, name, servers.Value(i*each+k, 0))
				case "ZADD":
					args = append(args, strconv.Itoa(i*each+k), name)
				case "GEOADD": // four degrees by four
					args = append(args, degrees((i*each+k)%1000), degrees((i*each+k)/1000), name)
				default:
					args = append(args, name)
				}
			}
			return servers.AppendCommand(dst, args...)
		})
	}
}

// array makes an array of a million elements.
func array(s *servers.Server) {
	const each = 100
	s.Fill(million/each, func(dst []byte, i int) []byte {
		args := []string{"ARSET", "array", strconv.Itoa(i * each)}
		for k := range each {
			args = append(args, strconv.Itoa(i*each+k)+" text")
		}
		return servers.AppendCommand(dst, args...)
	})
}

// vectors makes a set of two hundred thousand vectors.
func vectors(s *servers.Server) {
	s.Fill(million/5, func(dst []byte, i int) []byte {
		return servers.AppendCommand(dst, "VADD", "vectors", "VALUES", "2", strconv.Itoa(i%1009), strconv.Itoa(i%997-500),
			servers.Key(i), "EF", "1", "M", "4")
	})
}

// degrees returns one of a thousand places between -2 and 2 degrees.
func degrees(i int) string { return strconv.FormatFloat(float64(i)/250-2, 'f', 6, 64) }

// restoring is a case in which the value that large makes is restored again.
func restoring(name, command string) hostileCase {
	var payload string
	fill := func(s *servers.Server) {
		large(command)(s)
		payload = s.Do("DUMP", "large")
	}
	return hostileCase{name: name, fill: fill, attack: func(a *attack) { asks("RESTORE", "copy", "0", payload, "REPLACE")(a) }}
}

// zeros makes a string of 256 MB whose last bit is set.
func zeros(s *servers.Server) { s.Do("SETBIT", "zeros", strconv.Itoa(8*256*mib-1), "1") }

// names returns the names of n keys.
func names(n int) (list []string) {
	for i := range n {
		list = append(list, servers.Key(i))
	}
	return list
}

// chosen reports whether a case is wanted, by its name or a prefix of it.
func chosen(name, wanted string) bool {
	if wanted == "" {
		return !strings.HasPrefix(name, "long-") && !strings.HasPrefix(name, "doors-")
	}
	for w := range strings.SplitSeq(wanted, ",") {
		if name == w || strings.HasPrefix(name, w+"-") {
			return true
		}
	}
	return false
}
