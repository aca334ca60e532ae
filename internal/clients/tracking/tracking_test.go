package tracking_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/clients/tracking"
	"github.com/atomredis/atomredis/internal/command"
)

type host struct {
	peers     map[int64]*peer
	observing bool
	max       int
}

func (h *host) Peer(id int64) tracking.Peer {
	if p := h.peers[id]; p != nil {
		return p
	}
	return nil
}
func (h *host) ObserveChanges(on bool) { h.observing = on }
func (h *host) MaxKeys() int           { return h.max }

// peer is a client in RESP3 that records messages about others' changes, and messages that follow its own reply.
type peer struct {
	tracking.Client
	tracking.Changer
	id  int64
	got string
}

func (p *peer) ID() int64        { return p.id }
func (p *peer) Protocol() int    { return 3 }
func (p *peer) Subscribed() bool { return false }
func (p *peer) Tell(by *tracking.Changer, message []byte) {
	if by != nil && by.Client == &p.Client {
		by.Later = append(by.Later, message...)
		return
	}
	p.got += string(message)
}

// take returns the messages to the client since the last call.
func (p *peer) take() string {
	got := p.got
	p.got = ""
	return got
}

func (h *host) join(t *tracking.Table, id int64) *peer {
	p := &peer{id: id}
	p.Changer.Client = &p.Client
	p.Client.Join(t, p)
	h.peers[id] = p
	return p
}

var get = &command.Command{Name: "get", Flags: command.ReadOnly, Keys: command.Keys("i1+r0/1/0[RO,ACCESS]")}

func (p *peer) read(key string) {
	p.Client.Read(&p.Changer, get, [][]byte{[]byte("GET"), []byte(key)}, false)
}

func invalidated(keys ...string) string {
	text := ">2\r\n$10\r\ninvalidate\r\n*" + string(rune('0'+len(keys))) + "\r\n"
	for _, key := range keys {
		text += "$1\r\n" + key + "\r\n"
	}
	return text
}

func TestWhoHasReadAKeyIsToldOnce(t *testing.T) {
	h := &host{peers: map[int64]*peer{}}
	table := tracking.New(h)
	a, b := h.join(table, 1), h.join(table, 2)
	a.Start(0, 0, nil)
	b.Start(tracking.NoLoop, 0, nil)
	require.True(t, h.observing)
	a.read("k")
	b.read("k")
	table.Invalidate(&b.Changer, "k")
	require.Equal(t, invalidated("k"), a.take())
	require.Empty(t, b.take()+string(b.Later), "it made the change itself")
	table.Invalidate(nil, "k")
	require.Empty(t, a.take(), "it has not read the key since")

	a.read("k")
	table.Invalidate(&a.Changer, "k")
	require.Equal(t, invalidated("k"), string(a.Later), "behind the reply")
	a.Stop()
	b.Stop()
	require.False(t, h.observing)
}

func TestListenersHearOfACommandAtOnce(t *testing.T) {
	h := &host{peers: map[int64]*peer{}}
	table := tracking.New(h)
	a, by := h.join(table, 1), h.join(table, 2)
	a.Start(tracking.Bcast, 0, []string{"a", "b"})
	for _, key := range []string{"b", "a", "c", "b"} {
		table.Invalidate(&by.Changer, key)
	}
	require.Empty(t, a.take())
	require.True(t, by.Changed())
	table.Broadcast(&by.Changer)
	require.Equal(t, invalidated("a")+invalidated("b"), a.take())
	require.False(t, by.Changed())
}

func TestSomeReadersAreToldWhenTheTableIsFull(t *testing.T) {
	h := &host{peers: map[int64]*peer{}, max: 2}
	table := tracking.New(h)
	a := h.join(table, 1)
	a.Start(0, 0, nil)
	for _, key := range []string{"a", "b", "c"} {
		a.read(key)
	}
	require.Equal(t, 1, strings.Count(string(a.Later), "invalidate"))
	_, keys, _, _ := table.Size()
	require.Equal(t, 2, keys)
}
