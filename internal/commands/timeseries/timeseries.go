// Package timeseries has the commands on time series. This file has the table; create.go makes and changes series,
// add.go adds and deletes samples, rules.go makes compactions, query.go reads the options of ranges, range.go runs
// them, filter.go finds series by their labels, info.go and read.go have one command each, reply.go writes common
// parts of replies, config.go has the directives.
//
// The destination of a rule is another key, whose name is in the value of the source: such commands have the flag
// FollowsKeys. A rule is valid only while both sides refer to each other: the source has a rule with the
// destination, and the destination names the source. So removing or replacing a key needs no update of the other
// side; a reader of the rule sees that it is void. Renaming updates the other side.
//
// TS.ADD and similar commands are journalled with explicit times and settings. The effects of rules follow from the
// source, so they are not journalled.
package timeseries

import (
	"github.com/atomredis/atomredis/internal/command"
)

func init() { command.Register(commands) }

const (
	reads  = command.ReadOnly | command.Module
	writes = command.Write | command.Module
	grows  = writes | command.DenyOOM
	// finds are the flags of commands that look for series by their labels.
	finds = reads | command.WholeKeyspace | command.AllKeys
)

const (
	settingsSyntax = "[RETENTION retentionPeriod] [ENCODING <COMPRESSED | UNCOMPRESSED>] [CHUNK_SIZE size] " +
		"[DUPLICATE_POLICY <BLOCK | FIRST | LAST | MIN | MAX | SUM>] "
	ignoreSyntax = "[IGNORE ignoreMaxTimediff ignoreMaxValDiff] "
	labelsSyntax = "[LABELS label value [label value ...]]"
	rangeSyntax  = "fromTimestamp toTimestamp [LATEST] [FILTER_BY_TS ts [ts ...]] [FILTER_BY_VALUE min max] " +
		"[COUNT count] [[ALIGN align] AGGREGATION aggregators bucketDuration " +
		"[BUCKETTIMESTAMP <start | - | end | + | mid | ~>] [EMPTY]]"
	aggregatorSyntax = "<avg | sum | min | max | range | count | first | last | std.p | std.s | var.p | var.s | twa | " +
		"countnan | countall>"
	shownSyntax  = "[<WITHLABELS | SELECTED_LABELS label [label ...]>] "
	mrangeSyntax = "fromTimestamp toTimestamp [LATEST] [FILTER_BY_TS timestamp [timestamp ...]] " +
		"[FILTER_BY_VALUE min max] " + shownSyntax + "[COUNT count] [[ALIGN alignment] AGGREGATION aggregators " +
		"bucketDuration [BUCKETTIMESTAMP <mid | start | end | + | - | ~>] [EMPTY]] FILTER filterExpr [filterExpr ...] " +
		"[GROUPBY label REDUCE " + aggregatorSyntax + "] [EXCLUDEEMPTY]"
)

var commands = []*command.Command{
	{Name: "ts.add", Group: "timeseries", Since: "1.0.0", Arity: -4, Flags: grows | command.FollowsKeys,
		ACL: command.CatTimeSeries, Keys: command.Keys("i1+r0/1/0[RW,UPDATE]"),
		Summary: "Adds a sample to a series, which is created if there is none",
		Syntax: "key timestamp value " + settingsSyntax + "[ON_DUPLICATE <BLOCK | FIRST | LAST | MIN | MAX | SUM>] " +
			ignoreSyntax + labelsSyntax,
		Complexity: "O(M), where M is the number of rules, or of samples in a chunk if the sample is late", Do: cmdAdd},
	{Name: "ts.alter", Group: "timeseries", Since: "1.0.0", Arity: -2, Flags: grows, ACL: command.CatTimeSeries,
		Keys:    command.Keys("i1+r0/1/0[RW,UPDATE]"),
		Summary: "Changes the settings and the labels of a series",
		Syntax: "key [RETENTION retentionPeriod] [CHUNK_SIZE size] " +
			"[DUPLICATE_POLICY <BLOCK | FIRST | LAST | MIN | MAX | SUM>] " + ignoreSyntax +
			"[LABELS [label value [label value ...]]]",
		Complexity: "O(N), where N is the number of labels", Do: cmdAlter},
	{Name: "ts.create", Group: "timeseries", Since: "1.0.0", Arity: -2, Flags: grows,
		ACL: command.CatTimeSeries | command.CatFast, Keys: command.Keys("i1+r0/1/0[RW,INSERT]"),
		Summary:    "Creates a series",
		Syntax:     "key " + settingsSyntax + ignoreSyntax + "[LABELS [label value [label value ...]]]",
		Complexity: "O(N), where N is the number of labels", Do: cmdCreate},
	{Name: "ts.createrule", Group: "timeseries", Since: "1.0.0", Arity: -5,
		Flags: writes | command.Fast | command.FollowsKeys, ACL: command.CatTimeSeries,
		Keys:       command.Keys("i1+r1/1/0[RW,UPDATE]"),
		Summary:    "Makes a series the compaction of another one",
		Syntax:     "sourceKey destKey AGGREGATION " + aggregatorSyntax + " bucketDuration [alignTimestamp]",
		Complexity: "O(N), where N is the number of rules", Do: cmdCreateRule},
	{Name: "ts.decrby", Group: "timeseries", Since: "1.0.0", Arity: -3, Flags: grows | command.FollowsKeys,
		ACL: command.CatTimeSeries, Keys: command.Keys("i1+r0/1/0[RW,UPDATE]"),
		Summary:    "Adds a sample that is lower than the newest one by a number",
		Syntax:     "key subtrahend [TIMESTAMP timestamp] " + settingsSyntax + ignoreSyntax + labelsSyntax,
		Complexity: "O(M), where M is the number of rules, or of samples in a chunk if there is one at the time",
		Do:         func(c *command.Ctx) { incr(c, -1, "ts.decrby") }},
	{Name: "ts.del", Group: "timeseries", Since: "1.6.0", Arity: 4, Flags: writes | command.FollowsKeys,
		ACL: command.CatTimeSeries, Keys: command.Keys("i1+r0/1/0[RW,DELETE]"),
		Summary: "Deletes the samples from one time to another", Syntax: "key fromTimestamp toTimestamp",
		Complexity: "O(N), where N is the number of samples in the chunks between", Do: cmdDel},
	{Name: "ts.deleterule", Group: "timeseries", Since: "1.0.0", Arity: 3, Flags: writes | command.FollowsKeys,
		ACL: command.CatTimeSeries | command.CatFast, Keys: command.Keys("i1+r1/1/0[RW,UPDATE]"),
		Summary: "Ends that a series is the compaction of another one", Syntax: "sourceKey destKey",
		Complexity: "O(N), where N is the number of rules", Do: cmdDeleteRule},
	{Name: "ts.get", Group: "timeseries", Since: "1.0.0", Arity: -2, Flags: reads | command.FollowsKeys,
		ACL: command.CatTimeSeries | command.CatFast, Keys: command.Keys("i1+r0/1/0[RO,ACCESS]"),
		Summary: "Returns the newest sample of a series", Syntax: "key [LATEST]", Complexity: "O(1)", Do: cmdGet},
	{Name: "ts.incrby", Group: "timeseries", Since: "1.0.0", Arity: -3, Flags: grows | command.FollowsKeys,
		ACL: command.CatTimeSeries, Keys: command.Keys("i1+r0/1/0[RW,UPDATE]"),
		Summary:    "Adds a sample that is higher than the newest one by a number",
		Syntax:     "key addend [TIMESTAMP timestamp] " + settingsSyntax + ignoreSyntax + labelsSyntax,
		Complexity: "O(M), where M is the number of rules, or of samples in a chunk if there is one at the time",
		Do:         func(c *command.Ctx) { incr(c, 1, "ts.incrby") }},
	{Name: "ts.info", Group: "timeseries", Since: "1.0.0", Arity: -2, Flags: reads | command.FollowsKeys,
		ACL: command.CatTimeSeries | command.CatFast, Keys: command.Keys("i1+r0/1/0[RO,ACCESS]"),
		Summary: "Describes a series", Syntax: "key [DEBUG]",
		Complexity: "O(1), with DEBUG O(N), where N is the number of chunks", Do: cmdInfo},
	{Name: "ts.madd", Group: "timeseries", Since: "1.0.0", Arity: -4, Flags: grows | command.FollowsKeys,
		ACL: command.CatTimeSeries, Keys: command.Keys("i1+r-1/3/0[RW,UPDATE]"),
		Summary: "Adds samples to series", Syntax: "key timestamp value [key timestamp value ...]",
		Complexity: "that of TS.ADD for each sample", Do: cmdMadd},
	{Name: "ts.mget", Group: "timeseries", Since: "1.0.0", Arity: -3, Flags: finds, ACL: command.CatTimeSeries,
		Summary:    "Returns the newest samples of the series with given labels",
		Syntax:     "[LATEST] " + shownSyntax + "FILTER filterExpr [filterExpr ...]",
		Complexity: "O(N), where N is the number of series that fulfil the rarest condition", Do: cmdMget},
	{Name: "ts.mrange", Group: "timeseries", Since: "1.0.0", Arity: -4, Flags: finds, ACL: command.CatTimeSeries,
		Summary: "Returns the samples in a range of the series with given labels", Syntax: mrangeSyntax,
		Complexity: "that of TS.RANGE for each series that fulfils the rarest condition",
		Do:         func(c *command.Ctx) { mrange(c, false) }},
	{Name: "ts.mrevrange", Group: "timeseries", Since: "1.4.0", Arity: -4, Flags: finds, ACL: command.CatTimeSeries,
		Summary: "Returns the samples in a range of the series with given labels, newest first", Syntax: mrangeSyntax,
		Complexity: "that of TS.REVRANGE for each series that fulfils the rarest condition",
		Do:         func(c *command.Ctx) { mrange(c, true) }},
	{Name: "ts.nrange", Group: "timeseries", Since: "8.10.0", Arity: -5, Flags: reads | command.FollowsKeys,
		ACL: command.CatTimeSeries, Keys: command.Keys("i1+n0/1/1[RO,ACCESS]"),
		Summary:    "Returns the samples in a range of several series, by their times",
		Syntax:     "numkeys key [key ...] " + rangeSyntax,
		Complexity: "that of TS.RANGE for each key", Do: func(c *command.Ctx) { nrange(c, false) }},
	{Name: "ts.nrevrange", Group: "timeseries", Since: "8.10.0", Arity: -5, Flags: reads | command.FollowsKeys,
		ACL: command.CatTimeSeries, Keys: command.Keys("i1+n0/1/1[RO,ACCESS]"),
		Summary:    "Returns the samples in a range of several series, by their times, newest first",
		Syntax:     "numkeys key [key ...] " + rangeSyntax,
		Complexity: "that of TS.REVRANGE for each key", Do: func(c *command.Ctx) { nrange(c, true) }},
	{Name: "ts.queryindex", Group: "timeseries", Since: "1.0.0", Arity: -2, Flags: finds, ACL: command.CatTimeSeries,
		Summary: "Lists the series with given labels, of all databases", Syntax: "filterExpr [filterExpr ...]",
		Complexity: "O(N), where N is the number of series that fulfil the rarest condition", Do: cmdQueryIndex},
	{Name: "ts.querylabels", Group: "timeseries", Since: "8.10.0", Arity: -2, Flags: finds, ACL: command.CatTimeSeries,
		Summary:    "Lists the labels of series, or the values of one",
		Syntax:     "<LABELS | VALUES label> [FILTER filterExpr [filterExpr ...]]",
		Complexity: "O(N), where N is the number of series that fulfil the rarest condition, or of labels", Do: cmdQueryLabels},
	{Name: "ts.range", Group: "timeseries", Since: "1.0.0", Arity: -4, Flags: reads | command.FollowsKeys,
		ACL: command.CatTimeSeries, Keys: command.Keys("i1+r0/1/0[RO,ACCESS]"),
		Summary: "Returns the samples in a range of times, or what they make in buckets of time",
		Syntax:  "key " + rangeSyntax, Complexity: "O(N), where N is the number of samples in the range",
		Do: func(c *command.Ctx) { cmdRange(c, false) }},
	{Name: "ts.read", Group: "timeseries", Since: "8.10.0", Arity: -3, Flags: reads | command.Blocking,
		ACL: command.CatTimeSeries, Keys: command.Keys("i1+r0/1/0[RO,ACCESS]"),
		Summary:    "Returns samples from a time on, and can wait for them",
		Syntax:     "key timestamp [BLOCK milliseconds min_count] [MAX_COUNT max_count]",
		Complexity: "O(log N + M), where N is the number of chunks and M of samples returned", Do: cmdRead},
	{Name: "ts.revrange", Group: "timeseries", Since: "1.4.0", Arity: -4, Flags: reads | command.FollowsKeys,
		ACL: command.CatTimeSeries, Keys: command.Keys("i1+r0/1/0[RO,ACCESS]"),
		Summary: "Returns the samples in a range of times, newest first",
		Syntax:  "key " + rangeSyntax, Complexity: "O(N), where N is the number of samples in the range",
		Do: func(c *command.Ctx) { cmdRange(c, true) }},
}

// Errors that more than one command gives.
const (
	errWrongType   command.Error = "ERR WRONGTYPE Operation against a key holding the wrong kind of value"
	errNoKey       command.Error = "ERR TSDB: the key does not exist"
	errExists      command.Error = "ERR TSDB: key already exists"
	errTime        command.Error = "ERR TSDB: invalid timestamp"
	errNegative    command.Error = "ERR TSDB: invalid timestamp, must be a nonnegative integer"
	errValue       command.Error = "ERR TSDB: invalid value"
	errFrom        command.Error = "ERR TSDB: wrong fromTimestamp"
	errTo          command.Error = "ERR TSDB: wrong toTimestamp"
	errAggregation command.Error = "ERR TSDB: Couldn't parse AGGREGATION"
	errAggregator  command.Error = "ERR TSDB: Unknown aggregation type"
	errBucket      command.Error = "ERR TSDB: bucketDuration must be greater than zero"
	errPolicy      command.Error = "ERR TSDB: Unknown DUPLICATE_POLICY"
)

// find returns the index of a word, given in lower case, from index from on, 0 if it is missing. Each option is
// searched separately, because unknown words are ignored.
func find(args [][]byte, from int, word string) int {
	for i := from; i < len(args); i++ {
		if command.EqualFold(args[i], word) {
			return i
		}
	}
	return 0
}

// wrongArguments is the error for a command with too few arguments.
func wrongArguments(c *command.Ctx) command.Error { return command.WrongArity(c.Cmd) }
