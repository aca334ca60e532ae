//go:build linux

package main

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRequestsPerSecondReadsCSV(t *testing.T) {
	const head = `"test","rps","avg_latency_ms","min_latency_ms","p50_latency_ms","p95_latency_ms","p99_latency_ms","max_latency_ms"` + "\n"
	got, err := requestsPerSecond(head + `"SET","256410.25","2.534","0.256","1.167","5.455","27.903","28.047"` + "\n" +
		`"MSET (10 keys)","1000.50","2.634","0.448","1.847","6.255","9.599","10.927"` + "\n")
	require.NoError(t, err)
	require.Equal(t, []float64{256410.25, 1000.5}, got)
	for _, bad := range []string{"", head, head + `"SET","inf","0","0","0","0","0","0"` + "\n",
		"Could not connect to Redis\n"} {
		_, err := requestsPerSecond(bad)
		require.Error(t, err, "%q", bad)
	}
}

func TestMetricTakesTheMedianOfRatios(t *testing.T) {
	m := metric{Rounds: [][2]float64{{100, 200}, {10, 5}, {1000, 1100}}}
	m.summarize()
	require.Equal(t, 100.0, m.Redis)
	require.Equal(t, 200.0, m.Ours)
	require.Equal(t, 1.1, m.Ratio, "not 2.0, that of the medians")
	require.Equal(t, 0.5, m.Least)
	require.Equal(t, 2.0, m.Most)

	none := metric{Rounds: [][2]float64{{0, 3}}}
	none.summarize()
	require.Zero(t, none.Ratio, "no figure that JSON cannot hold")
}

func TestWorkloadsNameTheirNumbersAndCommands(t *testing.T) {
	for _, c := range []settings{defaults, {Pipeline: 16, Conns: 1, Size: 256 << 10, Keys: 5_000_000, Zipf: 1.1}} {
		for _, w := range workloads(c) {
			require.NotEmpty(t, w.name)
			require.Positive(t, w.commands, w.name)
			require.Positive(t, w.numbers, w.name)
			if w.operation != nil {
				require.Len(t, w.operation, w.commands, w.name)
				require.LessOrEqual(t, len(w.want), len(w.operation), w.name)
			}
			if c.Zipf > 0 && w.keyed {
				require.Nil(t, w.benchmark, "redis-benchmark cannot do %s", w.name)
			}
		}
	}
}

func TestWorkerAcknowledgesWhatItHasRead(t *testing.T) {
	w := newWorker("s", "g", 0, 1)
	_, replies := w.Append(nil, 0, 0)
	require.Equal(t, 1, replies)
	require.Error(t, w.Reply(0, []byte("*-1\r\n")))
	require.NoError(t, w.Reply(0, []byte("*1\r\n*2\r\n$1\r\ns\r\n*1\r\n*2\r\n$3\r\n7-1\r\n*2\r\n$1\r\nf\r\n$1\r\nv\r\n")))
	b, replies := w.Append(nil, 0, 1)
	require.Equal(t, "*4\r\n$4\r\nXACK\r\n$1\r\ns\r\n$1\r\ng\r\n$3\r\n7-1\r\n", string(b))
	require.Equal(t, 1, replies)
	require.Error(t, w.Reply(0, []byte(":0\r\n")))
	require.NoError(t, w.Reply(0, []byte(":1\r\n")))
	_, replies = w.Append(nil, 0, 2)
	require.Zero(t, replies)
}

func TestProducerLeavesAFullQueueMarkedFull(t *testing.T) {
	for _, test := range []struct {
		length string
		want   int
	}{{":9\r\n", putCommands}, {":10\r\n", putCommands - 2}} {
		put := queuePairs(1, "v")[0].Client.(*queueEnd)
		sent := 0
		for step := 0; ; step++ {
			_, replies := put.Append(nil, 0, step)
			if replies == 0 {
				break
			}
			sent++
			reply := put.steps[put.at].want
			if put.at == put.push {
				reply = test.length
			}
			require.NoError(t, put.Reply(0, []byte(reply)))
		}
		require.Equal(t, test.want, sent, "after a push that leaves %q messages", test.length)
	}
	require.Len(t, queuePairs(1, "v")[1].Client.(*queueEnd).steps, getCommands)
}

func TestAtomCallerWaitsForTheResponseToItsCommand(t *testing.T) {
	a := elementPairs(1, "v")[0].Client.(*atomCaller)
	b, _ := a.Append(nil, 0, 0)
	require.True(t, bytes.Contains(b, []byte("command:called0")))
	require.NoError(t, a.Reply(0, []byte("$3\r\n5-0\r\n")))
	read := func(id, field, value string) []byte {
		return []byte("*1\r\n*2\r\n$1\r\nr\r\n*1\r\n*2\r\n$3\r\n" + id +
			"\r\n*6\r\n$7\r\nelement\r\n$7\r\ncalled0\r\n$6\r\ncmd_id\r\n$3\r\n5-0\r\n" +
			field + value)
	}
	b, replies := a.Append(nil, 0, 1)
	require.Equal(t, 1, replies)
	require.True(t, bytes.HasSuffix(b, []byte("$3\r\n5-0\r\n")), "since the command")
	require.NoError(t, a.Reply(0, read("6-0", "$7\r\ntimeout\r\n", "$4\r\n1000\r\n")))
	b, replies = a.Append(nil, 0, 2)
	require.Equal(t, 1, replies)
	require.True(t, bytes.HasSuffix(b, []byte("$3\r\n6-0\r\n")), "since the acknowledgement")
	require.NoError(t, a.Reply(0, read("6-1", "$8\r\nerr_code\r\n", "$1\r\n0\r\n")))
	_, replies = a.Append(nil, 0, 3)
	require.Zero(t, replies)
	a.Append(nil, 0, 0)
	require.NoError(t, a.Reply(0, []byte("$3\r\n8-0\r\n")))
	require.Error(t, a.Reply(0, []byte("*-1\r\n")), "no answer in time")
}

func TestChartIsDrawn(t *testing.T) {
	r := report{Rows: []*row{{Workload: "get", Settings: defaults}, {Workload: "set", Settings: defaults}}}
	for _, row := range r.Rows {
		row.PerSecond.Ratio, row.CPUMicros.Ratio, row.P999.Ratio = 1.5, 0.5, 20
	}
	require.NoError(t, r.saveChart(filepath.Join(t.TempDir(), "chart.svg")))
}
