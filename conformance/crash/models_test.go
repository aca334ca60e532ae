package crash

import (
	"context"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis"
	"github.com/atomredis/atomredis/internal/testing/testseed"
	"github.com/atomredis/atomredis/internal/testing/transcript"
)

// under is a server in this process; its data survives it.
type under struct {
	t  *testing.T
	o  atomredis.Options
	db *atomredis.DB
	c  *transcript.Conn
}

func (u *under) open() {
	var err error
	u.db, err = atomredis.Open(u.o)
	require.NoError(u.t, err)
	nc, err := u.db.Dial(context.Background())
	require.NoError(u.t, err)
	u.c = transcript.NewConn(nc)
}

func (u *under) close() {
	u.c.Close()
	require.NoError(u.t, u.db.Close())
}

func (u *under) ask(commands ...[]string) []transcript.Value {
	replies, err := ask(u.c, commands...)
	require.NoError(u.t, err)
	return replies
}

// each executes commands for each key except those of compactions, whose rules are not copied.
func (u *under) each(commands func(key string) [][]string) {
	keys, err := scan(u.c)
	require.NoError(u.t, err)
	for _, key := range keys {
		if compacted := strings.TrimRight(key, "01"); compacted != "w:series" && compacted != "w:sum" && compacted != "w:max" {
			u.ask(commands(key)...)
		}
	}
}

// journeys are the ways that values travel; afterwards they must be unchanged.
var journeys = map[string]func(u *under){
	"nowhere":    func(*under) {},
	"checkpoint": func(u *under) { u.ask([]string{"SAVE"}) },
	"restart": func(u *under) {
		u.close()
		u.open()
	},
	"reload": func(u *under) { u.ask([]string{"DEBUG", "RELOAD"}) },
	"copy": func(u *under) {
		u.each(func(key string) [][]string {
			return [][]string{{"COPY", key, "{" + key + "}"}, {"RENAME", "{" + key + "}", key}}
		})
	},
	"dump and restore": func(u *under) {
		u.each(func(key string) [][]string {
			dump := u.ask([]string{"DUMP", key})[0].Text
			return [][]string{{"DEL", key}, {"RESTORE", key, "0", dump}}
		})
	},
}

// TestTypesAreLikeModels sends random commands, sends the values on every journey, and compares them with the results
// of plain code.
func TestTypesAreLikeModels(t *testing.T) {
	operations, between := 20_000, 2000
	switch {
	case os.Getenv("ATOMREDIS_FULL_TESTS") != "":
		operations, between = 1_000_000, 10_000
	case testing.Short():
		operations, between = 3000, 600
	}
	for name, g := range map[string]generator{
		"series": &series{label: "w"}, "documents": &documents{label: "w"}, "vectors": &vectorSets{label: "w"},
		"arrays": &arrays{label: "w"}, "newest": &newest{label: "w"},
		"searched": &searched{label: "w"}, "bloom": &sketches{label: "w", only: "bloom"}, "cuckoo": &sketches{label: "w", only: "cuckoo"},
		"counts": &sketches{label: "w", only: "counts"}, "top": &sketches{label: "w", only: "top"},
		"digest": &sketches{label: "w", only: "digest"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := testseed.Rand(t)
			u := &under{t: t, o: atomredis.Options{Dir: t.TempDir(), Config: map[string]string{"enable-debug-command": "yes"}}}
			u.open()
			defer func() { u.close() }()
			w, began, done := newLinear("w", g, 50, 0), time.Now(), 0
			var path []string
			ways := slices.Sorted(maps.Keys(journeys))
			for done < operations {
				for until := 1 + r.IntN(2*between); len(w.log) < until; {
					require.NoError(t, w.exchange(u.c, r))
				}
				way := ways[r.IntN(len(ways))]
				path = append(path, way)
				journeys[way](u)
				s, err := takeSnapshot(u.c)
				require.NoError(t, err, "ways %q", path)
				u.ask([]string{"SELECT", "0"})
				now := time.Now()
				n, err := w.settle(s, ending{killed: now, sure: now})
				require.NoError(t, err, "ways %q", path)
				done += n
			}
			t.Logf("%d operations, %d ways of values, in %v", done, len(path), time.Since(began).Round(time.Millisecond))
		})
	}
}
