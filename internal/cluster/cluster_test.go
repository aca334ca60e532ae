package cluster_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/atomredis/atomredis/internal/cluster"
	"github.com/atomredis/atomredis/internal/config"
	"github.com/atomredis/atomredis/internal/testing/testseed"
)

func TestEverySlotHasATag(t *testing.T) {
	require.Equal(t, "06S", cluster.TagOf(0))
	require.Equal(t, "Qi", cluster.TagOf(1))
	for slot := range cluster.Slots {
		require.Equal(t, slot, cluster.SlotOf([]byte("a{"+cluster.TagOf(slot)+"}b")))
	}
}

func TestClientsWithoutAnAddressLearnTheConfiguredPort(t *testing.T) {
	conf := config.NewConfig()
	require.NoError(t, conf.Set("port", "7000", false))
	require.Equal(t, cluster.Announcement{Port: 7000}, cluster.Announce(conf.Get(), "/tmp/x:0"))
	require.NoError(t, conf.Set("tls-port", "7001", false))
	const local = "[::ffff:10.0.0.1]:7001"
	require.Equal(t, cluster.Announcement{IP: "10.0.0.1", Port: 7000, TLSPort: 7001, TLS: true},
		cluster.Announce(conf.Get(), local))
	require.NoError(t, conf.Set("cluster-announce-tls-port", "7002", false))
	a := cluster.Announce(conf.Get(), local)
	require.Equal(t, 7002, a.ClientPort())
}

// The CRC computed bit by bit, from its definition.
func TestSlotsAreThoseOfTheCRC(t *testing.T) {
	testseed.Check(t, func(t *rapid.T) {
		key := rapid.SliceOf(rapid.ByteRange('a', 'z')).Draw(t, "key")
		crc := 0
		for _, b := range key {
			crc ^= int(b) << 8
			for range 8 {
				if crc <<= 1; crc&0x10000 != 0 {
					crc ^= 0x11021
				}
			}
		}
		require.Equal(t, crc%cluster.Slots, cluster.SlotOf(key))
		if len(key) > 0 {
			require.Equal(t, crc%cluster.Slots, cluster.SlotOf(slices.Concat([]byte("x{"), key, []byte("}{y}"))))
		}
	})
}

func BenchmarkSlotOf(b *testing.B) {
	key := []byte("key:000000000012")
	for b.Loop() {
		cluster.SlotOf(key)
	}
}
