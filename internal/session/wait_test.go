package session

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/doors/door"
)

// endings are the waits of commands that have not been executed, with the mail that ends each.
var endings = map[waitReason]mail{
	forPause: mailResume, forSlots: mailResume, forMemory: 0, forValues: mailFetched, forLeader: mailLeader, forOffload: mailOffload,
}

func TestMailEndsOnlyItsOwnWait(t *testing.T) {
	b := newHarness(t)
	s := b.session()
	defer b.finish(t, s)
	s.offload = &offload{shared: b.Shared, state: offloadDone}
	for reason, ends := range endings {
		for m := mail(1); m <= mailUnheard; m <<= 1 {
			s.beginWait(reason, 0)
			require.Zero(t, s.Deadline())
			s.endWaitBy(m)
			require.Equal(t, m != ends, s.Waiting(), "reason %b, mail %b", reason, m)
			s.endWait(reason)
			require.False(t, s.Waiting())
		}
	}
	s.offload.state = offloadRuns
	s.beginWait(forOffload, 0)
	s.endWaitBy(mailOffload)
	require.True(t, s.Waiting(), "the mail is of an offload before")
	s.endWait(forOffload)
	s.offload = nil
}

func TestTimeEndsWaits(t *testing.T) {
	b := newHarness(t)
	s := b.session()
	defer b.finish(t, s)
	s.now = 1000
	for reason := range endings {
		s.beginWait(reason, 1001)
		require.EqualValues(t, 1001, s.Deadline())
		s.checkTimers()
		require.True(t, s.Waiting())
		s.now = 1001
		s.checkTimers()
		require.False(t, s.Waiting())
		require.Zero(t, s.Deadline())
		s.now = 1000
	}
}

func TestThereIsOneWaitAtATime(t *testing.T) {
	b := newHarness(t)
	s := b.session()
	defer b.finish(t, s)
	for reason := range endings {
		s.beginWait(reason, 0)
		require.Panics(t, func() { s.beginWait(forMemory, 1) })
		s.endWait(forExecution &^ reason)
		require.True(t, s.Waiting(), "it has another reason")
		s.endWait(reason)
	}
}

// A waiting client is not idle, whatever the reason.
func TestWaitingClientsAreNotIdle(t *testing.T) {
	b := newHarnessWith(t, "timeout", "1")
	s := b.session()
	defer b.finish(t, s)
	later := b.Keyspace.Now() + 5000
	for reason := range endings {
		s.beginWait(reason, 0)
		require.False(t, s.Expired(later))
		s.endWait(reason)
		require.True(t, s.Expired(later))
	}
}

// A command that a client of the program gives up is not executed, and the next command is.
func TestCommandsThatWaitAreGivenUp(t *testing.T) {
	b := newHarness(t)
	directs := NewDirects(b.Shared)
	d, err := directs.Get(0)
	require.NoError(t, err)
	run := func(ctx context.Context, args ...string) error {
		var words [][]byte
		for _, a := range args {
			words = append(words, []byte(a))
		}
		return d.Control(ctx, words)
	}
	started := func() bool { return b.Pause.Held(&b.Clients, b.Keyspace.Now()) == 1 }
	pause := func() { b.Pause.Begin(b.Keyspace.Now(), b.Keyspace.Now()+1000, false) }

	pause()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- run(ctx, "SET", "k", "1") }()
	require.Eventually(t, started, time.Minute, time.Millisecond)
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
	require.False(t, started())
	require.NoError(t, run(context.Background(), "GET", "k"))
	out, err := d.Flush()
	require.NoError(t, err)
	require.Equal(t, "_\r\n", string(out))

	go func() { ended <- run(context.Background(), "SET", "k", "1") }()
	require.Eventually(t, started, time.Minute, time.Millisecond)
	d.session.Kill()
	require.ErrorIs(t, <-ended, door.ErrKilled)
	directs.Close()
	require.NoError(t, b.Close())
	require.Empty(t, b.panics.Found)
}
