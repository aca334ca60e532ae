//go:build linux

package main

import (
	"context"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/atomredis/atomredis/bench/internal/rawgrpc"
	"github.com/atomredis/atomredis/bench/internal/servers"
)

// etcdName is the contender that others are also compared with.
const etcdName = "etcd"

// The methods of etcd used here, and the fields of their messages.
const (
	etcdPut   = "/etcdserverpb.KV/Put"
	etcdRange = "/etcdserverpb.KV/Range"
	etcdWatch = "/etcdserverpb.Watch/Watch"

	etcdRangeKVs    = 2
	etcdWatchCreate = 1
	etcdWatchEvents = 11
)

// startEtcd starts etcd in its default configuration, which syncs every change, with the same keys.
func startEtcd(o settings) *servers.Server {
	if _, err := exec.LookPath("etcd"); err != nil {
		return nil
	}
	s := servers.New("etcd")
	f := newSecrets(s)
	s.Addr = servers.FreeAddr()
	client, peer := "https://"+s.Addr, "http://"+servers.FreeAddr()
	s.Run("--data-dir", filepath.Join(s.Dir, "data"), "--listen-client-urls", client, "--advertise-client-urls", client,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "default="+peer,
		"--cert-file", f.cert, "--key-file", f.key, "--client-cert-auth", "--trusted-ca-file", f.cert,
		"--logger", "zap", "--log-level", "panic")
	conn := dialGRPC(s, s.Addr)
	defer conn.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	request, reply := rawgrpc.Field(nil, 1, "key"), []byte(nil)
	servers.Check(conn.Invoke(ctx, etcdRange, &request, &reply, grpc.WaitForReady(true)))
	var all sync.WaitGroup
	for first := range o.conns {
		all.Go(func() {
			var reply []byte
			for i := first; i < o.keys; i += o.conns {
				request := rawgrpc.Field(rawgrpc.Field(nil, 1, servers.Key(i)), 2, servers.Value(i, 0))
				servers.Check(conn.Invoke(ctx, etcdPut, &request, &reply))
			}
		})
	}
	all.Wait()
	return s
}

func etcdClients(s *servers.Server, o settings, method string, request func() []byte, check func([]byte) bool) []client {
	return clients(o, func() client {
		return &grpcClient{ClientConn: dialGRPC(s, s.Addr), method: method, request: request, check: check}
	})
}
