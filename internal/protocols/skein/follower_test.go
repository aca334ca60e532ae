package skein_test

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis"
)

// A follower reads, and once it is the master it ends the containers whose sessions were with the old one.
func TestAFollowerReadsAndTakesOver(t *testing.T) {
	open := func() *atomredis.DB {
		db, err := atomredis.Open(atomredis.Options{Addr: "127.0.0.1:0"})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, db.Close()) })
		return db
	}
	master, follower := open(), open()
	conn, err := master.Dial(t.Context())
	require.NoError(t, err)
	defer conn.Close()
	c := &connection{conn, t}
	c.send("SKEIN.CONTAINER", "RUN", "a", "tied", "SESSION")
	require.Equal(t, "tied_0", c.receive())
	do(t, master, "SKEIN.CONTAINER RUN a leased TTL 600000")
	do(t, master, "SKEIN.TXN a THEN PUT k VALUE 1 OWNER tied_0 PUT l VALUE 2 OWNER leased_0 PUT m VALUE 3 PUT n VALUE 4")

	host, port, err := net.SplitHostPort(master.Addr())
	require.NoError(t, err)
	do(t, follower, "REPLICAOF "+host+" "+port)
	keysAre := func(want string) {
		t.Helper()
		require.Eventually(t, func() bool { return do(t, follower, `SKEIN.RANGE a "" "" KEYS`) == want }, 30*time.Second, time.Millisecond)
	}
	keysAre("[k l m n]")
	require.Equal(t, "[2 leased_0]", do(t, follower, "SKEIN.GET a l"))
	require.Equal(t, "READONLY You can't write against a read only replica.", do(t, follower, "SKEIN.PUT a k VALUE 2"))
	do(t, master, "SKEIN.DEL a n z")
	keysAre("[k l m]")
	do(t, follower, "REPLICAOF NO ONE")
	keysAre("[l m]")
	do(t, follower, "SKEIN.CONTAINER RENEW a leased_0 TTL 1")
	keysAre("[m]")
	require.Equal(t, "[1 tied_0]", do(t, master, "SKEIN.GET a k"))
}
