package progress

import (
	"bytes"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/testing/crashfs"
)

// clock is a time that stands still between calls of add.
type clock struct{ t time.Time }

func (c *clock) now() time.Time      { return c.t }
func (c *clock) add(d time.Duration) { c.t = c.t.Add(d) }

func TestATerminalHasOneLineWithRateAndTimeLeft(t *testing.T) {
	var out bytes.Buffer
	c := &clock{time.Unix(1, 0)}
	b := newBar(&out, true, c.now)
	b.Show("loading", "keys", 0, 4000)
	require.Empty(t, out.String(), "nothing has taken long yet")
	c.add(time.Second)
	b.Show("loading", "keys", 1000, 4000)
	require.Equal(t, "\rloading [##--------] 25%, 3s left, 1.0k of 4.0k keys, 1.0k/s\x1b[K", out.String())
	out.Reset()
	c.add(redraw / 2)
	b.Show("loading", "keys", 2000, 4000)
	require.Empty(t, out.String(), "not so often")

	_, err := io.WriteString(b.Around(&out), "a line of the log\n")
	require.NoError(t, err)
	require.Equal(t, "\r\x1b[Ka line of the log\n", out.String())
	out.Reset()
	_, err = io.WriteString(b.Around(&out), "another\n")
	require.NoError(t, err)
	require.Equal(t, "another\n", out.String())
	out.Reset()

	c.add(time.Second)
	b.Show("loading", "keys", 3000, 4000)
	out.Reset()
	b.Show("loading", "keys", 4000, 4000)
	require.Equal(t, "\r\x1b[K", out.String())
	out.Reset()
	b.Done()
	require.Empty(t, out.String())

	// Another step has its own rate, and a long line is cut.
	b.Show(strings.Repeat("x", 100), Bytes, 0, 0)
	c.add(time.Second)
	b.Show(strings.Repeat("x", 100), Bytes, 5, 0)
	require.Equal(t, "\r"+strings.Repeat("x", width)+"\x1b[K", out.String())
	out.Reset()
	b.Done()
	require.Equal(t, "\r\x1b[K", out.String())
}

func TestElsewhereThereAreLinesNowAndThen(t *testing.T) {
	var out bytes.Buffer
	c := &clock{time.Unix(1, 0)}
	b := newBar(&out, false, c.now)
	for i := range int64(13) {
		b.Show("importing", Bytes, i*1e8, 36e8)
		c.add(time.Second)
	}
	b.Done()
	require.Equal(t, "importing 13%, 31s left, 500.0 MB of 3.6 GB, 100.0 MB/s\n"+
		"importing 27%, 26s left, 1.0 GB of 3.6 GB, 100.0 MB/s\n", out.String())
	require.False(t, Terminal(&out))
	f, err := os.Create(t.TempDir() + "/f")
	require.NoError(t, err)
	defer f.Close()
	require.False(t, Terminal(f))
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	require.NoError(t, err)
	defer null.Close()
	require.False(t, Terminal(null))
}

func TestWhatALineSays(t *testing.T) {
	for want, have := range map[string]struct {
		done, total int64
		took        time.Duration
	}{
		"s, 0 B":              {0, 0, 0},
		"s, 1.5 kB, 1.5 kB/s": {1500, 0, time.Second},
		"s 0%, 0 B of 10 B":   {0, 10, time.Second},
		"s 50%, 5 B of 10 B":  {5, 10, 0},
		"s 0%, 2h0m0s left, 1 B of 7.2 kB, 1 B/s": {1, 7201, time.Second},
	} {
		require.Equal(t, want, describe("s", Bytes, have.done, have.total, have.took, false))
	}
}

func TestWhatIsReadOfFilesIsShown(t *testing.T) {
	fs := crashfs.Mem()
	f, err := fs.Create("a")
	require.NoError(t, err)
	_, err = f.Write(make([]byte, 500))
	require.NoError(t, err)
	require.NoError(t, f.Close())
	var out bytes.Buffer
	c := &clock{time.Unix(1, 0)}
	counted := Files(fs, 1000, newBar(&out, false, c.now), "checking")
	for range 3 { // as in a second pass
		f, err := counted.Open("a")
		require.NoError(t, err)
		c.add(lines)
		_, err = io.ReadAll(f)
		require.NoError(t, err)
		c.add(lines)
		_, err = f.ReadAt(make([]byte, 250), 0)
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}
	require.Contains(t, out.String(), "750 B of 1.0 kB, ")
	require.Contains(t, out.String(), "checking, 1.2 kB, ")
	require.NotContains(t, out.String(), "100%")
}
