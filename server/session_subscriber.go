package server

import (
	"github.com/atomredis/atomredis/command"
	"github.com/atomredis/atomredis/pubsub"
	"github.com/atomredis/atomredis/resp"
)

// This file is the session as one that publishes and subscribes.

// PubSub returns the hub of published messages.
func (srv *Server) PubSub() *pubsub.Hub { return &srv.pubsub }

// Protocol implements pubsub.Subscriber.
func (s *Session) Protocol() int { return int(s.proto.Load()) }

// ThroughDoor implements pubsub.Subscriber.
func (s *Session) ThroughDoor() bool { return s.door != nil }

// Deliver implements pubsub.Subscriber.
func (s *Session) Deliver(messages []byte, own bool) {
	if own {
		s.origin.pushed = true
	}
	s.post(0, messages)
}

// Subscriptions returns what the client has subscribed to.
func (s *Session) Subscriptions() *pubsub.Subscriptions { return &s.subs }

// Repeats reports whether the next command of the pipeline is cmd, as far as is known.
func (s *Session) Repeats(cmd *command.Command) bool { return s.next == cmd }

// WriteMessage writes a message that CLIENT REPLY does not keep back.
func (s *Session) WriteMessage(c *command.Ctx, message command.Reply) {
	if s.replies == replyOn {
		message(c.W)
		return
	}
	w := resp.Writer{Buf: s.origin.later, Proto: c.W.Proto}
	message(&w)
	s.origin.later = w.Buf
}
