package query

// check returns an error for a tree that no document can match, or that uses a field in a way that its kind does not
// support.
func check(n Node, o Options) error {
	switch n := n.(type) {
	case *Numeric:
		if n.Min > n.Max {
			return errorf(Syntax, "Invalid numeric range (min > max): @%s:[%f %f]", n.Field.Name, n.Min, n.Max)
		}
	case *Geo:
		if err := checkGeo(n); err != nil {
			return err
		}
	case *Token:
		if n.Text == "" && !n.Fields.All() && !n.Fields.None() && !n.Fields.with(o.Schema, func(f *Field) bool { return f.IndexEmpty }) {
			return emptyText
		}
	case *Tag:
		for _, value := range n.Values {
			if t, ok := value.(*Token); ok && t.Text == "" && !n.Field.IndexEmpty {
				return emptyText
			}
		}
		return nil
	case *Phrase:
		return checkOrder(&n.Common, o)
	case *Intersect:
		if err := checkOrder(&n.Common, o); err != nil {
			return err
		}
	}
	return children(n, func(child Node) error { return check(child, o) })
}

// emptyText is the error for an empty text in a field that does not index empty texts.
var emptyText = errorf(Syntax, "Use `INDEXEMPTY` in field creation in order to index and query for empty strings")

// checkOrder returns an error for SLOP and INORDER if one of the fields has no order.
func checkOrder(c *Common, o Options) error {
	if o.Slop < 0 && !o.InOrder && c.Slop < 0 && !c.ordered {
		return nil
	}
	for _, f := range c.Fields.in(o.Schema) {
		if f.Unordered {
			return errorf(BadOrder, "slop/inorder are not supported for field with undefined ordering `%s`", f.Name)
		}
	}
	return nil
}

// badUnit is the error for a circle whose radius has no known unit.
var badUnit = errorf(Syntax, "Invalid GeoFilter unit")

// checkGeo returns an error for a circle that is not on the earth.
func checkGeo(n *Geo) error {
	switch n.Unit {
	case "m", "km", "mi", "ft":
	default:
		return badUnit
	}
	switch {
	case !(-90 <= n.Lat && n.Lat <= 90 && -180 <= n.Lon && n.Lon <= 180):
		return errorf(Syntax, "Invalid GeoFilter lat/lon")
	case !(n.Radius > 0):
		return errorf(Syntax, "Invalid GeoFilter radius")
	}
	return nil
}
