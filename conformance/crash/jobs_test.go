package crash

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestJobsSettle(t *testing.T) {
	start := time.Now()
	second := func(n int) time.Time { return start.Add(time.Duration(n) * time.Second) }
	sure, unsure, never := second(1), second(3), time.Time{}
	e := ending{killed: second(4), sure: second(2)}
	for name, c := range map[string]struct {
		job      crashJob
		places   []string
		attempts int
		err      string
	}{
		"there":                         {job: crashJob{put: sure}, places: []string{"list"}},
		"lost":                          {job: crashJob{put: sure}, err: "is lost"},
		"lost within the window":        {job: crashJob{put: unsure}},
		"never acknowledged":            {job: crashJob{put: never}},
		"there twice":                   {job: crashJob{put: sure}, places: []string{"list", "delayed"}, err: "is in"},
		"acknowledged":                  {job: crashJob{put: sure, acked: sure}},
		"acknowledged and there":        {job: crashJob{put: sure, acked: sure}, places: []string{"reserved"}, err: "after its"},
		"acknowledged within":           {job: crashJob{put: sure, acked: unsure}, places: []string{"reserved"}},
		"acknowledgement without reply": {job: crashJob{put: sure, acking: 1}},
		"dead":                          {job: crashJob{put: sure, limit: 2}, places: []string{"dead"}, attempts: 2},
		"dead too early":                {job: crashJob{put: sure, limit: 2}, places: []string{"dead"}, attempts: 1, err: "is dead after 1"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newJobs()
			w.jobs["job1"] = &c.job
			w.found = jobsState{map[string][]string{}, map[string]int{"job1": c.attempts}}
			if len(c.places) > 0 {
				w.found.places["job1"] = c.places
			}
			_, err := w.settle(nil, e)
			if c.err == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, c.err)
			}
		})
	}
}

func TestJobsAreHandedOutAsTheyMayBe(t *testing.T) {
	asked := time.Now()
	before, after := asked.Add(-time.Second), asked.Add(time.Second)
	inAnHour := asked.Add(time.Hour).UnixMilli()
	for name, c := range map[string]struct {
		job crashJob
		err string
	}{
		"the first time":                  {job: crashJob{limit: 1}},
		"too often":                       {job: crashJob{limit: 1, given: []time.Time{before}}, err: "handed out 2 times"},
		"put back, before the late reply": {job: crashJob{limit: 1, given: []time.Time{before}, revived: after}},
		"put back":                        {job: crashJob{limit: 1, revived: before}},
		"put back, too often": {job: crashJob{limit: 1, given: []time.Time{before}, revived: before},
			err: "handed out 2 times"},
		"acknowledged":                        {job: crashJob{limit: 1, acked: before}, err: "after its acknowledgement"},
		"acknowledged, before the late reply": {job: crashJob{limit: 1, acked: after}},
		"put with a delay":                    {job: crashJob{limit: 1, times: []notBefore{{at: inAnHour}}}, err: "ms early"},
		"delayed":                             {job: crashJob{limit: 1, times: []notBefore{{inAnHour, before}}}, err: "ms early"},
		"delayed, before the late reply":      {job: crashJob{limit: 1, times: []notBefore{{inAnHour, after}}}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newJobs()
			w.jobs["job1"] = &c.job
			_, err := w.taken("job1", asked)
			if c.err == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, c.err)
			}
		})
	}
	_, err := newJobs().taken("job1", asked)
	require.ErrorContains(t, err, "never put")
}
