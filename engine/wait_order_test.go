package engine

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// chooser takes from the first permitted key that has a value.
type chooser struct{ took []string }

func (c *chooser) Try(g *Guard, key string) bool {
	if g.PeekString(0, key) == nil {
		return false
	}
	c.took = append(c.took, key)
	return true
}

func (c *chooser) Served() {}

func TestWaitersOfSeveralKeysTakeTheFirstInTheirOwnOrder(t *testing.T) {
	for name, c := range map[string]struct{ fill, want []string }{
		"in another order": {[]string{"k3", "k2"}, []string{"k2"}},
		"only the last":    {[]string{"k3"}, []string{"k3"}},
		"all, backwards":   {[]string{"k3", "k2", "k1"}, []string{"k1"}},
		"one that is none": {[]string{"other", "k2"}, []string{"k2"}},
	} {
		ks := New(Options{Shards: 4})
		var client chooser
		var g Guard
		g.Lock(ks, AllShards, 1000)
		g.Wait(&Waiter{Keys: []string{"k1", "k2", "k3"}, Client: &client})
		g.Unlock()
		g.Lock(ks, AllShards, 1000)
		for _, key := range c.fill {
			g.CreateString(0, []byte(key), []byte("v"))
		}
		g.Unlock()
		require.Equal(t, c.want, client.took, name)
		ks.Close()
	}
}
