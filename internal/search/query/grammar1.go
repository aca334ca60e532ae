package query

import "strings"

// How tightly tokens bind in dialect 1, where consecutive words are one operand.
const (
	tilde1 = iota + 1
	quote1
	minus1
	number1
	stopword1
	term1
	affix1
	percent1
	paren1
	modifier1
	and1
	or1
	arrow1
)

// binds1 returns how tightly the next token binds as the beginning of an operand, 0 if it cannot begin one.
func (p *parser) binds1() int {
	switch p.tok.kind {
	case tildeToken:
		return tilde1
	case quoteToken:
		return quote1
	case minusToken:
		return minus1
	case numberToken:
		return number1
	case stopwordToken:
		return stopword1
	case termToken:
		return term1
	case prefixToken, suffixToken, containsToken:
		return affix1
	case percentToken:
		return percent1
	case leftParen:
		return paren1
	case modifierToken:
		return modifier1
	}
	return 0
}

// query1 reads a whole query.
func (p *parser) query1() (root Node) {
	switch p.tok.kind {
	case endToken:
		return nil
	case starToken:
		p.advance()
		root = NewAll()
	default:
		root = p.expr1(0)
	}
	if p.tok.kind != endToken {
		p.fail()
	}
	return root
}

// expr1 reads operands and operators up to a token that does not bind tighter than the rule around it.
func (p *parser) expr1(around int) Node {
	left := p.operand1()
	for {
		switch {
		case p.tok.kind == arrowToken:
			p.advance()
			p.attributes(left)
		case p.tok.kind == orToken && or1 > around:
			p.advance()
			left = union1(left, p.nested1(2, or1))
		case p.binds1() > around:
			left = intersect1(left, p.nested1(1, and1))
		default:
			return left
		}
	}
}

// nested1 reads an expression inside a rule that has some symbols open.
func (p *parser) nested1(symbols, around int) Node {
	p.open(symbols)
	n := p.expr1(around)
	p.close(symbols)
	return n
}

// intersect1 adds the right side to the left one if that is a list already.
func intersect1(b, c Node) Node {
	if b == nil || c == nil {
		return either(b, c)
	}
	if list, ok := b.(*Intersect); ok && list.Fields.All() {
		list.Children = append(list.Children, c)
		return list
	}
	return &Intersect{common(), []Node{b, c}}
}

// union1 does the same for OR.
func union1(b, c Node) Node {
	if b == nil || c == nil {
		return either(b, c)
	}
	if list, ok := b.(*Union); ok && list.Fields.All() {
		list.Children = append(list.Children, c)
		return list
	}
	return &Union{common(), []Node{b, c}}
}

// operand1 reads an operand.
func (p *parser) operand1() Node {
	switch p.tok.kind {
	case leftParen:
		p.advance()
		n := p.nested1(1, 0)
		p.expect(rightParen)
		return n
	case minusToken:
		return negated(p.advance().kind, p.nested1(1, minus1))
	case tildeToken:
		return negated(p.advance().kind, p.nested1(1, tilde1))
	case quoteToken:
		return p.quoted1()
	case termToken, numberToken:
		return p.words1()
	case stopwordToken:
		p.advance()
		return nil
	case prefixToken, suffixToken, containsToken:
		return p.affixNode(p.advance(), false)
	case percentToken:
		return p.fuzzy()
	case modifierToken:
		return p.modifier1()
	}
	p.fail()
	return nil
}

// words1 reads words up to a stop-word. A number is allowed only in the second place.
func (p *parser) words1() Node {
	list := []Node{p.textNode(p.advance())}
	for p.tok.kind == termToken || p.tok.kind == numberToken && len(list) == 1 {
		list = append(list, p.textNode(p.advance()))
	}
	if len(list) == 1 {
		return list[0]
	}
	return &Intersect{common(), list}
}

// quoted1 reads a phrase. A stop-word is allowed after two words. A phrase of one word is the word, without its
// stems.
func (p *parser) quoted1() Node {
	p.advance()
	n := node[Phrase]()
	n.Verbatim = true
	for p.tok.kind != quoteToken || len(n.Words) == 0 {
		switch {
		case p.tok.kind == termToken || p.tok.kind == numberToken:
			n.Words = append(n.Words, p.split(p.tokenNode(p.advance(), false))...)
		case p.tok.kind == stopwordToken && len(n.Words) > 1:
			p.advance()
		default:
			p.fail()
		}
	}
	p.advance()
	if len(n.Words) == 1 {
		n.Words[0].Verbatim = true
		return n.Words[0]
	}
	return n
}

// modifier1 reads a field and its condition. Unknown fields and fields of other kinds match nothing.
func (p *parser) modifier1() Node {
	name := unescape(p.advance().text)
	names := []string{name}
	for p.accept(orToken) {
		if p.tok.kind != termToken && p.tok.kind != numberToken {
			p.fail()
		}
		names = append(names, p.advance().text)
	}
	p.expect(colonToken)
	if len(names) == 1 {
		f, known := p.Schema.Field(name)
		switch p.tok.kind {
		case leftBrace:
			return known1(p.tag1(f), known)
		case leftBracket:
			return p.bracket1(f, known)
		}
	}
	n := p.nested1(2, modifier1)
	if n != nil {
		var fields []*Field
		for _, name := range names {
			if f, ok := p.Schema.Field(name); ok && f.Kind&TextKind != 0 {
				fields = append(fields, f)
			}
		}
		n.Of().Fields = n.Of().Fields.and(OnlyIn(fields...))
	}
	return n
}

// known1 returns a node if its field is known.
func known1(n Node, known bool) Node {
	if !known {
		return nil
	}
	return n
}

// tag1 reads { one | or more | tags }. The closing brace may be missing.
func (p *parser) tag1(f *Field) Node {
	n := node[Tag]()
	n.Field = f
	p.advance() // the brace
	for {
		switch p.tok.kind {
		case prefixToken, suffixToken, containsToken:
			n.Values = append(n.Values, p.affixNode(p.advance(), true))
		case stopwordToken:
			n.Values = append(n.Values, p.tokenNode(p.advance(), true))
		case termToken, numberToken:
			n.Values = append(n.Values, p.tagWords1())
		default:
			p.fail()
		}
		for p.accept(rightBrace) {
		}
		if !p.accept(orToken) {
			return n
		}
	}
}

// tagWords1 reads a tag of one or more words. Stop-words after the second word are skipped.
func (p *parser) tagWords1() Node {
	list := []Node{p.tokenNode(p.advance(), true)}
	for {
		switch {
		case p.tok.kind == termToken || p.tok.kind == numberToken:
			list = append(list, p.tokenNode(p.advance(), true))
		case p.tok.kind == stopwordToken && len(list) > 1:
			p.advance()
		default:
			return tagNode(list)
		}
	}
}

// number1 reads a number after signs and, for an exclusive end, parentheses.
func (p *parser) number1() (b bound) {
	sign := 1.0
	for {
		switch p.tok.kind {
		case leftParen:
			b.exclusive = true
		case minusToken:
			sign = -sign
		default:
			b.num = sign * p.expect(numberToken).num
			return b
		}
		p.advance()
	}
}

// bracket1 reads a range or a circle.
func (p *parser) bracket1(f *Field, known bool) Node {
	p.advance()
	least, most := p.number1(), p.number1()
	if p.accept(rightBracket) {
		return known1(NewNumeric(f, least.num, most.num, least.exclusive, most.exclusive), known)
	}
	radius := p.number1()
	n := NewGeo(f, least.num, most.num, radius.num, strings.ToLower(p.expect(termToken).text))
	p.expect(rightBracket)
	if err := checkGeo(n); err != nil {
		panic(err)
	}
	return known1(n, known)
}
