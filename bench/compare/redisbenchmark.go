//go:build linux

package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"math"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/atomredis/atomredis/bench/internal/servers"
)

// errTooShort is the error if redis-benchmark measured no time at all.
var errTooShort = errors.New("redis-benchmark has measured no time")

// runBenchmark runs redis-benchmark with the arguments of a workload and returns the requests per second that it
// reports.
func runBenchmark(s *servers.Server, w workload, c settings, requests int) (float64, error) {
	args := []string{"-p", s.Port(), "-P", strconv.Itoa(c.Pipeline), "-c", strconv.Itoa(c.Conns), "-n",
		strconv.Itoa(requests),
		"-r", strconv.Itoa(w.numbers), "-d", strconv.Itoa(c.Size), "--csv"}
	out, err := exec.Command("redis-benchmark", append(args, w.benchmark...)...).CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("redis-benchmark: %w: %s", err, out)
	}
	perSecond, err := requestsPerSecond(string(out))
	if err == nil && len(perSecond) != 1 {
		err = fmt.Errorf("redis-benchmark has run %d tests, not one", len(perSecond))
	}
	if err != nil {
		return 0, err
	}
	return perSecond[0], nil
}

// requestsPerSecond reads the output of redis-benchmark --csv: a row for each test.
func requestsPerSecond(out string) (perSecond []float64, err error) {
	rows, err := csv.NewReader(strings.NewReader(out)).ReadAll()
	if err != nil || len(rows) < 2 || len(rows[0]) < 2 || rows[0][1] != "rps" {
		return nil, fmt.Errorf("redis-benchmark printed %q: %w", out, err)
	}
	for _, row := range rows[1:] {
		v, err := strconv.ParseFloat(row[1], 64)
		if err != nil || v <= 0 {
			return nil, fmt.Errorf("redis-benchmark printed %q", row)
		}
		if math.IsInf(v, 0) {
			return nil, errTooShort
		}
		perSecond = append(perSecond, v)
	}
	return perSecond, nil
}

// runDefaults runs every default test of redis-benchmark against the server and ends the program if one fails.
func runDefaults(s *servers.Server, requests int) {
	for _, load := range [][]string{{"-P", "1", "-c", "50"}, {"-P", "16", "-c", "500"}} {
		begin := time.Now()
		args := append([]string{"-p", s.Port(), "-n", strconv.Itoa(requests), "--csv"}, load...)
		out, err := exec.Command("redis-benchmark", args...).CombinedOutput()
		if err != nil || strings.Contains(string(out), "rror") {
			servers.Fatal(fmt.Sprintf("redis-benchmark %s: %v\n%s", load, err, out))
		}
		tests := strings.Count(string(out), "\n") - 1
		fmt.Printf("redis-benchmark %s: %d tests without an error in %.1f s\n", strings.Join(load, " "), tests,
			time.Since(begin).Seconds())
	}
}
