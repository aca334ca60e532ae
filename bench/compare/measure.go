//go:build linux

package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/atomredis/atomredis/bench/internal/load"
	"github.com/atomredis/atomredis/bench/internal/servers"
)

// metric is one figure of both servers: the measurements of each round, and the summary that is shown.
type metric struct {
	Rounds [][2]float64 // redis-server and atomredis, side by side

	Redis, Ours float64 // medians
	// The median of the ratios of the rounds, and how far they spread. Two runs side by side say more than two medians:
	// a disturbance that slows the machine for a while slows both.
	Ratio, Least, Most float64
}

// summarize computes the summary of the rounds.
func (m *metric) summarize() {
	var redis, ours, ratios []float64
	for _, v := range m.Rounds {
		redis, ours = append(redis, v[0]), append(ours, v[1])
		if v[0] > 0 {
			ratios = append(ratios, v[1]/v[0])
		}
	}
	m.Redis, m.Ours = servers.Quantile(redis, 0.5), servers.Quantile(ours, 0.5)
	if len(ratios) > 0 {
		m.Ratio, m.Least, m.Most = servers.Quantile(ratios, 0.5), slices.Min(ratios), slices.Max(ratios)
	}
}

// row is the outcome of a workload.
type row struct {
	Workload  string
	Settings  settings
	Generator string  // of the closed loop: redis-benchmark or our own
	Rate      float64 // operations per second in the open loop

	PerSecond                           metric // operations in a closed loop
	CPUMicros, UserMicros, SystemMicros metric // processor time per Redis command in it
	P50, P99, P999                      metric // microseconds that operations take in an open loop
	PeakBytes                           metric // of one round: the process's peak memory
}

// metrics returns all figures of the row.
func (r *row) metrics() []*metric {
	return []*metric{&r.PerSecond, &r.CPUMicros, &r.UserMicros, &r.SystemMicros, &r.P50, &r.P99, &r.P999, &r.PeakBytes}
}

const (
	// openShare is the rate at which latency is measured, as a share of Redis's rate in the closed loop.
	openShare = 0.7
	// openParts is the number of latency measurements in a round. Other activity on the machine, some milliseconds now
	// and then, makes up the tail of the measurement in which it happens, and the medians come from the others. The
	// shorter the measurements, the more of them are undisturbed.
	openParts = 8
	// warmUp is how long a round runs before operations count. A server that rested while the other was measured begins
	// slowly, whichever it is: after 30 ms the tail is still about twice its final length.
	warmUp = 100 * time.Millisecond
)

// bench is the way everything is measured.
type bench struct {
	program string        // of atomredis
	rounds  int           // measurements of each server
	open    int           // latency measurements of each server
	time    time.Duration // of each measurement
}

// measure measures a workload on two new servers.
func (b bench) measure(w workload, c settings) *row {
	r := &row{Workload: w.name, Settings: c, Generator: "redis-benchmark"}
	if w.benchmark == nil {
		r.Generator = "bench/internal/load"
	}
	var both [2]*servers.Server
	for i, program := range []string{servers.Redis, b.program} {
		s := servers.New(program)
		s.Start(servers.Durability(c.Durability)...)
		if w.fill != nil {
			w.fill(s)
		}
		if c.Durability != "none" {
			s.Settle()
		}
		both[i] = s
	}

	// The number of operations in a run. Data that it removes must exist before, and data that it adds must fit.
	limit := func(operations int) int {
		if w.before != nil && w.bytes > 0 {
			operations = min(operations, budget/w.bytes)
		}
		return max(operations, 2*c.Conns*c.Pipeline)
	}
	// A short run shows how much each server does in a round, and warms it up.
	var peak [2]float64
	for i, s := range both {
		o := load.Options{Pipeline: c.Pipeline, Duration: b.time / 5, Operations: limit(5000 + 3000*c.Pipeline)}
		peak[i] = generate(s, w, nil, o).PerSecond()
	}
	requests := limit(int(peak[0] * b.time.Seconds()))
	most := limit(int(2 * slices.Max(peak[:]) * b.time.Seconds()))

	for _, m := range r.metrics() {
		m.Rounds = make([][2]float64, b.rounds)
	}
	r.PeakBytes.Rounds = r.PeakBytes.Rounds[:1]
	eachRound(b.rounds, both, func(round, i int) {
		s := both[i]
		var cpu servers.CPU
		var commands float64
		if w.benchmark != nil {
			var done int
			r.PerSecond.Rounds[round][i], cpu, done = benchmark(s, w, c, requests)
			commands = float64(done * w.commands)
		} else {
			result := generate(s, w, nil, load.Options{Pipeline: c.Pipeline, Duration: b.time, Operations: most})
			r.PerSecond.Rounds[round][i], cpu = result.PerSecond(), result.cpu
			commands = float64(result.Operations * w.commands)
		}
		r.CPUMicros.Rounds[round][i] = micros(cpu.Total) / commands
		r.UserMicros.Rounds[round][i] = micros(cpu.User) / commands
		r.SystemMicros.Rounds[round][i] = micros(cpu.System) / commands
	})
	r.PerSecond.summarize()

	r.Rate = openShare * r.PerSecond.Redis
	latencies := map[float64]*metric{50: &r.P50, 99: &r.P99, 99.9: &r.P999}
	for _, m := range latencies {
		m.Rounds = make([][2]float64, b.open*openParts)
	}
	var kept [2]*load.Generator // generators whose connections continue: connecting would be part of the measurement
	for i, s := range both {
		if cs := w.connections(); w.before == nil ||
			!slices.ContainsFunc(cs, func(c load.Connection) bool { return c.Partner }) {
			kept[i] = connect(s, w)
			defer kept[i].Close()
		}
	}
	together := apart(both)
	eachRound(b.open, both, func(round, i int) {
		duration := warmUp + b.time
		operations := limit(int(r.Rate * duration.Seconds()))
		o := load.Options{Pipeline: c.Pipeline, Duration: duration, Rate: r.Rate, Operations: operations,
			WarmUp: int(r.Rate * warmUp.Seconds()), Parts: openParts}
		// The periodic work that redis-server does ten times a second, even when idle, takes 0.15 ms. The other server
		// would wait for it if they shared a processor.
		other := both[1-i]
		other.Pause()
		defer other.Resume()
		for part, latency := range generate(both[i], w, kept[i], o).Latency {
			for q, m := range latencies {
				m.Rounds[round*openParts+part][i] = micros(time.Duration(latency.ValueAtQuantile(q)))
			}
		}
	})
	together()
	for i, s := range both {
		_, peak := s.Memory()
		r.PeakBytes.Rounds[0][i] = float64(peak)
		s.Discard()
	}
	for _, m := range r.metrics() {
		m.summarize()
	}
	return r
}

// eachRound calls f for each server in turn, rounds times; the server that goes first alternates.
func eachRound(rounds int, both [2]*servers.Server, f func(round, i int)) {
	for round := range rounds {
		for i := range both {
			f(round, (round+i)%len(both))
		}
	}
}

// benchmark has redis-benchmark send the given number of requests, or more if they take less time than it can measure.
// It returns the number sent.
func benchmark(s *servers.Server, w workload, c settings, requests int) (perSecond float64, cpu servers.CPU, done int) {
	for {
		if w.before != nil {
			w.before(s, requests+c.Conns*c.Pipeline) // the last pipelines may exceed the number
		}
		before := s.CPU()
		perSecond, err := runBenchmark(s, w, c, requests)
		if err == errTooShort {
			requests *= 10
			continue
		}
		if err != nil {
			failed(s, w, err)
		}
		return perSecond, s.CPU().Since(before), requests
	}
}

// generated is the outcome of a run of our own generator.
type generated struct {
	load.Result
	cpu servers.CPU
}

// connect returns a generator for the workload.
func connect(s *servers.Server, w workload) *load.Generator {
	g, err := load.New(s.Addr, w.connections())
	if err != nil {
		failed(s, w, err)
	}
	return g
}

// generate has a generator do what o says. A nil g stands for one with new connections.
func generate(s *servers.Server, w workload, g *load.Generator, o load.Options) (r generated) {
	if w.before != nil {
		w.before(s, o.Operations)
	}
	if g == nil {
		g = connect(s, w)
		defer g.Close()
	}
	before := s.CPU()
	var err error
	if r.Result, err = g.Run(o); err != nil {
		failed(s, w, err)
	}
	r.cpu = s.CPU().Since(before)
	return r
}

func failed(s *servers.Server, w workload, err error) {
	servers.Fatal(fmt.Sprintf("%s, %s: %v", w.name, s.Program, err))
}

func micros(d time.Duration) float64 { return d.Seconds() * 1e6 }
