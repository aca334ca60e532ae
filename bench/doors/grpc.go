//go:build linux

package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/atomredis/atomredis/bench/internal/rawgrpc"
	"github.com/atomredis/atomredis/bench/internal/servers"
	"github.com/atomredis/atomredis/doors/skein"
)

// This file is shared by the clients of Skein and etcd. Both use gRPC over TLS with a certificate for each side. The
// same code writes and reads their messages, so that a client costs the same.

// secrets are the files of a certificate and its key, which all sides share.
type secrets struct{ cert, key string }

// newSecrets makes a certificate, with files in the server's directory.
func newSecrets(s *servers.Server) secrets {
	cert, key, err := skein.NewCredentials()
	servers.Check(err)
	dir, err := filepath.Abs(s.Dir)
	servers.Check(err)
	f := secrets{filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")}
	servers.Check(os.WriteFile(f.cert, cert, 0o600))
	servers.Check(os.WriteFile(f.key, key, 0o600))
	return f
}

// dialGRPC connects to a server that has secrets in its directory.
func dialGRPC(s *servers.Server, addr string) *grpc.ClientConn {
	pair, err := tls.LoadX509KeyPair(filepath.Join(s.Dir, "cert.pem"), filepath.Join(s.Dir, "key.pem"))
	servers.Check(err)
	// The certificate names no host.
	c := &tls.Config{Certificates: []tls.Certificate{pair}, InsecureSkipVerify: true}
	conn, err := grpc.NewClient("passthrough:///"+addr, grpc.WithTransportCredentials(credentials.NewTLS(c)),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(rawgrpc.Codec{})))
	servers.Check(err)
	return conn
}

// grpcClient calls one method.
type grpcClient struct {
	*grpc.ClientConn
	method  string
	request func() []byte
	check   func(reply []byte) bool
	reply   []byte
}

func (c *grpcClient) do() error {
	request := c.request()
	if err := c.Invoke(context.Background(), c.method, &request, &c.reply); err != nil {
		return err
	}
	if !c.check(c.reply) {
		return fmt.Errorf("%s gave %.100x", c.method, c.reply)
	}
	return nil
}

// count returns the number of fields of a message with the number want; -1 if the message is malformed.
func count(b []byte, want protowire.Number) (n int) {
	for len(b) > 0 {
		number, typ, size := protowire.ConsumeTag(b)
		if size < 0 {
			return -1
		}
		value := protowire.ConsumeFieldValue(number, typ, b[size:])
		if value < 0 {
			return -1
		}
		if number == want {
			n++
		}
		b = b[size+value:]
	}
	return n
}

// rangeLen is the number of keys in a range.
const rangeLen = 100

// randomRange returns the ends of a range of rangeLen keys.
func randomRange(keys int) (start, end string) {
	i := rand.IntN(max(keys-rangeLen, 1))
	return servers.Key(i), servers.Key(i + rangeLen)
}

// randomPut returns a key and a value for it.
func randomPut(keys int) (key, value string) {
	i := rand.IntN(keys)
	return servers.Key(i), servers.Value(i, rand.IntN(256))
}

// watchers is the number of watchers of all keys.
const watchers = 10

// arrivals counts the events that watchers received.
type arrivals struct{ seen atomic.Int64 }

// watch opens streams and sends a request on each; events counts the events in a message. It returns when all streams
// are open, which a first message confirms.
func (a *arrivals) watch(conn *grpc.ClientConn, method string, request []byte, events func(message []byte) int) {
	for range watchers {
		stream, err := conn.NewStream(context.Background(), &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, method)
		servers.Check(err)
		servers.Check(stream.SendMsg(&request))
		var message []byte
		servers.Check(stream.RecvMsg(&message))
		go func() {
			for stream.RecvMsg(&message) == nil {
				a.seen.Add(int64(events(message)))
			}
		}()
	}
}

// settle waits until all watchers have seen the given number of events.
func (a *arrivals) settle(operations int64) {
	for deadline := time.Now().Add(time.Minute); a.seen.Load() < operations*watchers; time.Sleep(100 * time.Microsecond) {
		if time.Now().After(deadline) {
			servers.Fatal("watchers have seen ", a.seen.Load(), " events of ", operations*watchers)
		}
	}
}
