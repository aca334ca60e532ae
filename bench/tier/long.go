//go:build linux

package main

import (
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/atomredis/atomredis/bench/internal/servers"
)

// The long run: far more data than memory, of all types, under a mixed load. Every reply is checked.

// longRun is a long run under way.
type longRun struct {
	settings
	out    io.Writer
	server *servers.Server
	keys   int

	commands, sent, wrong atomic.Int64 // answered commands, their bytes, and wrong replies

	mu            sync.Mutex              // protects the following fields
	reads, writes *hdrhistogram.Histogram // of the commands since the last line, in ns
}

// reading is a set of counters at an instant.
type reading struct {
	at             time.Time
	commands, sent int64
	waits, values  int   // waits of clients for values, and values that were read whole
	written, store int   // bytes: by the process, and the store's part of them
	resident, disk int64 // the peaks since the reading before
	reads, writes  *hdrhistogram.Histogram
}

func measureLong(o settings, out io.Writer) {
	l := &longRun{settings: o, out: out, keys: int(o.bytes / meanSize()), reads: histogram(), writes: histogram()}
	l.server = servers.NewIn(o.dir, o.program)
	l.server.Start(append(servers.Durability("everysec"), "--maxmemory", o.limit, "--maxmemory-policy", "tier")...)
	fmt.Fprintf(out, "%d keys with %.1f GB of values, maxmemory %s, %d connections; times in ms, memory and disk in MB\n\n",
		l.keys, o.bytes/1e9, o.limit, conns)
	fmt.Fprintf(out, "%-14s %8s  %-22s  %-22s %7s %8s %9s %8s %8s %13s %6s\n", "", "commands", "reads", "writes", "longest",
		"commands", "values", "resident", "on disk", "written/sent", "wrong")
	fmt.Fprintf(out, "%-14s %8s  %6s %7s %7s  %6s %7s %7s %7s %8s %9s %8s %8s %6s %6s %6s\n", "", "per s", "p50", "p99", "p99.9",
		"p50", "p99", "p99.9", "", "waited", "read/s", "most", "most", "all", "store", "")

	var workers []*worker
	for i := range conns {
		workers = append(workers, newWorker(l, i))
	}
	l.phase("filling", func() { each(workers, (*worker).fill) })
	l.phase("load", func() {
		go l.dispatch(workers)
		each(workers, (*worker).work)
	})
	if n := l.server.Do("DBSIZE"); n != fmt.Sprint(":", l.keys) {
		servers.Fatal("DBSIZE: ", n)
	}
	l.server.Stop()
	if n := l.wrong.Load(); n > 0 {
		servers.Fatal(n, " replies were wrong")
	}
}

// each calls work for all workers concurrently and waits for them.
func each(workers []*worker, work func(w *worker)) {
	var all sync.WaitGroup
	for _, w := range workers {
		all.Go(func() { work(w) })
	}
	all.Wait()
}

// dispatch gives the workers commands to make, at equal intervals if there is a rate. A key's popularity is unrelated
// to its number.
func (l *longRun) dispatch(workers []*worker) {
	z, begun, factor := newZipf(l.keys, 0.99), time.Now(), coprime(l.keys)
	for n := 0; ; n++ {
		due := time.Now()
		if l.rate > 0 {
			due = begun.Add(time.Duration(float64(n) / l.rate * 1e9))
			if early := time.Until(due); early > 0 {
				time.Sleep(early)
			}
		}
		if due.Sub(begun) >= l.time {
			break
		}
		key := z.next() * factor % l.keys
		workers[key%len(workers)].jobs <- job{uint32(key), due}
	}
	for _, w := range workers {
		close(w.jobs)
	}
}

// coprime returns a number such that multiplying 0 to n-1 by it modulo n gives a permutation.
func coprime(n int) int {
	for f := n*5/8 + 1; ; f++ {
		a, b := f, n
		for b != 0 {
			a, b = b, a%b
		}
		if a == 1 {
			return f
		}
	}
}

// phase runs one of the phases, and prints a line each minute and one for all of it.
func (l *longRun) phase(name string, do func()) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		do()
	}()
	first := l.read()
	all, last := first, first
	all.reads, all.writes = histogram(), histogram()
	for second := time.NewTicker(time.Second); ; {
		over := false
		select {
		case <-ended:
			over = true
		case <-second.C:
		}
		resident, _ := l.server.Memory()
		last.resident, last.disk = max(last.resident, resident), max(last.disk, size(l.server.Dir))
		if time.Since(last.at) < time.Minute && !over {
			continue
		}
		now := l.read()
		now.reads, now.writes = l.take()
		all.reads.Merge(now.reads)
		all.writes.Merge(now.writes)
		all.resident, all.disk = max(all.resident, last.resident), max(all.disk, last.disk)
		now.resident, now.disk = last.resident, last.disk
		if !over {
			l.line(fmt.Sprintf("%s, %d min", name, int(time.Since(first.at).Minutes()+0.5)), last, now)
		}
		last = now
		last.resident, last.disk = 0, 0
		if over {
			now.reads, now.writes, now.resident, now.disk = all.reads, all.writes, all.resident, all.disk
			_, peak := l.server.Memory()
			now.resident = max(now.resident, peak)
			l.line(name+", all", first, now)
			l.server.ResetPeak()
			return
		}
	}
}

// count records how long a command took.
func (l *longRun) count(took time.Duration, write bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := l.reads
	if write {
		h = l.writes
	}
	_ = h.RecordValue(min(int64(took), h.HighestTrackableValue()))
}

// take returns the times of the commands since its last call.
func (l *longRun) take() (reads, writes *hdrhistogram.Histogram) {
	l.mu.Lock()
	defer l.mu.Unlock()
	reads, writes = l.reads, l.writes
	l.reads, l.writes = histogram(), histogram()
	return reads, writes
}

func (l *longRun) read() reading {
	info := l.server.Do("INFO", "stats", "store")
	n := func(name string) int { return infoNumber(info, name) }
	return reading{at: time.Now(), commands: l.commands.Load(), sent: l.sent.Load(), waits: n("tier_waits"),
		values: n("tier_loaded_values"), written: int(l.server.WriteBytes()), store: n("store_flushed") + n("store_compacted")}
}

// line prints the differences between two readings.
func (l *longRun) line(name string, from, to reading) {
	seconds := to.at.Sub(from.at).Seconds()
	commands, sent := to.commands-from.commands, float64(max(to.sent-from.sent, 1))
	fmt.Fprintf(l.out, "%-14s %8.0f  %s  %s %7.0f %7.1f%% %9.0f %8d %8d %6.1f %6.1f %6d\n", name, float64(commands)/seconds,
		quantiles(to.reads), quantiles(to.writes), float64(max(to.reads.Max(), to.writes.Max()))/1e6,
		100*float64(to.waits-from.waits)/float64(max(commands, 1)), float64(to.values-from.values)/seconds,
		to.resident>>20, to.disk>>20, float64(to.written-from.written)/sent, float64(to.store-from.store)/sent,
		l.wrong.Load())
}

func histogram() *hdrhistogram.Histogram { return hdrhistogram.New(1000, int64(10*time.Minute), 3) }

func quantiles(h *hdrhistogram.Histogram) string {
	ms := func(q float64) float64 { return float64(h.ValueAtQuantile(q)) / 1e6 }
	return fmt.Sprintf("%6.2f %7.1f %7.1f", ms(50), ms(99), ms(99.9))
}

// infoNumber returns a number from INFO.
func infoNumber(info, name string) (n int) {
	_, after, _ := strings.Cut(info, "\n"+name+":")
	_, err := fmt.Sscan(after, &n)
	servers.Check(err)
	return n
}

// size returns the size of a directory's files in bytes. Files may disappear meanwhile.
func size(dir string) (n int64) {
	_ = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			if info, err := e.Info(); err == nil {
				n += info.Size()
			}
		}
		return nil
	})
	return n
}
