package search

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/config"
	"github.com/atomredis/atomredis/internal/search/index"
	"github.com/atomredis/atomredis/internal/search/query"
)

// setting is a setting of the query engine: a directive, and its older name in FT.CONFIG.
type setting struct {
	directive string
	name      string // in FT.CONFIG; "" if it has none
	initial   string
	min, max  int64    // of a number; otherwise both are 0
	words     []string // the allowed words; nil for a number, a switch or any text
	isSwitch  bool     // yes or no
	atStart   bool     // it cannot change while the server runs
	help      string
}

const (
	unlimited     = 1 << 31
	unlimitedText = "2147483648"
	long          = math.MaxInt64

	minTrimDelay = "_MIN_TRIM_DELAY_MS"
	maxTrimDelay = "_MAX_TRIM_DELAY_MS"
)

// settings are all settings. Some tune mechanisms that do not exist here; they are accepted and shown, without
// effect.
var settings = []setting{
	{directive: "search-default-dialect", name: "DEFAULT_DIALECT", initial: "1", min: 1, max: 4,
		help: "The dialect of queries that name none"},
	{directive: "search-timeout", name: "TIMEOUT", initial: "500", min: 0, max: long, help: "Query (search) timeout"},
	{directive: "search-_max-foreground-timeout-limit", name: "_MAX_FOREGROUND_TIMEOUT_LIMIT", initial: "0", min: 0, max: long,
		help: "The longest timeout of a query in ms while search-workers is 0; 0 means no limit"},
	{directive: "search-on-timeout", name: "ON_TIMEOUT", initial: "return", words: []string{"return", "fail", "return-strict"},
		help: "What a query answers whose time is up: what it has found, or an error"},
	{directive: "search-on-oom", name: "ON_OOM", initial: "return", words: []string{"return", "fail", "ignore"},
		help: "Has no effect"},
	{directive: "search-max-search-results", name: "MAXSEARCHRESULTS", initial: "1000000", min: 0, max: unlimited,
		help: "The largest number of results of FT.SEARCH"},
	{directive: "search-max-aggregate-results", name: "MAXAGGREGATERESULTS", initial: "2147483648", min: 0, max: unlimited,
		help: "The largest number of rows of FT.AGGREGATE"},
	{directive: "search-max-aggregate-groups", name: "MAX_AGGREGATE_GROUPS", initial: "1000000", min: 1, max: 1 << 26,
		help: "The largest number of groups of a GROUPBY"},
	{directive: "search-min-prefix", name: "MINPREFIX", initial: "2", min: 1, max: long, help: "Set the minimum prefix for expansions (`*`)"},
	{directive: "search-max-prefix-expansions", name: "MAXPREFIXEXPANSIONS", initial: "200", min: 1, max: long,
		help: "How many terms a prefix, a pattern or a misspelt word may become"},
	{directive: "search-min-stem-len", name: "MINSTEMLEN", initial: "4", min: 2, max: math.MaxUint32,
		help: "How long a word must be to be indexed with its stem"},
	{directive: "search-min-phonetic-term-len", name: "MIN_PHONETIC_TERM_LEN", initial: "3", min: 1, max: long,
		help: "How long a word must be to be indexed with its sound"},
	{directive: "search-multi-text-slop", name: "MULTI_TEXT_SLOP", initial: "100", min: 1, max: math.MaxUint32, atStart: true,
		help: "How far the values of a text field with several are apart"},
	{directive: "search-default-scorer", name: "DEFAULT_SCORER", initial: "BM25STD", words: []string{"BM25STD", "BM25STD.TANH",
		"BM25STD.NORM", "BM25", "TFIDF", "TFIDF.DOCNORM", "DISMAX", "DOCSCORE", "HAMMING"}, help: "The scorer of queries that name none"},
	{directive: "search-bm25std-tanh-factor", name: "BM25STD_TANH_FACTOR", initial: "4", min: 1, max: 10000,
		help: "What BM25STD.TANH divides scores by"},
	{directive: "search-cursor-max-idle", name: "CURSOR_MAX_IDLE", initial: "300000", min: 0, max: long,
		help: "For how many ms a cursor may live without a read"},
	{directive: "search-index-cursor-limit", name: "INDEX_CURSOR_LIMIT", initial: "128", min: 0, max: long,
		help: "How many cursors an index may have"},
	{directive: "search-workers", name: "WORKERS", initial: "0", min: 0, max: 16, help: "Has no effect"},
	{directive: "search-min-operation-workers", name: "MIN_OPERATION_WORKERS", initial: "4", min: 0, max: 16, help: "Has no effect"},
	{directive: "search-workers-priority-bias-threshold", name: "WORKERS_PRIORITY_BIAS_THRESHOLD", initial: "1", min: 0, max: long,
		atStart: true, help: "Has no effect"},
	{directive: "search-tiered-hnsw-buffer-limit", name: "TIERED_HNSW_BUFFER_LIMIT", initial: "1024", min: 0, max: long, atStart: true,
		help: "Has no effect"},
	{directive: "search-vss-max-resize", name: "VSS_MAX_RESIZE", initial: "0", min: 0, max: math.MaxUint32, help: "Has no effect"},
	{directive: "search-union-iterator-heap", name: "UNION_ITERATOR_HEAP", initial: "20", min: 1, max: long, help: "Has no effect"},
	{directive: "search-gc-scan-size", name: "GCSCANSIZE", initial: "100", min: 1, max: long, help: "Has no effect"},
	{directive: "search-fork-gc-run-interval", name: "FORK_GC_RUN_INTERVAL", initial: "30", min: 1, max: long, help: "Has no effect"},
	{directive: "search-fork-gc-clean-threshold", name: "FORK_GC_CLEAN_THRESHOLD", initial: "100", min: 0, max: long, help: "Has no effect"},
	{directive: "search-fork-gc-retry-interval", name: "FORK_GC_RETRY_INTERVAL", initial: "5", min: 1, max: long, help: "Has no effect"},
	{directive: "search-fork-gc-sleep-before-exit", name: "FORKGC_SLEEP_BEFORE_EXIT", initial: "0", min: 0, max: long, help: "Has no effect"},
	{directive: "search-no-gc", name: "NOGC", initial: "no", isSwitch: true, atStart: true, help: "Has no effect"},
	{directive: "search-max-doctablesize", name: "MAXDOCTABLESIZE", initial: "1000000", min: 1, max: 100000000, atStart: true,
		help: "Has no effect: the table of documents grows as needed"},
	{directive: "search-ext-load", name: "EXTLOAD", atStart: true, help: "Extensions cannot be loaded"},
	{directive: "search-friso-ini", name: "FRISOINI", atStart: true, help: "Has no effect"},
	{directive: "search-bg-index-sleep-gap", name: "BG_INDEX_SLEEP_GAP", initial: "100", min: 1, max: long, atStart: true, help: "Has no effect"},
	{directive: "search-bg-index-sleep-duration-us", name: "BG_INDEX_SLEEP_DURATION_US", initial: "1", min: 1, max: 999999,
		help: "Has no effect"},
	{directive: "search-indexer-yield-every-ops", name: "INDEXER_YIELD_EVERY_OPS", initial: "1000", min: 1, max: long, help: "Has no effect"},
	{directive: "search-_bg-index-mem-pct-thr", name: "_BG_INDEX_MEM_PCT_THR", initial: "100", min: 0, max: 100, help: "Has no effect"},
	{directive: "search-_bg-index-oom-pause-time", name: "_BG_INDEX_OOM_PAUSE_TIME", initial: "0", min: 0, max: math.MaxUint32,
		help: "Has no effect"},
	{directive: "search-partial-indexed-docs", name: "PARTIAL_INDEXED_DOCS", initial: "no", isSwitch: true, atStart: true, help: "Has no effect"},
	{directive: "search-raw-docid-encoding", name: "RAW_DOCID_ENCODING", initial: "no", isSwitch: true, atStart: true, help: "Has no effect"},
	{directive: "search-no-mem-pools", name: "NO_MEM_POOLS", initial: "no", isSwitch: true, atStart: true, help: "Has no effect"},
	{directive: "search-_numeric-compress", name: "_NUMERIC_COMPRESS", initial: "no", isSwitch: true, help: "Has no effect"},
	{directive: "search-_numeric-ranges-parents", name: "_NUMERIC_RANGES_PARENTS", initial: "0", min: 0, max: 2, help: "Has no effect"},
	{directive: "search-_free-resource-on-thread", name: "_FREE_RESOURCE_ON_THREAD", initial: "yes", isSwitch: true, help: "Has no effect"},
	{directive: "search-_print-profile-clock", name: "_PRINT_PROFILE_CLOCK", initial: "yes", isSwitch: true, help: "FT.PROFILE tells times"},
	{directive: "search-_prioritize-intersect-union-children", name: "_PRIORITIZE_INTERSECT_UNION_CHILDREN", initial: "no", isSwitch: true,
		help: "Of the parts of an AND, a union is looked at as if each of its parts had as many documents as all of them"},
	{directive: "search-enable-unstable-features", name: "ENABLE_UNSTABLE_FEATURES", initial: "no", isSwitch: true, help: "Has no effect: nothing needs it"},
	{directive: "search-monitor-expiration", initial: "yes", isSwitch: true, help: "Has no effect: what has expired is never found"},
	{directive: "search-_info-on-zero-indexes", initial: "no", isSwitch: true, help: "Has no effect"},
	{directive: "search-_min-trim-delay-ms", name: minTrimDelay, initial: "2000", min: 0, max: math.MaxUint32, help: "Has no effect"},
	{directive: "search-_max-trim-delay-ms", name: maxTrimDelay, initial: "5000", min: 0, max: math.MaxUint32, help: "Has no effect"},
	{directive: "search-_trimming-state-check-delay-ms", name: "_TRIMMING_STATE_CHECK_DELAY_MS", initial: "100", min: 1, max: math.MaxUint32,
		help: "Has no effect"},
	{directive: "search-threads", initial: "20", min: 1, max: long, atStart: true, help: "Has no effect"},
	{directive: "search-io-threads", initial: "1", min: 1, max: long, atStart: true, help: "Has no effect"},
	{directive: "search-conn-per-shard", initial: "0", min: 0, max: long, help: "Has no effect"},
	{directive: "search-connect-timeout", initial: "10000", min: 0, max: long, help: "Has no effect"},
	{directive: "search-topology-validation-timeout", initial: "30000", min: 0, max: long, help: "Has no effect"},
	{directive: "search-cursor-reply-threshold", initial: "1", min: 1, max: long, help: "Has no effect"},
}

// olderNames are further names of settings in FT.CONFIG.
var olderNames = map[string]string{"MAXEXPANSIONS": "MAXPREFIXEXPANSIONS", "PRIVILEGED_THREADS_NUM": "WORKERS_PRIORITY_BIAS_THRESHOLD"}

// retired are settings without a directive. FT.CONFIG shows them, and SET refuses them.
var retired = []shownSetting{
	{"GC_POLICY", "fork", "Has no effect"},
	{"WORKER_THREADS", "0", "Deprecated, see WORKERS"},
	{"MT_MODE", "MT_MODE_OFF", "Deprecated, see WORKERS"},
	{"FORK_GC_CLEAN_NUMERIC_EMPTY_NODES", "true", "Has no effect"},
	{"_FORK_GC_CLEAN_NUMERIC_EMPTY_NODES", "true", "Has no effect"},
	{"UPGRADE_INDEX", "Upgrade config for upgrading", "Has no effect"},
	{"OSS_GLOBAL_PASSWORD", "Password: *******", "Has no effect"},
}

// findRetired returns the position of a name in retired; -1 if it is not there.
func findRetired(name []byte) int {
	return slices.IndexFunc(retired, func(s shownSetting) bool { return command.EqualFold(name, strings.ToLower(s.name)) })
}

func init() {
	for _, s := range settings {
		config.Register(config.Directive{Name: s.directive, Default: s.initial, Check: s.check, AtStart: s.atStart})
	}
}

var errBadScorer = errors.New("Invalid default scorer value")

// check is the Check of the directive.
func (s *setting) check(value string) error {
	switch {
	case s.isSwitch:
		return config.CheckYesNo(value)
	case s.words != nil:
		if !slices.ContainsFunc(s.words, func(w string) bool { return strings.EqualFold(w, value) }) {
			if s.name == "DEFAULT_SCORER" {
				return errBadScorer
			}
			return errors.New("argument(s) must be one of the following: " + strings.Join(s.words, ", "))
		}
	case s.max != 0:
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			return errors.New("argument couldn't be parsed into an integer")
		}
		if n < s.min || n > s.max {
			return fmt.Errorf("argument must be between %d and %d inclusive", s.min, s.max)
		}
	}
	return nil
}

// findSetting returns the setting of a name in FT.CONFIG; nil if there is none.
func findSetting(name []byte) (s *setting, shown string) {
	shown = strings.ToUpper(string(name))
	own := shown
	if other, ok := olderNames[shown]; ok {
		own = other
	}
	i := slices.IndexFunc(settings, func(s setting) bool { return s.name == own && own != "" })
	if i < 0 {
		return nil, ""
	}
	return &settings[i], shown
}

// value returns the value of a setting as FT.CONFIG shows it.
func (s *setting) value(c *command.Ctx) string {
	v := c.Host.Directive(s.directive)
	switch {
	case s.isSwitch && v == "yes":
		return "true"
	case s.isSwitch:
		return "false"
	case s.max == unlimited && v == unlimitedText:
		return "unlimited"
	}
	return v
}

// configGet is FT.CONFIG GET.
func configGet(c *command.Ctx) {
	list := askedFor(c, c.Args[2])
	if c.W.Proto >= 3 {
		c.W.Map(len(list))
	} else {
		c.W.Array(len(list))
	}
	for _, o := range list {
		if c.W.Proto < 3 {
			c.W.Array(2)
		}
		c.W.Simple(o.name)
		c.W.BulkString(o.value)
	}
}

// shownSetting is a setting as FT.CONFIG shows it.
type shownSetting struct{ name, value, help string }

// askedFor returns the settings with a name; a star means all.
func askedFor(c *command.Ctx, name []byte) (list []shownSetting) {
	if string(name) == "*" {
		for i := range settings {
			if s := &settings[i]; s.name != "" {
				list = append(list, shownSetting{s.name, s.value(c), s.help})
			}
		}
		return append(list, retired...)
	}
	if i := findRetired(name); i >= 0 {
		return append(list, retired[i])
	}
	if s, shown := findSetting(name); s != nil {
		list = append(list, shownSetting{shown, s.value(c), s.help})
	}
	return list
}

// configHelp is FT.CONFIG HELP.
func configHelp(c *command.Ctx) {
	list := askedFor(c, c.Args[2])
	if c.W.Proto >= 3 {
		c.W.Map(len(list))
	} else {
		c.W.Array(len(list))
	}
	for _, o := range list {
		if c.W.Proto >= 3 {
			c.W.Simple(o.name)
			c.W.Map(2)
		} else {
			c.W.Array(5)
			c.W.Simple(o.name)
		}
		c.W.Simple("Description")
		c.W.Simple(o.help)
		c.W.Simple("Value")
		c.W.BulkString(o.value)
	}
}

// configSet is FT.CONFIG SET.
func configSet(c *command.Ctx) {
	s, _ := findSetting(c.Args[2])
	isRetired := findRetired(c.Args[2]) >= 0
	if s == nil && !isRetired {
		c.Err(coded(query.BadOption, "Invalid option"))
		return
	}
	if isRetired || s.atStart {
		c.Err(coded(query.NotSupported, "Not modifiable at runtime"))
		return
	}
	if len(c.Args) < 4 {
		c.Err(coded(query.BadArguments, "Expected an argument, but none provided"))
		return
	}
	value := string(c.Args[3])
	e := s.refuse(value)
	if e == "" {
		e = s.refuseDelay(c.Host, value)
	}
	if e != "" {
		c.Err(e)
		return
	}
	if s.max == unlimited && value == "-1" {
		value = unlimitedText
	}
	if s.isSwitch {
		value = map[string]string{"TRUE": "yes", "FALSE": "no"}[strings.ToUpper(value)]
	}
	if len(c.Args) > 4 {
		c.W.Simple("EXCESSARGS")
		return
	}
	pair, _ := config.Assign(s.directive, value)
	if _, err := c.Host.(Host).Config().SetAll([]config.Assignment{pair}, false); err != nil {
		c.Err(command.Error(err.Error()))
		return
	}
	c.W.OK()
}

// tooLarge are the errors of settings that have their own for a value above the largest.
var tooLarge = map[string]command.Error{
	"DEFAULT_DIALECT":            coded(query.BadValue, "Default dialect version cannot be higher than 4"),
	"WORKERS":                    coded(query.LimitExceeded, "Number of worker threads cannot exceed 16"),
	"MIN_OPERATION_WORKERS":      coded(query.LimitExceeded, "Number of worker threads cannot exceed 16"),
	"BM25STD_TANH_FACTOR":        coded(query.LimitExceeded, "BM25STD_TANH_FACTOR must be between 1 and 10000 inclusive"),
	"BG_INDEX_SLEEP_DURATION_US": coded(query.LimitExceeded, "BG_INDEX_SLEEP_DURATION_US must be between 1 and 999999 (usleep POSIX limit)"),
	"_BG_INDEX_MEM_PCT_THR":      coded(query.LimitExceeded, "Memory limit for indexing cannot be greater then 100%"),
	"_NUMERIC_RANGES_PARENTS":    coded(query.BadArguments, "Max depth for range cannot be higher than max depth for balance"),
}

// refuse returns the error of FT.CONFIG SET for an invalid value.
func (s *setting) refuse(value string) command.Error {
	switch {
	case s.isSwitch:
		if !strings.EqualFold(value, "true") && !strings.EqualFold(value, "false") {
			return coded(query.BadArguments, "Could not convert argument to expected type")
		}
	case s.words != nil:
		if s.check(value) != nil {
			if s.name == "DEFAULT_SCORER" {
				return coded(query.BadValue, errBadScorer.Error())
			}
			return coded(query.BadValue, "Invalid "+s.name+" value")
		}
	case s.max != 0:
		n, err := strconv.ParseInt(value, 10, 64)
		switch {
		case err != nil:
			return coded(query.BadArguments, "Could not convert argument to expected type")
		case s.max == unlimited && n == -1:
		case s.name == "MINSTEMLEN" && n < s.min:
			return coded(query.Syntax, "Minimum stem length cannot be lower than 2")
		case n > s.max && tooLarge[s.name] != "":
			return tooLarge[s.name]
		case n < s.min || n > s.max:
			return coded(query.BadArguments, "Value is outside acceptable bounds")
		}
	}
	return ""
}

// refuseDelay returns the error of FT.CONFIG SET if the least trim delay would not be below the largest.
func (s *setting) refuseDelay(h command.Host, value string) command.Error {
	n, _ := strconv.ParseInt(value, 10, 64)
	switch s.name {
	case minTrimDelay:
		if most := integer(h, "search-_max-trim-delay-ms"); n >= most {
			return coded(query.BadArguments, fmt.Sprintf("%s (%d) must be less than %s (%d)", minTrimDelay, n, maxTrimDelay, most))
		}
	case maxTrimDelay:
		if least := integer(h, "search-_min-trim-delay-ms"); n <= least {
			return coded(query.BadArguments, fmt.Sprintf("%s (%d) must be greater than %s (%d)", maxTrimDelay, n, minTrimDelay, least))
		}
	}
	return ""
}

// integer returns the value of a directive that is a number.
func integer(h command.Host, directive string) int64 {
	n, _ := strconv.ParseInt(h.Directive(directive), 10, 64)
	return n
}

// documentOptions returns the configured options for new documents.
func documentOptions(h command.Host) index.Options {
	return index.Options{MinStem: int(integer(h, "search-min-stem-len")), MinSound: int(integer(h, "search-min-phonetic-term-len")),
		TextGap: int(integer(h, "search-multi-text-slop"))}
}
