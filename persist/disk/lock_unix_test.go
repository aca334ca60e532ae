//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package disk

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// lockIn is the environment variable with the directory that the other process of TestALockHoldsThoughItsFileIsRemoved
// locks.
const lockIn = "ATOMREDIS_TEST_LOCK_IN"

func TestALockHoldsThoughItsFileIsRemoved(t *testing.T) {
	if dir := os.Getenv(lockIn); dir != "" {
		_, err := System.Lock(filepath.Join(dir, "LOCK"))
		fmt.Println("let in:", err == nil)
		return
	}
	dir := t.TempDir()
	another := func() string {
		cmd := exec.Command(os.Args[0], "-test.run=^TestALockHoldsThoughItsFileIsRemoved$", "-test.v")
		cmd.Env = append(os.Environ(), lockIn+"="+dir)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
		return string(out)
	}
	lock, err := System.Lock(filepath.Join(dir, "LOCK"))
	require.NoError(t, err)
	require.Contains(t, another(), "let in: false")
	require.NoError(t, os.Remove(filepath.Join(dir, "LOCK")))
	require.Contains(t, another(), "let in: false")
	require.NoFileExists(t, filepath.Join(dir, "LOCK"))
	require.NoError(t, lock.Close())
	require.Contains(t, another(), "let in: true")
}
