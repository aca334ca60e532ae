package timeseries

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/atomredis/atomredis/engine/timeseries"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/resp"
)

// query has the options of a range.
type query struct {
	timeseries.Query
	latest bool
	// each are the aggregators of each key of TS.NRANGE.
	each [][]timeseries.Aggregator
}

// errLists is an error of TS.NRANGE.
const errLists command.Error = "ERR TSDB: the number of AGGREGATION arguments must be equal to numkeys"

func isNumber(arg []byte) bool {
	_, ok := resp.ParseInt(arg)
	return ok
}

// maxAggregators is the largest number of aggregators of a key.
const maxAggregators = 64

// parseRange reads the first and the last time of a range. openFrom and openTo say which of them were left open.
func parseRange(first, last []byte) (from, to int64, openFrom, openTo bool, err command.Error) {
	from, to = 0, math.MaxInt64
	if openFrom = string(first) == "-"; !openFrom {
		n, ok := resp.ParseInt(first)
		if !ok || n < 0 {
			return 0, 0, false, false, errFrom
		}
		from = n
	}
	// -1 was the newest time in RedisTimeSeries 1.4, and some clients still send it.
	if openTo = string(last) == "+" || string(last) == "-1"; !openTo {
		n, ok := resp.ParseInt(last)
		if !ok || n < 0 {
			return 0, 0, false, false, errTo
		}
		to = n
	}
	return from, to, openFrom, openTo, ""
}

// parseQuery reads the times of a range, args[0] and args[1], and the options after them. series is the number of
// keys with their own lists of aggregators, 0 if there is one list for all.
func parseQuery(c *command.Ctx, args [][]byte, series int) (q query, err command.Error) {
	var openFrom, openTo bool
	if q.From, q.To, openFrom, openTo, err = parseRange(args[0], args[1]); err != "" {
		return q, err
	}
	q.latest = find(args, 2, "latest") > 0
	if err = q.parseCount(args); err != "" {
		return q, err
	}
	if err = q.parseAggregation(c, args, series); err != "" {
		return q, err
	}
	if err = q.parseAlign(args, openFrom, openTo); err != "" {
		return q, err
	}
	return q, q.parseFilters(args)
}

// parseCount reads COUNT, which is also the name of an aggregator.
func (q *query) parseCount(args [][]byte) command.Error {
	for i := 2; i < len(args); i++ {
		if !command.EqualFold(args[i], "count") || command.EqualFold(args[i-1], "aggregation") ||
			command.EqualFold(args[i-1], "reduce") {
			continue
		}
		if i+1 == len(args) {
			return "ERR TSDB: COUNT argument is missing"
		}
		n, ok := resp.ParseInt(args[i+1])
		switch {
		case !ok && q.inAggregation(args, i):
			continue // one of the aggregators of TS.NRANGE
		case !ok:
			return "ERR TSDB: Couldn't parse COUNT"
		case n <= 0:
			return "ERR TSDB: Invalid COUNT value"
		}
		if q.inAggregation(args, i) {
			continue
		}
		q.Count = command.AsInt(n)
		return ""
	}
	return ""
}

// inAggregation reports whether an argument is among the names of aggregators after AGGREGATION.
func (q *query) inAggregation(args [][]byte, i int) bool {
	at := find(args, 2, "aggregation")
	if at == 0 || i < at {
		return false
	}
	for k := at + 1; k <= i; k++ {
		if _, err := parseAggregators(args[k]); err != "" {
			return false
		}
	}
	return true
}

// parseAggregators reads names of aggregators separated by commas.
func parseAggregators(arg []byte) (list []timeseries.Aggregator, err command.Error) {
	if len(arg) == 0 {
		return nil, errAggregator
	}
	for name := range strings.SplitSeq(string(arg), ",") {
		if name == "" {
			return nil, "ERR TSDB: Empty aggregation type in list"
		}
		a, ok := timeseries.ParseAggregator(name)
		if !ok {
			return nil, errAggregator
		}
		if list = append(list, a); len(list) > maxAggregators {
			return nil, "ERR TSDB: Too many aggregation types"
		}
	}
	return list, ""
}

// parseAggregation reads AGGREGATION with BUCKETTIMESTAMP and EMPTY.
func (q *query) parseAggregation(c *command.Ctx, args [][]byte, series int) (err command.Error) {
	at := find(args, 2, "aggregation")
	if at == 0 {
		return ""
	}
	lists := max(series, 1)
	end := at + lists + 1
	if end >= len(args) && series <= 1 {
		return errAggregation
	}
	for i := at + 1; i < end; i++ {
		if series > 1 && (i == len(args) || isNumber(args[i])) {
			return errLists
		}
		if q.Aggregators, err = parseAggregators(args[i]); err != "" {
			return err
		}
		q.each = append(q.each, q.Aggregators)
	}
	if end == len(args) {
		return errAggregation
	}
	if _, ok := timeseries.ParseAggregator(string(args[end])); ok && series > 1 {
		return errLists
	}
	bucket, ok := resp.ParseInt(args[end])
	switch {
	case !ok:
		return errAggregation
	case bucket <= 0:
		return errBucket
	}
	q.Bucket = bucket
	if i := find(args, 2, "empty"); i > 0 {
		if i != end+1 && i != end+3 {
			return "ERR TSDB: EMPTY flag should be the 3rd or 5th flag after AGGREGATION flag"
		}
		q.Empty = true
	}
	i := find(args, 2, "buckettimestamp")
	switch {
	case i == 0:
		return ""
	case i != end+1 && i != end+2:
		return "ERR TSDB: BUCKETTIMESTAMP flag should be the 3rd or 4th flag after AGGREGATION flag"
	case i+1 == len(args):
		return wrongArguments(c)
	}
	switch command.Lower(args[i+1]) {
	case "start", "-":
		q.Stamp = timeseries.Start
	case "mid", "~":
		q.Stamp = timeseries.Mid
	case "end", "+":
		q.Stamp = timeseries.End
	default:
		return "ERR TSDB: unknown BUCKETTIMESTAMP parameter"
	}
	return ""
}

// parseAlign reads ALIGN.
func (q *query) parseAlign(args [][]byte, openFrom, openTo bool) command.Error {
	i := find(args, 2, "align")
	if i == 0 {
		return ""
	}
	if q.Bucket == 0 {
		return "ERR TSDB: ALIGN parameter can only be used with AGGREGATION"
	}
	word := ""
	if i+1 < len(args) {
		word = command.Lower(args[i+1])
	}
	switch word {
	case "start", "-":
		if openFrom {
			return "ERR TSDB: start alignment can only be used with explicit start timestamp"
		}
		q.Align = q.From
		return ""
	case "end", "+":
		if openTo {
			return "ERR TSDB: end alignment can only be used with explicit end timestamp"
		}
		q.Align = q.To
		return ""
	}
	n, ok := resp.ParseInt([]byte(word))
	if !ok || n < 0 {
		return "ERR TSDB: unknown ALIGN parameter"
	}
	q.Align = n
	return ""
}

// parseFilters reads FILTER_BY_VALUE and FILTER_BY_TS.
func (q *query) parseFilters(args [][]byte) command.Error {
	if i := find(args, 2, "filter_by_value"); i > 0 {
		if i+2 >= len(args) {
			return "ERR TSDB: FILTER_BY_VALUE one or more arguments are missing"
		}
		var err error
		if q.Least, err = strconv.ParseFloat(string(args[i+1]), 64); err != nil || math.IsNaN(q.Least) {
			return "ERR TSDB: Couldn't parse MIN"
		}
		if q.Most, err = strconv.ParseFloat(string(args[i+2]), 64); err != nil || math.IsNaN(q.Most) {
			return "ERR TSDB: Couldn't parse MAX"
		}
		q.ByValue = true
	}
	if i := find(args, 2, "filter_by_ts"); i > 0 {
		for _, arg := range args[i+1:] {
			t, ok := resp.ParseInt(arg)
			if !ok || t < 0 {
				break
			}
			q.Times = append(q.Times, t)
		}
		if q.Times == nil {
			return "ERR TSDB: FILTER_BY_TS one or more arguments are missing"
		}
		slices.Sort(q.Times)
	}
	return ""
}
