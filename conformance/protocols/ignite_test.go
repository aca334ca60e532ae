package protocols_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis"
	_ "github.com/atomredis/atomredis/doors/perper-ignite"
)

// igniteClient is the Node.js client that the test uses.
const igniteClient = "apache-ignite-client@1.0.0"

// nodeWithIgnite returns a directory of packages that contains the client.
func nodeWithIgnite(t *testing.T) string {
	for _, name := range []string{"node", "npm"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skip("there is no " + name)
		}
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Skip(err)
	}
	dir := filepath.Join(cache, "atomredis", "ignite")
	modules := filepath.Join(dir, "node_modules")
	if _, err := os.Stat(filepath.Join(modules, "apache-ignite-client")); err == nil {
		return modules
	}
	require.NoError(t, os.MkdirAll(dir, 0o700))
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if out, err := exec.CommandContext(ctx, "npm", "install", "--prefix", dir, "--no-audit", igniteClient).CombinedOutput(); err != nil {
		t.Skipf("npm cannot install %s: %s", igniteClient, out)
	}
	return modules
}

func TestTheThinClientOfNode(t *testing.T) {
	modules := nodeWithIgnite(t)
	db, err := atomredis.Open(atomredis.Options{Config: testConfig(), Doors: map[string]string{"perper-ignite": "127.0.0.1:0"}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	cmd := exec.CommandContext(t.Context(), "node", "testdata/ignite.js", db.DoorAddr("perper-ignite"))
	cmd.Env = append(os.Environ(), "NODE_PATH="+modules)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	require.Equal(t, "ok\n", string(out))

	// Others see the data that it wrote.
	r, err := db.Do(t.Context(), "PERPER.GET", "items", "int(7)")
	require.NoError(t, err)
	require.Equal(t, `"Item{name: \"item 7\", price: 3.5}"`, r.String())
}
