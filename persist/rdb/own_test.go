package rdb

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/engine"
)

func TestFormsOfOurOwnAreTold(t *testing.T) {
	known := kinds[engine.List]
	defer func() { kinds[engine.List] = known }()
	w := newWorld()
	short, long := w.entry(listOf("a")), w.entry(listOf("a", "b"))
	require.False(t, OwnForm(long))
	kinds[engine.List].own = func(entry *engine.Entry) bool { return entry.List().Len() > 1 }
	require.False(t, OwnForm(short))
	require.True(t, OwnForm(long))
	require.False(t, OwnForm(w.entry([]byte("text"))))
}
