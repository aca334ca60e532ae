package door_test

import (
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/doors/door"
	"github.com/atomredis/atomredis/internal/config"
	_ "github.com/atomredis/atomredis/internal/durable" // storage and groups
	"github.com/atomredis/atomredis/internal/testing/crashfs"
	"github.com/atomredis/atomredis/server"
)

// slowDisk syncs the journal only while it is open.
type slowDisk struct {
	mu     sync.RWMutex // locked while the disk is shut
	failed error        // protected by mu: the error of syncs
}

// MaybeError implements errorfs.Injector.
func (d *slowDisk) MaybeError(op errorfs.Op) error {
	switch op.Kind {
	case errorfs.OpFileSync, errorfs.OpFileSyncData, errorfs.OpFileSyncTo:
		if strings.Contains(op.Path, "journal") {
			d.mu.RLock()
			defer d.mu.RUnlock()
			return d.failed
		}
	}
	return nil
}

// String implements errorfs.Injector.
func (d *slowDisk) String() string { return "slow disk" }

// runOnDisk starts a server whose replies wait for the disk d.
func runOnDisk(t *testing.T, d *slowDisk) *server.Server {
	conf := config.NewConfig()
	conf.ListenNowhere()
	for name, value := range map[string]string{"dir": "/db", "appendonly": "yes", "appendfsync": "always"} {
		require.NoError(t, conf.Set(name, value, false))
	}
	srv, err := server.New(conf, slog.New(slog.DiscardHandler), server.Options{FS: crashfs.Wrap(crashfs.Mem(), d)})
	require.NoError(t, err)
	t.Cleanup(func() { srv.Close() })
	require.NoError(t, srv.Start())
	return srv
}

func TestCommandsAreExecutedAheadOfTheDisk(t *testing.T) {
	var disk slowDisk
	srv := runOnDisk(t, &disk)
	c := clientOf(t, srv)
	do(t, c, "SET", "a", "0")

	disk.mu.Lock()
	last := uint64(0)
	for i := range 10 {
		r, position, err := c.DoAhead(t.Context(), "INCR", "a")
		require.NoError(t, err)
		require.Equal(t, strconv.Itoa(i+1), text(r))
		require.Greater(t, position, last)
		last = position
	}
	_, position, err := c.DoAhead(t.Context(), "LPUSH", "a", "x")
	require.ErrorContains(t, err, "WRONGTYPE")
	require.Equal(t, last, position, "the error tells of what is not durable")
	settled := make(chan error, 1)
	go func() {
		got, err := c.Settle(last)
		if err == nil && got < last {
			err = errors.New("too little is settled")
		}
		settled <- err
	}()
	_, _, err = c.DoAhead(t.Context(), "GET", "a") // while another goroutine waits
	require.NoError(t, err)
	select {
	case <-settled:
		t.Fatal("nothing is durable")
	default:
	}
	disk.mu.Unlock()
	require.NoError(t, <-settled)
	_, err = c.Settle(0)
	require.NoError(t, err)
	require.Equal(t, "11", do(t, c, "INCR", "a"))
}

func TestNobodyIsToldWhatTheDiskHasLost(t *testing.T) {
	disk := slowDisk{}
	srv := runOnDisk(t, &disk)
	c := clientOf(t, srv)
	do(t, c, "SET", "a", "0")
	disk.mu.Lock()
	_, position, err := c.DoAhead(t.Context(), "INCR", "a")
	require.NoError(t, err)
	disk.failed = errors.New("broken")
	disk.mu.Unlock()
	_, err = c.Settle(position)
	require.ErrorIs(t, err, door.ErrNotDurable)
	_, _, err = c.DoAhead(t.Context(), "PING")
	require.Error(t, err)
}
