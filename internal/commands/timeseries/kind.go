package timeseries

import (
	"math"
	"slices"
	"strconv"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/timeseries"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/persist/rdb"
)

// Registers time series for commands on keys of any type.

func init() {
	command.RegisterKind(engine.TimeSeries, command.Kind{
		Number:   5, // shared by all values of modules
		Encoding: func(*engine.Entry) string { return "raw" },
		Rebuild:  rebuild,
		Digest:   digest,
		Links:    func(e *engine.Entry, fn func(key string)) { eachLink(e.Series(), fn) },
		Renamed:  renamed,
	})
}

// rebuild encodes a series. A series with rules, and a compaction, is encoded as a payload: commands would compute
// compactions again, from keys that may be encoded later. So is a series that no command can make.
func rebuild(r *command.Rebuilder, key []byte, e *engine.Entry) {
	s := e.Series()
	if s.Source() != "" || len(s.Rules()) > 0 || s.Policy == timeseries.Unset || infinite(s) {
		if payload, err := rdb.Dump(e); err == nil {
			r.Command([]byte("RESTORE"), key, []byte("0"), payload)
		}
		return
	}
	o := options{settings: s.Settings, labels: s.Labels()}
	ignores := s.Policy == timeseries.Last && s.IgnoreTime > 0
	if ignores { // only once all samples are there
		o.settings.IgnoreTime, o.settings.IgnoreValue = 0, 0
	}
	r.Command(appendOptions([][]byte{[]byte("TS.CREATE"), key}, &o)...)
	args := [][]byte{[]byte("TS.MADD")}
	send := func() {
		if len(args) > 1 {
			r.Command(args...)
			args = args[:1]
		}
	}
	each(s, func(t int64, v float64) {
		args = append(args, key, integer(t), number(v))
		if len(args) > command.RebuildElements {
			send()
		}
	})
	send()
	if ignores {
		r.Command([]byte("TS.ALTER"), key, []byte("IGNORE"), integer(s.IgnoreTime), number(s.IgnoreValue))
	}
}

// infinite reports whether a series has a value that is no number of JSON, which TS.MADD refuses.
func infinite(s *timeseries.Series) (some bool) {
	s.EachRun(func(samples []timeseries.Sample) {
		some = some || slices.ContainsFunc(samples, func(x timeseries.Sample) bool { return math.IsInf(x.Value, 0) })
	})
	return some
}

// each calls fn with the samples of a series.
func each(s *timeseries.Series, fn func(t int64, v float64)) {
	var rows timeseries.Rows
	s.Run(&timeseries.Query{To: math.MaxInt64}, nil, &rows) // cannot fail without buckets
	for i, t := range rows.Times {
		fn(t, rows.Values[i])
	}
}

// digest adds the visible content of a series.
func digest(d *command.Digest, e *engine.Entry) {
	s := e.Series()
	o := options{settings: s.Settings, labels: s.Labels()}
	for _, arg := range appendOptions(nil, &o) {
		d.Mix(arg)
	}
	d.Mix([]byte(s.Source()))
	for _, r := range s.Rules() {
		d.Mix([]byte(r.Destination + " " + r.Aggregator.String()))
		d.Mix(integer(r.Bucket))
		d.Mix(integer(r.Align))
	}
	var b []byte
	each(s, func(t int64, v float64) {
		b = append(strconv.AppendInt(b[:0], t, 10), ' ')
		d.Mix(appendValue(b, v))
	})
}
