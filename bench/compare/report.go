//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/atomredis/atomredis/bench/internal/servers"
)

// report is the result of a run, as it is stored.
type report struct {
	Date       time.Time
	CPU        string
	Processors int
	Kernel     string
	Go         string
	Redis      string // the versions
	AtomRedis  string
	Rounds     int
	OpenRounds int
	Seconds    float64 // of each measurement
	OpenShare  float64 // share of Redis's rate in the closed loop
	Rows       []*row
}

func newReport(b bench) *report {
	return &report{
		Date:       time.Now(),
		CPU:        processor(),
		Processors: runtime.NumCPU(),
		Kernel:     output("uname", "-sr"),
		Go:         runtime.Version(),
		Redis:      output(servers.Redis, "--version"),
		AtomRedis:  output(b.program, "--version"),
		Rounds:     b.rounds,
		OpenRounds: b.open,
		Seconds:    b.time.Seconds(),
		OpenShare:  openShare,
	}
}

func output(program string, args ...string) string {
	out, err := exec.Command(program, args...).Output()
	servers.Check(err)
	return strings.TrimSpace(string(out))
}

// processor returns the name of the processor model.
func processor() string {
	b, err := os.ReadFile("/proc/cpuinfo")
	servers.Check(err)
	for line := range strings.Lines(string(b)) {
		if name, value, _ := strings.Cut(line, ":"); strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}

// printHead prints what is common to all rows.
func (r *report) printHead(w io.Writer) {
	fmt.Fprintf(w, "%s\n%d processors, %s; %s; %s\n%s\n%s\n",
		r.Date.Format(time.DateTime), r.Processors, r.CPU, r.Kernel, r.Go, r.Redis, r.AtomRedis)
	fmt.Fprintf(w, `%d rounds of %.2f s, of latency %d. Operations per second and processor time in a closed loop, latency in an open loop at %.0f %% of
redis-server's operations per second. Medians; a ratio is ours divided by redis-server's, the median of the rounds' ratios.
`, r.Rounds, r.Seconds, r.OpenRounds, 100*r.OpenShare)
}

// String describes the settings of a block of rows.
func (c settings) String() string {
	s := fmt.Sprintf("%d connections, %d-byte values, %d keys", c.Conns, c.Size, c.Keys)
	if c.Zipf > 0 {
		s += fmt.Sprintf(" of which some are popular (zipf %g)", c.Zipf)
	}
	if c.Durability == "none" {
		return s + ", in memory"
	}
	return s + ", appendfsync " + c.Durability
}

// The formats of the column names and of a row.
const (
	nameColumns = "%-12s %4s %9s %9s %5s %12s %10s %8s %5s %8s %8s %8s %8s %8s %8s %5s %6s %6s\n"
	rowColumns  = "%-12s %4d %9.0f %9.0f %5.2f %12s %10.3f %8.3f %5.2f %8.0f %8.0f %8.0f %8.0f %8.0f %8.0f %5.2f %6.0f %6.0f\n"
)

// printBlock prints the settings of the following rows, and the column names.
func printBlock(w io.Writer, c settings) {
	fmt.Fprintf(w, "\n%s\n", c)
	fmt.Fprintf(w, nameColumns, "", "", "", "", "", "", "CPU µs per", "command", "",
		"p50 µs", "", "p99 µs", "", "p99.9 µs", "", "", "peak", "MiB")
	fmt.Fprintf(w, nameColumns, "workload", "pipe", "redis/s", "ours/s", "ratio", "spread", "redis", "ours", "ratio",
		"redis", "ours", "redis", "ours", "redis", "ours", "ratio", "redis", "ours")
}

// print prints the row.
func (r *row) print(w io.Writer) {
	const mib = 1 << 20
	fmt.Fprintf(w, rowColumns, r.Workload, r.Settings.Pipeline, r.PerSecond.Redis, r.PerSecond.Ours, r.PerSecond.Ratio,
		fmt.Sprintf("%.2f to %.2f", r.PerSecond.Least, r.PerSecond.Most), r.CPUMicros.Redis, r.CPUMicros.Ours,
		r.CPUMicros.Ratio,
		r.P50.Redis, r.P50.Ours, r.P99.Redis, r.P99.Ours, r.P999.Redis, r.P999.Ours, r.P999.Ratio,
		r.PeakBytes.Redis/mib, r.PeakBytes.Ours/mib)
}

// save writes the report to a file.
func (r *report) save(file string) {
	b, err := json.MarshalIndent(r, "", "\t")
	servers.Check(err)
	servers.Check(os.WriteFile(file, append(b, '\n'), 0o644))
}
