package rdb

import (
	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/timeseries"
)

// A time series is a value of a module of our own, whose only datum is its stored form: the layout of RedisTimeSeries
// is undocumented. Redis refuses it by the module's name.

const (
	timeSeriesModule  = "atomrd-ts"
	timeSeriesVersion = 1
)

var timeSeriesKind = kind{
	module:        timeSeriesModule,
	moduleVersion: timeSeriesVersion,
	read:          func(d *decoder, _ byte, _ *Limits) (any, error) { return d.timeSeries() },
	form:          plainForm(typeModule),
	write: func(e *Encoder, entry *engine.Entry) {
		e.length(moduleID(timeSeriesModule, timeSeriesVersion))
		s := entry.Series()
		if e.alone {
			s = s.Alone()
		}
		e.moduleString(s.AppendBlob(nil))
		e.length(moduleEnd)
	},
}

func (d *decoder) timeSeries() (any, error) {
	b, end, err := d.moduleString()
	if err != nil {
		return nil, err
	}
	if end {
		return nil, corrupt("a time series without data")
	}
	s, err := timeseries.DecodeBlob(b)
	if err != nil {
		return nil, corrupt("%v", err)
	}
	if _, end, err = d.moduleString(); err == nil && !end {
		err = corrupt("a time series with more than one datum")
	}
	return s, err
}
