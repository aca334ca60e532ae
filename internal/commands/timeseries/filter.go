package timeseries

import (
	"bytes"
	"slices"
	"strings"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/labels"
	"github.com/atomredis/atomredis/internal/command"
)

const (
	errFilter  command.Error = "ERR TSDB: failed parsing labels"
	errMatcher command.Error = "ERR TSDB: please provide at least one matcher"
)

// parseFilter reads conditions on labels, at least one of which must select series:
//
//	label=value  label=(value,…)  label!=value  label!=(value,…)  label=  label!=
func parseFilter(args [][]byte) (list []labels.Matcher, err command.Error) {
	selects := false
	for _, arg := range args {
		m, ok := parseMatcher(arg)
		if !ok {
			return nil, errFilter
		}
		selects = selects || m.Selects()
		list = append(list, m)
	}
	if !selects {
		return nil, errMatcher
	}
	return list, ""
}

// parseMatcher reads a condition. As in RedisTimeSeries, any run of operator characters separates words, and text
// after the second word is ignored.
func parseMatcher(arg []byte) (m labels.Matcher, ok bool) {
	operator := "="
	for _, o := range []string{"!=(", "!=", "=("} {
		if bytes.Contains(arg, []byte(o)) {
			operator = o
			break
		}
	}
	if bytes.IndexByte(arg, '=') < 0 {
		return m, false
	}
	words := bytes.FieldsFunc(arg, func(r rune) bool { return strings.ContainsRune(operator, r) })
	if len(words) == 0 {
		return m, false
	}
	m.Name, m.Not = string(words[0]), operator[0] == '!'
	switch list := operator[len(operator)-1] == '('; {
	case list && len(words) == 1:
		return m, false
	case list:
		m.Values, ok = parseValues(words[1])
		return m, ok
	case len(words) == 1:
		m.Values = []string{""} // matches series without the label
	default:
		m.Values = []string{string(words[1])}
	}
	return m, true
}

// parseValues reads values separated by commas, up to a parenthesis.
func parseValues(list []byte) (values []string, ok bool) {
	list, ok = bytes.CutSuffix(list, []byte(")"))
	if !ok || len(list) == 0 {
		return []string{}, ok
	}
	for value := range bytes.SplitSeq(list, []byte(",")) {
		if len(value) == 0 {
			return nil, false
		}
		values = append(values, string(value))
	}
	return values, true
}

// selection has the common options of commands on many series: which series, and which of their labels to show.
type selection struct {
	matchers []labels.Matcher
	shown    shown
}

// optionWords end a list of labels to show.
var optionWords = []string{"filter", "withlabels", "selected_labels", "latest", "count", "aggregation", "align", "empty",
	"buckettimestamp", "filter_by_ts", "filter_by_value", "excludeempty", "limit", "groupby", "reduce"}

// maxSelected is the largest number of labels of SELECTED_LABELS.
const maxSelected = 50

// parseShown reads WITHLABELS and SELECTED_LABELS.
func (s *selection) parseShown(args [][]byte) command.Error {
	s.shown.all = find(args, 1, "withlabels") > 0
	i := find(args, 1, "selected_labels")
	if i == 0 {
		return ""
	}
	if s.shown.all {
		return "ERR TSDB: cannot accept WITHLABELS and SELECT_LABELS together"
	}
	for _, arg := range args[i+1:] {
		if slices.Contains(optionWords, command.Lower(arg)) {
			break
		}
		if len(s.shown.selected) == maxSelected {
			return "ERR TSDB: reached max size for SELECT_LABELS"
		}
		s.shown.selected = append(s.shown.selected, arg)
	}
	if len(s.shown.selected) == 0 {
		return "ERR TSDB: SELECT_LABELS should have at least 1 parameter"
	}
	return ""
}

func cmdQueryIndex(c *command.Ctx) {
	matchers, err := parseFilter(c.Args[1:])
	if err != "" {
		c.Err(err)
		return
	}
	var names []string
	for _, found := range c.G.FindLabelled(matchers) {
		names = append(names, found.Key)
	}
	writeNames(c, slices.Compact(names))
}

// writeNames writes a set of names.
func writeNames(c *command.Ctx, names []string) {
	c.W.Set(len(names))
	for _, name := range names {
		c.W.BulkString(name)
	}
}

// cmdQueryLabels skips series that the user may not read, unlike TS.QUERYINDEX.
func cmdQueryLabels(c *command.Ctx) {
	readable := func(db int, key string) bool { return c.Client.MayRead(c.Cmd, []byte(key), db) }
	args, name := c.Args[1:], ""
	switch {
	case command.EqualFold(args[0], "labels"):
		args = args[1:]
	case !command.EqualFold(args[0], "values"):
		c.Err("ERR TSDB: unknown subtype, must be LABELS or VALUES")
		return
	case len(args) < 2:
		c.Err(wrongArguments(c))
		return
	default:
		name, args = string(args[1]), args[2:]
	}
	byName := len(c.Args)-len(args) == 2
	if len(args) == 0 {
		if byName {
			writeNames(c, c.G.LabelNames(readable))
		} else {
			writeNames(c, c.G.LabelValues(name, readable))
		}
		return
	}
	if !command.EqualFold(args[0], "filter") || len(args) < 2 {
		c.Err(wrongArguments(c))
		return
	}
	matchers, err := parseFilter(args[1:])
	if err != "" {
		c.Err(err)
		return
	}
	var names []string
	for _, found := range c.G.FindLabelled(matchers) {
		if !readable(found.DB, found.Key) {
			continue
		}
		for _, l := range found.Labels {
			if byName {
				names = append(names, l.Name)
			} else if l.Name == name {
				names = append(names, l.Value)
			}
		}
	}
	slices.SortFunc(names, strings.Compare)
	writeNames(c, slices.Compact(names))
}

// errUnreadable is the error if a condition selects a series that the user may not read.
const errUnreadable command.Error = "NOPERM TSDB: current user doesn't have read permission to one or more keys that " +
	"match the specified filter"

// selected returns the series of the client's database that the conditions select, in the order of their keys. If
// the user may not read one of them, it writes an error and ok is false.
func selected(c *command.Ctx, matchers []labels.Matcher) (found []engine.Labelled, ok bool) {
	found = slices.DeleteFunc(c.G.FindLabelled(matchers), func(l engine.Labelled) bool { return l.DB != c.DB })
	for _, l := range found {
		if !c.Client.MayRead(c.Cmd, []byte(l.Key), l.DB) {
			c.Err(errUnreadable)
			return nil, false
		}
	}
	return found, true
}
