package protocols_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis"
	"github.com/atomredis/atomredis/internal/testing/testseed"
)

const (
	// killsVariable determines how many clients are killed.
	killsVariable = "ATOMREDIS_PRESSURE_KILLS"
	// crashesVariable determines how often the server is killed.
	crashesVariable = "ATOMREDIS_PRESSURE_CRASHES"
	// serverKind makes a process of the test binary a server, with its data in dirVariable and the number of shards in
	// shardsVariable.
	serverKind     = "server"
	dirVariable    = "ATOMREDIS_PRESSURE_DIR"
	shardsVariable = "ATOMREDIS_PRESSURE_SHARDS"

	// operationTimeout is the most time for a client's first operation: much more than it takes unless the queue is
	// stuck.
	operationTimeout = 60 * time.Second
	// longestHold is the longest time for which a client holds a reserved message before it acknowledges it.
	longestHold = 3 * time.Millisecond
	endlessPuts = 1 << 30 // more messages than a producer ever puts
)

// ledger has the operations that clients have reported.
type ledger struct {
	mu      sync.Mutex
	put     map[string]int // by producer: how many messages it knows to be in the queue
	got     map[string]int // by message: how often it was got
	failure error
}

func (l *ledger) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failure = errors.Join(l.failure, err)
}

// place is the function of a client of the queue, whichever client has it at the moment.
type place struct{ kind, role string }

// member is a client that may be killed.
type member struct {
	place
	id     string
	ledger *ledger
	begun  chan struct{} // closed after its first operation
	ended  chan struct{} // closed when it is gone and its whole report is in the ledger
	end    func()        // kills it

	// The ledger's lock protects these.
	killed bool
	before map[string]int // by producer: the number of the last message got, plus one
}

// Write implements io.Writer for the lines that clients write, one at a time.
func (m *member) Write(line []byte) (int, error) {
	l := m.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-m.begun:
	default:
		close(m.begun)
	}
	var n int
	if _, err := fmt.Sscanf(string(line), "put %d", &n); err == nil {
		l.put[m.id] = n + 1
		return len(line), nil
	}
	g, err := parseGot(string(line))
	switch {
	case err != nil:
		l.failure = errors.Join(l.failure, fmt.Errorf("%s says %q", m.id, line))
	case m.kind != reserveKind && g.number < m.before[g.producer]:
		l.failure = errors.Join(l.failure, fmt.Errorf("%s got message %d of %s after %d", m.id, g.number, g.producer,
			m.before[g.producer]-1))
	}
	m.before[g.producer] = g.number + 1
	l.got[fmt.Sprint(g.producer, " ", g.number)]++
	return len(line), nil
}

// kill ends the member at once, and waits until it is gone.
func (m *member) kill() {
	m.ledger.mu.Lock()
	m.killed = true
	m.ledger.mu.Unlock()
	m.end()
	<-m.ended
}

// losesMessages reports whether a message can be lost together with the client.
func (m *member) losesMessages() bool { return m.role == "consumer" && m.kind != reserveKind }

// done records how the member has ended.
func (m *member) done(err error) {
	m.ledger.mu.Lock()
	killed := m.killed
	m.ledger.mu.Unlock()
	if err != nil && !killed {
		m.ledger.fail(fmt.Errorf("%s: %w", m.id, err))
	}
	close(m.ended)
}

// siege is a queue with clients that are killed and replaced.
type siege struct {
	t       *testing.T
	addr    string
	name    string
	ledger  *ledger
	members []*member
	started int
	random  *rand.Rand
	lost    int // messages that may be lost: those that killed clients may have taken
}

func newSiege(t *testing.T, addr, name string, places ...place) *siege {
	s := &siege{t: t, addr: addr, name: name, random: rand.New(rand.NewPCG(1, 2)),
		ledger: &ledger{put: map[string]int{}, got: map[string]int{}}}
	for _, p := range places {
		s.members = append(s.members, s.start(p))
	}
	t.Cleanup(func() {
		for _, m := range s.members {
			m.kill()
		}
	})
	return s
}

// start starts a client.
func (s *siege) start(p place) *member {
	s.started++
	m := &member{place: p, id: fmt.Sprintf("%s-%s-%d", p.kind, p.role, s.started), ledger: s.ledger,
		begun: make(chan struct{}), ended: make(chan struct{}), before: map[string]int{}}
	if p.kind == nativeKind || p.kind == reserveKind {
		s.startHere(m)
	} else {
		s.startProcess(m)
	}
	return m
}

// startProcess runs the client as a process.
func (s *siege) startProcess(m *member) {
	cmd := processCommand(s.addr, s.name, m.role, m.id, endlessPuts, kindVariable+"="+m.kind)
	out, err := cmd.StdoutPipe()
	require.NoError(s.t, err)
	var errs strings.Builder
	cmd.Stderr = &errs
	require.NoError(s.t, cmd.Start())
	m.end = func() { cmd.Process.Kill() }
	go func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			m.Write(lines.Bytes())
		}
		err := cmd.Wait()
		if err != nil {
			err = fmt.Errorf("%w: %s", err, errs.String())
		}
		m.done(err)
	}()
}

// startHere runs the client as a goroutine; it dies when its connection is closed.
func (s *siege) startHere(m *member) {
	ctx, cancel := context.WithCancel(context.Background())
	var mu sync.Mutex
	var conns []net.Conn
	dial := func(_ context.Context, network, addr string) (net.Conn, error) {
		nc, err := new(net.Dialer).DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		mu.Lock()
		defer mu.Unlock()
		conns = append(conns, nc)
		if ctx.Err() != nil {
			nc.Close()
		}
		return nc, nil
	}
	m.end = func() {
		cancel() // it makes no other connection
		mu.Lock()
		defer mu.Unlock()
		for _, nc := range conns {
			nc.Close()
		}
	}
	own := testseed.Fork(s.random)
	go func() {
		u, closeUser, err := newUser(ctx, m.kind, s.name, m.id, dial, s.addr)
		if err == nil {
			if m.kind == reserveKind {
				err = workReserved(ctx, u.(*nativeUser), own, m)
			} else {
				err = work(ctx, u, m.role, m.id, endlessPuts, m)
			}
		}
		closeUser()
		m.done(err)
	}()
}

// workReserved reserves messages and acknowledges them after a moment, until the queue is closed.
func workReserved(ctx context.Context, n *nativeUser, r *rand.Rand, out io.Writer) error {
	for {
		id, value, err := n.getReserved(ctx)
		if errors.Is(err, errClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintln(out, "got", 0, false, value); err != nil {
			return err
		}
		time.Sleep(time.Duration(r.Int64N(int64(longestHold))))
		if err := n.acknowledge(ctx, id); err != nil {
			return err
		}
	}
}

// allBegin waits until every client has done an operation; a stuck queue allows none.
func (s *siege) allBegin() {
	for _, m := range s.members {
		select {
		case <-m.begun:
		case <-m.ended:
			s.ledger.mu.Lock()
			defer s.ledger.mu.Unlock()
			require.NoError(s.t, s.ledger.failure)
			require.FailNow(s.t, m.id+" has ended")
		case <-time.After(operationTimeout):
			require.FailNow(s.t, m.id+" cannot do anything", s.describe())
		}
	}
}

// describe describes the state of the queue.
func (s *siege) describe() string {
	r := redis.NewClient(&redis.Options{Addr: s.addr, DisableIdentity: true})
	defer r.Close()
	ctx := context.Background()
	text := fmt.Sprintln(r.Do(ctx, "PRESSURE.INFO", s.name).Result())
	q := queue{r: r, name: s.name}
	for _, suffix := range []string{":producer_free", ":consumer_free", ":not_full", ":closed"} {
		text += fmt.Sprintln(suffix, r.LLen(ctx, q.key(suffix)).Val())
	}
	return text + r.ClientList(ctx).Val()
}

// killOne kills a client at some instant and starts another one in its place.
func (s *siege) killOne() {
	i := s.random.IntN(len(s.members))
	time.Sleep(time.Duration(s.random.Int64N(int64(5 * time.Millisecond))))
	m := s.members[i]
	m.kill()
	if m.losesMessages() {
		s.lost++
	}
	s.members[i] = s.start(m.place)
}

// finish ends the producers, closes the queue, waits until the consumers have emptied it, checks what became of all
// messages, and deletes the queue. twice is the number of messages that came again.
func (s *siege) finish() (twice int) {
	t, l := s.t, s.ledger
	for _, m := range s.members {
		if m.role == "producer" {
			m.kill()
		}
	}
	r := client(t, s.addr)
	closed, err := r.Do(t.Context(), "PRESSURE.CLOSE", s.name, "TIMEOUT", operationTimeout.Milliseconds()).Result()
	require.NoError(t, err, s.describe())
	require.Equal(t, "OK", closed)
	for _, m := range s.members {
		select {
		case <-m.ended:
		case <-time.After(operationTimeout):
			require.FailNow(t, m.id+" does not come to the end", s.describe())
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	require.NoError(t, l.failure)
	lost := 0
	for producer, n := range l.put {
		require.Zero(t, l.got[fmt.Sprint(producer, " ", n+1)], "%s cannot have put this one", producer)
		for i := range n {
			if l.got[fmt.Sprint(producer, " ", i)] == 0 {
				lost++
			}
		}
	}
	require.LessOrEqual(t, lost, s.lost, "messages that were put and not got")
	for _, n := range l.got {
		twice += n - 1
	}
	t.Logf("%d messages were got, %d lost of at most %d, %d came again", len(l.got), lost, s.lost, twice)
	return twice
}

// delete deletes the queue, which must leave nothing.
func (s *siege) delete(r *redis.Client) {
	deleted, err := r.Do(s.t.Context(), "PRESSURE.DELETE", s.name, "TIMEOUT", operationTimeout.Milliseconds()).Result()
	require.NoError(s.t, err)
	require.Equal(s.t, "OK", deleted, s.describe())
	require.Empty(s.t, r.Keys(s.t.Context(), "*").Val(), "Delete leaves no key behind")
}

var siegeProducers = []place{{cKind, "producer"}, {packageKind, "producer"}, {nativeKind, "producer"}}

// Whenever a client is killed, its replacement must get to work. At most the messages that consumers had popped when
// they were killed are lost.
func TestPressureQueuesSurviveKilledClients(t *testing.T) {
	kills := setting(t, killsVariable, 10)
	onShards(t, func(t *testing.T, addr string) {
		r := client(t, addr)
		require.NoError(t, (&queue{r: r, name: "siege"}).create(t.Context(), 10))
		s := newSiege(t, addr, "siege",
			append(siegeProducers, place{cKind, "consumer"}, place{packageKind, "consumer"}, place{nativeKind, "consumer"})...)
		for range kills {
			s.allBegin()
			s.killOne()
		}
		s.allBegin()
		require.Zero(t, s.finish(), "messages that came twice")
		s.delete(r)
	})
}

// Consumers that reserve messages lose none, and the server counts how many come again.
func TestPressureReservedMessagesSurviveKilledClients(t *testing.T) {
	kills := setting(t, killsVariable, 10)
	onShards(t, func(t *testing.T, addr string) {
		ctx := t.Context()
		r := client(t, addr)
		require.NoError(t, (&queue{r: r, name: "siege"}).create(ctx, 10))
		s := newSiege(t, addr, "siege", siegeProducers...)
		// At least this one comes again: its consumer goes away.
		first, closeFirst, err := newUser(ctx, reserveKind, s.name, "first", nil, addr)
		require.NoError(t, err)
		_, message, err := first.(*nativeUser).getReserved(ctx)
		require.NoError(t, err)
		require.NoError(t, closeFirst())
		for range 2 {
			s.members = append(s.members, s.start(place{reserveKind, "consumer"}))
		}
		consumerKills := int64(1)
		for range kills {
			s.allBegin()
			before := [2]*member{s.members[3], s.members[4]}
			if s.killOne(); before != [2]*member{s.members[3], s.members[4]} {
				consumerKills++
			}
		}
		s.allBegin()
		again := int64(s.finish())
		require.Positive(t, s.ledger.got[message], "the message of who went away at once")
		info, err := r.Do(ctx, "PRESSURE.INFO", s.name).Result()
		require.NoError(t, err)
		number := func(name string) int64 { return info.(map[any]any)[name].(int64) }
		// A consumer that was killed may not have seen the message reserved for it.
		require.GreaterOrEqual(t, number("redelivered"), max(again, 1))
		require.LessOrEqual(t, number("redelivered"), again+consumerKills)
		require.Zero(t, number("reserved"))
		require.EqualValues(t, len(s.ledger.got), number("consumed_messages"), "each is acknowledged once")
		s.delete(r)
	})
}

// serverProcess is the main function of a server process. It writes its address, and ends when its input ends.
func serverProcess() error {
	config := shardConfig(os.Getenv(shardsVariable))
	config["appendfsync"] = "always"
	db, err := atomredis.Open(atomredis.Options{Addr: "127.0.0.1:0", Dir: os.Getenv(dirVariable), Config: config})
	if err != nil {
		return err
	}
	fmt.Println(db.Addr())
	io.Copy(io.Discard, os.Stdin)
	return db.Close()
}

// startServer starts a server process. kill ends it with SIGKILL; it may be called twice.
func startServer(t *testing.T, dir, shards string) (addr string, kill func()) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleVariable+"=server", kindVariable+"="+serverKind, dirVariable+"="+dir,
		shardsVariable+"="+shards)
	var errs strings.Builder
	cmd.Stderr = &errs
	_, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	kill = sync.OnceFunc(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	t.Cleanup(kill)
	addr, err = bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err, "the server does not start: %s", &errs)
	return strings.TrimSpace(addr), kill
}

// Clients that were connected when the server was killed have lost their roles: after the restart the roles are free,
// and other clients get to work. At most the messages that consumers without reservations had popped are lost.
func TestPressureQueuesSurviveKilledServers(t *testing.T) {
	crashes := setting(t, crashesVariable, 2)
	for _, kind := range []string{cKind, reserveKind} {
		for _, shards := range shardCounts() {
			t.Run(kind+" shards "+shards, func(t *testing.T) {
				killServers(t, crashes, shards, append(siegeProducers, place{kind, "consumer"}, place{reserveKind, "consumer"})...)
			})
		}
	}
}

func killServers(t *testing.T, crashes int, shards string, places ...place) {
	dir := t.TempDir()
	addr, kill := startServer(t, dir, shards)
	require.NoError(t, (&queue{r: client(t, addr), name: "siege"}).create(t.Context(), 10))
	s := newSiege(t, addr, "siege", places...)
	for range crashes {
		s.allBegin()
		time.Sleep(time.Duration(s.random.Int64N(int64(50 * time.Millisecond))))
		s.ledger.mu.Lock()
		for _, m := range s.members {
			m.killed = true // they end by themselves, with an error
		}
		s.ledger.mu.Unlock()
		kill()
		for _, m := range s.members {
			m.kill()
			if m.losesMessages() {
				s.lost++
			}
		}
		s.addr, kill = startServer(t, dir, shards)
		// The kind of client that first asks for a role should vary.
		s.random.Shuffle(len(s.members), func(i, j int) { s.members[i], s.members[j] = s.members[j], s.members[i] })
		for i, m := range s.members {
			s.members[i] = s.start(m.place)
		}
	}
	s.allBegin()
	s.finish()
	s.delete(client(t, s.addr))
}
