package crash

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A task that existed, lent once and perhaps repaid, and the states in which it may be found.
func TestSpiderqSettle(t *testing.T) {
	start := time.Now()
	second := func(n int) time.Time { return start.Add(time.Duration(n) * time.Second) }
	sure, unsure, never := second(1), second(3), time.Time{}
	e := ending{killed: second(4), sure: second(2)}
	due := second(1).Add(spiderqLong).UnixMilli()
	until := strconv.FormatInt(due, 10)
	type parts = map[string]string
	one := parts{"1": "1"}
	lent, loans := parts{"1": until}, parts{"1": "7"}
	for name, c := range map[string]struct {
		added, lentAt, repaidAt time.Time
		repaySent, drop         bool
		inFlight                int
		found                   spiderqState
		err                     string
	}{
		"added":          {added: sure, found: spiderqState{values: one, queue: one}},
		"not added":      {added: never, found: spiderqState{}},
		"not added yet":  {added: unsure, found: spiderqState{}},
		"lost":           {added: sure, found: spiderqState{}, err: "lost or changed"},
		"its value lost": {added: sure, found: spiderqState{queue: one}, err: "has no value"},
		"out of place":   {added: sure, found: spiderqState{values: one}, err: "lost or changed"},
		"somebody else's": {added: sure, found: spiderqState{values: parts{"1": "1", "2": "1"}, queue: one},
			err: "never added"},
		"lent": {added: sure, lentAt: sure, found: spiderqState{values: one, lent: lent, loans: loans}},
		"lent and queued": {added: sure, lentAt: sure, found: spiderqState{values: one, queue: one, lent: lent, loans: loans},
			err: "lent and queued"},
		"lent without a lend key": {added: sure, lentAt: sure, found: spiderqState{values: one, lent: lent},
			err: "with a lend key: false"},
		"queued before its time": {added: sure, lentAt: sure, found: spiderqState{values: one, queue: one},
			err: "ms more"},
		"a loan lost in the window": {added: sure, lentAt: unsure, found: spiderqState{values: one, queue: one}},
		"another lend key": {added: sure, lentAt: sure, inFlight: 1,
			found: spiderqState{values: one, lent: lent, loans: one}, err: "ms more"},
		"a loan nobody was told of": {added: sure, inFlight: 1, found: spiderqState{values: one, lent: lent, loans: loans}},
		"a loan nobody has asked for": {added: sure,
			found: spiderqState{values: one, lent: lent, loans: loans}, err: "to nobody"},
		"another deadline": {added: sure, lentAt: sure,
			found: spiderqState{values: one, lent: parts{"1": strconv.FormatInt(due+60_000, 10)}, loans: loans},
			err:   "not between"},
		"long due": {added: sure, lentAt: sure,
			found: spiderqState{values: one, lent: parts{"1": strconv.FormatInt(due-60_000, 10)}, loans: loans},
			err:   "has been up"},
		"a serial that was used": {added: sure, lentAt: sure,
			found: spiderqState{values: one, lent: lent, loans: loans, serial: "6"}, err: "the serial is 6"},
		"repaid": {added: sure, lentAt: sure, repaySent: true, repaidAt: sure,
			found: spiderqState{values: parts{"1": "2"}, queue: one}},
		"perhaps repaid": {added: sure, lentAt: sure, repaySent: true,
			found: spiderqState{values: parts{"1": "2"}, queue: one}},
		"perhaps not": {added: sure, lentAt: sure, repaySent: true,
			found: spiderqState{values: one, lent: lent, loans: loans}},
		"half repaid": {added: sure, lentAt: sure, repaySent: true, repaidAt: sure,
			found: spiderqState{values: one, queue: one}, err: "lost or changed"},
		"repaid and still lent": {added: sure, lentAt: sure, repaySent: true, repaidAt: sure,
			found: spiderqState{values: parts{"1": "2"}, lent: lent, loans: loans}, err: "which was repaid"},
		"dropped": {added: sure, lentAt: sure, repaySent: true, drop: true, repaidAt: sure,
			found: spiderqState{values: parts{"1": "2"}}},
		"dropped and queued": {added: sure, lentAt: sure, repaySent: true, drop: true, repaidAt: sure,
			found: spiderqState{values: parts{"1": "2"}, queue: one}, err: "lost or changed"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newSpiderq("")
			task := &spiderqTask{writes: []*spiderqWrite{{outcome: outcome{value: 1}, acked: c.added}}}
			w.tasks["1"] = task
			w.inFlight = c.inFlight
			if !c.lentAt.IsZero() {
				l := &loan{id: loanID{"1", 7}, value: 1, sent: c.lentAt, acked: c.lentAt, due: window{due - 20, due + 20},
					repaid: c.repaySent, repayment: c.repaidAt}
				task.loans, w.given[l.id] = []*loan{l}, c.lentAt
			}
			if c.repaySent {
				task.writes = append(task.writes, &spiderqWrite{outcome: outcome{2, c.drop}, acked: c.repaidAt})
			}
			w.found = c.found
			w.found.at = second(5)
			if w.found.serial == "" {
				w.found.serial = "7"
			}
			_, err := w.settle(nil, e)
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				return
			}
			require.NoError(t, err)
			// From now on the found state is what is known, and nothing else.
			_, err = w.settle(nil, ending{killed: second(6), sure: second(6)})
			require.NoError(t, err)
			if len(c.found.values) > 0 {
				w.found = spiderqState{at: second(7), values: parts{"1": "5"}, queue: one, serial: "7"}
				_, err = w.settle(nil, ending{killed: second(8), sure: second(8)})
				require.ErrorContains(t, err, "lost or changed")
			}
		})
	}
}
