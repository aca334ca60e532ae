package timeseries

import (
	"bytes"
	"slices"
	"strings"

	"github.com/atomredis/atomredis/command"
	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/labels"
)

const (
	errFilter  command.Error = "ERR TSDB: failed parsing labels"
	errMatcher command.Error = "ERR TSDB: please provide at least one matcher"
)

// parseFilter reads conditions on labels, one of which at least must select series:
//
//	label=value  label=(value,…)  label!=value  label!=(value,…)  label=  label!=
func parseFilter(args [][]byte) (list []labels.Matcher, err command.Error) {
	selects := false
	for _, arg := range args {
		m, ok := parseMatcher(arg)
		if !ok {
			return nil, errFilter
		}
		selects = selects || m.Selects() && m.Name != ""
		list = append(list, m)
	}
	if !selects {
		return nil, errMatcher
	}
	return list, ""
}

func parseMatcher(arg []byte) (m labels.Matcher, ok bool) {
	i := bytes.IndexByte(arg, '=')
	if i < 0 {
		return m, false
	}
	name, value := arg[:i], arg[i+1:]
	if i > 0 && name[i-1] == '!' {
		name, m.Not = name[:i-1], true
	}
	m.Name = string(name)
	if len(value) < 2 || value[0] != '(' {
		m.Values = []string{string(unquote(value))}
		return m, true
	}
	if value[len(value)-1] != ')' {
		return m, false
	}
	if value = value[1 : len(value)-1]; len(value) == 0 {
		m.Values = []string{}
		return m, true
	}
	for word := range bytes.SplitSeq(value, []byte(",")) {
		if word = unquote(word); len(word) > 0 {
			m.Values = append(m.Values, string(word))
		}
	}
	return m, true
}

// unquote returns what stands between quotes, or the word itself if it has none.
func unquote(word []byte) []byte {
	if n := len(word); n >= 2 && (word[0] == '"' || word[0] == '\'') && word[n-1] == word[0] {
		return word[1 : n-1]
	}
	return word
}

// selection is what commands on many series have in common: which ones, and which of their labels are shown.
type selection struct {
	matchers []labels.Matcher
	shown    shown
}

// optionWords end a list of labels that are to be shown.
var optionWords = []string{"filter", "withlabels", "selected_labels", "latest", "count", "aggregation", "align", "empty",
	"buckettimestamp", "filter_by_ts", "filter_by_value"}

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

// cmdQueryLabels passes over series that the user may not read, unlike TS.QUERYINDEX.
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

// errUnreadable is the reply where a condition selects a series that the user may not read.
const errUnreadable command.Error = "NOPERM TSDB: current user doesn't have read permission to one or more keys that " +
	"match the specified filter"

// selected returns the series of the client's database that the conditions select, in the order of their keys. If the
// user may not read one of them an error is written and ok is false.
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
