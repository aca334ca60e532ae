package server

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/testing/crashfs"
)

// TestPfcountAnswersWhileTheDiskFails checks that a reading command changes nothing while the disk fails: clients
// that change anything are disconnected.
func TestPfcountAnswersWhileTheDiskFails(t *testing.T) {
	disk := &stuck{}
	d, err := openDurable(t, crashfs.Wrap(crashfs.Mem(), disk), "stop-writes-on-bgsave-error=yes")
	require.NoError(t, err)
	d.expect(":1\r\n", "PFADD h a b c")
	disk.set(true)
	_, told := d.do("SET a 2")
	require.False(t, told)
	const misconf = "-MISCONF Errors writing to the AOF file: injected error\r\n"
	d.await(misconf, "PING") // a connection may see the failure before all commands do
	estimate := "BITFIELD_RO h GET u8 120"
	d.expect(":3\r\n", "PFCOUNT h")
	d.expect("*1\r\n:128\r\n", estimate) // still out of date
	disk.set(false)
	d.await("+OK\r\n", "SET a 3")
	d.expect(":3\r\n", "PFCOUNT h")
	d.expect("*1\r\n:0\r\n", estimate)
	d.end()
}

// BenchmarkSketches measures commands on bits, HyperLogLogs and positions as BenchmarkCommand does others.
func BenchmarkSketches(b *testing.B) {
	random := benchmarkRandom
	element := func() string { return fmt.Sprint("e", random.IntN(benchmarkKeys)) }
	megabyte := func(int) []string { return []string{"SETBIT", "k", fmt.Sprint(8<<20 - 1 - random.IntN(100)), "1"} }
	place := func(i int) []string {
		return []string{"GEOADD", "k", fmt.Sprint(10 * random.Float64()), fmt.Sprint(40 + 10*random.Float64()),
			fmt.Sprint("p", i)}
	}
	for _, c := range []struct {
		name    string
		prepare func(i int) []string
		command func() []string
	}{
		{"SETBIT", megabyte, func() []string { return []string{"SETBIT", "k", fmt.Sprint(random.IntN(8 << 20)), "1"} }},
		{"BITCOUNT1MiB", megabyte, func() []string { return []string{"BITCOUNT", "k"} }},
		{"PFADDsparse", nil, func() []string { return []string{"PFADD", "k", fmt.Sprint("e", random.IntN(1000))} }},
		{"PFADDdense", func(i int) []string { return []string{"PFADD", "k", fmt.Sprint("e", i)} },
			func() []string { return []string{"PFADD", "k", element()} }},
		{"PFCOUNT", func(i int) []string { return []string{"PFADD", "k", fmt.Sprint("e", i)} },
			func() []string { return []string{"PFCOUNT", "k"} }},
		{"PFCOUNT2", func(i int) []string { return []string{"PFADD", fmt.Sprint("k", i%2), fmt.Sprint("e", i)} },
			func() []string { return []string{"PFCOUNT", "k0", "k1"} }},
		{"GEOADD", nil, func() []string { return place(random.IntN(benchmarkKeys)) }},
		{"GEOSEARCH", place, func() []string { // finds about a hundred of 100,000
			return []string{"GEOSEARCH", "k", "FROMLONLAT", fmt.Sprint(1 + 8*random.Float64()),
				fmt.Sprint(41 + 8*random.Float64()), "BYRADIUS", "16", "km", "ASC"}
		}},
	} {
		b.Run(c.name, func(b *testing.B) { benchmarkSession(b, c.prepare, c.command) })
	}
}
