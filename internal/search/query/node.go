package query

// Node is a node of a query's tree. Its types are those below and no others.
type Node interface {
	// Of returns the properties that all nodes have.
	Of() *Common
}

// Common has the properties that all nodes have.
type Common struct {
	Fields   Fields   // the fields to search; children search only fields of their parent
	Weight   float64  // factor of the score; 1 by default
	Slop     int      // largest distance of the words of an Intersect; -1 is any distance
	InOrder  bool     // the words of an Intersect must be in the order of the query
	Phonetic Phonetic // the query's attribute for words that sound alike
	Verbatim bool     // the words are not expanded

	ordered bool    // the query sets the order
	params  []param // parameters, whose values are in PARAMS
}

// Of implements Node.
func (c *Common) Of() *Common { return c }

// common returns the default properties.
func common() Common { return Common{Weight: 1, Slop: -1} }

// Phonetic says whether to find words that sound alike.
type Phonetic uint8

// The values of Phonetic.
const (
	PhoneticAsIndexed Phonetic = iota
	PhoneticOn
	PhoneticOff
)

// The leaves that search text.
type (
	// Token is one term: a word, or with Expanded a term that was added for it, with the prefix of package text. In
	// a Tag it is a value.
	Token struct {
		Common
		Text     string
		Expanded bool

		shown string // its form in EXPLAIN, if not Text
	}

	// Phrase matches consecutive words in this order. Without words it matches nothing.
	Phrase struct {
		Common
		Words []*Token
	}

	// Affix matches terms that begin or end with a text, or contain it.
	Affix struct {
		Common
		Text   string
		Before bool // any text may precede: *ing
		After  bool // any text may follow: conn*
	}

	// Fuzzy matches terms within an edit distance of a text.
	Fuzzy struct {
		Common
		Text     string
		Distance int  // 1 to 3
		Filled   bool // does not match the empty text, as in dialect 1
	}

	// Wildcard matches terms by a pattern, where ? is one character, * any number, and a backslash escapes them.
	Wildcard struct {
		Common
		Pattern string
	}
)

// Shown returns the pattern as EXPLAIN and PROFILE show it, without escapes.
func (n *Wildcard) Shown() string {
	shown := make([]byte, 0, len(n.Pattern))
	for i := 0; i < len(n.Pattern); i++ {
		if n.Pattern[i] == '\\' && i+1 < len(n.Pattern) {
			i++
		}
		shown = append(shown, n.Pattern[i])
	}
	return string(shown)
}

// The leaves that search fields of other kinds.
type (
	// Tag is documents with one of some tags. Values are Token, Affix, Wildcard and Intersect; the tokens of an Intersect are one
	// tag, with a blank between them. They have the case of the query. In dialect 1 the field may be of another kind: nothing matches.
	Tag struct {
		Common
		Field  *Field
		Values []Node
	}

	// Numeric is documents with a number in a range.
	Numeric struct {
		Common
		Field                      *Field
		Min, Max                   float64
		MinExclusive, MaxExclusive bool
	}

	// Geo is documents with a place in a circle.
	Geo struct {
		Common
		Field            *Field
		Lon, Lat, Radius float64
		Unit             string // m, km, mi, ft; another one matches nothing
	}

	// GeoShape is documents with a shape in some relation to that of the query.
	GeoShape struct {
		Common
		Field     *Field
		Predicate Predicate
		Shape     string // as Well-Known Text
	}

	// KNN is the K documents whose vectors are nearest to one. It is the root of its tree.
	KNN struct {
		Common
		Field   *Field
		K       int64
		Param   string // the parameter that has the vector
		Vector  string // as bytes
		Options []Option
		Yield   string // the name of the distance
		Filter  Node   // only these documents count; nil is all

		named bool // Yield comes from AS
	}

	// VectorRange is the documents whose vectors are within Radius of one.
	VectorRange struct {
		Common
		Field   *Field
		Radius  float64
		Param   string
		Vector  string
		Options []Option
		Yield   string // "" if not requested
	}

	// Missing is documents without a field.
	Missing struct {
		Common
		Field *Field
	}

	// IDs is some documents, for INKEYS.
	IDs struct {
		Common
		List []uint64
	}

	// All is all documents.
	All struct{ Common }

	// Empty is none.
	Empty struct{ Common }
)

// The nodes above others.
type (
	// Not is the documents that do not match.
	Not struct {
		Common
		Child Node
	}

	// Optional is all documents. Those that match its child score higher.
	Optional struct {
		Common
		Child Node
	}

	// Intersect is the documents that match all children.
	Intersect struct {
		Common
		Children []Node
	}

	// Union is the documents that match a child. The expansion of a word is also a Union.
	Union struct {
		Common
		Children []Node
	}
)

// Predicate is a relation of a document's shape to that of a query.
type Predicate uint8

// The relations, with Redis's numbers, which FT.EXPLAIN shows. Disjoint and Intersects are symmetric.
const (
	Contains Predicate = iota + 1
	Within
	Disjoint
	Intersects
)

// predicates are their names.
var predicates = map[string]Predicate{"CONTAINS": Contains, "WITHIN": Within, "DISJOINT": Disjoint, "INTERSECTS": Intersects}

// Option is a setting of a vector search in the query. Only the index knows the valid ones.
type Option struct {
	Name, Value string

	param string // has the value
}

// New nodes with all defaults.
func newToken(text string) *Token { return &Token{Common: common(), Text: text} }

// NewAll returns the node of all documents.
func NewAll() *All { return &All{common()} }

// NewEmpty returns the node of no document.
func NewEmpty() *Empty { return &Empty{common()} }

// NewIDs returns the node of some documents.
func NewIDs(list ...uint64) *IDs { return &IDs{common(), list} }

// NewNumeric returns the node of a range, for FILTER.
func NewNumeric(f *Field, least, most float64, leastExclusive, mostExclusive bool) *Numeric {
	return &Numeric{Common: common(), Field: f, Min: least, Max: most, MinExclusive: leastExclusive, MaxExclusive: mostExclusive}
}

// NewGeo returns the node of a circle, for GEOFILTER.
func NewGeo(f *Field, lon, lat, radius float64, unit string) *Geo {
	return &Geo{Common: common(), Field: f, Lon: lon, Lat: lat, Radius: radius, Unit: unit}
}

// Filter adds a filter to a tree. The filter comes first; below a KNN it joins the KNN's own filter.
func Filter(root, filter Node) Node {
	switch n := root.(type) {
	case *KNN:
		if n.Filter == nil {
			n.Filter = filter
		} else {
			n.Filter = &Intersect{common(), []Node{filter, n.Filter}}
		}
		return n
	case *Intersect:
		n.Children = append([]Node{filter}, n.Children...)
		return n
	}
	return &Intersect{common(), []Node{filter, root}}
}

// children calls do for the children of a node.
func children(n Node, do func(Node) error) error {
	switch n := n.(type) {
	case *Not:
		return do(n.Child)
	case *Optional:
		return do(n.Child)
	case *Intersect:
		return each(n.Children, do)
	case *Union:
		return each(n.Children, do)
	case *Tag:
		return each(n.Values, do)
	case *KNN:
		if n.Filter != nil {
			return do(n.Filter)
		}
	}
	return nil
}

// each calls do for nodes up to the first error.
func each(nodes []Node, do func(Node) error) error {
	for _, n := range nodes {
		if err := do(n); err != nil {
			return err
		}
	}
	return nil
}

// Narrow limits all text of a tree to some fields, as INFIELDS does. The fields of a node are never more than those of the nodes
// above it.
func Narrow(n Node, above Fields) {
	c := n.Of()
	c.Fields = c.Fields.and(above)
	if p, ok := n.(*Phrase); ok {
		for _, word := range p.Words {
			word.Fields = word.Fields.and(c.Fields)
		}
	}
	_ = children(n, func(child Node) error {
		Narrow(child, c.Fields)
		return nil
	})
}
