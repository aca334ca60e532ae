//go:build linux

package main

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/atomredis/atomredis/bench/internal/rawgrpc"
	"github.com/atomredis/atomredis/bench/internal/servers"
)

// The methods of Skein used here, and the fields of their messages.
const (
	skeinPut   = "/skein.AppMaster/PutKey"
	skeinRange = "/skein.AppMaster/GetRange"
	skeinWatch = "/skein.AppMaster/Watch"

	skeinRangeResult = 3
	skeinWatchCreate = 1
	skeinWatchEvents = 3
)

// startSkein starts a server with an application that syncs every change, as etcd does.
func startSkein(o settings) *servers.Server {
	s := servers.New(o.program)
	f := newSecrets(s)
	s.Start(append(servers.Durability("always"), "--door-skein", "127.0.0.1:0", "--skein-cert", f.cert, "--skein-key", f.key)...)
	s.Fill(o.keys, func(dst []byte, i int) []byte {
		return servers.AppendCommand(dst, "SKEIN.PUT", "skein", servers.Key(i), "VALUE", servers.Value(i, 0))
	})
	return s
}

func skeinClients(s *servers.Server, o settings, method string, request func() []byte, check func([]byte) bool) []client {
	addr := doorAddr(s, "skein")
	return clients(o, func() client {
		return &grpcClient{ClientConn: dialGRPC(s, addr), method: method, request: request, check: check}
	})
}

func anything([]byte) bool { return true }

// putRequest makes put requests, which are the same for Skein and etcd.
func putRequest(o settings) func() []byte {
	return func() []byte {
		key, value := randomPut(o.keys)
		return rawgrpc.Field(rawgrpc.Field(nil, 1, key), 2, value)
	}
}

// rangeRequest makes range requests, which are the same for Skein and etcd.
func rangeRequest(o settings) func() []byte {
	return func() []byte {
		start, end := randomRange(o.keys)
		return rawgrpc.Field(rawgrpc.Field(nil, 1, start), 2, end)
	}
}

// skeinPutCommands are clients that put by commands.
func skeinPutCommands(s *servers.Server, o settings) []client {
	return clients(o, func() client {
		return &commandClient{respConn: dialRESP(s.Addr), check: func(r any) bool { return r == "OK" }, command: func() []string {
			key, value := randomPut(o.keys)
			return []string{"SKEIN.PUT", "skein", key, "VALUE", value}
		}}
	})
}

// skeinCases are a put, a range of a hundred keys, and a put with ten watchers of all keys. Every put is on disk when
// it is answered.
func skeinCases() []benchmark {
	hundred := func(n int) bool { return n == rangeLen }
	puts := benchmark{"skein put", []contender{
		{name: "RESP", start: startSkein, connect: skeinPutCommands},
		{name: "door", start: startSkein, connect: func(s *servers.Server, o settings) []client {
			return skeinClients(s, o, skeinPut, putRequest(o), anything)
		}},
		{name: etcdName, start: startEtcd, connect: func(s *servers.Server, o settings) []client {
			return etcdClients(s, o, etcdPut, putRequest(o), anything)
		}},
	}}
	ranges := benchmark{fmt.Sprint("skein range", rangeLen), []contender{
		{name: "RESP", start: startSkein, connect: func(s *servers.Server, o settings) []client {
			return clients(o, func() client {
				return &commandClient{respConn: dialRESP(s.Addr), check: func(r any) bool { return hundred(len(r.([]any))) },
					command: func() []string {
						start, end := randomRange(o.keys)
						return []string{"SKEIN.RANGE", "skein", start, end}
					}}
			})
		}},
		{name: "door", start: startSkein, connect: func(s *servers.Server, o settings) []client {
			return skeinClients(s, o, skeinRange, rangeRequest(o), func(b []byte) bool { return hundred(count(b, skeinRangeResult)) })
		}},
		{name: etcdName, start: startEtcd, connect: func(s *servers.Server, o settings) []client {
			return etcdClients(s, o, etcdRange, rangeRequest(o), func(b []byte) bool { return hundred(count(b, etcdRangeKVs)) })
		}},
	}}
	return []benchmark{puts, ranges, skeinWatchCase()}
}

func skeinWatchCase() benchmark {
	var resp, door, etcd arrivals
	return benchmark{"skein watch", []contender{
		{name: "RESP", start: startSkein, settle: resp.settle, connect: func(s *servers.Server, o settings) []client {
			for range watchers {
				c := dialRESP(s.Addr)
				_, err := c.ask("SUBSCRIBE", "skein:{skein}:events")
				servers.Check(err)
				go func() {
					for {
						m, err := c.reply()
						if err != nil {
							return
						}
						if parts := m.([]any); strings.HasPrefix(parts[2].(string), "PUT ") {
							resp.seen.Add(1)
						}
					}
				}()
			}
			return skeinPutCommands(s, o)
		}},
		{name: "door", start: startSkein, settle: door.settle, connect: func(s *servers.Server, o settings) []client {
			// of all keys
			request := protowire.AppendBytes(protowire.AppendTag(nil, skeinWatchCreate, protowire.BytesType), nil)
			door.watch(dialGRPC(s, doorAddr(s, "skein")), skeinWatch, request,
				func(m []byte) int { return count(m, skeinWatchEvents) })
			return skeinClients(s, o, skeinPut, putRequest(o), anything)
		}},
		{name: etcdName, start: startEtcd, settle: etcd.settle, connect: func(s *servers.Server, o settings) []client {
			request := rawgrpc.Field(nil, etcdWatchCreate, rawgrpc.Field(rawgrpc.Field(nil, 1, "\x00"), 2, "\x00"))
			etcd.watch(dialGRPC(s, s.Addr), etcdWatch, request, func(m []byte) int { return count(m, etcdWatchEvents) })
			return etcdClients(s, o, etcdPut, putRequest(o), anything)
		}},
	}}
}
