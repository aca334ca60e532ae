package query

import (
	"math"
	"strings"

	"github.com/atomredis/atomredis/internal/search/text"
)

// How tightly tokens bind in dialects 2 to 4. A rule has the precedence of its first token.
const (
	or2 = iota + 1
	ismissing2
	modifier2
	exact2
	term2
	quote2
	paren2
	sign2 // - and ~
	and2  // two operands side by side
	arrow2
	colon2
	number2 // and all later tokens of the grammar; they are never compared with each other
)

// binds2 returns how tightly the next token binds as the beginning of an operand, 0 if it cannot begin one.
func (p *parser) binds2(in scope) int {
	switch p.operandToken(in) {
	case ismissingToken:
		return ismissing2
	case modifierToken:
		if in == textOnly {
			return 0
		}
		return modifier2
	case exactToken:
		return exact2
	case termToken, asToken:
		return term2
	case quoteToken:
		return quote2
	case leftParen:
		return paren2
	case minusToken, tildeToken:
		return sign2
	case numberToken, sizeToken, prefixToken, suffixToken, containsToken, percentToken, attributeToken, wildcardToken:
		return number2
	}
	return 0
}

// ending says how an expression ended.
type ending uint8

const (
	plainEnd ending = iota
	starEnd         // it was a star, which nothing may follow
	arrowEnd        // an arrow that belongs to the whole query has been read
)

// operandToken returns the kind of the next token at the beginning of an operand. Before text, ismissing is a word.
func (p *parser) operandToken(in scope) kind {
	if p.tok.kind == ismissingToken && (in == textOnly || (in == textFirst || in == textParens) && !p.lex.fieldInParens()) {
		return termToken
	}
	return p.tok.kind
}

// query2 reads a whole query.
func (p *parser) query2() Node {
	if p.tok.kind == endToken {
		return nil
	}
	e := p.expr2(0, anything, true)
	if e.end == arrowEnd {
		e.Node = p.knn(e.Node)
	}
	if p.tok.kind != endToken {
		p.fail()
	}
	return e.Node
}

// scope says which parts an expression may have.
type scope uint8

const (
	anything   scope = iota
	textOnly         // text after a field
	textFirst        // ends before anything that is no text
	textParens       // parentheses inside textFirst
	textUnion        // text may form its own OR
)

// operands returns the scope of the operands of a sign or of two operands side by side.
func (s scope) operands() scope {
	if s == textUnion {
		return anything
	}
	return s
}

// parens returns the scope of parentheses.
func (s scope) parens() scope {
	if s == textFirst {
		return textParens
	}
	return s.operands()
}

// expression is a part of a query.
type expression struct {
	Node
	text bool // only text, without fields
	end  ending
}

// expr2 reads operands and operators up to a token that does not bind tighter than the rule around it. Only the first operand of
// a query may be a star, and only the expression that is the whole query so far may have an arrow with a bracket.
func (p *parser) expr2(around int, in scope, first bool) expression {
	left := p.operand2(in, first)
	if left.end == starEnd {
		if p.depth == 0 && p.accept(arrowToken) {
			left.end = arrowEnd
		}
		return left
	}
	union := false // left is an OR
	for {
		binds := p.binds2(in)
		switch {
		case in == textFirst && left.text && (binds == modifier2 || binds == ismissing2):
			return left
		case p.tok.kind == arrowToken && arrow2 > around:
			p.advance()
			if first && p.depth == 0 && p.tok.kind == leftBracket {
				left.end = arrowEnd
				return left
			}
			p.attributes(left.Node)
		case p.tok.kind == orToken && (or2 > around || in == textUnion && (left.text || union)):
			p.advance()
			next := in.parens()
			switch {
			case in == textOnly || !union:
			case left.text:
				// From the second | on, an OR of text continues only as long as there is text: a|b|c @n:[1 2] is
				// (a|b|c) AND @n:[1 2].
				next = textFirst
			default:
				// Within an OR of other parts, text forms its own OR: @n:[1 2]|@n:[3 4]|a|b|c.
				next = textUnion
			}
			right := p.nested2(2, or2, next)
			left.Node = union2(left.Node, right.Node)
			left.text = left.text && right.text
			union = true
		case binds > around:
			right := p.nested2(1, and2, in.operands())
			left.Node = intersect2(left.Node, right.Node)
			left.text = left.text && right.text
			union = false
		default:
			return left
		}
	}
}

// nested2 reads an expression inside a rule with some open symbols.
func (p *parser) nested2(symbols, around int, in scope) expression {
	p.open(symbols)
	e := p.expr2(around, in, false)
	p.close(symbols)
	return e
}

// intersect2 makes one list of both sides if one of them is a list already.
func intersect2(b, c Node) Node {
	if b == nil || c == nil {
		return either(b, c)
	}
	for _, pair := range [2][2]Node{{b, c}, {c, b}} {
		if list, ok := pair[0].(*Intersect); ok && list.Fields.All() {
			list.Children = append(list.Children, pair[1])
			return list
		}
	}
	return &Intersect{common(), []Node{b, c}}
}

// union2 does the same for OR.
func union2(b, c Node) Node {
	if b == nil || c == nil {
		return either(b, c)
	}
	for _, pair := range [2][2]Node{{b, c}, {c, b}} {
		if list, ok := pair[0].(*Union); ok && list.Fields.All() {
			list.Children = append(list.Children, pair[1])
			return list
		}
	}
	return &Union{common(), []Node{b, c}}
}

// either returns the side of an operator that is not nil.
func either(b, c Node) Node {
	if b == nil {
		return c
	}
	return b
}

// operand2 reads an operand. Only at the beginning of a query it may be a star.
func (p *parser) operand2(in scope, first bool) expression {
	switch k := p.operandToken(in); k {
	case starToken:
		if first {
			p.advance()
			return expression{NewAll(), false, starEnd}
		}
	case leftParen:
		p.advance()
		p.open(1)
		e := p.expr2(0, in.parens(), first)
		p.expect(rightParen)
		p.close(1)
		return e
	case minusToken, tildeToken:
		p.advance()
		e := p.nested2(1, sign2, in.operands())
		return expression{negated2(k, e.Node), e.text, plainEnd}
	case modifierToken:
		if in != textOnly {
			return expression{p.modifier2(), false, plainEnd}
		}
	case ismissingToken:
		return expression{p.missing(), false, plainEnd}
	case exactToken:
		return textExpression(p.exact(p.advance().text))
	case quoteToken:
		p.advance()
		if p.accept(attributeToken) {
			p.fail() // "$name" is a quoted text, so its closing quote is missing
		}
	case termToken, asToken, numberToken, sizeToken, attributeToken:
		return textExpression(p.word2())
	case prefixToken, suffixToken, containsToken:
		return textExpression(p.affixNode(p.advance(), false))
	case wildcardToken:
		return textExpression(p.wildcardNode(p.advance()))
	case percentToken:
		return textExpression(p.fuzzy())
	}
	p.fail()
	return expression{}
}

// textExpression is an expression of text.
func textExpression(n Node) expression { return expression{n, true, plainEnd} }

// negated2 makes the node of a minus or a tilde. Two minus signs cancel each other.
func negated2(sign kind, child Node) Node {
	if not, ok := child.(*Not); ok && sign == minusToken {
		return not.Child
	}
	return negated(sign, child)
}

// negated makes the node of a sign, nil without a child.
func negated(sign kind, child Node) Node {
	switch {
	case child == nil:
		return nil
	case sign == minusToken:
		return &Not{common(), child}
	}
	return &Optional{common(), child}
}

// word2 reads one word, number or parameter. It returns nil for stop-words.
func (p *parser) word2() Node {
	t := p.advance()
	if t.kind != numberToken && t.kind != sizeToken && t.kind != attributeToken && p.Stopwords.HasString(t.text) {
		return nil
	}
	return p.textNode(t)
}

// exact makes the phrase of a quoted text. It is split like a document, except that $ does not separate.
func (p *parser) exact(s string) Node {
	n := node[Phrase]()
	n.Verbatim = true
	for start, i, escaped := 0, 0, false; i <= len(s); i++ {
		if i < len(s) && (escaped || !separates(s[i])) {
			escaped = !escaped && s[i] == '\\'
			continue
		}
		if i > start {
			n.Words = append(n.Words, p.split(newToken(normalize(s[start:i])))...)
		}
		start = i + 1
	}
	return n
}

// separates reports whether a byte ends a word of a quoted text.
func separates(c byte) bool { return c != '$' && text.IsSeparator(c) }

// modifier2 reads a field and its condition.
func (p *parser) modifier2() Node {
	t := p.advance()
	f := p.lookup(&t)
	switch p.tok.kind {
	case orToken:
		fields := []*Field{f}
		for p.accept(orToken) {
			if k := p.word(); k != termToken && k != numberToken && k != sizeToken {
				p.fail()
			}
			other := p.advance()
			p.mustBe(f, TextKind, "TEXT", t)
			g, ok := p.Schema.Field(other.text)
			if !ok {
				p.refuse("Unknown field", other)
			}
			p.mustBe(g, TextKind, "TEXT", other)
			fields = append(fields, g)
		}
		p.expect(colonToken)
		return p.inFields(fields...)
	case colonToken:
		p.advance()
		switch p.tok.kind {
		case leftBrace:
			return p.tag2(f, t)
		case leftBracket:
			return p.bracket2(f, t)
		}
		n := p.inFields(f)
		p.mustBe(f, TextKind, "TEXT", t)
		return n
	case notEqualToken, equalToken, greaterToken, greaterEqualToken, lessToken, lessEqualToken:
		return p.comparison(f, t)
	}
	p.fail()
	return nil
}

// lookup returns the field of a token, and sets the token's text to the field's name.
func (p *parser) lookup(t *token) *Field {
	t.text = unescape(t.text)
	f, ok := p.Schema.Field(t.text)
	if !ok {
		p.refuse("Unknown field", *t)
	}
	return f
}

// inFields reads one operand of text and limits it to some fields.
func (p *parser) inFields(fields ...*Field) Node {
	n := p.nested2(2, colon2, textOnly).Node
	if n != nil {
		n.Of().Fields = n.Of().Fields.and(OnlyIn(fields...))
	}
	return n
}

// missing reads ismissing(@field).
func (p *parser) missing() Node {
	p.advance()
	p.expect(leftParen)
	t := p.expect(modifierToken)
	n := node[Missing]()
	n.Field = p.lookup(&t)
	p.expect(rightParen)
	if !n.Field.IndexMissing {
		p.refuse("'ismissing' requires defining the field with 'INDEXMISSING'", t)
	}
	return n
}

// tag2 reads { one | or more | tags }.
func (p *parser) tag2(f *Field, t token) Node {
	n := node[Tag]()
	n.Field = f
	p.advance() // the brace
	for more := true; more; more = p.accept(orToken) {
		switch p.word() {
		case prefixToken, suffixToken, containsToken:
			n.Values = append(n.Values, p.affixNode(p.advance(), true))
		case wildcardToken:
			n.Values = append(n.Values, p.wildcardNode(p.advance()))
		case termToken, numberToken, sizeToken, attributeToken:
			n.Values = append(n.Values, p.tagWords())
		default:
			p.fail()
		}
	}
	p.expect(rightBrace)
	p.mustBe(f, TagKind, "TAG", t)
	return n
}

// tagWords reads a tag of one or more words.
func (p *parser) tagWords() Node {
	var list []Node
	for {
		switch p.word() {
		case termToken, numberToken, sizeToken, attributeToken:
			list = append(list, p.tokenNode(p.advance(), true))
			continue
		}
		return tagNode(list)
	}
}

// bound is a number of a range, or the parameter that has it.
type bound struct {
	num       float64
	param     string
	isParam   bool
	sign      int
	exclusive bool
}

// number reads a number or a parameter, with signs in front. It reports false at another token, unless a sign was read.
func (p *parser) number() (b bound, ok bool) {
	b.sign = 1
	signs := 0
	for p.accept(minusToken) {
		b.sign = -b.sign
		signs++
	}
	switch p.tok.kind {
	case numberToken, sizeToken:
		b.num = float64(b.sign) * p.advance().num
	case attributeToken:
		if signs > 1 {
			p.fail()
		}
		t := p.advance()
		if t.sign != 0 {
			b.sign *= t.sign
		}
		b.param, b.isParam = t.text, true
	default:
		if signs > 0 {
			p.fail()
		}
		return b, false
	}
	return b, true
}

// mustNumber reads a number or a parameter.
func (p *parser) mustNumber() bound {
	b, ok := p.number()
	if !ok {
		p.fail()
	}
	return b
}

// set sets a number to a bound, now or when its parameter is known.
func (c *Common) set(to *float64, b bound, k paramKind) {
	if !b.isParam {
		*to = b.num
		return
	}
	c.params = append(c.params, param{name: b.param, kind: k, sign: b.sign, num: to})
}

// comparison reads the operator and the number after a field.
func (p *parser) comparison(f *Field, t token) Node {
	n := node[Numeric]()
	n.Field = f
	n.Min, n.Max = math.Inf(-1), math.Inf(1)
	op := p.advance().kind
	b := p.mustNumber()
	p.mustBe(f, NumericKind, "NUMERIC", t)
	if op != lessToken && op != lessEqualToken {
		n.set(&n.Min, b, numberParam)
		n.MinExclusive = op == greaterToken
	}
	if op != greaterToken && op != greaterEqualToken {
		n.set(&n.Max, b, numberParam)
		n.MaxExclusive = op == lessToken
	}
	if op == notEqualToken {
		return &Not{common(), n}
	}
	return n
}

// bracket2 reads a condition in brackets: a range, a circle, a shape or a distance between vectors.
func (p *parser) bracket2(f *Field, t token) Node {
	p.advance()
	if p.word() == termToken {
		return p.namedBracket(f, t)
	}
	var bounds []bound
	for {
		exclusive := len(bounds) < 2 && p.accept(leftParen)
		b, ok := p.number()
		if !ok {
			if exclusive {
				p.fail()
			}
			break
		}
		b.exclusive = exclusive
		bounds = append(bounds, b)
		if len(bounds) == 3 || exclusive && len(bounds) == 2 || len(bounds) == 2 && bounds[0].exclusive {
			break
		}
	}
	if len(bounds) == 3 {
		return p.geo2(f, t, bounds)
	}
	if p.tok.kind != rightBracket || len(bounds) == 0 || len(bounds) == 1 && bounds[0].exclusive {
		p.fail()
	}
	p.advance()
	p.mustBe(f, NumericKind, "NUMERIC", t)
	n := node[Numeric]()
	n.Field = f
	least, most := bounds[0], bounds[len(bounds)-1]
	lower, upper := minParam, maxParam
	if len(bounds) == 1 {
		lower, upper = numberParam, numberParam
	}
	n.set(&n.Min, least, lower)
	n.set(&n.Max, most, upper)
	n.MinExclusive, n.MaxExclusive = least.exclusive, most.exclusive
	return n
}

// geo2 reads the unit of a circle.
func (p *parser) geo2(f *Field, t token, b []bound) Node {
	n := node[Geo]()
	n.Field = f
	n.set(&n.Lon, b[0], numberParam)
	n.set(&n.Lat, b[1], numberParam)
	n.set(&n.Radius, b[2], numberParam)
	kind := p.word()
	switch kind {
	case termToken:
		n.Unit = strings.ToLower(p.advance().text)
	case numberToken, sizeToken:
		p.advance()
	case attributeToken:
		n.params = append(n.params, param{name: p.advance().text, kind: unitParam, text: &n.Unit})
	default:
		p.fail()
	}
	p.expect(rightBracket)
	if kind == numberToken || kind == sizeToken { // refused before the field, as in Redis
		panic(badUnit)
	}
	p.mustBe(f, GeoKind, "GEO", t)
	return n
}

// namedBracket reads a shape or a distance between vectors: both begin with a word.
func (p *parser) namedBracket(f *Field, t token) Node {
	name := p.advance()
	value := p.tok
	radius := p.mustNumber()
	if p.tok.kind == rightBracket && value.kind == attributeToken {
		n := node[GeoShape]()
		n.Field = f
		n.Predicate = predicates[strings.ToUpper(name.text)]
		n.params = append(n.params, param{name: value.text, kind: rawParam, text: &n.Shape})
		p.advance()
		if n.Predicate == 0 {
			panic(errorf(Syntax, "Syntax error: Expecting a geoshape predicate at offset %d", value.pos))
		}
		p.mustBe(f, GeoShapeKind, "GEOSHAPE", t)
		return n
	}
	n := node[VectorRange]()
	n.Field = f
	vector := p.expect(attributeToken)
	if !strings.EqualFold(name.text, "VECTOR_RANGE") {
		p.refuse("Syntax error: expecting vector similarity range command", name)
	}
	n.Param = vector.text
	n.params = append(n.params, param{name: vector.text, kind: rawParam, text: &n.Vector})
	n.set(&n.Radius, radius, numberParam)
	p.expect(rightBracket)
	p.mustBe(f, VectorKind, "VECTOR", t)
	return n
}

// knn reads [KNN …] after the arrow.
func (p *parser) knn(filter Node) Node {
	p.expect(leftBracket)
	n := node[KNN]()
	if _, all := filter.(*All); !all {
		n.Filter = filter
	}
	if p.word() != termToken {
		p.fail()
	}
	command := p.advance()
	k := p.advance()
	if k.kind != sizeToken && k.kind != attributeToken {
		p.refuse("Syntax error", k)
	}
	t := p.expect(modifierToken)
	n.Field = p.lookup(&t)
	n.Param = p.expect(attributeToken).text
	p.mustBe(n.Field, VectorKind, "VECTOR", t)
	if !strings.EqualFold(command.text, "KNN") {
		p.refuse("Syntax error: Expecting Vector Similarity command", command)
	}
	n.Yield = "__" + t.text + "_score"
	n.params = append(n.params, param{name: n.Param, kind: rawParam, text: &n.Vector})
	if n.K = int64(k.num); k.kind == attributeToken {
		n.params = append(n.params, param{name: k.text, kind: sizeParam, size: &n.K})
	}
	p.knnOptions(n)
	p.expect(rightBracket)
	if p.accept(arrowToken) {
		p.attributes(n)
	}
	return n
}

// knnOptions reads the pairs after the vector, and AS.
func (p *parser) knnOptions(n *KNN) {
	for p.tok.kind != asToken && p.word() == termToken {
		n.Options = append(n.Options, Option{Name: p.advance().text})
		p.optionValue()
		t := p.advance()
		o := &n.Options[len(n.Options)-1]
		if o.Value = t.text; t.kind == attributeToken {
			o.Value, o.param = "", t.text
		}
	}
	if p.accept(asToken) {
		p.optionValue()
		t := p.advance()
		n.named = true
		if n.Yield = unescape(t.text); t.kind == attributeToken {
			name, ok := p.Params[t.text]
			if !ok {
				panic(noParameter(t.text))
			}
			n.Yield = name
		}
	}
}

// optionValue fails unless the next token is a value.
func (p *parser) optionValue() {
	if k := p.word(); k != termToken && k != numberToken && k != sizeToken && k != attributeToken {
		p.fail()
	}
}
