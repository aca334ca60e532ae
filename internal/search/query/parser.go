package query

import (
	"math"
	"strconv"
	"strings"

	"github.com/atomredis/atomredis/internal/search/text"
)

// Options are the options of Parse.
type Options struct {
	Dialect   int               // 1 to 4; 2 to 4 have the same grammar
	Schema    Schema            // of the index
	Stopwords *text.Stopwords   // nil with NOSTOPWORDS
	Params    map[string]string // of PARAMS
	Language  text.Language     // of the query; matters for Chinese

	Slop    int  // of SLOP, -1 without it; invalid for text without order
	InOrder bool // of INORDER
}

// maxDepth is how many symbols may be open at once: parentheses, signs, left sides of operators.
const maxDepth = 255

// Parse reads a query. The tree has the values of parameters and no expansion. A query without words is Empty.
func Parse(query string, o Options) (root Node, err error) {
	p := &parser{lex: lexer{src: query, old: o.Dialect < 2, stopwords: o.Stopwords}, Options: o}
	defer func() {
		if r := recover(); r != nil {
			failure, ok := r.(*Error)
			if !ok {
				panic(r)
			}
			root, err = nil, failure
		}
	}()
	p.advance()
	if o.Dialect < 2 {
		root = p.query1()
	} else {
		root = p.query2()
	}
	if root == nil {
		return NewEmpty(), nil
	}
	Narrow(root, Fields{})
	if err := resolve(root, o.Params); err != nil {
		return nil, err
	}
	if err := check(root, o); err != nil {
		return nil, err
	}
	return root, nil
}

// parser reads a query by recursive descent. Its functions fail by a panic with an *Error, which Parse recovers.
type parser struct {
	Options
	lex   lexer
	tok   token // the next one
	depth int   // how many symbols are open
}

// advance moves to the next token and returns the previous one.
func (p *parser) advance() token {
	t := p.tok
	p.tok = p.lex.next()
	return t
}

// accept skips the next token if it is of a kind.
func (p *parser) accept(k kind) bool {
	if p.tok.kind == k {
		p.advance()
		return true
	}
	return false
}

// expect skips the next token, which must be of a kind.
func (p *parser) expect(k kind) token {
	if p.tok.kind != k {
		p.fail()
	}
	return p.advance()
}

// fail refuses the query at the next token.
func (p *parser) fail() { p.refuse("Syntax error", p.tok) }

// refuse refuses the query at a token.
func (p *parser) refuse(what string, t token) {
	panic(errorf(Syntax, "%s at offset %d near %s", what, t.pos, t.text))
}

// open counts symbols that stay open until close is called with the same number.
func (p *parser) open(symbols int) {
	if p.depth += symbols; p.depth >= maxDepth {
		if p.lex.old {
			p.fail()
		}
		panic(errorf(Syntax, "Parser stack overflow. Try moving nested parentheses more to the left"))
	}
}

// close undoes open.
func (p *parser) close(symbols int) { p.depth -= symbols }

// mustBe refuses a field that is not of a kind.
func (p *parser) mustBe(f *Field, k Kind, name string, t token) {
	if f.Kind&k == 0 {
		p.refuse("Expected a "+name+" field", t)
	}
}

// node makes a node of a type with all defaults.
func node[T any, N interface {
	*T
	Node
}]() N {
	n := N(new(T))
	*n.Of() = common()
	return n
}

// affixNode makes the node of a prefix, suffix or infix.
func (p *parser) affixNode(t token, inTag bool) Node {
	n := node[Affix]()
	n.Before, n.After = t.kind != prefixToken, t.kind != suffixToken
	p.textOf(t, t.param, inTag, &n.Common, &n.Text, unescape)
	return n
}

// wildcardNode makes the node of a pattern.
func (p *parser) wildcardNode(t token) Node {
	n := node[Wildcard]()
	if t.param {
		n.params = append(n.params, param{name: t.text, kind: rawParam, text: &n.Pattern})
	} else {
		n.Pattern = t.text
	}
	return n
}

// textOf sets the text of a node to that of a token, changed by a function, or to the value of a parameter.
func (p *parser) textOf(t token, isParam, inTag bool, c *Common, to *string, change func(string) string) {
	switch {
	case !isParam:
		*to = change(t.text)
	case inTag:
		c.params = append(c.params, param{name: t.text, kind: tagParam, text: to})
	default:
		c.params = append(c.params, param{name: t.text, kind: wordParam, text: to, of: c})
	}
}

// tokenNode makes the node of a word, a number or a parameter. Tags keep their case.
func (p *parser) tokenNode(t token, inTag bool) *Token {
	n := node[Token]()
	change := normalize
	if inTag {
		change = unescape
	}
	isParam := t.kind == attributeToken
	p.textOf(t, isParam, inTag, &n.Common, &n.Text, change)
	switch { // EXPLAIN shows the escapes of tags
	case inTag && isParam:
		n.params[len(n.params)-1].shown = &n.shown
	case inTag && t.kind == exactToken:
		n.shown = n.Text
	case inTag:
		n.shown = t.text
	}
	n.Verbatim = !p.lex.old && (t.kind == numberToken || t.kind == sizeToken)
	return n
}

// tagNode makes the node of the words of a tag. EXPLAIN shows several words as in text.
func tagNode(words []Node) Node {
	if len(words) == 1 {
		return words[0]
	}
	for _, n := range words {
		t := n.(*Token)
		t.shown = text.Fold(t.Text)
	}
	return &Intersect{common(), words}
}

// textNode makes the node of a word of text. In Chinese several characters are a phrase.
func (p *parser) textNode(t token) Node {
	n := p.tokenNode(t, false)
	if words := p.split(n); len(words) > 1 {
		phrase := node[Phrase]()
		phrase.Words, phrase.Verbatim = words, true
		return phrase
	}
	return n
}

// split returns the terms of a word of a query: the word itself, or the characters of Chinese.
func (p *parser) split(n *Token) (words []*Token) {
	if p.Language != text.Chinese {
		return []*Token{n}
	}
	for _, word := range text.SplitChinese(n.Text) {
		words = append(words, newToken(word))
	}
	if len(words) <= 1 {
		return []*Token{n}
	}
	return words
}

// setAttribute sets an attribute of a node.
func setAttribute(n Node, name, value string) *Error {
	invalid := errorf(Syntax, "Invalid value (%s) for `%s`", value, name)
	if value == "" {
		return invalid
	}
	c := n.Of()
	switch lowerName := strings.ToLower(name); lowerName {
	case "slop":
		slop, err := strconv.ParseInt(value, 10, 32)
		if err != nil || slop < -1 {
			return invalid
		}
		c.Slop = int(slop)
	case "inorder", "phonetic":
		on, ok := map[string]bool{"true": true, "1": true, "false": false, "0": false}[strings.ToLower(value)]
		switch {
		case !ok:
			return invalid
		case lowerName == "inorder":
			c.InOrder, c.ordered = on, true
		case on:
			c.Phonetic = PhoneticOn
		default:
			c.Phonetic = PhoneticOff
		}
	case "weight":
		weight, ok := parseDouble(value)
		if !ok || weight < 0 || math.IsNaN(weight) {
			return invalid
		}
		c.Weight = weight
	case "yield_distance_as", "ef_runtime", "epsilon", "hybrid_policy", "batch_size", "shard_k_ratio", "rerank":
		return setVectorAttribute(n, lowerName, name, value)
	default:
		return errorf(BadOption, "Invalid attribute %s", name)
	}
	return nil
}

// setVectorAttribute sets an attribute that only vector searches have.
func setVectorAttribute(n Node, lowerName, name, value string) *Error {
	var options *[]Option
	switch n := n.(type) {
	case *KNN:
		if options = &n.Options; lowerName == "yield_distance_as" {
			if n.named {
				return errorf(Duplicate, "Distance field was specified twice for vector query: %s and %s", n.Yield, value)
			}
			n.Yield = value
			return nil
		}
	case *VectorRange:
		if options = &n.Options; lowerName == "yield_distance_as" {
			n.Yield = value
			return nil
		}
	}
	if options == nil || lowerName == "yield_distance_as" {
		return errorf(BadOption, "Invalid attribute %s", name)
	}
	*options = append(*options, Option{Name: name, Value: value})
	return nil
}

// attributes reads { $name: value; … } after the arrow and sets the attributes of a node, which may be nil.
func (p *parser) attributes(n Node) {
	p.expect(leftBrace)
	type pair struct{ name, value string }
	var list []pair
	for p.tok.kind != rightBrace {
		if p.accept(semicolonToken) {
			continue
		}
		name := p.expect(attributeToken)
		p.expect(colonToken)
		value := p.tok.text
		switch k := p.word(); {
		case k == attributeToken && !p.lex.old:
			found, ok := p.Params[value]
			if !ok {
				panic(noParameter(value))
			}
			value = found
		case k != termToken && k != numberToken && k != sizeToken:
			p.fail()
		}
		p.advance()
		list = append(list, pair{name.text, value})
		if p.tok.kind != rightBrace && p.tok.kind != semicolonToken {
			p.fail()
		}
	}
	p.advance()
	if n == nil {
		return
	}
	for _, a := range list {
		if err := setAttribute(n, a.name, a.value); err != nil {
			panic(err)
		}
	}
}

// word returns the kind of the next token where only words are allowed: keywords and quoted texts count as words
// there.
func (p *parser) word() kind {
	switch p.tok.kind {
	case exactToken, asToken, ismissingToken:
		return termToken
	}
	return p.tok.kind
}

// fuzzy reads %word%, with one to three signs on each side.
func (p *parser) fuzzy() Node {
	distance := 0
	for distance < 3 && p.accept(percentToken) {
		distance++
	}
	switch p.word() {
	case termToken, numberToken, sizeToken:
	case attributeToken:
		if p.lex.old {
			p.fail()
		}
	case stopwordToken:
	default:
		p.fail()
	}
	n := node[Fuzzy]()
	n.Distance, n.Filled = distance, p.lex.old
	t := p.advance()
	p.textOf(t, t.kind == attributeToken, false, &n.Common, &n.Text, normalize)
	for range distance {
		p.expect(percentToken)
	}
	return n
}
