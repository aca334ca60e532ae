package server

import (
	"time"

	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/wire/peer"
)

// peers.Broadcast passes published messages on to other servers.

// Published implements pubsub.Host.
func (srv *Server) Published(c *command.Ctx, shard bool) {
	srv.followed.Published(c)
	if srv.broadcast != nil {
		srv.broadcast.Send(c.Args[1], c.Args[2], shard)
	}
}

// broadcastHost is the server as peers.Host.
type broadcastHost Server

// Dial implements peers.Node.
func (h *broadcastHost) Dial(addr string, purpose peer.Purpose, timeout time.Duration) (*peer.Conn, error) {
	return h.group.dial(addr, purpose, timeout)
}

// Receivers implements peers.Host.
func (h *broadcastHost) Receivers(shard bool) (list []string) {
	st := h.group.members.Status()
	for _, m := range st.Members {
		if m.Addr != st.Addr {
			list = append(list, m.Addr)
		}
	}
	if h.cluster != nil && !shard {
		for _, o := range h.shards.Record().Others {
			list = append(list, o.Addrs...)
		}
	}
	return list
}

// Deliver implements peers.Host. The followers of this server receive the message too.
func (h *broadcastHost) Deliver(channel, message []byte, shard bool) {
	publish, name := h.sessions.PubSub.Publish, []byte("PUBLISH")
	if shard {
		publish, name = h.sessions.PubSub.PublishShard, []byte("SPUBLISH")
	}
	publish(nil, channel, message, false)
	if h.followed.Active() {
		h.followed.Tell(command.AppendRequest(nil, [][]byte{name, channel, message}))
	}
}

// MaxMessage implements peers.Host.
func (h *broadcastHost) MaxMessage() int64 { return int64(h.config.Get().Clients.ProtoMaxBulkLen) }
