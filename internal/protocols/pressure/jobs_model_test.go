package pressure_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/atomredis/atomredis/internal/testing/testseed"
)

// job is a message as the model knows it.
type job struct {
	name           string
	limit, backoff int64
	priority       int
	attempts       int64  // that have begun, without those that were given back
	notBefore      int64  // it must not be handed out earlier
	id             string // it is reserved, until
	until          int64
	done           bool // it was acknowledged, or taken without a reservation
	dead           bool
}

// jobModel compares a queue with jobs under random commands and a clock that only the test moves.
type jobModel struct {
	*pressureServer
	t    *rapid.T
	jobs map[string]*job
	next int
}

// put puts a message, with options or as a client of the protocol's steps.
func (m *jobModel) put() {
	m.next++
	j := &job{name: fmt.Sprintf("m%d", m.next)}
	m.jobs[j.name] = j
	if rapid.IntRange(0, 4).Draw(m.t, "old") == 0 {
		require.NotContains(m.t, m.step("a LPUSH $ "+j.name), "-")
		return
	}
	line := "a PRESSURE.PUT q " + j.name
	if rapid.Bool().Draw(m.t, "delayed") {
		delay := rapid.Int64Range(0, 50).Draw(m.t, "delay")
		j.notBefore = m.Now() + delay
		line += rapid.SampledFrom([]string{fmt.Sprintf(" DELAY %d", delay), fmt.Sprintf(" AT %d", j.notBefore)}).Draw(m.t, "form")
	}
	if rapid.Bool().Draw(m.t, "limited") {
		j.limit = rapid.Int64Range(1, 3).Draw(m.t, "limit")
		line += fmt.Sprintf(" ATTEMPTS %d", j.limit)
	}
	if rapid.Bool().Draw(m.t, "backs off") {
		j.backoff = rapid.Int64Range(1, 20).Draw(m.t, "backoff")
		line += fmt.Sprintf(" BACKOFF %d", j.backoff)
	}
	if rapid.IntRange(0, 2).Draw(m.t, "urgent") == 0 {
		j.priority = rapid.IntRange(1, 3).Draw(m.t, "priority")
		line += fmt.Sprintf(" PRIORITY %d", j.priority)
	}
	require.Equal(m.t, ":1", m.step(line))
}

// taken checks that a job may be handed out now.
func (m *jobModel) taken(name string) *job {
	j := m.jobs[name]
	require.NotNil(m.t, j, name)
	require.False(m.t, j.done || j.dead || j.id != "", "%+v at %d", j, m.Now())
	require.GreaterOrEqual(m.t, m.Now(), j.notBefore, "%+v", j)
	return j
}

// get takes messages, for good or in reserve.
func (m *jobModel) get() {
	count := rapid.IntRange(1, 3).Draw(m.t, "count")
	if rapid.IntRange(0, 4).Draw(m.t, "for good") == 0 {
		for _, name := range m.words(fmt.Sprintf("a RPOP $ %d", count)) {
			m.taken(name).done = true
		}
		return
	}
	ms := rapid.Int64Range(1, 30).Draw(m.t, "reserve")
	words := m.words(fmt.Sprintf("EXEC PRESSURE.GET q COUNT %d RESERVE %d", count, ms))
	for i := 0; i+2 < len(words); i += 3 {
		j := m.taken(words[i+2])
		j.attempts++
		require.True(m.t, j.limit == 0 || j.attempts <= j.limit, "%+v", j)
		j.id, j.until = words[i+1], m.Now()+ms
	}
}

// words returns the words of a reply that is an array. A line that begins with EXEC does not wait.
func (m *jobModel) words(line string) []string {
	command, exec := strings.CutPrefix(line, "EXEC ")
	if exec {
		m.step("a MULTI")
		m.step("a " + command)
		line = "a EXEC"
	}
	words := strings.Fields(m.step(line))[1:]
	if exec {
		words = words[1:] // the length of the array, or no array
	}
	return words
}

// failed ends the attempt of a job at a time.
func (m *jobModel) failed(j *job, at, delay int64) (fate string) {
	j.id = ""
	switch {
	case j.limit > 0 && j.attempts >= j.limit:
		j.dead = true
		return "+DEAD"
	case delay < 0 && j.backoff > 0:
		delay = j.backoff << (j.attempts - 1)
	}
	j.notBefore = at + max(delay, 0)
	if delay > 0 {
		return "+DELAYED"
	}
	return "+READY"
}

// settle ends the reservation of a job, or extends it.
func (m *jobModel) settle(j *job) {
	id := j.id
	switch rapid.IntRange(0, 3).Draw(m.t, "settle") {
	case 0:
		j.id, j.done = "", true
		require.Equal(m.t, ":1", m.step("a PRESSURE.ACK q "+id))
	case 1:
		j.id = ""
		j.attempts--
		require.Equal(m.t, ":1", m.step("a PRESSURE.RETURN q "+id))
	case 2:
		line, delay := "a PRESSURE.FAIL q "+id+" why", int64(-1)
		if rapid.Bool().Draw(m.t, "own delay") {
			delay = rapid.Int64Range(0, 20).Draw(m.t, "delay")
			line += fmt.Sprintf(" DELAY %d", delay)
		}
		require.Equal(m.t, m.failed(j, m.Now(), delay), m.step(line))
	case 3:
		ms := rapid.Int64Range(1, 30).Draw(m.t, "extend")
		j.until = m.Now() + ms
		require.Equal(m.t, ":1", m.step(fmt.Sprintf("a PRESSURE.EXTEND q %d %s", ms, id)))
	}
}

// pass lets time pass; reservations end in it.
func (m *jobModel) pass(ms int64) {
	m.step(fmt.Sprintf("+%d", ms))
	for _, j := range m.jobs {
		if j.id != "" && j.until <= m.Now() {
			m.failed(j, j.until, -1)
		}
	}
}

// reserved returns the jobs that are reserved.
func (m *jobModel) reserved() (all []*job) {
	for _, name := range slices.Sorted(maps.Keys(m.jobs)) {
		if j := m.jobs[name]; j.id != "" {
			all = append(all, j)
		}
	}
	return all
}

// check checks that every job is where it should be.
func (m *jobModel) check() {
	ready, delayed, dead := m.words("a LRANGE $ 0 -1"), strings.Fields(m.peek("DELAYED", "message")), strings.Fields(m.peek("DEAD", "message"))
	require.True(m.t, slices.IsSortedFunc(ready, func(a, b string) int { // the last one is the first to be taken
		return m.jobs[a].priority - m.jobs[b].priority
	}), "%v", ready)
	where := map[string]string{}
	for state, names := range map[string][]string{"ready": ready, "delayed": delayed, "dead": dead} {
		for _, name := range names {
			require.Empty(m.t, where[name], "%s is twice there", name)
			where[name] = state
		}
	}
	for name, j := range m.jobs {
		want := "ready"
		switch {
		case j.done || j.id != "":
			want = ""
		case j.dead:
			want = "dead"
		case j.notBefore > m.Now():
			want = "delayed"
		}
		require.Equal(m.t, want, where[name], "%+v at %d", j, m.Now())
	}
}

// TestPressureJobsAgreeWithAModel does random things to a queue of jobs. No job is lost or twice there, and none is
// handed out early or more often than it may be.
func TestPressureJobsAgreeWithAModel(t *testing.T) {
	testseed.Check(t, func(t *rapid.T) {
		m := &jobModel{t: t, jobs: map[string]*job{}}
		m.pressureServer = newPressureServer(t, "shards", rapid.SampledFrom([]string{"1", "16"}).Draw(t, "shards"))
		m.Journalled()
		m.step("a PRESSURE.CREATE q")
		for range rapid.IntRange(10, 80).Draw(t, "steps") {
			reserved := m.reserved()
			switch action := rapid.IntRange(0, 11).Draw(t, "action"); {
			case action < 3:
				m.put()
			case action < 6:
				m.get()
			case action < 9 && len(reserved) > 0:
				m.settle(rapid.SampledFrom(reserved).Draw(t, "job"))
			case action == 9:
				n := 0
				for _, j := range m.jobs {
					if j.dead {
						j.dead, j.attempts, j.notBefore = false, 0, 0
						n++
					}
				}
				require.Equal(t, fmt.Sprintf(":%d", n), m.step("a PRESSURE.RETRY q ALL"))
			default:
				m.pass(rapid.Int64Range(0, 25).Draw(t, "ms"))
			}
			m.check()
		}
		if rapid.Bool().Draw(t, "keep") { // Finish compares what the journal makes of it
			m.Finish()
			return
		}
		m.step("a PRESSURE.PURGE q")
		for _, j := range m.reserved() {
			m.step("a PRESSURE.ACK q " + j.id)
		}
		m.step("a PRESSURE.CLOSE q")
		m.step("a PRESSURE.DELETE q")
		require.Empty(t, m.keys())
		m.Finish()
	})
}
