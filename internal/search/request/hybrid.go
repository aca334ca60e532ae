package request

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/atomredis/atomredis/internal/search/aggregate"
	"github.com/atomredis/atomredis/internal/search/args"
	"github.com/atomredis/atomredis/internal/search/query"
)

// Hybrid has the arguments of FT.HYBRID: a text search and a vector search, whose results are fused and then pass
// through a pipeline.
type Hybrid struct {
	Request // of SEARCH, with the common options and the pipeline

	SearchScore string // the name of the score of SEARCH; "" if it is not shown
	Vector      VectorSearch
	Fusion      Fusion

	NoSort bool
	Loads  []string // the names of LOAD
	All    bool     // LOAD *

	grouped bool
}

// VectorSearch is VSIM.
type VectorSearch struct {
	Field, Param string
	Range        bool // RANGE, else KNN
	K            int64
	Radius       float64
	Options      []query.Option
	Filter       string // "" if all documents count
	Score        string // the name of the similarity; "" if it is not shown
}

// Fusion is COMBINE.
type Fusion struct {
	Linear      bool // LINEAR, else RRF
	Constant    float64
	Alpha, Beta float64
	Window      int
	Score       string // the name of the fused score; "" is __score
}

// Names of rows beside those of the request.
const (
	KeyName   = "__key"
	ScoreName = "__score"
	// OrderName is the name of a row's rank by score. It is not shown.
	OrderName = "\x00"
)

const (
	defaultK      = 10
	defaultWindow = 20
	defaultRows   = 10
)

// errHybridDialect refuses DIALECT.
var errHybridDialect = args.Errorf(query.BadArguments,
	"DIALECT is not supported in FT.HYBRID or any of its subqueries. Please check the documentation on search-default-dialect configuration.")

// hybridParser reads the arguments of FT.HYBRID.
type hybridParser struct {
	args.Reader
	*Hybrid
	config Config
	seen   map[string]bool // options that may occur once
	sorted bool
}

// ParseHybrid reads the arguments of FT.HYBRID after the name of the index.
func ParseHybrid(words []string, c Config) (*Hybrid, error) {
	h := &Hybrid{Request: Request{Slop: -1, Dialect: max(2, c.Dialect)},
		Vector: VectorSearch{K: defaultK}, Fusion: Fusion{Constant: 60, Alpha: 0.3, Beta: 0.7, Window: defaultWindow}}
	p := &hybridParser{Reader: args.New(words...), Hybrid: h, config: c, seen: map[string]bool{}}
	for _, read := range []func() error{p.begin, p.text, p.vector, p.options} {
		if err := read(); err != nil {
			return nil, err
		}
	}
	if h.ExplainScore && h.grouped {
		return nil, args.Errorf(query.BadArguments, "EXPLAINSCORE is not supported with GROUPBY")
	}
	h.Vector.K = min(h.Vector.K, int64(h.Fusion.Window))
	p.arrangeAll()
	return h, nil
}

// begin reads the number of searches, which may be missing, and SEARCH.
func (p *hybridParser) begin() error {
	if p.Done() {
		return args.Errorf(query.BadArguments, "Missing subqueries count for FT.HYBRID")
	}
	n, bad := p.Int(1, math.MaxUint32)
	switch {
	case bad == args.None && n != 2:
		return args.Errorf(query.BadArguments, "FT.HYBRID currently supports only two subqueries")
	case p.Match("SEARCH"):
		return nil
	case bad == args.None:
		return args.Errorf(query.Syntax, "SEARCH keyword is required")
	}
	return args.Errorf(query.Syntax, "Invalid subqueries count: expected an unsigned integer")
}

// text reads what follows SEARCH, up to VSIM.
func (p *hybridParser) text() error {
	text, ok := p.Next()
	if !ok {
		return args.Errorf(query.BadArguments, "No query string provided for SEARCH")
	}
	p.Query = text
	for !p.Done() {
		word, _ := p.Peek()
		var target *string
		switch strings.ToUpper(word) {
		case "SCORER":
			target = &p.Scorer
		case "YIELD_SCORE_AS":
			target = &p.SearchScore
		case "VSIM":
			return nil
		case "DIALECT":
			return errHybridDialect
		default:
			return args.Errorf(query.UnknownArgument, "Unknown argument `%s` in SEARCH", word)
		}
		p.Next()
		value, bad := p.Text()
		if bad != args.None {
			return bad.For(strings.ToUpper(word))
		}
		*target = value
	}
	return nil
}

// vector reads VSIM.
func (p *hybridParser) vector() error {
	if !p.Match("VSIM") {
		return args.Errorf(query.Syntax, "VSIM argument is required")
	}
	v := &p.Vector
	name, ok := p.Next()
	if !ok {
		return args.Errorf(query.Syntax, "Missing vector field name")
	}
	if v.Field, ok = strings.CutPrefix(name, "@"); !ok {
		return args.Errorf(query.Syntax, "Missing @ prefix for vector field name")
	}
	param, ok := p.Next()
	if !ok {
		return args.Errorf(query.Syntax, "Missing vector argument")
	}
	if v.Param, ok = strings.CutPrefix(param, "$"); !ok {
		return args.Errorf(query.Syntax, "Invalid vector argument, expected a parameter name starting with $")
	}
	var err error
	switch {
	case p.Match("KNN"):
		err = p.clause("KNN", "K", "EF_RUNTIME", "SHARD_K_RATIO")
	case p.Match("RANGE"):
		v.Range = true
		err = p.clause("RANGE", "RADIUS", "EPSILON")
	}
	if err == nil && p.Match("FILTER") {
		err = p.filter()
	}
	for err == nil && p.Match("YIELD_SCORE_AS") {
		if v.Score != "" {
			return args.Errorf(query.DuplicateParameter, "Duplicate YIELD_SCORE_AS argument")
		}
		if v.Score, ok = p.Next(); !ok {
			return args.Errorf(query.BadArguments, "Missing argument value for YIELD_SCORE_AS")
		}
	}
	if err == nil && p.Match("DIALECT") {
		return errHybridDialect
	}
	return err
}

// clause reads the pairs of KNN or RANGE. The first of its options must be there.
func (p *hybridParser) clause(name string, options ...string) error {
	if p.Done() {
		return args.Errorf(query.BadArguments, "Missing argument count")
	}
	count, bad := p.Count()
	switch {
	case bad != args.None:
		return args.Errorf(query.BadArguments, "Invalid argument count: expected an unsigned integer")
	case count == 0 || count%2 != 0:
		return args.Errorf(query.Syntax, "Invalid argument count: %d (must be a positive even number for key/value pairs)", count)
	}
	seen := map[string]bool{}
	for i := 0; i < count; i += 2 {
		if p.Done() {
			return args.Errorf(query.Syntax, "Expected arguments %d, but %d were provided", count, i)
		}
		word, _ := p.Next()
		option := strings.ToUpper(word)
		switch {
		case !slices.Contains(options, option):
			return args.Errorf(query.UnknownArgument, "Unknown argument `%s` in %s", word, name)
		case seen[option]:
			return args.Errorf(query.DuplicateParameter, "Duplicate %s argument", option)
		case p.Done():
			return args.Errorf(query.BadArguments, "Missing argument value for %s", option)
		}
		seen[option] = true
		if !p.setting(option) {
			name := option
			if option == "SHARD_K_RATIO" {
				name = "shard k ratio"
			}
			return args.Errorf(query.Syntax, "Invalid %s value", name)
		}
	}
	if !seen[options[0]] {
		return args.Errorf(query.BadArguments, "Missing required argument %s", options[0])
	}
	return nil
}

// setting reads the value of an option of KNN or RANGE, and reports whether it is valid.
func (p *hybridParser) setting(option string) bool {
	v := &p.Vector
	text, _ := p.Peek()
	bad := args.None
	switch option {
	case "K":
		v.K, bad = p.Int(1, math.MaxInt64)
		return bad == args.None
	case "RADIUS":
		v.Radius, bad = p.Double()
		return bad == args.None && v.Radius >= 0
	case "EF_RUNTIME":
		_, bad = p.Int(1, math.MaxInt64)
	default: // EPSILON and SHARD_K_RATIO
		var f float64
		if f, bad = p.Double(); f <= 0 || option == "SHARD_K_RATIO" && f > 1 {
			return false
		}
	}
	v.Options = append(v.Options, query.Option{Name: option, Value: text})
	return bad == args.None
}

// filter reads what follows FILTER of VSIM: an expression, or a count, the expression and how it is applied.
func (p *hybridParser) filter() error {
	v := &p.Vector
	if p.Done() {
		return args.Errorf(query.BadArguments, "Missing argument count for FILTER")
	}
	count, bad := p.Count()
	if bad != args.None {
		v.Filter, _ = p.Next()
		return nil
	}
	list, bad := p.Take(count)
	if bad != args.None {
		return args.Errorf(query.Syntax, "Not enough arguments in FILTER, specified %d but provided only %d", count, p.Len())
	}
	var ok bool
	if v.Filter, ok = list.Next(); !ok {
		return args.Errorf(query.BadArguments, "Missing filter-expression for FILTER")
	}
	for !list.Done() {
		word, _ := list.Next()
		option := strings.ToUpper(word)
		value, has := list.Next()
		switch {
		case option != "POLICY" && option != "BATCH_SIZE":
			return args.Errorf(query.BadArguments, "%s: Unknown argument", word)
		case !has:
			return args.Errorf(query.BadArguments, "%s: %s", option, args.Missing)
		case option == "BATCH_SIZE":
		case strings.EqualFold(value, "ADHOC"):
			option, value = "HYBRID_POLICY", "ADHOC_BF"
		case strings.EqualFold(value, "BATCHES"):
			option = "HYBRID_POLICY"
		default:
			return args.Errorf(query.BadArguments, "POLICY: Invalid value for argument")
		}
		v.Options = append(v.Options, query.Option{Name: option, Value: value})
	}
	return nil
}

// once returns an error for a repeated option.
func (p *hybridParser) once(option string) error {
	if p.seen[option] {
		return args.Errorf(query.BadArguments, "%s: Argument specified multiple times", option)
	}
	p.seen[option] = true
	return nil
}

// options reads what follows the searches.
func (p *hybridParser) options() error {
	for !p.Done() {
		word, _ := p.Peek()
		var err error
		switch option := strings.ToUpper(word); option {
		case "GROUPBY", "APPLY", "FILTER", "LOAD":
			if option == "LOAD" {
				err = p.load()
			}
			p.grouped = p.grouped || option == "GROUPBY"
			if err == nil {
				_, err = p.Plan.ParseStep(&p.Reader)
			}
		case "COMBINE", "LIMIT", "SORTBY", "NOSORT", "PARAMS", "TIMEOUT", "FORMAT", "EXPLAINSCORE", "WITHCURSOR":
			p.Next()
			if err = p.once(option); err == nil {
				err = p.option(option)
			}
		case "DIALECT":
			return errHybridDialect
		default:
			return args.Errorf(query.BadArguments, "%s: Unknown argument", word)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// option reads what follows an option.
func (p *hybridParser) option(option string) (err error) {
	switch option {
	case "COMBINE":
		return p.combine()
	case "LIMIT":
		return p.limit()
	case "SORTBY":
		return p.sortBy()
	case "NOSORT":
		if p.NoSort = true; p.sorted {
			return errNoSort
		}
	case "PARAMS":
		p.Params, err = Params(&p.Reader, nil)
	case "TIMEOUT":
		p.Timeout, err = Timeout(&p.Reader)
	case "EXPLAINSCORE":
		p.ExplainScore = true
	case "WITHCURSOR":
		p.Cursor, err = readCursor(&p.Reader)
	case "FORMAT":
		switch word, ok := p.Next(); {
		case !ok:
			return args.Errorf(query.BadArguments, "FORMAT: %s", args.Missing)
		case strings.EqualFold(word, "EXPAND"):
			p.Format = ExpandFormat
		case strings.EqualFold(word, "STRING"):
			p.Format = StringFormat
		default:
			return args.Errorf(query.BadArguments, "FORMAT: Invalid value for argument")
		}
	}
	return err
}

var errNoSort = args.Errorf(query.BadArguments, "NOSORT is not allowed with SORTBY")

// combine reads the arguments of COMBINE. YIELD_SCORE_AS may be among the arguments of the method, or after them.
func (p *hybridParser) combine() error {
	method, ok := p.Next()
	f := &p.Fusion
	switch {
	case !ok:
		return args.Errorf(query.BadArguments, "COMBINE: %s", args.Missing)
	case strings.EqualFold(method, "LINEAR"):
		f.Linear = true
	case !strings.EqualFold(method, "RRF"):
		return args.Errorf(query.BadArguments, "COMBINE: Invalid value for argument")
	}
	method = strings.ToUpper(method)
	count, bad := p.Count()
	switch {
	case bad == args.Missing:
		return args.Errorf(query.BadArguments, "Missing %s argument count", method)
	case bad != args.None:
		return args.Errorf(query.BadArguments, "Invalid %s argument count, error: %s", method, bad)
	case count%2 != 0:
		return args.Errorf(query.BadArguments, "%s expects pairs of key value arguments, argument count must be an even number", method)
	}
	list, bad := p.Take(count)
	if bad != args.None {
		return args.Errorf(query.Syntax, "Not enough arguments in %s, specified %d but provided only %d", method, count, p.Len())
	}
	numbers := map[string]*float64{"CONSTANT": &f.Constant}
	if f.Linear {
		numbers = map[string]*float64{"ALPHA": &f.Alpha, "BETA": &f.Beta}
	}
	seen := map[string]bool{}
	for !list.Done() {
		word, _ := list.Next()
		option := strings.ToUpper(word)
		bad, number := args.None, numbers[option]
		if seen[option] {
			return args.Errorf(query.BadArguments, "%s: Argument specified multiple times", option)
		}
		seen[option] = true
		switch {
		case number != nil:
			*number, bad = list.Double()
		case option == "WINDOW":
			var n int64
			n, bad = list.Int(1, math.MaxInt32)
			if f.Window = int(n); bad == args.OutOfBounds {
				return args.Errorf(query.BadArguments, "WINDOW: Value below minimum")
			}
		case option == "YIELD_SCORE_AS":
			f.Score, bad = list.Text()
		default:
			return args.Errorf(query.BadArguments, "%s: Unknown argument", word)
		}
		if bad != args.None {
			return args.Errorf(query.BadArguments, "%s: %s", option, bad)
		}
	}
	switch {
	case seen["ALPHA"] && !seen["BETA"]:
		return args.Errorf(query.Syntax, "Missing value for BETA")
	case seen["BETA"] && !seen["ALPHA"]:
		return args.Errorf(query.Syntax, "Missing value for ALPHA")
	}
	if !p.Match("YIELD_SCORE_AS") {
		return nil
	}
	if seen["YIELD_SCORE_AS"] {
		return args.Errorf(query.BadArguments, "YIELD_SCORE_AS specified more than once")
	}
	if f.Score, ok = p.Next(); !ok {
		return args.Errorf(query.BadArguments, "Missing argument value for YIELD_SCORE_AS")
	}
	return nil
}

// arrange returns the last step if it is an Arrange, else a new one.
func (h *Hybrid) arrange() *aggregate.Arrange {
	if n := len(h.Plan.Steps); n > 0 {
		if a, ok := h.Plan.Steps[n-1].(*aggregate.Arrange); ok {
			return a
		}
	}
	a := &aggregate.Arrange{}
	h.Plan.Steps = append(h.Plan.Steps, a)
	return a
}

func (p *hybridParser) limit() error {
	list, bad := p.Take(2)
	if bad != args.None {
		return args.Errorf(query.BadArguments, "LIMIT: Not enough arguments were provided")
	}
	offset, bad := list.Int(0, math.MaxInt32)
	if bad != args.None {
		return args.Errorf(query.BadArguments, "LIMIT offset must be a non-negative integer")
	}
	num, bad := list.Int(0, math.MaxInt64)
	switch {
	case bad != args.None:
		return args.Errorf(query.BadArguments, "LIMIT count must be a non-negative integer")
	case num == 0 && offset != 0:
		return args.Errorf(query.LimitExceeded, "The `offset` of the LIMIT must be 0 when `num` is 0")
	case num > int64(p.config.MaxSearch):
		return args.Errorf(query.LimitExceeded, "LIMIT exceeds maximum of %d", p.config.MaxSearch)
	}
	a := p.arrange()
	a.Limited, a.Offset, a.Num = true, int(offset), int(num)
	p.Plan.CountOnly = num == 0
	return nil
}

// prefixed removes the prefix of a name: JSON paths keep theirs.
func prefixed(name, context string) (string, error) {
	if strings.HasPrefix(name, "$") {
		return name, nil
	}
	if own, ok := strings.CutPrefix(name, "@"); ok {
		return own, nil
	}
	return "", aggregate.MissingPrefix(name, context)
}

func (p *hybridParser) sortBy() error {
	count, bad := p.Count()
	if bad != args.None {
		return args.Errorf(query.BadArguments, "SORTBY: Failed to parse the argument count")
	}
	if count == 0 {
		return args.Errorf(query.BadArguments, "SORTBY: Invalid argument count")
	}
	list, bad := p.Take(count)
	if bad != args.None {
		return args.Errorf(query.BadArguments, "SORTBY: Not enough arguments were provided based on argument count")
	}
	if p.sorted = true; p.NoSort {
		return errNoSort
	}
	a := p.arrange()
	for !list.Done() {
		word, _ := list.Next()
		name, err := prefixed(word, "SORTBY")
		if err != nil {
			return err
		}
		desc := list.Match("DESC")
		if !desc {
			list.Match("ASC")
		}
		if a.Keys = append(a.Keys, aggregate.Key{Name: name, Desc: desc}); len(a.Keys) > aggregate.MaxSortKeys {
			return args.Errorf(query.LimitExceeded, "Cannot sort by more than %d fields", aggregate.MaxSortKeys)
		}
	}
	a.Sorted = true
	return nil
}

// load checks the next LOAD: its names need prefixes.
func (p *hybridParser) load() error {
	ahead := p.Reader
	ahead.Next()
	list, bad := ahead.List()
	if bad == args.NotConvertible {
		p.All = true
		return nil // ParseStep refuses all but *
	}
	for !list.Done() {
		word, _ := list.Next()
		name, err := prefixed(word, "LOAD")
		if err != nil {
			return err
		}
		if list.Match("AS") {
			name, _ = list.Next()
		}
		p.Loads = append(p.Loads, name)
	}
	return nil
}

// arrangeAll orders the steps: loads come first, and by default the result is sorted by score.
func (p *hybridParser) arrangeAll() {
	plan := &p.Plan
	slices.SortStableFunc(plan.Steps, func(a, b aggregate.Step) int {
		_, first := a.(*aggregate.Load)
		_, second := b.(*aggregate.Load)
		switch {
		case first == second:
			return 0
		case first:
			return -1
		}
		return 1
	})
	n := len(plan.Steps)
	var last *aggregate.Arrange
	if n > 0 {
		last, _ = plan.Steps[n-1].(*aggregate.Arrange)
	}
	if last == nil {
		if p.NoSort {
			return
		}
		last = p.arrange()
	}
	if last.Num == 0 {
		last.Num = defaultRows
	}
	if last.Limited = true; !last.Sorted && !p.sorted && !p.grouped {
		last.Sorted, last.Keys = true, []aggregate.Key{{Name: OrderName}}
	}
}

// ShownScore returns the name of the fused score.
func (h *Hybrid) ShownScore() string {
	if h.Fusion.Score != "" {
		return h.Fusion.Score
	}
	return ScoreName
}

// Hides reports whether rows do not show a name: the key and the score, if a LOAD does not name them.
func (h *Hybrid) Hides(name string) bool {
	switch {
	case name == OrderName:
		return true
	case h.grouped || name != KeyName && (name != ScoreName || h.Fusion.Score != ""):
		return false
	}
	return (h.Loads != nil || h.All) && !slices.Contains(h.Loads, name)
}

// String describes the fusion, as EXPLAINSCORE shows it.
func (f *Fusion) String() string {
	if f.Linear {
		return fmt.Sprintf("Hybrid score (LINEAR: alpha=%.4f, beta=%.4f, window=%d)", f.Alpha, f.Beta, f.Window)
	}
	return fmt.Sprintf("Hybrid score (RRF: window=%d, constant=%.2f)", f.Window, f.Constant)
}
