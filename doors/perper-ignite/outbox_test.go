package perperignite_test

import (
	"encoding/binary"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/doors/door"
	"github.com/atomredis/atomredis/internal/config"
	_ "github.com/atomredis/atomredis/internal/durable" // storage and groups
	"github.com/atomredis/atomredis/internal/testing/crashfs"
	"github.com/atomredis/atomredis/server"
)

// slowDisk syncs the journal only while its lock is free.
type slowDisk struct{ sync.RWMutex }

// MaybeError implements errorfs.Injector.
func (d *slowDisk) MaybeError(op errorfs.Op) error {
	switch op.Kind {
	case errorfs.OpFileSync, errorfs.OpFileSyncData, errorfs.OpFileSyncTo:
		if strings.Contains(op.Path, "journal") {
			d.RLock()
			defer d.RUnlock()
		}
	}
	return nil
}

// String implements errorfs.Injector.
func (d *slowDisk) String() string { return "slow disk" }

// A peer's requests take effect in order before the first one is durable, and are answered when they are durable.
func TestRequestsDoNotWaitForTheDiskOfEachOther(t *testing.T) {
	conf := config.NewConfig()
	conf.ListenNowhere()
	for name, value := range map[string]string{"dir": "/db", "appendonly": "yes", "appendfsync": "always",
		"door-perper-ignite": "127.0.0.1:0"} {
		require.NoError(t, conf.Set(name, value, false))
	}
	var disk slowDisk
	srv, err := server.New(conf, slog.New(slog.DiscardHandler), server.Options{FS: crashfs.Wrap(crashfs.Mem(), &disk)})
	require.NoError(t, err)
	defer srv.Close()
	require.NoError(t, srv.Start())
	session, err := srv.Direct(0)
	require.NoError(t, err)
	other := door.NewClient(session)
	defer other.Close()
	p := dialAt(t, srv.DoorAddr("perper-ignite").String())
	p.hello()
	p.play(step{1052, "09 0a000000 657865637574696f6e73", ""}, step{1001, prefix + keyA + one, ""})

	disk.Lock()
	const n = 500
	for i := range n {
		p.send(1001, append(unhex(t, prefix), append(long(int64(i)), unhex(t, two)...)...))
	}
	p.send(1000, unhex(t, prefix+keyA))
	require.Eventually(t, func() bool {
		r, _, err := other.DoAhead(t.Context(), "PERPER.LEN", "executions")
		require.NoError(t, err)
		count, _ := r.Int()
		return count == n+1
	}, deadline, time.Millisecond)
	p.conn.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
	_, err = p.conn.Read(make([]byte, 1))
	var timeout net.Error
	require.ErrorAs(t, err, &timeout, "an answer went out before it was durable")
	p.conn.SetReadDeadline(time.Now().Add(deadline))
	disk.Unlock()
	for i := range n + 1 {
		b := p.message()
		require.Equal(t, uint64(i+3), binary.LittleEndian.Uint64(b))
		if i == n {
			require.Equal(t, unhex(t, "0000"+one), b[8:])
		}
	}

	// Requests that were sent before the peer closes its side are answered.
	disk.Lock()
	p.send(1001, unhex(t, prefix+keyA+two))
	require.NoError(t, p.conn.(*net.TCPConn).CloseWrite())
	require.Eventually(t, func() bool {
		r, _, err := other.DoAhead(t.Context(), "PERPER.GET", "executions", "a")
		require.NoError(t, err)
		text, _ := r.Text()
		return text == "int(2)"
	}, deadline, time.Millisecond)
	disk.Unlock()
	require.Equal(t, unhex(t, "0000"), p.message()[8:])
}
