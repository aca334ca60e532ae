// Command modules runs the flow tests of a Redis module (RedisTimeSeries, RedisBloom, RedisJSON) against atomredis, and
// compares the failures with a file of the expected ones.
//
//	go run ./conformance/modules -suite DIR -server bin/atomredis -expected conformance/modules/timeseries.txt
//
// The tests are those of the modules' own repositories, run with RLTest and redis-py; flags or environment variables
// name the directories of all three. Each test has a server and a process of its own, so a test that hangs affects only
// itself.
package main

import (
	"bufio"
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// harness runs the tests; see there.
//
//go:embed harness.py
var harness []byte

// startTimeout is how long a server may take until it answers.
const startTimeout = 20 * time.Second

// settings are the program's arguments.
type settings struct {
	suite, server, python string
	paths                 []string // of RLTest and redis-py
	timeout               time.Duration
	only                  *regexp.Regexp

	mu  sync.Mutex // for log
	log io.Writer  // takes the output of each test that did not pass
}

// A result is the end of one test.
type result struct {
	name   string
	State  string `json:"state"` // passed, failed, hung, skipped
	Output string `json:"output"`
}

func main() {
	s := new(settings)
	flag.StringVar(&s.suite, "suite", "", "`directory` with the flow tests of a module")
	flag.StringVar(&s.server, "server", "bin/atomredis", "the `binary` under test")
	flag.StringVar(&s.python, "python", cmp.Or(os.Getenv("PYTHON"), "python3"), "the Python `interpreter`")
	rltest := flag.String("rltest", os.Getenv("ATOMREDIS_RLTEST"), "`directory` of RLTest's repository; by default ATOMREDIS_RLTEST, else Python's own")
	redisPy := flag.String("redis-py", os.Getenv("ATOMREDIS_REDIS_PY"), "`directory` of redis-py's repository; by default ATOMREDIS_REDIS_PY, else Python's own")
	expectedFile := flag.String("expected", "", "`file` with the tests that are known to fail or are left out")
	only := flag.String("run", "", "take only tests whose name, file:test, matches this regular `expression`")
	logFile := flag.String("log", "", "`file` that takes the output of tests that did not pass")
	workers := flag.Int("parallel", 2, "how many tests run at once")
	flag.DurationVar(&s.timeout, "timeout", time.Minute, "how long one test may take")
	flag.Parse()
	s.paths = []string{*rltest, *redisPy}
	if err := run(s, *expectedFile, *only, *logFile, *workers); err != nil {
		fmt.Fprintln(os.Stderr, "modules:", err)
		os.Exit(1)
	}
}

func run(s *settings, expectedFile, only, logFile string, workers int) error {
	for _, dir := range append([]string{s.suite}, s.paths...) {
		if dir == "" && dir != s.suite {
			continue // Python has it
		}
		if _, err := os.Stat(dir); err != nil {
			fmt.Printf("the module's tests are not run: %v\n", err)
			return nil
		}
	}
	known, err := readExpected(expectedFile)
	if err != nil {
		return err
	}
	if s.only, err = regexp.Compile(only); err != nil {
		return err
	}
	s.log = io.Discard
	if logFile != "" {
		f, err := os.Create(logFile)
		if err != nil {
			return err
		}
		defer f.Close()
		s.log = f
	}
	for _, p := range []*string{&s.suite, &s.server} {
		if *p, err = filepath.Abs(*p); err != nil {
			return err
		}
	}
	work, err := os.MkdirTemp("", "modules")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)

	tests, broken, err := s.list(work)
	if err != nil {
		return err
	}
	var faults []string
	for file, reason := range broken {
		if known.find(file+":*") == nil {
			faults = append(faults, fmt.Sprintf("%s cannot be loaded: %s", file, reason))
		}
	}
	var chosen []string
	left := map[string]int{}
	for _, name := range tests {
		switch e := known.find(name); {
		case !s.only.MatchString(name):
		case e != nil && e.leave:
			left[fileOf(name)]++
		default:
			chosen = append(chosen, name)
		}
	}
	results, err := s.all(work, chosen, workers)
	if err != nil {
		return err
	}
	// Some tests depend on the machine's present speed: an unexpected failure is tried again, alone.
	for i, r := range results {
		if r.failed() && known.find(r.name) == nil {
			again, err := s.all(work, []string{r.name}, 1)
			if err != nil {
				return err
			}
			results[i] = again[0]
		}
	}
	faults = append(faults, report(results, left, known)...)
	if only == "" {
		for _, e := range known {
			if !slices.ContainsFunc(tests, e.matches) && broken[strings.TrimSuffix(e.pattern, ":*")] == "" {
				faults = append(faults, fmt.Sprintf("%s is expected to fail, and there is no such test", e.pattern))
			}
		}
	}
	slices.Sort(faults)
	for _, f := range faults {
		fmt.Println(f)
	}
	if len(faults) > 0 {
		return fmt.Errorf("%d tests did not end as expected", len(faults))
	}
	return nil
}

// report prints the table, and returns a sentence for each test that ended unexpectedly.
func report(results []result, left map[string]int, known expectations) (faults []string) {
	type row struct{ passed, failed, skipped int }
	rows := map[string]*row{}
	at := func(file string) *row {
		if rows[file] == nil {
			rows[file] = &row{}
		}
		return rows[file]
	}
	for file, n := range left {
		at(file).skipped = n
	}
	var total row
	for _, r := range results {
		o := at(fileOf(r.name))
		e := known.find(r.name)
		switch {
		case r.State == "skipped":
			o.skipped++
			if e != nil {
				faults = append(faults, fmt.Sprintf("%s is expected to fail and leaves itself out: %s", r.name, lastLine(r.Output)))
			}
		case r.State == "passed":
			o.passed++
			if e != nil {
				faults = append(faults, fmt.Sprintf("%s passes, and is expected to fail: %s", r.name, e.reason))
			}
		default:
			o.failed++
			if e == nil {
				faults = append(faults, fmt.Sprintf("%s %s: %.300s", r.name, r.State, lastLine(r.Output)))
			}
		}
	}
	files := make([]string, 0, len(rows))
	for file := range rows {
		files = append(files, file)
	}
	slices.Sort(files)
	fmt.Printf("%-36s %7s %7s %9s\n", "file", "passed", "failed", "left out")
	for _, file := range files {
		o := rows[file]
		total.passed, total.failed, total.skipped = total.passed+o.passed, total.failed+o.failed, total.skipped+o.skipped
		fmt.Printf("%-36s %7d %7d %9d\n", file, o.passed, o.failed, o.skipped)
	}
	fmt.Printf("%-36s %7d %7d %9d\n", "total", total.passed, total.failed, total.skipped)
	return faults
}

func (r result) failed() bool { return r.State == "failed" || r.State == "hung" }

func fileOf(name string) string {
	file, _, _ := strings.Cut(name, ":")
	return file
}

// lastLine returns the last meaningful line of a test's output: the error at the end of a Python trace.
func lastLine(output string) string {
	lines := strings.Split(strings.TrimSpace(output), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}

// expectations are the lines of the expected file:
//
//	fail FILE:TEST REASON    the test fails
//	leave FILE:TEST REASON   the test is not run
//
// A name may be a pattern with stars; the first line that matches counts.
type expectations []*expectation

type expectation struct {
	pattern, reason string
	leave           bool
}

func (e *expectation) matches(name string) bool {
	ok, err := path.Match(e.pattern, name)
	return ok && err == nil
}

// find returns the first line for a test, or nil.
func (e expectations) find(name string) *expectation {
	if i := slices.IndexFunc(e, func(x *expectation) bool { return x.matches(name) }); i >= 0 {
		return e[i]
	}
	return nil
}

func readExpected(file string) (expectations, error) {
	if file == "" {
		return nil, nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var known expectations
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		verb, rest, _ := strings.Cut(line, " ")
		name, reason, _ := strings.Cut(rest, " ")
		if _, err := path.Match(name, ""); err != nil || verb != "fail" && verb != "leave" || !strings.Contains(name, ":") || reason == "" {
			return nil, fmt.Errorf("%s: line %q is not a verb, a test and a reason", file, line)
		}
		known = append(known, &expectation{pattern: name, reason: reason, leave: verb == "leave"})
	}
	return known, nil
}

// A process is a harness that serves requests.
type process struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func (s *settings) start(work string) (*process, error) {
	script := filepath.Join(work, "harness.py")
	if err := os.WriteFile(script, harness, 0o600); err != nil {
		return nil, err
	}
	cmd := exec.Command(s.python, script, s.suite)
	cmd.Dir = work // the tests' files
	cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1",
		"PYTHONPATH="+strings.Join(append(s.paths, os.Getenv("PYTHONPATH")), string(os.PathListSeparator)))
	cmd.Stderr = s.log
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &process{cmd: cmd, in: in, out: bufio.NewReader(out)}, nil
}

func (p *process) ask(request, answer any) error {
	b, err := json.Marshal(request)
	if err != nil {
		return err
	}
	if _, err := p.in.Write(append(b, '\n')); err != nil {
		return err
	}
	line, err := p.out.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("the harness ended: %w", err)
	}
	return json.Unmarshal(line, answer)
}

func (p *process) stop() {
	p.in.Close()
	p.cmd.Wait()
}

// list returns the names of all tests, and the files that cannot be loaded, with the reasons.
func (s *settings) list(work string) (tests []string, broken map[string]string, err error) {
	p, err := s.start(work)
	if err != nil {
		return nil, nil, err
	}
	defer p.stop()
	var found struct {
		Tests  []string          `json:"tests"`
		Broken map[string]string `json:"broken"`
	}
	err = p.ask(map[string]any{}, &found)
	return found.Tests, found.Broken, err
}

// all runs the tests, several at once, and returns the results in order.
func (s *settings) all(work string, tests []string, workers int) ([]result, error) {
	results := make([]result, len(tests))
	next := make(chan int)
	errs := make([]error, workers)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			p, err := s.start(work)
			if err == nil {
				defer p.stop()
			}
			for i := range next {
				if err == nil {
					results[i], err = s.one(p, tests[i])
					s.note(results[i])
				}
			}
			errs[w] = err
		})
	}
	for i := range tests {
		next <- i
	}
	close(next)
	wg.Wait()
	return results, errors.Join(errs...)
}

// note writes a test that did not pass to the log, so that it can be read while others run.
func (s *settings) note(r result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.State != "passed" {
		fmt.Fprintf(s.log, "=== %s %s\n%s\n", r.State, r.name, r.Output)
	}
}

// one runs a test in a fresh server.
func (s *settings) one(p *process, name string) (r result, err error) {
	dir, err := os.MkdirTemp("", "modules")
	if err != nil {
		return r, err
	}
	defer os.RemoveAll(dir)
	port, err := freePort()
	if err != nil {
		return r, err
	}
	srv := exec.Command(s.server, "--port", port, "--bind", "127.0.0.1", "--dir", dir, "--save", "", "--enable-debug-command", "yes")
	var said bytes.Buffer
	srv.Stdout, srv.Stderr = &said, &said
	if err := srv.Start(); err != nil {
		return r, err
	}
	defer func() {
		srv.Process.Kill()
		srv.Wait()
	}()
	addr := net.JoinHostPort("127.0.0.1", port)
	if err := awaitServer(addr); err != nil {
		return r, err
	}
	r.name = name
	err = p.ask(map[string]any{"test": name, "addr": addr, "timeout": s.timeout.Seconds()}, &r)
	return r, err
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
	for deadline := time.Now().Add(startTimeout); ; time.Sleep(10 * time.Millisecond) {
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
