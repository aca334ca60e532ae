//go:build unix

package listeners_test

import (
	"log/slog"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/config"
	"github.com/atomredis/atomredis/server"
)

func TestTheUnixSocketBelongsToAGroup(t *testing.T) {
	start := func(group string) (socket string, err error) {
		dir, err := os.MkdirTemp("", "group") // its path is short enough for a socket
		require.NoError(t, err)
		t.Cleanup(func() { os.RemoveAll(dir) })
		socket = filepath.Join(dir, "s")
		conf := config.NewConfig()
		conf.InMemory()
		for name, value := range map[string]string{"port": "0", "unixsocket": socket, "unixsocketgroup": group} {
			require.NoError(t, conf.Set(name, value, false))
		}
		srv, err := server.New(conf, slog.New(slog.DiscardHandler), server.Options{})
		require.NoError(t, err)
		t.Cleanup(func() { srv.Close() })
		return socket, srv.Start()
	}
	own, err := user.LookupGroupId(strconv.Itoa(os.Getgid()))
	require.NoError(t, err)
	socket, err := start(own.Name)
	require.NoError(t, err)
	info, err := os.Stat(socket)
	require.NoError(t, err)
	require.EqualValues(t, os.Getgid(), info.Sys().(*syscall.Stat_t).Gid)
	_, err = start("no such group")
	require.ErrorContains(t, err, "unixsocketgroup: ")
}

// As Redis does, the server removes a file with the name of its socket.
func TestTheUnixSocketTakesThePlaceOfAFile(t *testing.T) {
	dir, err := os.MkdirTemp("", "place") // its path is short enough for a socket
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	start := func(socket string) error {
		conf := config.NewConfig()
		conf.InMemory()
		require.NoError(t, conf.Set("port", "0", false))
		require.NoError(t, conf.Set("unixsocket", socket, false))
		srv, err := server.New(conf, slog.New(slog.DiscardHandler), server.Options{})
		require.NoError(t, err)
		t.Cleanup(func() { srv.Close() })
		return srv.Start()
	}
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, []byte("text"), 0o600))
	require.NoError(t, start(file))
	info, err := os.Lstat(file)
	require.NoError(t, err)
	require.NotZero(t, info.Mode()&os.ModeSocket)
	empty := filepath.Join(dir, "empty")
	require.NoError(t, os.Mkdir(empty, 0o700))
	require.Error(t, start(empty))
	require.DirExists(t, empty)
}
