package console

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// A page that does not read is disconnected, so that it delays no other page.
func TestSlowReadersAreDropped(t *testing.T) {
	ctx, drop := context.WithCancelCause(t.Context())
	v := &viewer{events: make(chan event, backlog), drop: drop}
	for range backlog {
		v.tell(event{})
	}
	require.NoError(t, ctx.Err())
	v.tell(event{})
	require.Equal(t, errSlow, context.Cause(ctx))
}
