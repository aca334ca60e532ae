package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheWordsAtomAndPressureMakeAClient(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	signals, exit := start(t, "--port", "0", "--unixsocket", socket)
	var stdout bytes.Buffer
	require.Zero(t, run([]string{"pressure", "put", "q", "one", "--create", "-s", socket}, &stdout, io.Discard, nil))
	require.Zero(t, run([]string{"pressure", "get", "q", "-s", socket}, &stdout, io.Discard, nil))
	require.Zero(t, run([]string{"atom", "elements", "-s", socket}, &stdout, io.Discard, nil))
	require.Equal(t, "one\n", stdout.String())

	var stderr bytes.Buffer
	stop := make(chan os.Signal, 1)
	stop <- syscall.SIGTERM
	require.Equal(t, 1, run([]string{"pressure", "get", "q", "-s", socket}, io.Discard, &stderr, stop))
	require.Contains(t, stderr.String(), "stopped by a signal (terminated)\n")

	signals <- syscall.SIGTERM
	require.Zero(t, <-exit)
}
