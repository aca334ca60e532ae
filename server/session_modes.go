package server

import "github.com/atomredis/atomredis/pubsub"

// modes are what a client has asked its connection to be, beside its database, its user and its protocol. They belong
// to the goroutine of the session's transport, but for what their types say.
type modes struct {
	replies   replyMode
	subs      pubsub.Subscriptions
	tracking  trackingState
	monitor   bool
	follower  follower
	noEvict   bool
	debugging bool // it has asked for the Lua debugger: it wants to see its scripts' changes rolled back
	readOnly  bool // it has sent READONLY, which only clusters know
}

// pristine reports whether none is other than at the beginning.
func (m *modes) pristine() bool {
	return m.replies == replyOn && !m.subs.Any() && !m.tracking.on && !m.tracking.caching && !m.monitor &&
		m.follower.pristine() && !m.noEvict && !m.debugging && !m.readOnly
}

// replyMode is what CLIENT REPLY chose.
type replyMode uint8

const (
	replyOn replyMode = iota
	replyOff
	replySkipNext // the command that follows CLIENT REPLY SKIP is to have no reply
	replySkipThis // the present command has no reply
)

// beginReply reports whether the command that begins is to have no reply.
func (m *modes) beginReply() (skip bool) {
	if m.replies == replySkipNext {
		m.replies = replySkipThis
	}
	return m.replies != replyOn
}

// endSkipped ends a command without a reply: the next one may have one again.
func (m *modes) endSkipped() {
	if m.replies == replySkipThis {
		m.replies = replyOn
	}
}
