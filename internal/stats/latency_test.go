package stats

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestLatencyMonitorKeepsOneSampleForEachSecond(t *testing.T) {
	var m Latency
	ms := int64(time.Millisecond)
	m.Add("command", 5_000, 9*ms, 10)
	_, ok := m.Series("command")
	require.False(t, ok, "below the threshold")
	m.Add("command", 5_000, 20*ms, 10)
	m.Add("command", 5_900, 30*ms, 10)
	m.Add("command", 5_990, 10*ms, 10)
	m.Add("command", 6_000, 15*ms, 10)
	s, ok := m.Series("command")
	require.True(t, ok)
	require.Equal(t, LatencySeries{[]LatencySample{{5, 30}, {6, 15}}, 30}, s)
	for i := range int64(2 * maxLatencySamples) {
		m.Add("command", 10_000+1000*i, 10*ms, 10)
	}
	s, _ = m.Series("command")
	require.Len(t, s.Samples, maxLatencySamples)
	require.Equal(t, int64(30), s.Max)
	require.True(t, m.Reset("command"))
	require.False(t, m.Reset("command"))
	m.Add("command", 1, 10*ms, 0)
	require.Empty(t, m.Names(), "a threshold of 0 is none")
}

func TestLatencyGraphHasAColumnForEachSample(t *testing.T) {
	s := LatencySeries{Samples: []LatencySample{{100, 10}, {130, 40}, {7000, 25}}, Max: 50}
	require.Equal(t, "command - high 40 ms, low 10 ms (all time high 50 ms)\n"+
		"--------------------------------------------------------------------------------\n"+
		" # \n"+
		" |_\n"+
		" ||\n"+
		"_||\n"+
		"   \n"+
		"111\n"+
		"hhm\n", s.Graph("command", 7100))
}
