package pathhash_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/testing/crashfs"
	"github.com/atomredis/atomredis/internal/testing/servertest"
	"github.com/atomredis/atomredis/internal/testing/testseed"
	"github.com/atomredis/atomredis/server"
)

func TestTranscripts(t *testing.T) { servertest.Transcripts(t, "pathhash") }

// A scan visits all paths that are there all the time, each once, whatever else changes.
func TestAScanVisitsAllPaths(t *testing.T) {
	c := servertest.Start(t, server.Options{}).Connect()
	var want []string
	for i := range 100 {
		path := fmt.Sprintf("p%02d", i)
		want = append(want, path)
		c.Line("PHSET t " + path + " FIELDS 1 f v")
		c.Line("PHSET t " + path + "x FIELDS 1 f v")
	}
	var found []string
	for cursor, calls := "0", 0; calls == 0 || cursor != "0"; calls++ {
		require.Less(t, calls, 100)
		words := strings.FieldsFunc(c.Line("PHSCAN t "+cursor+" COUNT 7"), func(r rune) bool { return strings.ContainsRune("[]\" ", r) })
		cursor = words[0]
		for _, path := range words[1:] {
			if slices.Contains(want, path) {
				found = append(found, path)
			}
			c.Line("PHDEL t " + path + "x")
		}
	}
	require.Equal(t, want, found)
}

// After a restart, with or without a checkpoint, a path hash is what it was.
func TestPathHashesAreDurable(t *testing.T) {
	rnd, fs := testseed.Rand(t), crashfs.Mem()
	last := ""
	for round := range 4 {
		d := servertest.OpenDurable(t, fs)
		const all = "PHSCAN t 0 COUNT 10000 WITHVALUES"
		if round > 0 {
			require.Equal(t, last, d.Line(all))
		}
		for range 400 {
			d.Line(change(rnd))
		}
		if last = d.Line(all); round%2 == 0 {
			d.End()
		} else {
			d.Drop()
		}
	}
}

// change returns a command that changes a path hash at random.
func change(rnd *rand.Rand) string {
	path := func() string { return fmt.Sprintf("/%d/%d", rnd.IntN(30), rnd.IntN(30)) }
	switch rnd.IntN(10) {
	case 0:
		return "PHDEL t " + path()
	case 1:
		return fmt.Sprintf("PHDEL t %s f%d", path(), rnd.IntN(3))
	case 2:
		return "PHDELPREFIX t " + path()
	case 3:
		return fmt.Sprintf("PHMSET t %s FIELDS 1 f1 %d %s FIELDS 1 f2 %d", path(), rnd.Int(), path(), rnd.Int())
	}
	return fmt.Sprintf("PHSET t %s FIELDS 1 f%d %d", path(), rnd.IntN(3), rnd.Int())
}
