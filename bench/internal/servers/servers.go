// Package servers starts atomredis and redis-server for the benchmarks, talks to them and measures their resources.
// Errors end the program: a benchmark cannot handle them.
package servers

import (
	"fmt"
	"log"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// The programs that are compared.
const (
	Redis     = "redis-server"
	AtomRedis = "bin/atomredis"
)

// Server is one of the servers. Its data remains when it ends, so that it can be started again.
type Server struct {
	Program string
	Addr    string // set by Start
	Dir     string // of its data, on a real disk

	cmd   *exec.Cmd
	ended chan struct{} // closed when the process has ended
}

var (
	mu          sync.Mutex
	started     []*Server // all that New has made and that were not discarded
	onInterrupt sync.Once
)

// New returns a server that is not running yet, with an empty directory under bench/results, which must be on a real
// disk.
func New(program string) *Server { return NewIn("bench/results", program) }

// NewIn is New with the directory under parent, which must be on a real disk too.
func NewIn(parent, program string) *Server {
	Check(os.MkdirAll(parent, 0o755))
	dir, err := os.MkdirTemp(parent, "data-")
	Check(err)
	s := &Server{Program: program, Dir: dir}
	mu.Lock()
	started = append(started, s)
	mu.Unlock()
	onInterrupt.Do(func() {
		go func() {
			interrupt := make(chan os.Signal, 1)
			signal.Notify(interrupt, os.Interrupt, syscall.SIGTERM)
			<-interrupt
			Fatal("interrupted")
		}()
	})
	kind, err := exec.Command("stat", "-f", "-c", "%T", dir).Output()
	Check(err)
	if strings.TrimSpace(string(kind)) == "tmpfs" {
		Fatal(parent, " is not on a disk")
	}
	return s
}

// Fatal is log.Fatal, but first ends the servers and removes their directories.
func Fatal(v ...any) {
	Cleanup()
	log.Fatal(v...)
}

// Check ends the program if err is not nil.
func Check(err error) {
	if err != nil {
		Fatal(err)
	}
}

// Cleanup kills all servers and removes their directories.
func Cleanup() {
	mu.Lock()
	defer mu.Unlock()
	for _, s := range started {
		if s.cmd != nil {
			s.cmd.Process.Kill()
		}
		os.RemoveAll(s.Dir)
	}
	started = nil
}

// Discard ends the server without saving, and removes its data.
func (s *Server) Discard() {
	c := s.Dial()
	c.do("SHUTDOWN", "NOSAVE") // it does not answer
	c.Close()
	<-s.ended
	s.forget()
}

// Remove kills the server and removes its data.
func (s *Server) Remove() {
	s.Kill()
	s.forget()
}

func (s *Server) forget() {
	mu.Lock()
	defer mu.Unlock()
	Check(os.RemoveAll(s.Dir))
	started = slices.DeleteFunc(started, func(other *Server) bool { return other == s })
}

// Durability returns the arguments for a policy of appendfsync, or "none" for data in memory only. Neither server makes
// snapshots by save points.
func Durability(policy string) []string {
	if policy == "none" {
		return []string{"--save", "", "--appendonly", "no"}
	}
	return []string{"--save", "", "--appendonly", "yes", "--appendfsync", policy}
}

// OnDemand returns the arguments with which the server makes a checkpoint only on request.
func (s *Server) OnDemand() []string {
	if s.Program == Redis {
		return []string{"--auto-aof-rewrite-percentage", "0"}
	}
	return []string{"--checkpoint-size", "100gb"}
}

// FreeAddr returns an address of the loopback interface with a free port.
func FreeAddr() string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	Check(err)
	defer l.Close()
	return l.Addr().String()
}

// Launch starts the server on a free port; it may not answer yet.
func (s *Server) Launch(args ...string) {
	s.Addr = FreeAddr()
	s.Run(append([]string{"--port", s.Port(), "--bind", "127.0.0.1", "--dir", s.Dir}, args...)...)
}

// Run starts the program with these arguments and no others.
func (s *Server) Run(args ...string) {
	cmd := exec.Command(s.Program, args...)
	cmd.Stderr = os.Stderr
	Check(cmd.Start())
	s.cmd = cmd
	s.ended = make(chan struct{})
	go func() {
		s.cmd.Wait() // the error does not matter: servers are also killed
		close(s.ended)
	}()
}

// Start starts the server and waits until it has loaded its data.
func (s *Server) Start(args ...string) {
	s.Launch(args...)
	s.Await("PONG", "PING")
	s.Await("\nloading:0", "INFO", "persistence")
}

// Await sends a command, on a new connection each time, until the reply contains want. It tries every millisecond and
// gives up after ten minutes.
func (s *Server) Await(want string, args ...string) {
	s.await(func(reply string) bool { return strings.Contains(reply, want) }, args...)
}

// AwaitValue waits like Await until a key has a value made by Value.
func (s *Server) AwaitValue(key string) {
	s.await(func(reply string) bool { return len(reply) == valueSize && reply[0] != '-' }, "GET", key)
}

func (s *Server) await(ok func(reply string) bool, args ...string) {
	var last any
	for deadline := time.Now().Add(10 * time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		select {
		case <-s.ended:
			Fatal(s.Program, " has ended")
		default:
		}
		c, err := dial(s.Addr)
		if err != nil {
			last = err
			continue
		}
		reply, err := c.do(args...)
		c.Close()
		if err == nil && ok(reply) {
			return
		}
		last = fmt.Sprint(reply, " ", err)
	}
	Fatal(s.Program, " does not answer ", args, " as it should: ", last)
}

// Stop ends the server as its owner would.
func (s *Server) Stop() { s.end(syscall.SIGTERM) }

// Kill ends the server as a crash would.
func (s *Server) Kill() { s.end(syscall.SIGKILL) }

// Pause stops the process until Resume.
func (s *Server) Pause() { Check(s.cmd.Process.Signal(syscall.SIGSTOP)) }

// Resume lets the process continue.
func (s *Server) Resume() { Check(s.cmd.Process.Signal(syscall.SIGCONT)) }

func (s *Server) end(sig os.Signal) {
	Check(s.cmd.Process.Signal(sig))
	<-s.ended
}

// Port returns the port of Addr.
func (s *Server) Port() string {
	_, port, _ := net.SplitHostPort(s.Addr)
	return port
}

// PID returns the server's process ID.
func (s *Server) PID() int { return s.cmd.Process.Pid }

// Do sends one command on a connection of its own and returns the reply. An error reply ends the program.
func (s *Server) Do(args ...string) string {
	c := s.Dial()
	defer c.Close()
	return c.Do(args...)
}

// InfoField returns the rest of a line of a section of INFO that begins with name.
func (s *Server) InfoField(section, name string) string { return field(s.Do("INFO", section), name) }

// BeginCheckpoint starts shortening the log.
func (s *Server) BeginCheckpoint() { s.Do("BGREWRITEAOF") }

// idleWithin is the most time a checkpoint may take.
const idleWithin = 10 * time.Minute

// AwaitIdle waits until no checkpoint is being made. It asks so rarely that it costs the server next to nothing.
func (s *Server) AwaitIdle() {
	c := s.Dial()
	defer c.Close()
	for begun := time.Now(); time.Since(begun) < idleWithin; time.Sleep(10 * time.Millisecond) {
		info := c.Do("INFO", "persistence")
		if field(info, "aof_rewrite_in_progress:") == "0" && field(info, "aof_rewrite_scheduled:") == "0" {
			return
		}
	}
	Fatal(s.Program, ": the checkpoint does not end")
}

// Settle makes a checkpoint of everything written until now and waits for it.
func (s *Server) Settle() {
	s.AwaitIdle()
	s.BeginCheckpoint()
	time.Sleep(20 * time.Millisecond) // BGREWRITEAOF answers before it has begun
	s.AwaitIdle()
}

// CPU is processor time of a server. User and system time are known only in steps of 10 ms.
type CPU struct{ Total, User, System time.Duration }

// Since returns the time used since before.
func (c CPU) Since(before CPU) CPU {
	return CPU{c.Total - before.Total, c.User - before.User, c.System - before.System}
}

// CPU returns the processor time that the server and its ended children have used.
func (s *Server) CPU() (cpu CPU) {
	stat := s.proc("stat")
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	ticks := func(field string) time.Duration { return time.Duration(number(field)) * 10 * time.Millisecond }
	cpu.User = ticks(fields[11]) + ticks(fields[13]) // its own and its children's
	cpu.System = ticks(fields[12]) + ticks(fields[14])
	cpu.Total = ticks(fields[13]) + ticks(fields[14])
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", s.PID()))
	Check(err)
	for _, file := range threads {
		b, err := os.ReadFile(file)
		if err != nil {
			continue // the thread has just ended
		}
		running, _, _ := strings.Cut(string(b), " ")
		cpu.Total += time.Duration(number(running))
	}
	return cpu
}

// Memory returns how many bytes of the server are resident, and the peak.
func (s *Server) Memory() (resident, peak int64) {
	return s.status("VmRSS:"), s.status("VmHWM:")
}

// ResetPeak resets the peak of Memory to the present.
func (s *Server) ResetPeak() {
	Check(os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", s.PID()), []byte("5"), 0))
}

func (s *Server) status(name string) int64 {
	return number(strings.TrimSuffix(field(s.proc("status"), name), " kB")) << 10
}

// WriteBytes returns how many bytes the server and its ended children have caused to be written to disk.
func (s *Server) WriteBytes() int64 { return number(field(s.proc("io"), "write_bytes:")) }

// field returns the rest of a line that begins with name.
func field(text, name string) string {
	for line := range strings.Lines(text) {
		if v, ok := strings.CutPrefix(line, name); ok {
			return strings.TrimSpace(v)
		}
	}
	Fatal("nothing says ", name)
	return ""
}

func number(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	Check(err)
	return n
}

// DropCaches empties the system's page cache.
func DropCaches() {
	Check(exec.Command("sync").Run())
	Check(os.WriteFile("/proc/sys/vm/drop_caches", []byte("3"), 0))
}

func (s *Server) proc(file string) string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", s.PID(), file))
	Check(err)
	return string(b)
}

// Quantile returns the value below which the share q of all values lies. It sorts them.
func Quantile[T int64 | float64 | time.Duration](values []T, q float64) T {
	slices.Sort(values)
	return values[min(int(q*float64(len(values))), len(values)-1)]
}

// Median returns the median over the rounds of a measurement.
func Median[M any](rounds []M, of func(M) float64) float64 {
	var values []float64
	for _, m := range rounds {
		values = append(values, of(m))
	}
	return Quantile(values, 0.5)
}

// Ratio returns the median of the rounds' ratios, and how far they spread.
func Ratio[M any](rounds, beside []M, of func(M) float64) string {
	var ratios []float64
	for i := range rounds {
		ratios = append(ratios, of(rounds[i])/of(beside[i]))
	}
	middle := Quantile(ratios, 0.5)
	return fmt.Sprintf("%.2f (%.2f-%.2f)", middle, slices.Min(ratios), slices.Max(ratios))
}
