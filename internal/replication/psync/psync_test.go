package psync

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/config"
	"github.com/atomredis/atomredis/internal/replication"
	"github.com/atomredis/atomredis/internal/testing/crashfs"
	"github.com/atomredis/atomredis/internal/transfer"
	"github.com/atomredis/atomredis/persist/disk"
)

const (
	testTimeout = 30 * time.Second
	testCopy    = "all data" // in place of an RDB file
)

// testHost is a master with a keyspace and a journal that has only the stream.
type testHost struct {
	Followers
	replica Replica
	clock   *engine.ManualClock
	ks      *engine.Keyspace
	dir     string

	mu     sync.Mutex
	paused bool     // protected by mu
	stored []string // protected by mu: what the journal has

	// The log of the group: the position of the last change, the one up to which entries are committed, the last entry, and how
	// many other servers have it.
	position, committed, entry uint64
	holders                    map[uint64]int64
	committers                 int64
}

func newTestHost(t *testing.T, fs disk.FS, settings ...string) *testHost {
	conf := config.NewConfig()
	for i := 0; i < len(settings); i += 2 {
		require.NoError(t, conf.Set(settings[i], settings[i+1], false))
	}
	h := &testHost{clock: engine.NewManualClock(time.UnixMilli(1e12)), dir: t.TempDir()}
	h.ks = engine.New(engine.Options{Shards: 1, Databases: 4, Clock: h.clock})
	Start(&h.Followers, &h.replica, Options{Config: conf, Log: slog.New(slog.DiscardHandler), Keyspace: h.ks, FS: fs, Storage: h,
		Exporter: h, Master: h})
	t.Cleanup(func() {
		h.Stop()
		h.Wait()
		h.ks.Close()
	})
	return h
}

func (h *testHost) Hold(fn func(g *engine.Guard)) error {
	var g engine.Guard
	g.Lock(h.ks, engine.AllShards, h.ks.Now())
	defer g.Unlock()
	fn(&g)
	return nil
}

func (h *testHost) RepeatKept() error   { return nil }
func (h *testHost) SpoolDir() string    { return h.dir }
func (h *testHost) ScarceChanged()      {}
func (h *testHost) FollowsLeader() bool { return false }
func (h *testHost) TellLeader()         {}
func (h *testHost) Position() uint64    { return h.position }

func (h *testHost) Entry(position uint64) uint64 {
	if position > h.committed {
		return 0
	}
	return h.entry
}

func (h *testHost) Holders(entry uint64) int64 { return h.holders[entry] }
func (h *testHost) Committers() int64          { return h.committers }

func (h *testHost) WritesPaused(int64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.paused
}

func (h *testHost) HoldWrites(held bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.paused = held
}

func (h *testHost) Copy(_ context.Context, w io.Writer, how transfer.Copy) error {
	if err := h.Hold(how.At); err != nil {
		return err
	}
	_, err := io.WriteString(w, testCopy)
	return err
}

func (h *testHost) Append(_ int64, commands []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stored = append(h.stored, string(commands))
}

func (h *testHost) HasJournal() bool           { return true }
func (h *testHost) Appended() uint64           { return 0 }
func (h *testHost) Durable() uint64            { return 0 }
func (h *testHost) Replace(func() error) error { return nil }
func (h *testHost) Save() error                { return nil }

// change adds a record to the journal and the stream.
func (h *testHost) change(words ...string) { h.Follow(h.ks.Now(), encodeWords(words...), h) }

// recover starts a server that has the stored note of another one.
func (h *testHost) recover(t *testing.T, note []byte) {
	require.NoError(t, h.Restore(note))
	require.NoError(t, h.Hold(func(g *engine.Guard) { h.Recovered(g, true) }))
}

// testClient is a follower that reads the stream, unless it is stuck.
type testClient struct {
	of     Follower
	stuck  bool
	mu     sync.Mutex
	got    strings.Builder // protected by mu
	closed bool            // protected by mu
}

func (c *testClient) Send(b []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.got.Write(b)
	if !c.stuck {
		n := len(b)
		go c.of.Took(n)
	}
}

func (c *testClient) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
}

func (c *testClient) ID() int64    { return 1 }
func (c *testClient) Addr() string { return "192.0.2.1:7" }

func (c *testClient) text() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.got.String()
}

func (c *testClient) isClosed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

// waits returns once the end of what the client has received is a text.
func (c *testClient) waits(t *testing.T, end string) {
	t.Helper()
	require.Eventually(t, func() bool { return strings.HasSuffix(c.text(), end) }, testTimeout, time.Millisecond)
}

// online returns a follower after its full synchronization, and the position of that.
func (h *testHost) online(t *testing.T) (c *testClient, at Position) {
	t.Helper()
	c = &testClient{}
	h.StartFollowing(&c.of, c, true)
	require.Eventually(t, func() bool { return h.states() == "online" }, testTimeout, time.Millisecond)
	at = h.Present()
	require.Equal(t, fmt.Sprintf("+FULLRESYNC %s %d\r\n$%d\r\n%s", at.ID, at.Offset, len(testCopy), testCopy), c.text())
	return c, at
}

// states returns the states of all followers.
func (h *testHost) states() string {
	list, _ := h.Status()
	var all []string
	for _, f := range list {
		all = append(all, f.State.String())
	}
	return strings.Join(all, " ")
}

func TestFullAndPartialSynchronization(t *testing.T) {
	h := newTestHost(t, crashfs.Mem())
	c, at := h.online(t)
	require.True(t, at.Known && h.Active())
	h.change("SET", "a", "1")
	stream := string(encodeWords("SELECT", "0")) + string(encodeWords("SET", "a", "1"))
	c.waits(t, testCopy+stream)
	require.True(t, c.of.Following())
	h.Leave(&c.of)
	require.Empty(t, h.states())
	h.change("SET", "b", "2")
	more := string(encodeWords("SET", "b", "2"))

	for _, from := range []struct {
		id     string
		offset int64
		want   string
	}{{at.ID, at.Offset, stream + more}, {at.ID, at.Offset + int64(len(stream)), more}, {at.ID, h.Present().Offset, ""}} {
		again := &testClient{}
		again.of.Capabilities.PSYNC2 = true
		require.True(t, h.GoOn(&again.of, again, from.id, from.offset))
		again.waits(t, "+CONTINUE "+at.ID+"\r\n"+from.want)
		h.Leave(&again.of)
	}
	late := &testClient{}
	require.False(t, h.GoOn(&late.of, late, "another", at.Offset))
	require.False(t, h.GoOn(&late.of, late, at.ID, h.Present().Offset+1))
	require.False(t, late.of.Following())
	require.Equal(t, []int64{1, 3, 2}, []int64{h.Copies.Load(), h.Partial.Load(), h.NoPartial.Load()})
}

// A full synchronization waits for a follower that does not read, and fails after repl-timeout.
func TestFullSynchronizationWaitsForItsFollower(t *testing.T) {
	h := newTestHost(t, crashfs.Mem(), "repl-timeout", "60")
	c := &testClient{stuck: true}
	d := h.newFeed(&c.of, c)
	c.of.feed = d
	failed := make(chan error, 1)
	go func() {
		_, err := d.Write(make([]byte, 3*feedWindow))
		failed <- err
	}()
	gets := func(n int) {
		t.Helper()
		require.Eventually(t, func() bool { return len(c.text()) == n }, testTimeout, time.Millisecond)
	}
	gets(feedWindow)
	c.of.Took(1)
	gets(2 * feedWindow)
	require.EqualValues(t, 1, h.Sent.Load())
	c.of.Took(feedWindow)
	gets(3 * feedWindow)
	require.NoError(t, <-failed)
	go func() {
		_, err := d.Write([]byte("x"))
		failed <- err
	}()
	require.Eventually(t, func() bool {
		h.clock.Advance(time.Minute) // it may not have begun to wait yet
		return len(failed) == 1
	}, testTimeout, time.Millisecond)
	require.Equal(t, errUnread, <-failed)
	require.Len(t, c.text(), 3*feedWindow)
}

// A backup has its own stream, even without followers, until another backup replaces it.
func TestABackupReceivesTheStream(t *testing.T) {
	h := newTestHost(t, crashfs.Mem())
	var first, second transfer.Tail
	for _, tail := range []*transfer.Tail{&first, &second} {
		require.NoError(t, h.Hold(func(g *engine.Guard) { h.BeginTail(g, tail) }))
		require.True(t, h.Active())
	}
	require.False(t, h.CutTail(&first))
	h.EndTail(&first)
	require.True(t, h.Active(), "the second backup receives the stream")
	require.True(t, h.CutTail(&second))
	require.False(t, h.CutTail(&second))
	h.EndTail(&second)
	require.False(t, h.Active())
	require.False(t, h.Present().Known, "a backup begins no history")

	h.online(t)
	require.NoError(t, h.Hold(func(g *engine.Guard) { h.BeginTail(g, &first) }))
	h.EndTail(&first)
	require.True(t, h.Active(), "a follower receives the stream")
}

func TestWaitsForAcknowledgements(t *testing.T) {
	h := newTestHost(t, crashfs.Mem())
	c, _ := h.online(t)
	var waiter, gone Follower
	h.change("SET", "a", "1")
	at := h.Wrote(&waiter, 1, true)
	offset := at.Offset
	require.Equal(t, h.Present().Offset, offset)
	done := make(chan string, 3)
	h.AwaitAcked(&waiter, at, 1, false, func(n int64) { done <- fmt.Sprint("executed ", n) })
	c.waits(t, string(encodeWords("REPLCONF", "GETACK", "*")))
	require.Equal(t, at, h.Wrote(&waiter, 1, true), "GETACK is no change of the client")
	h.AwaitAcked(&gone, at, 9, false, func(int64) { done <- "gone" })
	require.Equal(t, 1, strings.Count(c.text(), "GETACK"), "the stream has not grown since the last GETACK")
	c.of.Acknowledge(offset-1, -1)
	require.Zero(t, h.Acked(at, false))
	require.Empty(t, done)
	c.of.Acknowledge(offset, offset-1)
	require.Equal(t, "executed 1", <-done)
	require.EqualValues(t, 1, h.Acked(at, false))
	h.AwaitAcked(&waiter, at, 1, true, func(n int64) { done <- fmt.Sprint("on the disk ", n) })
	require.Zero(t, h.Acked(at, true))
	c.of.Acknowledge(offset, offset)
	require.Equal(t, "on the disk 1", <-done)
	h.Leave(&waiter)
	h.Leave(&gone)
	require.Empty(t, h.waiters)
	require.Empty(t, done)
}

// A wait in a group is for the entry with the client's changes, not for later ones.
func TestServersOfTheGroupAcknowledge(t *testing.T) {
	h := newTestHost(t, crashfs.Mem())
	h.holders, h.committers = map[uint64]int64{}, 1
	var waiter Follower
	h.position = 10
	at := h.Wrote(&waiter, 1, true)
	require.EqualValues(t, 1, h.Acked(at, true), "as many as commit it")
	var got []int64
	h.AwaitAcked(&waiter, at, 2, true, func(n int64) { got = append(got, n) })
	h.position, h.committed, h.entry, h.holders[5] = 20, 10, 5, 1
	h.Heard()
	require.Empty(t, got)
	h.committed, h.entry, h.holders[6] = 20, 6, 1
	h.Heard()
	require.Empty(t, got)
	h.holders[5] = 2
	h.Heard()
	require.Equal(t, []int64{2}, got)
	require.Empty(t, h.waiters)
	require.Equal(t, at, h.Wrote(&waiter, 1, true))
	require.EqualValues(t, 20, h.Wrote(&waiter, 2, false).Position)
	h.position = 30
	require.EqualValues(t, 30, h.Wrote(&waiter, 2, true).Position, "the transaction is in the journal now")
}

// The next start uses the file of the backlog once, and only if it is not damaged.
func TestTheBacklogSurvivesAStop(t *testing.T) {
	fs := crashfs.Mem()
	h := newTestHost(t, fs, "dir", "/")
	_, at := h.online(t)
	h.change("SET", "a", "1")
	note, was := h.Stored(), h.Backlog()
	require.NotZero(t, was.Kept)
	next := func() Backlog {
		n := newTestHost(t, fs, "dir", "/")
		n.recover(t, note)
		return n.Backlog()
	}
	now := next()
	require.NotEqual(t, was.ID, now.ID, "it was killed, and may have sent what it has not stored")
	require.Equal(t, replication.Former{ID: was.ID, Shared: was.Offset}, now.Former)
	h.LeaveBacklog()
	require.Equal(t, was, next())
	require.NotEqual(t, was.ID, next().ID, "the file is used once")
	h.LeaveBacklog()
	h.DropBacklog()
	require.NotEqual(t, was.ID, next().ID)

	h.LeaveBacklog()
	path := h.backlogPath()
	file, err := fs.Open(path)
	require.NoError(t, err)
	whole, err := io.ReadAll(file)
	require.NoError(t, err)
	require.NoError(t, file.Close())
	write := func(b []byte) { require.NoError(t, writeBacklog(fs, path, slices.Clone(b))) } // the file system may change what it writes
	for i := 0; i < len(whole); i += 9 {
		damaged := slices.Clone(whole)
		damaged[i] ^= 1
		write(damaged)
		require.NotEqual(t, was.ID, next().ID, i)
		write(whole[:i])
		require.NotEqual(t, was.ID, next().ID, i)
	}
	write(whole)
	require.Equal(t, at.ID, next().ID)
}

func TestTheHistoryIsStoredBesideTheKeys(t *testing.T) {
	h := newTestHost(t, crashfs.Mem())
	require.Equal(t, "others", string(h.StoredBefore([]byte("others"))), "there is no history")
	h.online(t)
	stored := h.StoredBefore([]byte("others"))
	again := newTestHost(t, crashfs.Mem())
	others, err := again.RestoreBefore(stored)
	require.NoError(t, err)
	require.Equal(t, "others", string(others))
	require.Equal(t, h.Present(), again.Present())
	for _, n := range []int{1, 2, len(stored) - len("others") - 1} {
		_, err := again.RestoreBefore(stored[:n])
		require.ErrorIs(t, err, errHistoryNote, n)
	}
}

func TestDamagedNotesAreErrors(t *testing.T) {
	h := newTestHost(t, crashfs.Mem())
	for _, line := range []string{"", "what", "what 1", "offset", "offset x", "offset 1 2", "stream 1", "stream x y", "history"} {
		require.Error(t, h.Recall(words(line), 0), line)
	}
	// A journal that lacks a part of the stream ends the history and disconnects followers.
	c, at := h.online(t)
	require.NoError(t, h.Recall(words(fmt.Sprint("stream ", at.Offset, " x")), 0))
	require.Equal(t, at.Offset+1, h.Present().Offset)
	require.NoError(t, h.Recall(words(fmt.Sprint("stream ", at.Offset, " again")), 0))
	require.True(t, h.Present().Known)
	require.False(t, c.isClosed())
	require.NoError(t, h.Recall(words(fmt.Sprint("stream ", at.Offset+9, " x")), 0))
	require.False(t, h.Present().Known)
	require.True(t, c.isClosed())
}

func words(line string) (args [][]byte) {
	for _, w := range strings.Fields(line) {
		args = append(args, []byte(w))
	}
	return args
}

func TestFailoverWaitsForTheWholeStream(t *testing.T) {
	h := newTestHost(t, crashfs.Mem())
	c, _ := h.online(t)
	c.of.Capabilities.Port.Store(77)
	h.change("SET", "a", "1")
	h.Failover("", 0, false, 1000)
	require.True(t, h.FailingOver())
	require.True(t, h.WritesPaused(0))
	_, _, ok := h.successor(false)
	require.False(t, ok, "it has not acknowledged the stream")
	h.clock.Advance(time.Second)
	require.Eventually(t, func() bool { return !h.FailingOver() }, testTimeout, time.Millisecond)
	require.False(t, h.WritesPaused(0))

	name := func(port int64) {
		h.Followers.mu.Lock()
		defer h.Followers.mu.Unlock()
		h.failing = failover{state: waitingForSync, host: "192.0.2.1", port: port}
	}
	name(78)
	_, _, ok = h.successor(true)
	require.False(t, ok, "another follower is named")
	name(77)
	host, port, ok := h.successor(true)
	require.Equal(t, "192.0.2.1 77 true", fmt.Sprint(host, " ", port, " ", ok))
	require.Equal(t, "failover-in-progress", h.FailoverState())
	e, err := h.TakeOver(h.Present().ID)
	require.NoError(t, err)
	require.Equal(t, command.Error("ERR PSYNC FAILOVER can't be sent to a master."), e)
}

// A link looks for the leader of a group at the address of REPLICAOF, and then at the other members.
func TestWhereALinkLooksForItsMaster(t *testing.T) {
	w := addresses{given: "a:1"}
	require.Equal(t, "a:1", w.addr())
	require.NoError(t, w.told(replication.Group{Leads: true, Members: []string{"a:1", "b:2", "c:3"}}))
	w.failed()
	require.Equal(t, "b:2", w.addr())
	require.ErrorContains(t, w.told(replication.Group{Members: []string{"b:2", "c:3"}}), "has no leader")
	require.ErrorIs(t, w.told(replication.Group{Leader: "c:3", Members: []string{"a:1", "b:2", "c:3"}}), errElsewhere)
	require.Equal(t, "c:3", w.addr())
	require.NotErrorIs(t, w.told(replication.Group{Leader: "c:3"}), errElsewhere, "a server that names itself, and does not lead")
	w.failed()
	require.Equal(t, "a:1", w.addr(), "the last answer named no members")
}
