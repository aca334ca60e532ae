package changes

import (
	"context"
	"io"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/testing/crashfs"
	"github.com/atomredis/atomredis/persist/journal"
)

// emptyJournal is a journal of which only its existence counts.
type emptyJournal struct{ journal.Journal }

// A server that ends gives up a snapshot that it writes. Its readers must not see that as an error of the journal.
func TestAReaderGetsNoErrorOfASnapshotThatTheEndOfTheServerStops(t *testing.T) {
	writes := make(chan struct{})
	f := New(Options{
		Records: func() journal.Journal { return emptyJournal{} },
		FS:      crashfs.Mem(),
		Dir:     func() string { return "data" },
		Write: func(ctx context.Context, _ io.Writer, _ func(g *engine.Guard) error) error {
			close(writes)
			<-ctx.Done()
			return ctx.Err()
		},
	})
	go func() {
		<-writes
		f.Close()
	}()
	var from atomic.Pointer[Position]
	from.Store(&Position{Start: true})
	page, err := f.Read(t.Context(), &Query{From: &from, Count: 1, Bytes: 1})
	require.NoError(t, err)
	require.Equal(t, Page{Next: Position{Start: true}}, page)
}
