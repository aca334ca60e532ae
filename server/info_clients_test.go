package server

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestInfoCountsWhatClientsAreBusyWith(t *testing.T) {
	b := newHarness(t)
	s, watcher, waiter, subscriber := b.session(), b.session(), b.session(), b.session()
	names := []string{"watching_clients", "total_watched_keys", "pubsub_clients", "clients_in_timeout_table",
		"total_blocking_keys", "total_blocking_keys_on_nokey"}
	now := func() []int64 { return infoNumbers(t, b, s, names...) }
	require.Equal(t, []int64{0, 0, 0, 0, 0, 0}, now())
	b.feed(watcher, request("WATCH", "a", "b"))
	require.Equal(t, []int64{1, 2, 0, 0, 0, 0}, now())
	b.feed(waiter, request("WATCH", "b", "c"))
	require.Equal(t, []int64{2, 3, 0, 0, 0, 0}, now(), "a key that two watch counts once")
	b.feed(waiter, request("UNWATCH"))
	b.feed(subscriber, request("PSUBSCRIBE", "p*"))
	require.Equal(t, []int64{1, 2, 1, 0, 0, 0}, now())
	b.feed(waiter, request("BLPOP", "k1", "k2", "0"))
	require.Equal(t, []int64{1, 2, 1, 0, 2, 0}, now(), "who waits for ever has no timeout")
	b.feed(s, request("LPUSH", "k2", "v"))
	b.feed(waiter) // it leaves the queue of the other key
	require.Equal(t, "+OK\r\n", b.feed(s, request("XGROUP", "CREATE", "s", "g", "$", "MKSTREAM")))

	require.Empty(t, b.feed(watcher, request("XREADGROUP", "GROUP", "g", "c", "BLOCK", "100000", "STREAMS", "s", ">")))
	require.Equal(t, []int64{1, 2, 1, 1, 1, 1}, now())
}

func TestInfoCountsWhatClientsWereDenied(t *testing.T) {
	b := newHarness(t)
	s, user := b.session(), b.session()
	names := []string{"acl_access_denied_auth", "acl_access_denied_cmd", "acl_access_denied_key",
		"acl_access_denied_channel"}
	b.feed(s, request("ACL", "SETUSER", "u", "on", "nopass", "-@all", "+get", "+auth", "+publish", "~a", "resetchannels"))
	b.feed(user, request("AUTH", "none", "wrong"))
	b.feed(user, request("AUTH", "u", "any"))
	b.feed(user, request("GET", "a"))
	b.feed(user, request("SET", "a", "1"))
	b.feed(user, request("GET", "b"))
	b.feed(user, request("GET", "c"))
	b.feed(user, request("PUBLISH", "x", "y"))
	require.Equal(t, []int64{1, 1, 2, 1}, infoNumbers(t, b, s, names...))
	b.feed(s, request("CONFIG", "RESETSTAT"))
	require.Equal(t, []int64{0, 0, 0, 0}, infoNumbers(t, b, s, names...))
}
