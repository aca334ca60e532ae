// Package crash kills a server at random instants under load, starts it again on the same data, and checks that
// everything it had acknowledged is there, exactly once, and nothing is there in part.
package crash

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/atomredis/atomredis/internal/testing/transcript"
)

// scriptSHA is the digest by which EVALSHA names the script.
var scriptSHA = func() string {
	sum := sha1.Sum([]byte(sequenceScript))
	return hex.EncodeToString(sum[:])
}()

// Options configure a run.
type Options struct {
	// Server is the binary: atomredis, or redis-server.
	Server string
	// Rounds is the number of times the server is loaded and ended.
	Rounds int
	// Seed determines commands and instants. The server's timing is not repeatable.
	Seed uint64
	// Fsync is the server's appendfsync: with always nothing acknowledged may be missing, with everysec nothing that
	// was acknowledged a second before the end.
	Fsync string
	// Dir is the directory for data directories and the log. It must exist.
	Dir string
	// Progress receives a line every ten rounds; it may be nil.
	Progress io.Writer
	// Tamper, if not nil, is called after every start and before the check, to test that the check notices changes.
	Tamper func(*transcript.Conn) error
	// Damage, if not nil, is called with the data directory before every start, for the same purpose.
	Damage func(dir string) error
}

// Result counts the work of Run.
type Result struct {
	Rounds, Kills, Restarts int
	// Writes is the number of acknowledged writes that were checked.
	Writes int
}

const (
	// freshRounds is the number of rounds after which the data directory is replaced by a new one.
	freshRounds = 50
	// lossWindow is the greatest age of data that everysec may lose.
	lossWindow = time.Second
)

// tester is one run.
type tester struct {
	Options
	Result
	ctx     context.Context
	rand    *rand.Rand
	launch  *launcher
	dir     string
	workers []worker
	// idle is the number of rounds in which nothing of a worker was acknowledged.
	idle map[string]int
	last ending
}

// Run loads, ends and checks the server again and again. The error describes the first loss; the data is then left in
// Dir.
func Run(ctx context.Context, o Options) (Result, error) {
	l, err := newLauncher(o.Server, o.Fsync, filepath.Join(o.Dir, "server.log"))
	if err != nil {
		return Result{}, err
	}
	defer l.log.Close()
	t := &tester{Options: o, ctx: ctx, rand: rand.New(rand.NewPCG(o.Seed, 0)), launch: l, idle: map[string]int{}}
	defer t.closeWorkers()
	for ; t.Result.Rounds < o.Rounds; t.Result.Rounds++ {
		if ctx.Err() != nil {
			return t.Result, ctx.Err()
		}
		if t.Result.Rounds%freshRounds == 0 {
			if err := t.finish(); err != nil {
				return t.Result, err
			}
			if err := t.fresh(); err != nil {
				return t.Result, err
			}
		}
		if err := t.round(true); err != nil {
			return t.Result, t.failure(err)
		}
		if o.Progress != nil && t.Result.Rounds%10 == 9 {
			fmt.Fprintf(o.Progress, "round %d: %d kills, %d acknowledged writes checked\n", t.Result.Rounds+1, t.Kills, t.Writes)
		}
	}
	return t.Result, t.finish()
}

func (t *tester) failure(err error) error {
	return fmt.Errorf("the end of the server's log:\n%s---\nseed %d, round %d, data in %s: %w", tail(t.launch.log.Name()), t.Seed,
		t.Result.Rounds+1, t.dir, err)
}

// fresh starts without data.
func (t *tester) fresh() (err error) {
	if t.dir, err = os.MkdirTemp(t.Dir, "data-"); err != nil {
		return err
	}
	t.workers = nil // finish has closed them
	add := func(w worker) { t.workers = append(t.workers, w) }
	var pause time.Duration
	if t.Fsync != "always" {
		pause = 4 * time.Millisecond // there are more candidates for the point up to which the data goes
	}
	for i := range 2 {
		add(newLinear(fmt.Sprintf("transaction%d", i), &sequence{label: fmt.Sprintf("transaction%d", i)}, 4, pause))
		add(newLinear(fmt.Sprintf("mixed%d", i), &mixed{label: fmt.Sprintf("mixed%d", i)}, 40, pause))
	}
	add(newLinear("script", &sequence{label: "script", script: true}, 4, pause))
	add(newLinear("expiring", &expiring{label: "expiring"}, 8, pause))
	add(newLinear("grouped", &grouped{label: "grouped", newer: !t.launch.redis}, 6, pause))
	add(newLinear("whole", &whole{label: "whole"}, 8, pause))
	add(newLinear("special", &special{label: "special"}, 20, pause))
	add(newLinear(libraryOwner, &library{label: libraryOwner}, 8, pause))
	if !t.launch.redis {
		add(newLinear(fieldsOwner, &fieldDeadlines{label: fieldsOwner}, 20, pause))
		add(newLinear(membersOwner, &memberDeadlines{label: membersOwner}, 20, pause))
		add(newLinear("compared", &compared{label: "compared"}, 20, pause))
		add(newLinear("series", &series{label: "series"}, 20, pause))
		add(newLinear("documents", &documents{label: "documents"}, 20, pause))
		add(newLinear("sketches", &sketches{label: "sketches"}, 20, pause))
		add(newLinear("vectors", &vectorSets{label: "vectors"}, 20, pause))
		add(newLinear("arrays", &arrays{label: "arrays"}, 20, pause))
		add(newLinear("newest", &newest{label: "newest"}, 20, pause))
		add(newLinear("searched", &searched{label: "searched"}, 20, pause))
		add(newJobs())
		doors := t.launch.doors
		add(newSpiderq(doors.addrs["spiderq"]))
		add(newSkein(doors.addrs["skein"], doors.secrets))
		add(newPerper(doors.addrs["perper-ignite"], doors.addrs["perper-grpc"]))
		feed, err := newChanges(t.Server, t.Fsync, filepath.Join(t.Dir, "copy.log"), t.dir+copySuffix)
		if err != nil {
			return err
		}
		add(feed)
	}
	for _, kind := range []string{"list", "hash", "set", "zset"} {
		size := 5000 << t.rand.IntN(3)
		if t.rand.IntN(8) == 0 {
			size = 50_000
		}
		add(newLinear("large"+kind, &large{label: "large" + kind, kind: kind, size: size}, 8, 4*pause))
	}
	add(newQueue("queue", "BLPOP", 2))
	add(newQueue("batches", "BLMPOP", 2))
	add(newQueue("priorities", "BZPOPMIN", 2))
	add(newQueue("work", "BLMOVE", 1))
	add(newConsumers("consumers"))
	return nil
}

// finish checks the data for the last time, shuts the server down, and deletes the data.
func (t *tester) finish() error {
	if t.dir == "" {
		return nil
	}
	if err := t.round(false); err != nil {
		return t.failure(err)
	}
	t.closeWorkers()
	os.RemoveAll(t.dir)
	os.RemoveAll(t.dir + copySuffix)
	return nil
}

// copySuffix follows the data directory's name in that of the copy.
const copySuffix = "-copy"

// closeWorkers ends the workers that run servers of their own.
func (t *tester) closeWorkers() {
	for _, w := range t.workers {
		if c, ok := w.(io.Closer); ok {
			c.Close()
		}
	}
}

// round starts the server, checks its data, loads it, and kills it. Without load it shuts the server down after the
// check.
func (t *tester) round(load bool) error {
	if t.Restarts > 0 && t.rand.IntN(5) == 0 {
		for range 1 + t.rand.IntN(2) {
			if err := t.killEarly(); err != nil {
				return err
			}
		}
	}
	s, err := t.start()
	if err != nil {
		return err
	}
	defer s.kill()
	if err := s.ready(); err != nil {
		return err
	}
	if err := t.check(s); err != nil {
		return err
	}
	if !load {
		return s.shutdown()
	}
	return t.load(s)
}

func (t *tester) start() (*server, error) {
	shards := 1
	if t.Restarts%2 == 1 {
		shards = 4
	}
	t.Restarts++
	if t.Damage != nil {
		if err := t.Damage(t.dir); err != nil {
			return nil, fmt.Errorf("damaging: %w", err)
		}
	}
	return t.launch.start(t.dir, shards, 1+t.rand.IntN(2), t.rand.IntN(2) == 0)
}

// killEarly starts the server and kills it while it recovers.
func (t *tester) killEarly() error {
	s, err := t.start()
	if err != nil {
		return err
	}
	wait := time.After(time.Duration(t.rand.Int64N(int64(50 * time.Millisecond))))
	select {
	case <-s.exited:
		return fmt.Errorf("the server does not start: %s", s.cmd.ProcessState)
	case <-wait:
		s.kill()
		t.Kills++
		return nil
	}
}

// check compares the server's data with the workers' records.
func (t *tester) check(s *server) error {
	c, err := s.dial()
	if err != nil {
		return err
	}
	defer c.Close()
	if t.Tamper != nil {
		if err := t.Tamper(c); err != nil {
			return fmt.Errorf("tampering: %w", err)
		}
	}
	snap, err := takeSnapshot(c)
	if err != nil {
		return err
	}
	known := map[string]bool{}
	for _, w := range t.workers {
		known[w.name()] = true
		if asks, ok := w.(inquirer); ok {
			if err := asks.inquire(c); err != nil {
				return fmt.Errorf("%s: %w", w.name(), err)
			}
		}
	}
	for owner, places := range snap.owned {
		if !known[owner] {
			return fmt.Errorf("key %s was never written", places[0])
		}
	}
	errs := make([]error, len(t.workers))
	acked := make([]int, len(t.workers))
	var wg sync.WaitGroup
	for i, w := range t.workers {
		wg.Go(func() { acked[i], errs[i] = w.settle(snap, t.last) })
	}
	wg.Wait()
	for i, w := range t.workers {
		t.Writes += acked[i]
		if t.idle[w.name()]++; acked[i] > 0 {
			t.idle[w.name()] = 0
		}
		if t.idle[w.name()] > 40 {
			errs[i] = errors.Join(errs[i], fmt.Errorf("%s: nothing was acknowledged in many rounds", w.name()))
		}
	}
	return errors.Join(errs...)
}

// load lets the workers write until it ends the server.
func (t *tester) load(s *server) error {
	errs := make([]error, len(t.workers))
	ended := make(chan string, len(t.workers))
	var wg sync.WaitGroup
	for i, w := range t.workers {
		own := rand.New(rand.NewPCG(t.rand.Uint64(), t.rand.Uint64()))
		wg.Go(func() {
			errs[i] = w.run(s.dial, own)
			ended <- w.name()
		})
	}
	early := t.disturb(s, ended)
	err := t.end(s)
	s.kill() // if it has not ended yet
	wg.Wait()
	return errors.Join(append(errs, early, err)...)
}

// disturb waits a random time, in which it may start checkpoints. A worker that ends in this time is an error.
func (t *tester) disturb(s *server, ended <-chan string) error {
	length := time.Duration(t.rand.Int64N(int64(150 * time.Millisecond)))
	if n := t.rand.IntN(100); n < 3 || t.Fsync != "always" && n < 20 {
		length = time.Second + time.Duration(t.rand.Int64N(int64(1200*time.Millisecond)))
	}
	end := time.After(length)
	for {
		save := time.After(time.Duration(t.rand.Int64N(int64(150 * time.Millisecond))))
		select {
		case <-t.ctx.Done():
			return nil
		case <-end:
			return nil
		case name := <-ended:
			return fmt.Errorf("the load of %s ended before the server was ended (exited: %t)", name, s.dead())
		case <-save:
			command := "BGSAVE"
			if t.rand.IntN(3) == 0 {
				command = "BGREWRITEAOF"
			}
			if c, err := s.dial(); err == nil {
				do(c, []string{command}) // it may already be under way
				c.Close()
			}
		}
	}
}

// end kills the server, or occasionally shuts it down.
func (t *tester) end(s *server) error {
	if t.rand.IntN(20) == 0 {
		if err := s.shutdown(); err != nil {
			return err
		}
		now := time.Now()
		t.last = ending{killed: now, sure: now}
		return nil
	}
	before := time.Now()
	s.kill()
	t.Kills++
	t.last = ending{killed: time.Now(), sure: before.Add(-lossWindow)}
	if t.Fsync == "always" {
		t.last.sure = t.last.killed.Add(time.Hour) // replies may be read after the kill
	}
	return nil
}
