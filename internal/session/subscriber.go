package session

import (
	"github.com/atomredis/atomredis/internal/clients"
	"github.com/atomredis/atomredis/internal/clients/pubsub"
	"github.com/atomredis/atomredis/internal/clients/tracking"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/resp"
)

// This file has the methods of a session that packages pubsub and tracking call.

// join lets the session publish, subscribe and track.
func (s *Session) join() {
	s.origin.session, s.origin.Client = s, &s.modes.tracking
	s.modes.subs.Join(&s.shared.PubSub, s)
	s.modes.tracking.Join(s.shared.Tracking, s)
}

// Protocol implements tracking.Peer.
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

// Subscriptions returns the client's subscriptions.
func (s *Session) Subscriptions() *pubsub.Subscriptions { return &s.modes.subs }

// Repeats reports whether the next command of the pipeline is cmd, as far as is known.
func (s *Session) Repeats(cmd *command.Command) bool { return s.pipeline.next == cmd }

// WriteMessage writes a message that CLIENT REPLY does not suppress.
func (s *Session) WriteMessage(c *command.Ctx, message command.Reply) {
	if s.modes.options.Replies == clients.ReplyOn {
		message(c.W)
		return
	}
	w := resp.Writer{Buf: s.origin.Later, Proto: c.W.Proto}
	message(&w)
	s.origin.Later = w.Buf
}

// Tracking returns the client's state of CLIENT TRACKING.
func (s *Session) Tracking() *tracking.Client { return &s.modes.tracking }

// Tell implements tracking.Peer.
func (s *Session) Tell(by *tracking.Changer, message []byte) {
	if by != nil && by.Client == &s.modes.tracking {
		by.Later = append(by.Later, message...)
		return
	}
	s.post(0, message)
}

// rememberKeys notes the keys that a command of a tracking client has read, under the command's guard.
func (s *Session) rememberKeys(cmd *command.Command, args [][]byte) {
	within := s.tx.active || s.ctx.NoBlock || s.ctx.Cmd != cmd // in a transaction or a script
	s.modes.tracking.Read(&s.origin.Changer, cmd, args, within)
}

// trackers is a Shared as tracking.Host.
type trackers Shared

// Peer implements tracking.Host.
func (t *trackers) Peer(id int64) tracking.Peer {
	if s := t.Clients.get(id); s != nil {
		return s
	}
	return nil
}

// ObserveChanges implements tracking.Host.
func (t *trackers) ObserveChanges(on bool) { t.Keyspace.ObserveChanges(on) }

// MaxKeys implements tracking.Host.
func (t *trackers) MaxKeys() int { return t.Config.Get().Clients.TrackingTableMaxKeys }

// origin is the source of changes: a client, or the code that serves it while it is blocked. Only the goroutine that
// makes the changes uses it.
type origin struct {
	session *Session
	pushed  bool // the running command has published a message to its own client; the message follows the reply
	tracking.Changer
}

// changerOf returns the source of a change from its owner in the engine; nil without one.
func changerOf(owner any) *tracking.Changer {
	if from, _ := owner.(*origin); from != nil {
		return &from.Changer
	}
	return nil
}
