package crash

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestDoorHistorySettle(t *testing.T) {
	start := time.Now()
	second := func(n int) time.Time { return start.Add(time.Duration(n) * time.Second) }
	sure, unsure, never := second(1), second(3), time.Time{}
	e := ending{killed: second(4), sure: second(2)}
	type keys = map[string]string
	for name, c := range map[string]struct {
		acked [3]time.Time // of: a and b become 1; a becomes 2; b is removed
		found keys
		err   string
	}{
		"all":                   {acked: [3]time.Time{sure, sure, sure}, found: keys{"old": "0", "a": "2"}},
		"one lost":              {acked: [3]time.Time{sure, sure, sure}, found: keys{"old": "0", "a": "2", "b": "1"}, err: `"b" is`},
		"one not acknowledged":  {acked: [3]time.Time{sure, sure, never}, found: keys{"old": "0", "a": "2", "b": "1"}},
		"two in the window":     {acked: [3]time.Time{sure, unsure, unsure}, found: keys{"old": "0", "a": "1", "b": "1"}},
		"half of one":           {acked: [3]time.Time{never, never, never}, found: keys{"old": "0", "a": "1"}, err: "3 changes were sent"},
		"nothing":               {found: keys{"old": "0"}},
		"what was there before": {acked: [3]time.Time{sure, sure, sure}, found: keys{"a": "2"}, err: `"old" is ""`},
		"what was never sent":   {acked: [3]time.Time{sure, sure, sure}, found: keys{"old": "0", "a": "2", "c": "1"}, err: `"c" is`},
	} {
		t.Run(name, func(t *testing.T) {
			h := newDoorHistory()
			h.base = keys{"old": "0"}
			for i, change := range []doorChange{{"a": "1", "b": "1"}, {"a": "2"}, {"b": ""}} {
				n := h.send(change)
				h.sent[n].acked = c.acked[i]
			}
			_, err := h.settle(c.found, e)
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.found, h.base)
			_, err = h.settle(keys{}, e)
			require.Error(t, err)
		})
	}
}

// An owned key exists as long as its container.
func TestSkeinSettle(t *testing.T) {
	type keys = map[string]string
	for name, c := range map[string]struct {
		found skeinState
		err   string
	}{
		"all": {skeinState{values: keys{"w0-1": "x", "c0-1": "y"}, owners: keys{"c0-1": "crash_0"},
			containers: keys{"crash_0": "REQUESTED 0 0 - "}, indexed: 2, owned: 1}, ""},
		"ended": {skeinState{values: keys{"w0-1": "x"}, containers: keys{"crash_0": "KILLED 0 9 - "}, indexed: 1}, ""},
		"a key survives": {skeinState{values: keys{"w0-1": "x", "c0-1": "y"}, owners: keys{"c0-1": "crash_0"},
			containers: keys{"crash_0": "KILLED 0 9 - "}, indexed: 2, owned: 1}, "has survived"},
		"a key is without its owner": {skeinState{values: keys{"w0-1": "x", "c0-1": "y"},
			containers: keys{"crash_0": "REQUESTED 0 0 - "}, indexed: 2}, "has the owner"},
		"a container is lost": {skeinState{values: keys{"w0-1": "x"}, indexed: 1}, "writer 2"},
		"a put is lost": {skeinState{values: keys{"c0-1": "y"}, owners: keys{"c0-1": "crash_0"},
			containers: keys{"crash_0": "REQUESTED 0 0 - "}, indexed: 1, owned: 1}, "writer 0"},
		"an index is not in line": {skeinState{values: keys{"w0-1": "x"}}, "of which 0 are in the index"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newSkein("", nil)
			now := time.Now()
			for _, change := range []doorChange{{skeinContainer + "0": skeinLive}, {"c0-1": "y"}} {
				w.writers[skeinOwner].answered(w.writers[skeinOwner].send(change), nil)
			}
			w.writers[skeinOwner].send(doorChange{skeinContainer + "0": skeinEnded, "c0-1": ""})
			w.writers[0].answered(w.writers[0].send(doorChange{"w0-1": "x"}), nil)
			w.found = c.found
			_, err := w.settle(nil, ending{killed: now, sure: now.Add(time.Hour)})
			if c.err == "" {
				require.NoError(t, err)
				require.Equal(t, 1, w.next)
			} else {
				require.ErrorContains(t, err, c.err)
			}
		})
	}
}

// An execution that has finished stays finished, or is removed.
func TestPerperSettle(t *testing.T) {
	for name, c := range map[string]struct {
		found string
		err   string
	}{
		"finished":  {perperFinished, ""},
		"not yet":   {perperRunning, "writer 2"},
		"removed":   {"", "writer 2"},
		"different": {"6700", "writer 2"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newPerper("", "")
			h := w.writers[perperCaller]
			for _, state := range []string{perperRunning, perperFinished} {
				h.answered(h.send(doorChange{"x0": state}), nil)
			}
			for i := range w.found {
				w.found[i] = map[string]string{}
			}
			doorChange{"x0": c.found}.apply(w.found[perperCaller])
			now := time.Now()
			_, err := w.settle(nil, ending{killed: now, sure: now.Add(time.Hour)})
			if c.err == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, c.err)
			}
		})
	}
}
