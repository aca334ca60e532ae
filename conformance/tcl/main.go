// Command tcl runs the test suite of Redis 8.6.3, unit by unit, against atomredis, and reports the tests that Redis
// passes and atomredis does not.
//
//	go run ./conformance/tcl -suite "$(conformance/tcl/fetch.sh)" -server bin/atomredis unit/scripting unit/type/list
//
// The suite runs in its mode for an external server, which leaves out tests that need a server's files or a second
// server. Each unit has a fresh server. Without units it runs all.
//
// The tests that Redis passes are in passed.txt, so that no Redis is needed. The flag -record writes that list anew,
// with a redis-server of the suite's version: the one given by the flag -redis, or by ATOMREDIS_REDIS, or the one in
// PATH.
package main

import (
	"bufio"
	"cmp"
	"context"
	_ "embed"
	"flag"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// harness runs a unit; see there.
//
//go:embed harness.tcl
var harness []byte

// inapplicable names the tests that are not counted, with reasons.
//
//go:embed inapplicable.txt
var inapplicable string

// passed names the tests that Redis passes: a unit and a test's name on each line, in the order in which they run.
//
//go:embed passed.txt
var passed string

const (
	// version is the suite's version.
	version = "8.6.3"
	// cliUnit tests redis-cli more than the server.
	cliUnit = "integration/redis-cli"
	// startTimeout is the most time before a server must answer.
	startTimeout = time.Minute
	// maxHung is the number of hanging tests after which the rest of a unit is skipped.
	maxHung = 8
)

// settings are the program's arguments.
type settings struct {
	suite   string              // directory of the suite
	server  string              // the binary under test
	redis   string              // the binary of Redis, to record
	harness string              // file with the harness
	options []string            // of the suite
	silence time.Duration       // how long one test may take
	left    map[string][]string // the names of tests that are not counted, by unit
	log     io.Writer           // receives every failed test, with details
}

// outcome is the result of the tests of a unit in one server.
type outcome struct {
	passed map[string]bool
	failed map[string]string // with the reason
	order  []string          // all names, in the order in which the tests ended
	faults []string          // errors outside of tests
	took   time.Duration
}

func main() {
	var s settings
	flag.StringVar(&s.suite, "suite", "", "`directory` with the tests of Redis, as fetch.sh prints it")
	flag.StringVar(&s.server, "server", "bin/atomredis", "the `binary` under test")
	flag.StringVar(&s.redis, "redis", cmp.Or(os.Getenv("ATOMREDIS_REDIS"), "redis-server"), "the `binary` of Redis "+version+" for -record")
	flag.DurationVar(&s.silence, "timeout", time.Minute, "how long one test may take")
	tags := flag.String("tags", "-needs:repl -slow",
		"`tags` of tests to take, or, with a minus, to leave out, separated by spaces")
	floors := flag.String("floors", "", "`file` with the number of tests of each unit that may be missing; more than that is a failure")
	update := flag.Bool("update", false, "write the numbers of this run to the file of floors instead")
	record := flag.String("record", "", "run Redis alone, and write the tests that it passes to this `file` (passed.txt)")
	logFile := flag.String("log", "", "`file` that takes the details of failed tests")
	flag.Parse()
	if *tags != "" {
		s.options = append(s.options, "--tags", *tags)
	}
	err := s.prepare(*logFile)
	if err == nil {
		err = s.run(*record, *floors, *update, flag.Args())
	}
	os.RemoveAll(filepath.Dir(s.harness))
	if err != nil {
		fmt.Fprintln(os.Stderr, "tcl:", err)
		os.Exit(1)
	}
}

// prepare opens the log, and writes the harness to a directory of its own.
func (s *settings) prepare(logFile string) error {
	s.log = io.Discard
	if logFile != "" {
		f, err := os.Create(logFile)
		if err != nil {
			return err
		}
		s.log = f // open until the program ends
	}
	work, err := os.MkdirTemp("", "tcl")
	if err != nil {
		return err
	}
	s.harness = filepath.Join(work, "harness.tcl")
	s.left = byUnit(inapplicable)
	return os.WriteFile(s.harness, harness, 0o600)
}

func (s *settings) run(record, floorFile string, update bool, units []string) error {
	all, err := allUnits(s.suite)
	if err != nil {
		return err
	}
	if len(units) == 0 {
		units = all
	}
	if record != "" {
		return s.record(record, all, units)
	}
	if s.suite, err = filepath.Abs(s.suite); err != nil {
		return err
	}
	if s.server, err = filepath.Abs(s.server); err != nil {
		return err
	}
	allowed := map[string]int{}
	if floorFile != "" && !update {
		if allowed, err = readFloors(floorFile); err != nil {
			return err
		}
	}
	theirs := byUnit(passed)
	var total, missing, left int
	found := map[string]int{}
	var beyond []string
	fmt.Printf("%-24s %6s %6s %8s %9s %8s\n", "unit", "redis", "ours", "", "left out", "seconds")
	for _, unit := range units {
		names := slices.DeleteFunc(theirs[unit], func(name string) bool { return slices.Contains(s.left[unit], withoutCount(name)) })
		n, out := len(names), len(theirs[unit])-len(names)
		left += out
		if n == 0 {
			continue // none of its tests can run in this mode
		}
		if unit == cliUnit && !s.hasCLI() {
			fmt.Printf("%-24s left out: redis-cli is not of version %s\n", unit, version)
			continue
		}
		ours, err := s.try(unit, s.atomredis)
		if err != nil {
			return fmt.Errorf("%s: %w", unit, err)
		}
		s.report(unit, "atomredis", ours)
		lost := without(names, ours.passed)
		if len(lost) > allowed[unit] && floorFile != "" && !update {
			// Some tests depend on the machine's present speed.
			again, err := s.try(unit, s.atomredis)
			if err != nil {
				return fmt.Errorf("%s: %w", unit, err)
			}
			maps.Copy(ours.passed, again.passed)
			lost = without(names, ours.passed)
		}
		total, missing, found[unit] = total+n, missing+len(lost), len(lost)
		fmt.Printf("%-24s %6d %6d %7.1f%% %9d %8.1f\n", unit, n, n-len(lost), percent(n-len(lost), n), out, ours.took.Seconds())
		for _, fault := range ours.faults {
			fmt.Printf("    outside of tests: %.200s\n", fault)
		}
		for _, name := range lost {
			fmt.Printf("    %s: %.160s\n", name, cmp.Or(ours.failed[name], "did not run"))
		}
		if len(lost) > allowed[unit] {
			beyond = append(beyond, fmt.Sprintf("%s (%d, at most %d)", unit, len(lost), allowed[unit]))
		}
	}
	if total == 0 {
		return fmt.Errorf("Redis passes no test of these units")
	}
	fmt.Printf("%-24s %6d %6d %7.1f%% %9d\n", "total", total, total-missing, percent(total-missing, total), left)
	switch {
	case floorFile != "" && update:
		return writeFloors(floorFile, found)
	case floorFile != "" && len(beyond) > 0:
		return fmt.Errorf("more tests are missing than before: %s", strings.Join(beyond, ", "))
	}
	return nil
}

// record runs units in Redis, and writes the passed tests to a file. Other units keep their names in it.
func (s *settings) record(path string, all, units []string) error {
	if out, err := exec.Command(s.redis, "--version").Output(); err != nil {
		return err
	} else if !strings.Contains(string(out), " v="+version+" ") {
		return fmt.Errorf("%s is not Redis %s: %s", s.redis, version, strings.TrimSpace(string(out)))
	}
	theirs := byUnit(passed)
	s.left = nil
	for _, unit := range units {
		o, err := s.try(unit, s.redisServer)
		if err != nil {
			return fmt.Errorf("%s: %w", unit, err)
		}
		s.report(unit, "redis-server", o)
		theirs[unit] = slices.DeleteFunc(o.order, func(name string) bool { return !o.passed[name] })
		fmt.Printf("%-40s %6d %8.1f\n", unit, len(theirs[unit]), o.took.Seconds())
	}
	b := []byte("# The tests that Redis " + version + " passes in the mode for a server that the suite has not started itself. Written by -record.\n")
	for _, unit := range all {
		for _, name := range theirs[unit] {
			b = fmt.Appendf(b, "%s %s\n", unit, name)
		}
	}
	return os.WriteFile(path, b, 0o644)
}

// report writes the details of failed tests to the log.
func (s *settings) report(unit, server string, o *outcome) {
	for _, fault := range o.faults {
		fmt.Fprintf(s.log, "=== %s, %s, outside of tests\n%s\n", unit, server, fault)
	}
	for _, name := range o.order {
		if !o.passed[name] {
			fmt.Fprintf(s.log, "=== %s, %s: %s\n%s\n", unit, server, name, o.failed[name])
		}
	}
}

// byUnit reads lines of a unit and the name of a test.
func byUnit(list string) map[string][]string {
	names := map[string][]string{}
	for line := range strings.Lines(list) {
		if unit, name, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " "); ok && unit != "#" {
			names[unit] = append(names[unit], name)
		}
	}
	return names
}

// withoutCount returns the name of a test without the number that distinguishes it from others of the same name.
func withoutCount(name string) string {
	if at := strings.LastIndex(name, " ["); at > 0 && strings.HasSuffix(name, "]") {
		if _, err := strconv.Atoi(name[at+2 : len(name)-1]); err == nil {
			return name[:at]
		}
	}
	return name
}

func percent(n, of int) float64 { return 100 * float64(n) / float64(of) }

// without returns the names that are not among the passed ones.
func without(names []string, passed map[string]bool) []string {
	var lost []string
	for _, name := range names {
		if !passed[name] {
			lost = append(lost, name)
		}
	}
	return lost
}

// hasCLI reports whether the redis-cli that the suite uses has the suite's version.
func (s *settings) hasCLI() bool {
	out, err := exec.Command(filepath.Join(s.suite, "src", "redis-cli"), "--version").Output()
	return err == nil && strings.Contains(string(out), " "+version)
}

// allUnits asks the suite for its units.
func allUnits(suite string) ([]string, error) {
	cmd := exec.Command("tclsh", "tests/test_helper.tcl", "--list-tests")
	cmd.Dir = suite
	out, err := cmd.Output()
	return strings.Fields(string(out)), err
}

// The servers, with everything open to tests, as Redis's own checks run the suite in this mode.

func (s *settings) redisServer(port, dir string) *exec.Cmd {
	return exec.Command(s.redis, "--port", port, "--dir", dir, "--save", "", "--enable-debug-command", "yes",
		"--enable-protected-configs", "yes", "--enable-module-command", "yes")
}

func (s *settings) atomredis(port, dir string) *exec.Cmd {
	return exec.Command(s.server, "--port", port, "--dir", dir, "--save", "", "--enable-debug-command", "yes")
}

// try runs a unit in fresh servers. A test that hangs counts as failed; the unit is then run again without it.
func (s *settings) try(unit string, server func(port, dir string) *exec.Cmd) (*outcome, error) {
	began := time.Now()
	hung := map[string]string{}
	for {
		o, at, err := s.once(unit, server, append(slices.Sorted(maps.Keys(hung)), s.left[unit]...))
		if err != nil {
			return nil, err
		}
		maps.Copy(o.failed, hung)
		if at == "" || len(hung) == maxHung {
			o.took = time.Since(began)
			return o, nil
		}
		hung[at] = fmt.Sprintf("no end after %v", s.silence)
	}
}

// once runs a unit in a fresh server, without the tests in skip. It returns the name of a test that hung, if any.
func (s *settings) once(unit string, server func(port, dir string) *exec.Cmd, skip []string) (o *outcome, hung string,
	err error) {
	dir, err := os.MkdirTemp("", "tcl")
	if err != nil {
		return nil, "", err
	}
	defer os.RemoveAll(dir)
	port, err := freePort()
	if err != nil {
		return nil, "", err
	}
	srv := server(port, dir)
	if err := srv.Start(); err != nil {
		return nil, "", err
	}
	defer func() {
		srv.Process.Kill()
		srv.Wait()
	}()
	if err := awaitServer(net.JoinHostPort("127.0.0.1", port)); err != nil {
		return nil, "", fmt.Errorf("%s: %w", filepath.Base(srv.Path), err)
	}

	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	args := append([]string{s.harness, unit, "--host", "127.0.0.1", "--port", port}, s.options...)
	for _, name := range skip {
		args = append(args, "--skiptest", name)
	}
	cmd := exec.CommandContext(ctx, "tclsh", args...)
	cmd.Dir = s.suite
	cmd.WaitDelay = time.Second // programs started by a test may hold the pipe
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, "", err
	}
	if err := cmd.Start(); err != nil {
		return nil, "", err
	}
	// A suite that prints nothing for so long is stopped.
	watchdog := time.AfterFunc(s.silence, stop)
	o = &outcome{passed: map[string]bool{}, failed: map[string]string{}}
	seen := map[string]int{}
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 64<<20)
	var current string
	for lines.Scan() {
		watchdog.Reset(s.silence)
		state, rest, _ := strings.Cut(lines.Text(), "\t")
		name, details, _ := strings.Cut(rest, "\t")
		switch state {
		case "testing":
			current = name
		case "ok", "err":
			current = ""
			seen[name]++
			if n := seen[name]; n > 1 {
				name += " [" + strconv.Itoa(n) + "]"
			}
			o.order = append(o.order, name)
			if state == "ok" {
				o.passed[name] = true
			} else {
				o.failed[name] = details
			}
		case "outside", "note":
			o.faults = append(o.faults, details)
		}
	}
	watchdog.Stop()
	cmd.Wait()
	if ctx.Err() != nil {
		return o, current, nil
	}
	return o, "", lines.Err()
}

// freePort returns a port that was free a moment ago.
func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, err
}

// awaitServer waits until the server has loaded its data, of which there is none.
func awaitServer(addr string) error {
	for deadline := time.Now().Add(startTimeout); ; time.Sleep(20 * time.Millisecond) {
		reply, err := ask(addr, "DBSIZE")
		if err == nil && reply == ":0" {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the server is not ready: %s %v", reply, err)
		}
	}
}

// ask returns the first line of the reply to a command without arguments.
func ask(addr, command string) (string, error) {
	conn, err := net.DialTimeout("tcp", addr, startTimeout)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(startTimeout))
	if _, err := io.WriteString(conn, command+"\r\n"); err != nil {
		return "", err
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	return strings.TrimSpace(line), err
}

// The file of floors has a line for each unit: its name, and how many of the tests that Redis passes may be missing.

func readFloors(path string) (map[string]int, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	floors := map[string]int{}
	for line := range strings.Lines(string(data)) {
		f := strings.Fields(line)
		if len(f) == 0 || strings.HasPrefix(f[0], "#") {
			continue
		}
		if len(f) != 2 {
			return nil, fmt.Errorf("%s: line %q", path, line)
		}
		if floors[f[0]], err = strconv.Atoi(f[1]); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	return floors, nil
}

func writeFloors(path string, found map[string]int) error {
	floors, err := readFloors(path)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	if floors == nil {
		floors = map[string]int{}
	}
	maps.Copy(floors, found)
	b := []byte("# How many tests of each unit Redis passes and atomredis does not, at most. Written by -update; units without a line miss none.\n")
	for _, unit := range slices.Sorted(maps.Keys(floors)) {
		if floors[unit] > 0 {
			b = fmt.Appendf(b, "%s %d\n", unit, floors[unit])
		}
	}
	return os.WriteFile(path, b, 0o644)
}
