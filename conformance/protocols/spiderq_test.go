package protocols_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis"
	_ "github.com/atomredis/atomredis/doors/spiderq"
)

// python returns an interpreter that has pyzmq.
func python(t *testing.T) string {
	for _, name := range []string{"/usr/bin/python3", "python3"} {
		if exec.Command(name, "-c", "import zmq").Run() == nil {
			return name
		}
	}
	t.Skip("there is no Python with zmq: apt-get install python3-zmq")
	return ""
}

// spiderqServer returns a server with the door, at an address.
func spiderqServer(t *testing.T, door string) *atomredis.DB {
	db, err := atomredis.Open(atomredis.Options{Addr: "127.0.0.1:0", Config: testConfig(),
		Doors: map[string]string{"spiderq": door}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

// The tutorial's program and its command lines work as the page says.
func TestTheTutorialOfSpiderqRunsAsWritten(t *testing.T) {
	interpreter := python(t)
	db := spiderqServer(t, "127.0.0.1:0")
	page, err := os.ReadFile("../../docs/spiderq.md")
	require.NoError(t, err)
	_, program, ok := strings.Cut(string(page), "```python\n")
	require.True(t, ok)
	program, rest, _ := strings.Cut(program, "```")
	program = strings.ReplaceAll(program, "127.0.0.1:5550", db.DoorAddr("spiderq"))
	out, err := exec.Command(interpreter, "-c", program).CombinedOutput()
	require.NoError(t, err, string(out))

	_, console, ok := strings.Cut(rest, "```console\n")
	require.True(t, ok)
	console, _, _ = strings.Cut(console, "```")
	runConsole(t, db, console)
}

// runConsole runs the command lines of a page and compares their output. redis-cli connects to the server.
func runConsole(t *testing.T, db *atomredis.DB, console string) {
	_, port, err := net.SplitHostPort(db.Addr())
	require.NoError(t, err)
	dir := t.TempDir()
	real, err := exec.LookPath("redis-cli")
	if err != nil {
		t.Skip("there is no redis-cli")
	}
	// redis-cli formats replies for humans only if it thinks that humans read them.
	script := fmt.Sprintf("#!/bin/sh\nexec %s --no-raw -p %s \"$@\"\n", real, port)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "redis-cli"), []byte(script), 0o700))
	steps := regexp.MustCompile(`(?m)^\$ `).Split(console, -1)[1:]
	require.NotEmpty(t, steps)
	for _, step := range steps {
		line, want, _ := strings.Cut(step, "\n")
		cmd := exec.Command("sh", "-c", line)
		cmd.Env = append(os.Environ(), "PATH="+dir+string(os.PathListSeparator)+os.Getenv("PATH"))
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, line)
		require.Equal(t, want, string(out), line)
	}
}

// Clients of libzmq: several REQ and DEALER sockets, with heartbeats, over TCP and over a Unix socket; a DEALER with
// requests in flight, one of which waits; and one that arrives late.
func TestSocketsOfLibzmq(t *testing.T) {
	interpreter := python(t)
	path := filepath.Join(t.TempDir(), "spiderq")
	for transport, door := range map[string]string{"tcp": "tcp://127.0.0.1:0", "ipc": "ipc://" + path} {
		t.Run(transport, func(t *testing.T) {
			db := spiderqServer(t, door)
			endpoint := transport + "://" + db.DoorAddr("spiderq")
			out, err := exec.Command(interpreter, "-c", socketsProgram, endpoint).CombinedOutput()
			require.NoError(t, err, string(out))
		})
	}
	require.NoFileExists(t, path)
}

// socketsProgram connects to the endpoint given as its argument.
const socketsProgram = `
import struct, sys, zmq
text = lambda b: struct.pack(">I", len(b)) + b
ctx = zmq.Context()
def connect(kind):
    s = ctx.socket(kind)
    s.setsockopt(zmq.HEARTBEAT_IVL, 20)
    s.setsockopt(zmq.HEARTBEAT_TTL, 30000)
    s.setsockopt(zmq.HEARTBEAT_TIMEOUT, 30000)
    s.setsockopt(zmq.RCVTIMEO, 20000)
    s.setsockopt(zmq.LINGER, 0)
    s.connect(sys.argv[1])
    return s
reqs = [connect(zmq.REQ) for _ in range(20)]
for i, s in enumerate(reqs):
    s.send(b"\x02" + text(b"k%d" % i) + text(b"v" * (i * 20000)))
for s in reqs:
    assert s.recv() == b"\x02"
for s in reqs:
    s.send(b"\x04" + struct.pack(">QB", 60000, 1))
loans = {}
for s in reqs:
    lent = s.recv()
    n = struct.unpack(">I", lent[9:13])[0]
    loans[lent[13:13+n]] = lent[1:9]
assert len(loans) == len(reqs), loans
dealer = connect(zmq.DEALER)
dealer.send_multipart([b"waits", b"\x04" + struct.pack(">QB", 60000, 1)])
for i in range(100):
    dealer.send_multipart([b"%d" % i, b"", b"\x0b"])
assert [dealer.recv_multipart() for _ in range(100)] == [[b"%d" % i, b"", b"\x11"] for i in range(100)]
key, lend_key = loans.popitem()
reqs[0].send(b"\x05" + lend_key + text(key) + text(b"new") + b"\x03")
assert reqs[0].recv() == b"\x07"
frames = dealer.recv_multipart()
assert frames[0] == b"waits" and frames[1][9:] == text(key) + text(b"new"), frames
late = connect(zmq.REQ)
late.send(b"\x01")
assert late.recv() == b"\x01\0\0\0\0"
`
