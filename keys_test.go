package atomredis_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis"
)

func TestKeysVisitsEveryKey(t *testing.T) {
	db := open(t, atomredis.Options{})
	const n = 5000
	want := map[string]int{}
	for i := range n {
		do(t, db, "SET", fmt.Sprint("k", i), i)
		do(t, db, "SET", fmt.Sprint("other", i), i)
		want[fmt.Sprint("k", i)] = 1
	}
	got := map[string]int{}
	for key, err := range db.Keys(t.Context(), "k*") {
		require.NoError(t, err)
		do(t, db, "DEL", key)
		got[key] = 1
	}
	require.Equal(t, want, got)
	require.Equal(t, fmt.Sprintf("(integer) %d", n), do(t, db, "DBSIZE").String())

	first, err := db.Database(1)
	require.NoError(t, err)
	for key := range first.Keys(t.Context(), "*") {
		t.Error(key)
	}
	for key := range db.Keys(t.Context(), "*") { // a loop that is left
		require.NotEmpty(t, key)
		break
	}
}

func TestKeysEndsWithAnError(t *testing.T) {
	db := open(t, atomredis.Options{})
	do(t, db, "SET", "k", "v")
	for _, c := range []struct {
		ctx  func() context.Context
		want error
	}{
		{func() context.Context { ctx, cancel := context.WithCancel(t.Context()); cancel(); return ctx }, context.Canceled},
		{func() context.Context { require.NoError(t, db.Close()); return t.Context() }, atomredis.ErrClosed},
	} {
		steps := 0
		for key, err := range db.Keys(c.ctx(), "*") {
			require.Empty(t, key)
			require.ErrorIs(t, err, c.want)
			steps++
		}
		require.Equal(t, 1, steps)
	}
}

func TestOnlyTheOpenedDBClosesTheServer(t *testing.T) {
	db := open(t, atomredis.Options{})
	for n := range 2 {
		other, err := db.Database(n)
		require.NoError(t, err)
		require.EqualError(t, other.Close(), "atomredis: Database has returned this DB: close the one that Open has returned")
	}
	do(t, db, "PING")
	require.NoError(t, db.Close())
}
