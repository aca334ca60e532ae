package query

import (
	"cmp"
	"math"
	"strconv"
	"strings"
)

// Explain returns a tree as FT.EXPLAIN shows it, with a line feed at the end.
func Explain(n Node) string {
	e := explainer{}
	e.node(n, 0)
	return string(e.out)
}

// explainer writes a tree.
type explainer struct{ out []byte }

func (e *explainer) write(parts ...string) {
	for _, s := range parts {
		e.out = append(e.out, s...)
	}
}

func (e *explainer) indent(depth int) {
	for range depth {
		e.write("  ")
	}
}

// block writes nodes between braces.
func (e *explainer) block(begin string, list []Node, depth int) {
	e.write(begin, "\n")
	for _, n := range list {
		e.node(n, depth+1)
	}
	e.indent(depth)
	e.write("}")
}

// node writes a node, with its fields before and its attributes after it.
func (e *explainer) node(n Node, depth int) {
	e.indent(depth)
	c := n.Of()
	switch n.(type) {
	case *Numeric, *Geo, *IDs:
		if c.Fields.None() {
			e.write("@NULL:")
		}
	default:
		switch {
		case c.Fields.None():
			e.write("@NULL:")
		case !c.Fields.All():
			e.write(c.Fields.String(), ":")
		}
	}
	switch n := n.(type) {
	case *Token:
		e.write(cmp.Or(n.shown, n.Text, `""`))
		if n.Expanded {
			e.write("(expanded)")
		}
		if c.Weight != 1 {
			e.write(" => {$weight: ", short(c.Weight), ";}")
		}
		e.write("\n")
		return
	case *Phrase:
		words := make([]Node, len(n.Words))
		for i, word := range n.Words {
			words[i] = word
		}
		e.block("EXACT {", words, depth)
	case *Intersect:
		e.block("INTERSECT {", n.Children, depth)
	case *Union:
		e.block("UNION {", n.Children, depth)
	case *Not:
		e.block("NOT{", []Node{n.Child}, depth)
	case *Optional:
		e.block("OPTIONAL{", []Node{n.Child}, depth)
	case *Tag:
		e.block("TAG:@"+n.Field.Name+" {", n.Values, depth)
	case *Affix:
		e.affix(n)
	case *Fuzzy:
		e.write("FUZZY{", n.Text, "}")
	case *Wildcard:
		e.write("WILDCARD{", n.Shown(), "}")
	case *All:
		e.write("<WILDCARD>")
	case *Empty:
		e.write("<empty>")
	case *Missing:
		e.write("ISMISSING{", n.Field.Name, "}")
	case *IDs:
		e.write("IDS {")
		for _, id := range n.List {
			e.write(strconv.FormatUint(id, 10), ",")
		}
		e.write("}")
	case *Numeric:
		e.write("NUMERIC {", long(n.Min), less(n.MinExclusive), "@", n.Field.Name, less(n.MaxExclusive), long(n.Max), "}")
	case *Geo:
		e.write("GEO ", n.Field.Name, ":{", long(n.Lon), ",", long(n.Lat), " --> ", long(n.Radius), " ", n.Unit, "}")
	case *GeoShape:
		e.write("GEOSHAPE{", strconv.Itoa(int(n.Predicate)), " ", n.Shape, "}")
	case *KNN:
		e.write("VECTOR {")
		if n.Filter != nil {
			e.block("", []Node{n.Filter}, depth)
			e.write(" => {")
		}
		e.write("K=", strconv.FormatInt(n.K, 10), " nearest vectors to `$", n.Param, "` ")
		e.vector(n.Field, n.Options, n.Yield)
	case *VectorRange:
		e.write("VECTOR {Vectors that are within ", short(n.Radius), " distance radius from `$", n.Param, "` ")
		e.vector(n.Field, n.Options, n.Yield)
	}
	e.attributes(c)
	e.write("\n")
}

// affix writes a prefix, suffix or infix.
func (e *explainer) affix(n *Affix) {
	switch {
	case n.Before && n.After:
		e.write("INFIX{*", n.Text, "*}")
	case n.Before:
		e.write("SUFFIX{*", n.Text, "}")
	default:
		e.write("PREFIX{", n.Text, "*}")
	}
}

// vector writes the common part of both kinds of vector searches.
func (e *explainer) vector(f *Field, options []Option, yield string) {
	e.write("in vector index associated with field @", f.Name)
	for _, o := range options {
		e.write(", ", o.Name, " = ", o.Value)
	}
	if yield != "" {
		e.write(", yields distance as `", yield, "`")
	}
	e.write("}")
}

// attributes writes the attributes that differ from the defaults.
func (e *explainer) attributes(c *Common) {
	if c.Weight == 1 && c.Slop == -1 && !c.InOrder {
		return
	}
	e.write(" => {")
	if c.Weight != 1 {
		e.write(" $weight: ", short(c.Weight), ";")
	}
	if c.Slop != -1 {
		e.write(" $slop: ", strconv.Itoa(c.Slop), ";")
	}
	if c.InOrder || c.Slop != -1 {
		e.write(" $inorder: ", strconv.FormatBool(c.InOrder), ";")
	}
	e.write(" }")
}

// less is the sign between a number and a field.
func less(exclusive bool) string {
	if exclusive {
		return " < "
	}
	return " <= "
}

// long writes a number with six decimals.
func long(f float64) string {
	if math.IsInf(f, 0) {
		return strings.ToLower(strings.TrimPrefix(strconv.FormatFloat(f, 'g', -1, 64), "+"))
	}
	return strconv.FormatFloat(f, 'f', 6, 64)
}

// short writes a number with up to six digits, as %g in C.
func short(f float64) string {
	if math.IsInf(f, 0) {
		return long(f)
	}
	exponent := 0
	if f != 0 {
		s := strconv.FormatFloat(f, 'e', 5, 64)
		exponent, _ = strconv.Atoi(s[strings.IndexByte(s, 'e')+1:])
	}
	if exponent < -4 || exponent >= 6 {
		s := strconv.FormatFloat(f, 'e', 5, 64)
		digits, power, _ := strings.Cut(s, "e")
		return strings.TrimSuffix(strings.TrimRight(digits, "0"), ".") + "e" + power
	}
	s := strconv.FormatFloat(f, 'f', 5-exponent, 64)
	if strings.Contains(s, ".") {
		s = strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
	}
	return s
}
