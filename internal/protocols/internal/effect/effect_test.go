package effect_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/protocols/internal/effect"
	"github.com/atomredis/atomredis/internal/testing/commandtest"
)

func TestChangesAreThoseOfCommands(t *testing.T) {
	b := commandtest.New(t)
	c := &b.Ctx
	word := func(s string) []byte { return []byte(s) }
	has := func(key string) bool { return c.G.Peek(c.DB, word(key)) != nil }

	effect.HSet(c, word("h"), word("f"), word("1"))
	effect.HSet(c, word("h"), word("g"), word("2"))
	value, ok := effect.HGet(c, word("h"), word("f"))
	require.True(t, ok)
	require.Equal(t, "1", string(value))
	_, ok = effect.HGet(c, word("none"), word("f"))
	require.False(t, ok)
	require.Equal(t, 2, effect.HLen(c, word("h")))
	require.Equal(t, 1, effect.HDel(c, word("h"), word("f"), word("none")))
	require.Equal(t, 0, effect.HDel(c, word("h"), word("f")))
	require.Equal(t, 1, effect.HDel(c, word("h"), word("g")))
	require.False(t, has("h"), "the key goes with its last field")

	effect.ZAdd(c, word("z"), word("a"), 7)
	effect.ZAdd(c, word("z"), word("b"), 1<<62)
	score, _ := effect.ZSet(c, word("z")).Score(word("b"))
	require.Equal(t, float64(1<<53), score, "a score that no float64 holds becomes the largest")
	require.Equal(t, 2, effect.ZCard(c, word("z")))
	require.Equal(t, 2, effect.ZRem(c, word("z"), word("a"), word("b"), word("none")))
	require.False(t, has("z"))

	effect.Set(c, word("s"), word("5"))
	require.EqualValues(t, 5, effect.Integer(c, word("s"), 9))
	require.EqualValues(t, 9, effect.Integer(c, word("none"), 9))
	e := c.G.Write(c.DB, word("s"))
	c.G.SetDeadline(e, 2_000_000)
	effect.Set(c, word("s"), word("x"))
	require.Zero(t, c.G.Peek(c.DB, word("s")).Deadline(), "it has no deadline any more")
	require.EqualValues(t, 9, effect.Integer(c, word("s"), 9))

	require.True(t, effect.Is(c, word("s"), engine.String))
	require.True(t, effect.Is(c, word("none"), engine.Hash))
	require.Empty(t, string(b.Out.Buf))
	require.False(t, effect.Is(c, word("s"), engine.Hash))
	require.Contains(t, string(b.Out.Buf), "-WRONGTYPE ")
	effect.HSet(c, word("s"), word("f"), word("1"))
	effect.ZAdd(c, word("s"), word("m"), 1)
	require.Zero(t, effect.HLen(c, word("s")), "what is of another type stays as it is")
	require.Zero(t, effect.ZCard(c, word("s")))
	effect.Del(c, word("s"))
	require.False(t, has("s"))
}
