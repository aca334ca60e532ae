package query

// The parts of FT.HYBRID that are not in the text of a query.

// NewKNN returns the node of the k documents nearest to a vector, among those of a filter; nil is all.
func NewKNN(f *Field, k int64, vector string, options []Option, yield string, filter Node) *KNN {
	return &KNN{Common: common(), Field: f, K: k, Vector: vector, Options: options, Yield: yield, Filter: filter}
}

// NewVectorRange returns the node of the documents within a radius of a vector.
func NewVectorRange(f *Field, radius float64, vector string, options []Option, yield string) *VectorRange {
	return &VectorRange{Common: common(), Field: f, Radius: radius, Vector: vector, Options: options, Yield: yield}
}

// IgnoreTags excludes tags from scores: they only filter.
func IgnoreTags(n Node) {
	if t, ok := n.(*Tag); ok {
		t.Weight = 0
		return
	}
	_ = children(n, func(child Node) error {
		IgnoreTags(child)
		return nil
	})
}

// Any reports whether a node or one below it has a property.
func Any(n Node, has func(Node) bool) bool {
	found := has(n)
	_ = children(n, func(child Node) error {
		found = found || Any(child, has)
		return nil
	})
	return found
}

// Yields returns the names of the distances that a query gives.
func Yields(root Node) (names []string) {
	Any(root, func(n Node) bool {
		switch n := n.(type) {
		case *KNN:
			names = append(names, n.Yield)
		case *VectorRange:
			if n.Yield != "" {
				names = append(names, n.Yield)
			}
		}
		return false
	})
	return names
}
