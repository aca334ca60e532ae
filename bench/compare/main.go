// Compare measures atomredis beside redis-server with redis-benchmark, in one run: both servers are up, the rounds
// alternate between them, and what is printed are medians, also of the ratios of two rounds side by side. It runs the binary bin/atomredis.
package main

import (
	"encoding/csv"
	"flag"
	"fmt"
	"log"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"
)

// target is one of the two servers.
type target struct {
	name string
	port string
	cmd  *exec.Cmd
}

// workload is one way to run redis-benchmark.
type workload struct {
	name     string
	command  string // for -t
	pipeline int
	clients  int
}

// measure is the outcome of one round.
type measure struct {
	perSecond float64
	cpuMicros float64 // of the server, per command
}

func main() {
	rounds := flag.Int("rounds", 5, "how often each server runs each workload")
	requests := flag.Int("requests", 1_000_000, "requests per round with pipelining; a fifth of that without")
	all := flag.Bool("all", true, "first run the whole default list of redis-benchmark, for errors")
	flag.Parse()
	log.SetFlags(0)

	redis := start("redis", "redis-server", "--save", "", "--appendonly", "no")
	defer redis.stop()
	ours := start("atomredis", "bin/atomredis", "--save", "", "--appendonly", "no")
	defer ours.stop()

	if *all {
		runAll(ours, *requests/10)
	}
	fmt.Printf("%-22s %12s %12s %7s %10s %10s %7s\n", "workload", "redis/s", "atomredis/s", "ratio", "redis µs", "ours µs", "ratio")
	for _, pipeline := range []int{16, 1} {
		for _, command := range []string{"set", "get"} {
			w := workload{fmt.Sprintf("%s, pipeline %d", strings.ToUpper(command), pipeline), command, pipeline, 50}
			var columns [6][]float64
			for range *rounds {
				a, b := redis.run(w, *requests), ours.run(w, *requests)
				// The ratio of two rounds side by side says more than that of medians: the machine's speed changes in between.
				for i, v := range []float64{a.perSecond, b.perSecond, b.perSecond / a.perSecond, a.cpuMicros, b.cpuMicros, b.cpuMicros / a.cpuMicros} {
					columns[i] = append(columns[i], v)
				}
			}
			fmt.Printf("%-22s %12.0f %12.0f %7.2f %10.3f %10.3f %7.2f\n", w.name, median(columns[0]), median(columns[1]), median(columns[2]),
				median(columns[3]), median(columns[4]), median(columns[5]))
		}
	}
}

// runAll runs every default test of redis-benchmark against the server and ends the program if one fails.
func runAll(t *target, requests int) {
	for _, pipeline := range []int{1, 16} {
		for _, clients := range []int{50, 500} {
			begin := time.Now()
			out, err := exec.Command("redis-benchmark", "-p", t.port, "-P", strconv.Itoa(pipeline), "-c", strconv.Itoa(clients),
				"-n", strconv.Itoa(requests), "--csv").CombinedOutput()
			if err != nil || strings.Contains(string(out), "rror") {
				log.Fatalf("redis-benchmark -P %d -c %d: %v\n%s", pipeline, clients, err, out)
			}
			fmt.Printf("redis-benchmark -P %d -c %d: %d tests without an error in %.0f s\n", pipeline, clients,
				strings.Count(string(out), "\n")-1, time.Since(begin).Seconds())
		}
	}
}

// start runs a server on a free port and waits until it answers.
func start(name, binary string, args ...string) *target {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	l.Close()
	t := &target{name: name, port: port, cmd: exec.Command(binary, append([]string{"--port", port, "--bind", "127.0.0.1"}, args...)...)}
	t.cmd.Stderr = os.Stderr
	if err := t.cmd.Start(); err != nil {
		log.Fatal(err)
	}
	for range 200 {
		if conn, err := net.Dial("tcp", "127.0.0.1:"+port); err == nil {
			conn.Close()
			return t
		}
		time.Sleep(25 * time.Millisecond)
	}
	log.Fatalf("%s does not start", name)
	return nil
}

func (t *target) stop() {
	t.cmd.Process.Signal(os.Interrupt)
	t.cmd.Wait()
}

// run runs one round.
func (t *target) run(w workload, requests int) measure {
	if w.pipeline == 1 {
		requests /= 5
	}
	before := t.cpu()
	out, err := exec.Command("redis-benchmark", "-p", t.port, "-t", w.command, "-P", strconv.Itoa(w.pipeline), "-c", strconv.Itoa(w.clients),
		"-n", strconv.Itoa(requests), "-r", "100000", "-d", "64", "--csv").Output()
	if err != nil {
		log.Fatalf("redis-benchmark: %v", err)
	}
	cpu := t.cpu() - before
	rows, err := csv.NewReader(strings.NewReader(string(out))).ReadAll()
	if err != nil || len(rows) < 2 {
		log.Fatalf("redis-benchmark printed %q: %v", out, err)
	}
	perSecond, err := strconv.ParseFloat(rows[1][1], 64)
	if err != nil {
		log.Fatal(err)
	}
	return measure{perSecond, cpu.Seconds() * 1e6 / float64(requests)}
}

// cpu returns how much processor time the server has used, from /proc.
func (t *target) cpu() time.Duration {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", t.cmd.Process.Pid))
	if err != nil {
		log.Fatal(err)
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	var ticks int
	for _, f := range fields[11:13] { // user and system time, in hundredths of a second
		n, _ := strconv.Atoi(f)
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// median returns the middle value.
func median(v []float64) float64 {
	v = slices.Clone(v)
	slices.Sort(v)
	return v[len(v)/2]
}
