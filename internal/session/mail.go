package session

import (
	"sync"
	"sync/atomic"

	"github.com/atomredis/atomredis/doors/door"
	"github.com/atomredis/atomredis/internal/buffers"
)

// mailbox holds messages and mail that other goroutines leave for a session.
type mailbox struct {
	mu     sync.Mutex
	push   []byte // out-of-band messages in the client's protocol
	mail   mail   // other events
	filled atomic.Bool
	leader []byte // replies of leaders, of a client with forwarding.always

	// answered is set once a blocked command has its reply or is about to get it: the reply belongs after the first
	// replyAt bytes of push.
	answered bool
	replyAt  int
}

// mail is a set of events that other goroutines report to a session.
type mail uint16

const (
	mailServed      mail = 1 << iota // the blocked command has its reply
	mailUnblocked                    // CLIENT UNBLOCK … TIMEOUT
	mailError                        // CLIENT UNBLOCK … ERROR
	mailResume                       // the pause, or a hold of slots, has ended
	mailKill                         // close at once
	mailSlow                         // with mailKill: because too much output waits
	mailRoleChanged                  // the blocked command must not run: the server has become a replica
	mailFetched                      // the requested values have been read
	mailOffload                      // the offloaded command may start, or has a result
	mailLeader                       // the leader has answered, or the connection to it has ended
	mailHeld                         // the blocked command must undo its half-done work
	mailMoved                        // another shard has the slot of the blocked command, or it must be tried again
	mailUnheard                      // another shard has slots of shard channels that the client has subscribed to
	mailSentAway                     // close when the client has its replies: this server leads no more
)

// post leaves push bytes and mail for the session and wakes its transport. Any goroutine may call it, under any lock.
func (s *Session) post(m mail, push ...[]byte) {
	s.box.mu.Lock()
	for _, b := range push {
		s.box.push = append(buffers.Grow(s.box.push, len(b)), b...)
	}
	s.box.mail |= m
	first := !s.box.filled.Swap(true)
	size := len(s.box.push)
	s.box.mu.Unlock()
	if first || m&mailKill != 0 {
		s.wake()
	}
	if m&mailKill == 0 && size > 0 && s.overLimit(size) {
		s.post(mailKill | mailSlow)
	}
}

// has reports whether there is unread mail of a kind.
func (b *mailbox) has(m mail) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.mail&m != 0
}

// readMail acts on the mail and takes the messages.
func (s *Session) readMail() {
	if !s.box.filled.Load() {
		return
	}
	s.box.mu.Lock()
	m := s.box.mail
	s.box.mail = 0
	s.box.filled.Store(false)
	if s.box.answered {
		s.takePushes(s.box.replyAt)
	} else {
		s.takePushes(len(s.box.push))
	}
	s.box.mu.Unlock()

	if m&mailKill != 0 {
		if m&mailSlow != 0 {
			s.why = door.ErrSlow
		}
		s.Abort()
		return
	}
	if m&mailUnheard != 0 {
		s.endMovedChannels()
	}
	if m&mailSentAway != 0 {
		s.sentAway = true
	}
	if m&mailLeader != 0 {
		if s.forwarding.always {
			s.takeReplies()
		}
		s.closing = s.closing || s.forwarding.ended()
	}
	s.endWaitBy(m)
	s.goAway()
}

// takePushes moves the first n bytes of what was pushed to the output. The mailbox is locked.
func (s *Session) takePushes(n int) {
	box := &s.box
	switch {
	case n == 0:
	case n == len(box.push) && len(s.out.Buf) == 0:
		s.out.Buf, box.push = box.push, s.out.Buf
		s.replyBuffer.own = nil // the mailbox may have it now
	default:
		s.out.RawPart(box.push[:n])
		box.push = box.push[:copy(box.push, box.push[n:])]
	}
	box.replyAt -= n
	if len(box.push) == 0 && cap(box.push) > 64*1024 {
		buffers.Put(box.push)
		box.push = nil
	}
}

// readPushes takes all pushed messages after a reply: a command's own messages, and earlier or concurrent messages
// of others.
func (s *Session) readPushes() {
	s.box.mu.Lock()
	s.box.answered = false
	s.takePushes(len(s.box.push))
	s.box.mu.Unlock()
}
