package aggregate

// Plan is the steps of a command in their order.
type Plan struct {
	Steps []Step

	// CountOnly is set by LIMIT 0 0: rows are counted and none is returned.
	CountOnly bool

	// CountAll is set by WITHCOUNT: all rows are counted, also those beyond a LIMIT.
	CountAll bool

	// Whole is set for a cursor with WITHCOUNT: all rows are read before the first one comes, so that the total of each
	// read is that of the result.
	Whole bool
}

// Step is one of *Load, *Group, *Apply, *Filter, *Arrange.
type Step interface{ step() }

// Load is LOAD.
type Load struct {
	All    bool
	Fields []Loaded
}

// Loaded is a field of LOAD.
type Loaded struct{ Path, Name string }

// Group is GROUPBY with its reducers.
type Group struct {
	By     []string // without @
	Reduce []Reduce
}

// Reduce is REDUCE.
type Reduce struct {
	Name  string // as written
	Args  []string
	Alias string
}

// Apply is APPLY.
type Apply struct{ Expr, As string }

// Filter is FILTER.
type Filter struct{ Expr string }

// Arrange is SORTBY or LIMIT, or both if one follows the other.
type Arrange struct {
	Keys    []Key // nil without SORTBY
	Sorted  bool  // there is a SORTBY
	Limited bool  // there is a LIMIT
	Offset  int
	Num     int // how many rows are kept, 0 if not given; also MAX
}

// Key is a key of SORTBY.
type Key struct {
	Name string // without @
	Desc bool
}

func (*Load) step()    {}
func (*Group) step()   {}
func (*Apply) step()   {}
func (*Filter) step()  {}
func (*Arrange) step() {}

// DefaultLimit is how many rows a SORTBY keeps by default.
const DefaultLimit = 10

// arrange returns the last step if it is an Arrange, otherwise a new one.
func (p *Plan) arrange() *Arrange {
	if n := len(p.Steps); n > 0 {
		if a, ok := p.Steps[n-1].(*Arrange); ok {
			return a
		}
	}
	a := &Arrange{}
	p.Steps = append(p.Steps, a)
	return a
}
