package migrate

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/cluster"
)

// Of all leaders only that of the shard with least takes slots, from the one with most. Shards without cluster-rebalance auto
// give slots, and take none.
func TestOnlyTheShardWithLeastTakesSlots(t *testing.T) {
	for _, test := range []struct {
		loads map[string]float64
		begun bool
		taker string // "" is nobody
		from  string
	}{
		{map[string]float64{"a": 300, "b": 0, "c": 0}, false, "b", "a"},
		{map[string]float64{"a": 150, "b": 150, "c": 0}, false, "c", "a"},
		{map[string]float64{"a": 100, "b": 150, "c": 50}, false, "c", "b"},
		{map[string]float64{"a": 105, "b": 100, "c": 95}, false, "", ""},
		{map[string]float64{"a": 105, "b": 100, "c": 95}, true, "c", "a"},
		{map[string]float64{"a": 101, "b": 100, "c": 99}, true, "", ""},
		{map[string]float64{"a": 110, "b": 120, "c": 100}, false, "", ""},
		{map[string]float64{"a": 0, "b": 0}, false, "", ""},
		{map[string]float64{"a": 7}, false, "", ""},
		{map[string]float64{"a": 200, "b": 0, "idle": 0}, false, "b", "a"},
		{map[string]float64{"a": 100, "b": 100, "idle": 0}, false, "", ""},
		{map[string]float64{"a": 90, "b": 150, "idle": 60}, false, "a", "b"},
	} {
		loads := map[string]load{}
		for id, n := range test.loads {
			loads[id] = load{n, id != "idle"}
		}
		for id := range test.loads {
			if id == "idle" {
				continue
			}
			from, _, ok := source(id, loads, test.begun)
			require.Equal(t, id == test.taker, ok, "%s: %+v", id, test)
			if ok {
				require.Equal(t, test.from, from)
			}
		}
	}
}

// A shard waits while slots migrate, unless the other shard does not answer.
func TestMigrationsWithShardsThatDoNotAnswerDoNotCount(t *testing.T) {
	slots := []cluster.Range{{First: 1, Last: 2}}
	others := func(exports ...cluster.Export) []cluster.Other {
		return []cluster.Other{{ID: "b", Exports: exports}, {ID: "c"}, {ID: "d"}}
	}
	for name, test := range map[string]struct {
		r      cluster.Record
		silent string
		want   bool
	}{
		"nothing moves":           {cluster.Record{ID: "a", Others: others()}, "", true},
		"without a record":        {cluster.Record{Others: others()}, "", false},
		"alone":                   {cluster.Record{ID: "a"}, "", false},
		"others":                  {cluster.Record{ID: "a", Others: others(cluster.Export{To: "c", Slots: slots})}, "", false},
		"from a silent one":       {cluster.Record{ID: "a", Others: others(cluster.Export{To: "c", Slots: slots})}, "b", true},
		"to a silent one":         {cluster.Record{ID: "a", Others: others(cluster.Export{To: "c", Slots: slots})}, "c", true},
		"another one is silent":   {cluster.Record{ID: "a", Others: others(cluster.Export{To: "c", Slots: slots})}, "d", false},
		"import":                  {cluster.Record{ID: "a", Others: others(), Imports: []cluster.Import{{From: "b", Slots: slots}}}, "", false},
		"import from a silent":    {cluster.Record{ID: "a", Others: others(), Imports: []cluster.Import{{From: "b", Slots: slots}}}, "b", true},
		"export":                  {cluster.Record{ID: "a", Others: others(), Exports: []cluster.Export{{To: "b", Slots: slots}}}, "", false},
		"export to a silent one":  {cluster.Record{ID: "a", Others: others(), Exports: []cluster.Export{{To: "b", Slots: slots}}}, "b", true},
		"keys to be trimmed here": {cluster.Record{ID: "a", Others: others(), Trims: slots}, "", false},
	} {
		require.Equal(t, test.want, quiet(&test.r, func(id string) bool { return id != test.silent }), name)
	}
}

// Times are sampled while somebody asks for them, and dropped afterwards.
func TestRatesAreSampledWhenTheyAreWanted(t *testing.T) {
	var r rates
	var counters cluster.SlotStats
	var own cluster.SlotSet
	var loads [cluster.Slots]int64
	begin := time.Unix(1_000_000, 0)
	for i := range 5 {
		r.sample(begin.Add(time.Duration(i)*rateWindow), &counters)
		require.Nil(t, r.micros[1], "nobody has asked")
	}
	require.Equal(t, errNoRates, r.read(begin, &counters, &own, &loads))
	for i := range int(wantedFor / rateWindow) {
		r.sample(begin.Add(time.Duration(i)*rateWindow), &counters)
		require.NotNil(t, r.micros[1])
	}
	r.sample(begin.Add(wantedFor), &counters)
	require.Equal(t, [2]*[cluster.Slots]int64{}, r.micros)
}

// The load by time is that of the last one or two minutes.
func TestRatesForget(t *testing.T) {
	var r rates
	var counters cluster.SlotStats
	var own cluster.SlotSet
	own.Add(7)
	own.Add(8)
	begin := time.Unix(1_000_000, 0)
	read := func(want7, want8 int64, wantErr error) {
		t.Helper()
		var loads [cluster.Slots]int64
		require.Equal(t, wantErr, r.read(begin.Add(time.Hour), &counters, &own, &loads))
		require.Equal(t, [3]int64{want7, want8}, [3]int64{loads[7], loads[8], loads[9]})
	}
	counters[7].Micros.Store(1000)
	read(0, 0, errNoRates)
	r.sample(begin, &counters)
	read(0, 0, errNoRates)
	r.sample(begin.Add(rateWindow/2), &counters)
	read(0, 0, errNoRates)
	counters[7].Micros.Add(5)
	counters[9].Micros.Add(50)
	r.sample(begin.Add(rateWindow), &counters)
	read(5, 0, nil)
	counters[8].Micros.Add(3)
	read(5, 3, nil)
	r.sample(begin.Add(2*rateWindow), &counters)
	read(0, 3, nil)
	r.sample(begin.Add(3*rateWindow), &counters)
	read(0, 0, nil)
	r.sample(begin.Add(4*rateWindow), nil)
	require.Equal(t, errNoTimes, r.read(begin, nil, &own, new([cluster.Slots]int64)))
	r.sample(begin.Add(5*rateWindow), &counters)
	read(0, 0, errNoRates)
}
