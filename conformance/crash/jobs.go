package crash

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/atomredis/atomredis/internal/testing/transcript"
)

// jobs is a worker that uses a pressure queue as a queue of jobs: a producer puts jobs with delays and limits, consumers
// reserve them and acknowledge them, fail them or forget them, and put dead ones back. A job that was put is in one
// place until it is acknowledged; it is never handed out early, and no more often than its limit allows.
type jobs struct {
	mu    sync.Mutex
	jobs  map[string]*crashJob
	next  int
	found jobsState
}

// crashJob is what is known of a job.
type crashJob struct {
	put   time.Time // acknowledged; zero if it is unknown
	limit int
	// times are those before which it must not be handed out, each with the acknowledgement that it is known by.
	times []notBefore
	// given has the acknowledged reservations since it was put, or put back.
	given []time.Time
	// revived is when it was last put back.
	revived time.Time
	// acking is the number of acknowledgements without a reply, and acked when one was confirmed.
	acking int
	acked  time.Time
}

// notBefore is a time in ms since 1970 that follows from a reply.
type notBefore struct {
	at    int64
	known time.Time
}

// jobsState says where the jobs are: the names of the places of each.
type jobsState struct {
	places   map[string][]string
	attempts map[string]int // of dead ones
}

const (
	jobConsumers = 3
	// manyJobs is the most jobs at once.
	manyJobs = 60
	jobsName = "jobs"
	// jobsKey is the key of the queue's list.
	jobsKey = jobsName + ":q"
)

func newJobs() *jobs { return &jobs{jobs: map[string]*crashJob{}} }

func (w *jobs) name() string { return jobsName }

func (w *jobs) run(dial dialer, r *rand.Rand) error {
	tasks := []func(*transcript.Conn, *rand.Rand) error{w.produce}
	for range jobConsumers {
		tasks = append(tasks, w.consume)
	}
	return runTasks(jobsName, dial, r, tasks)
}

// command sends a command on the queue and returns its reply, which may be an error.
func (w *jobs) command(c *transcript.Conn, args ...string) (transcript.Value, error) {
	replies, err := do(c, append(args, "PREFIX", jobsName))
	if err != nil {
		return transcript.Value{}, err
	}
	if v := replies[0]; v.Kind == transcript.Error && !strings.HasPrefix(v.Text, "QUEUEEXISTS") {
		return v, fmt.Errorf("%s: %s", args[0], v.Text)
	}
	return replies[0], nil
}

func (w *jobs) produce(c *transcript.Conn, r *rand.Rand) error {
	if _, err := w.command(c, "PRESSURE.CREATE", "q"); err != nil {
		return err
	}
	for {
		time.Sleep(time.Duration(r.Int64N(int64(idlePause))))
		w.mu.Lock()
		full := len(w.jobs) >= manyJobs
		w.mu.Unlock()
		if full {
			if err := w.revive(c); err != nil {
				return err
			}
			continue
		}
		j := &crashJob{limit: 1 + r.IntN(4)}
		w.mu.Lock()
		w.next++
		name := "job" + strconv.Itoa(w.next)
		w.jobs[name] = j
		args := []string{"PRESSURE.PUT", "q", name, "ATTEMPTS", strconv.Itoa(j.limit), "BACKOFF", strconv.Itoa(1 + r.IntN(20)),
			"PRIORITY", strconv.Itoa(r.IntN(3))}
		if r.IntN(2) == 0 {
			at := time.Now().UnixMilli() + r.Int64N(300)
			j.times = []notBefore{{at: at}}
			args = append(args, "AT", strconv.FormatInt(at, 10))
		}
		w.mu.Unlock()
		if v, err := w.command(c, args...); err != nil || v.Text != "1" {
			if err == nil {
				err = fmt.Errorf("PRESSURE.PUT gave %s", v)
			}
			return err
		}
		w.mu.Lock()
		j.put = time.Now()
		w.mu.Unlock()
	}
}

// revive puts a dead job back.
func (w *jobs) revive(c *transcript.Conn) error {
	v, err := w.command(c, "PRESSURE.PEEK", "q", "STATE", "DEAD", "COUNT", "1")
	if err != nil || len(v.Elems) == 0 {
		return err
	}
	dead := fields(v.Elems[0])
	w.mu.Lock()
	j := w.jobs[dead["message"]]
	if j == nil {
		w.mu.Unlock()
		return fmt.Errorf("there is a dead job %q, which was never put", dead["message"])
	}
	j.given, j.revived = nil, time.Now()
	w.mu.Unlock()
	_, err = w.command(c, "PRESSURE.RETRY", "q", dead["id"])
	return err
}

func (w *jobs) consume(c *transcript.Conn, r *rand.Rand) error {
	for {
		ms := 1 + r.IntN(100)
		asked := time.Now()
		replies, err := do(c, []string{"PRESSURE.GET", "q", "TIMEOUT", "20", "RESERVE", strconv.Itoa(ms), "PREFIX", jobsName})
		if err != nil {
			return err
		}
		v := replies[0]
		if v.Kind == transcript.Error && strings.HasPrefix(v.Text, "NOQUEUE") || v.Null {
			continue // the producer is creating it, or there is no job
		}
		if len(v.Elems) != 2 {
			return fmt.Errorf("PRESSURE.GET gave %s", v)
		}
		id, name := v.Elems[0].Text, v.Elems[1].Text
		j, err := w.taken(name, asked)
		if err != nil {
			return err
		}
		switch r.IntN(4) {
		case 0: // forgotten
			continue
		case 1, 2:
			err = w.fail(c, r, j, id)
		case 3:
			err = w.ack(c, j, id)
		}
		if err != nil {
			return err
		}
	}
}

// taken checks that a job could be handed out, and records it. The request was sent at asked. Only what was known then counts: the
// reply may be read so late that the reservation has expired, and other consumers have had the job since.
func (w *jobs) taken(name string, asked time.Time) (*crashJob, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	j := w.jobs[name]
	switch {
	case j == nil:
		return nil, fmt.Errorf("the job %q was never put, or acknowledged before", name)
	case !j.acked.IsZero() && j.acked.Before(asked):
		return nil, fmt.Errorf("%s was handed out after its acknowledgement", name)
	}
	if j.revived.Before(asked) {
		j.given = append(j.given, now)
	}
	if len(j.given) > j.limit {
		return nil, fmt.Errorf("%s was handed out %d times, and may be %d times", name, len(j.given), j.limit)
	}
	for _, t := range j.times {
		if early := t.at - now.UnixMilli(); early > 0 && t.known.Before(asked) {
			return nil, fmt.Errorf("%s was handed out %d ms early", name, early)
		}
	}
	return j, nil
}

// fail ends an attempt with a pause. A job that is delayed must not come before that.
func (w *jobs) fail(c *transcript.Conn, r *rand.Rand, j *crashJob, id string) error {
	pause := r.Int64N(50)
	sent := time.Now().UnixMilli()
	v, err := w.command(c, "PRESSURE.FAIL", "q", id, "why", "DELAY", strconv.FormatInt(pause, 10))
	if err != nil {
		return err
	}
	if v.Text == "DELAYED" {
		w.mu.Lock()
		defer w.mu.Unlock()
		j.times = append(j.times, notBefore{sent + pause - clockSlack, time.Now()})
	}
	return nil
}

// ack acknowledges a job, if it is still reserved.
func (w *jobs) ack(c *transcript.Conn, j *crashJob, id string) error {
	w.mu.Lock()
	j.acking++
	w.mu.Unlock()
	v, err := w.command(c, "PRESSURE.ACK", "q", id)
	if err == nil {
		w.mu.Lock()
		if j.acking--; v.Text == "1" {
			j.acked = time.Now()
		}
		w.mu.Unlock()
	}
	return err
}

func (w *jobs) inquire(c *transcript.Conn) error {
	replies, err := ask(c, []string{"SELECT", "0"}, []string{"MULTI"}, []string{"LRANGE", jobsKey, "0", "-1"},
		[]string{"HVALS", jobsKey + ":reserved"}, []string{"ZRANGE", jobsKey + ":+delayed", "0", "-1"},
		[]string{"ZRANGE", jobsKey + ":+dead", "0", "-1"}, []string{"HGETALL", jobsKey + ":+held"}, []string{"EXEC"})
	if err != nil {
		return err
	}
	parts := replies[len(replies)-1].Elems
	w.found = jobsState{map[string][]string{}, map[string]int{}}
	there := func(place, name string) { w.found.places[name] = append(w.found.places[name], place) }
	for _, v := range parts[0].Elems {
		there("list", v.Text)
	}
	for _, v := range parts[1].Elems {
		_, name, _ := strings.Cut(v.Text, " ")
		there("reserved", name)
	}
	held := fields(parts[4])
	for i, place := range []string{"delayed", "dead"} {
		for _, id := range parts[2+i].Elems {
			value := held[id.Text]
			name := value[max(strings.LastIndex(value, "job"), 0):]
			there(place, name)
			if place == "dead" {
				if strings.HasPrefix(value, "p") { // the priority comes first
					_, value, _ = strings.Cut(value, " ")
				}
				attempts, _, _ := strings.Cut(value, " ")
				w.found.attempts[name], _ = strconv.Atoi(attempts)
			}
		}
	}
	return nil
}

func (w *jobs) settle(_ *snapshot, e ending) (int, error) {
	acked := 0
	for name := range w.found.places {
		if w.jobs[name] == nil {
			return 0, fmt.Errorf("jobs: there is a job %q, which was never put, or acknowledged before", name)
		}
	}
	for name, j := range w.jobs {
		places := w.found.places[name]
		switch {
		case len(places) > 1:
			return 0, fmt.Errorf("jobs: %s is in %v", name, places)
		case len(places) == 1 && e.survives(j.acked):
			return 0, fmt.Errorf("jobs: %s is in %v after its acknowledgement", name, places)
		case len(places) == 0 && e.survives(j.put) && j.acking == 0 && j.acked.IsZero():
			return 0, fmt.Errorf("jobs: %s is lost", name)
		case len(places) == 1 && places[0] == "dead" && w.found.attempts[name] != j.limit:
			return 0, fmt.Errorf("jobs: %s is dead after %d attempts of %d", name, w.found.attempts[name], j.limit)
		}
		if !j.put.IsZero() {
			acked++
		}
		if !j.acked.IsZero() {
			acked++
		}
		if len(places) == 0 {
			delete(w.jobs, name)
			continue
		}
		j.put, j.acking, j.acked = e.sure, 0, time.Time{}
		j.keep(e)
	}
	return acked, nil
}

// keep drops what a kill may have undone.
func (j *crashJob) keep(e ending) {
	times, given := j.times[:0], j.given[:0]
	for _, t := range j.times {
		if t.known.IsZero() || e.survives(t.known) {
			times = append(times, t)
		}
	}
	for _, at := range j.given {
		if e.survives(at) {
			given = append(given, at)
		}
	}
	j.times, j.given = times, given
}
