package session

// A session that waits executes no commands. It waits for one reason at a time: while it waits nothing is executed,
// so no second wait can begin. This file begins and ends all waits.
//
// Meanwhile input is kept up to its limits, mail is read, messages are sent, and timers end waits. A command that
// waits to be executed stays in the input: it has changed and written nothing, and starts again with its admission
// when the wait has ended. If the reason still exists the session then waits again. Only a blocking command has been
// executed; its reply comes when the wait ends.

// wait is the wait of a session. The zero value means that it does not wait.
type wait struct {
	reason waitReason
	until  int64 // deadline of the wait in ms since 1970; 0 if it has none. The deadline of forKeys is in blocked
}

// waitReason is a reason to wait, or a set of them.
type waitReason uint8

const (
	forKeys    waitReason = 1 << iota // a blocking command waits for a change of its keys, or for Await's finish
	forPause                          // CLIENT PAUSE or FAILOVER
	forSlots                          // the slot of the command is about to be exported
	forMemory                         // values must leave memory first
	forValues                         // values are being read into memory
	forLeader                         // the leader must answer forwarded commands first
	forOffload                        // the command is offloaded, or waits for a place

	forExecution = forPause | forSlots | forMemory | forValues | forLeader | forOffload // the command has not been executed
)

// Waiting reports whether the session waits, so that commands must not be executed now.
func (s *Session) Waiting() bool { return s.wait.reason != 0 }

// Fetching reports whether the client waits for values to be read into memory.
func (s *Session) Fetching() bool { return s.wait.reason == forValues }

// isBlocked reports whether the client waits for the reply of a blocking command.
func (s *Session) isBlocked() bool { return s.wait.reason == forKeys }

// beginWait makes the session wait, at most until a time; 0 means without limit. It must not be waiting.
func (s *Session) beginWait(reason waitReason, until int64) {
	if s.wait.reason != 0 {
		panic("session: a wait begins before the one before has ended")
	}
	s.wait = wait{reason, until}
}

// endWait ends the wait if it has one of the given reasons. Otherwise the event comes too late and has no effect.
func (s *Session) endWait(reasons waitReason) {
	if s.wait.reason&reasons != 0 {
		s.wait = wait{}
	}
}

// endWaitBy ends the wait if the mail has the event that ends it.
func (s *Session) endWaitBy(m mail) {
	if m&mailResume != 0 {
		s.endWait(forPause | forSlots)
	}
	if m&mailFetched != 0 {
		s.endWait(forValues)
	}
	if m&mailLeader != 0 {
		s.endWait(forLeader)
	}
	if m&mailOffload != 0 && s.offload != nil && !s.shared.offloads.busy(s.offload) {
		s.endWait(forOffload)
	}
	if s.isBlocked() {
		s.readBlockedMail(m)
	}
}

// Deadline returns the latest time of the next call of Advance, in ms since 1970; 0 if there is none.
func (s *Session) Deadline() int64 {
	if s.isBlocked() {
		return s.blocked.next()
	}
	return s.wait.until
}

// checkTimers ends a wait whose deadline has passed, and tries a blocking command again at the time that it has set.
func (s *Session) checkTimers() {
	if s.wait.until != 0 && s.wait.until <= s.now {
		s.endWait(forExecution)
	}
	if !s.isBlocked() {
		return
	}
	if at := s.blocked.again.Load(); at != 0 && at <= s.now {
		s.tryAgain()
	}
	if at := s.blocked.keyWait.deadline.Load(); at != 0 && at <= s.now {
		s.timeOut()
	}
}

// abandonWait gives up a command that waits to be executed, because the client does not want it any more. Values
// that are being read still arrive; the next command waits for them.
func (s *Session) abandonWait() {
	if s.wait.reason == forPause {
		s.shared.Pause.leave(s)
	}
	s.endWait(forExecution &^ forValues)
	s.fetching.tries = 0
	if s.offload != nil {
		s.dropOffload()
	}
}
