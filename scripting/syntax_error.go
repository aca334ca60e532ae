package scripting

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/ast"
	"github.com/yuin/gopher-lua/parse"
)

// This file says what is wrong with a source in the words of Lua 5.1. The parser, which is another's, tells at which token it stopped, and that is
// the one that Lua would complain of. What Lua would have expected there the parser is asked: it reads what is before the token once more, with one
// of the words behind it that may be missing.

// maxExplained bounds the source before an error that is read again.
const maxExplained = 1 << 16

// syntaxMessage gives the parser's error Lua's form.
func syntaxMessage(name, source string, err error) string {
	var e *parse.Error
	if !errors.As(err, &e) {
		return fmt.Sprintf("%s:1: %v", name, err)
	}
	x := explain(source, e)
	return fmt.Sprintf("%s:%d: %s near '%s'", name, x.line, x.message, x.near)
}

// explanation is a message, the line and the token that it complains of.
type explanation struct {
	message, near string
	line          int
}

// opening is something that the source has begun and not ended.
type opening struct {
	word    string // what Lua calls it
	line    int
	headed  bool // a loop whose "do" is still to come
	unnamed bool // a parenthesis that Lua does not mention: the parameters of a function
}

// tokens reads a source again.
type tokens struct {
	places
	scanner *parse.Scanner
	lexer   parse.Lexer
}

func tokensOf(source, name string) *tokens {
	return &tokens{places: places{source: source, line: 1}, scanner: parse.NewScanner(strings.NewReader(source), name)}
}

// next returns a token and where it begins and ends in the source, or what is wrong with it.
func (t *tokens) next() (token ast.Token, start, stop int, err error) {
	token, err = t.scanner.Scan(&t.lexer)
	start = t.of(token.Pos) - 1
	if token.Type == parse.EOF {
		start = len(t.source)
	}
	stop = len(t.source)
	if t.scanner.Pos.Line != parse.EOF {
		stop = t.of(t.scanner.Pos)
	}
	return token, start, stop, err
}

// show returns how Lua shows a token, and in which line it complains of it.
func (t *tokens) show(token ast.Token, start, stop int) (near string, line int) {
	if start == len(t.source) {
		return "<eof>", lines(t.source)
	}
	return tokenText(t.source[start:stop], token), lines(t.source[:stop])
}

// explain finds out what Lua would say.
func explain(source string, e *parse.Error) explanation {
	var (
		t       = tokensOf(source, e.Pos.Source)
		open    []opening
		before  ast.Token // the token before the one that is wrong
		end     int       // of it, in the source
		heading bool      // between "function" and its parameters
	)
	for {
		token, start, stop, err := t.next()
		if token.Type == parse.TNumber {
			if number := numeral.FindString(source[start:]); !validNumeral.MatchString(number) {
				return explanation{"malformed number", number, token.Pos.Line}
			}
		}
		if err != nil {
			var lexical *parse.Error
			if errors.As(err, &lexical) {
				if x, ok := explainToken(source, source[start:], lexical); ok {
					return x
				}
			}
			start = stop - 1 // a character that begins no token
		}
		if err != nil || token.Type == parse.EOF || t.scanner.Pos == e.Pos || token.Pos == e.Pos {
			near, line := t.show(token, start, stop)
			message := e.Message
			if err != nil || strings.HasPrefix(message, "syntax error") || message == "parse error" {
				p := prober{read: source[:end], before: before, open: open}
				message = p.expected(near, line)
			}
			return explanation{message, near, line}
		}
		end, before = stop, token
		open, heading = follow(open, heading, source[start:stop], token)
	}
}

// compileMessage gives an error of the compiler, which knows the line only, Lua's form.
func compileMessage(name, source string, e *lua.CompileError) string {
	x := explanation{message: e.Message, line: e.Line}
	switch {
	case strings.HasPrefix(e.Message, "cannot use '...'"):
		x.near = "..."
	case e.Message == "no loop to break":
		// Lua complains of what follows the break.
		t, isBreak := tokensOf(source, name), false
		for x.near == "" {
			token, start, stop, err := t.next()
			if err != nil {
				break // which the parser would have found
			}
			if isBreak || token.Type == parse.EOF {
				x.near, x.line = t.show(token, start, stop)
			}
			isBreak = token.Type == parse.TBreak && token.Pos.Line == e.Line
		}
	}
	if x.near == "" {
		return fmt.Sprintf("%s:%d: %s", name, x.line, x.message)
	}
	return fmt.Sprintf("%s:%d: %s near '%s'", name, x.line, x.message, x.near)
}

// numeral is what Lua reads as one number, and validNumeral what can be one.
var (
	numeral      = regexp.MustCompile(`^[0-9.]+([eE][+-]?)?[0-9A-Za-z_]*`)
	validNumeral = regexp.MustCompile(`^(([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|0[xX][0-9a-fA-F]+)$`)
)

// explainToken says what is wrong within a token, which text begins with. ok is false if that is its first character.
func explainToken(source, text string, e *parse.Error) (x explanation, ok bool) {
	line := e.Pos.Line
	if line < 0 {
		line = lines(source)
	}
	switch e.Message {
	case "unterminated string":
		if e.Pos.Line < 0 {
			return explanation{"unfinished string", "<eof>", line}, true
		}
		return explanation{"unfinished string", text[:1] + e.Token, line - 1}, true
	case "unterminated multiline string":
		return explanation{"unfinished long string", "<eof>", line}, true
	case "invalid multiline comment":
		return explanation{"unfinished long comment", "<eof>", line}, true
	case "invalid multiline string":
		return explanation{"invalid long string delimiter", text[:1+strings.IndexFunc(text[1:]+" ", func(c rune) bool { return c != '=' })], line}, true
	}
	return explanation{}, false
}

// tokenText is how a message shows a token.
func tokenText(text string, token ast.Token) string {
	switch {
	case token.Type == parse.TString && text[0] != '[':
		return text[:1] + token.Str + text[:1]
	case len(text) == 1 && (text[0] < ' ' || text[0] == 0x7f):
		return fmt.Sprintf("char(%d)", text[0])
	}
	return text
}

// follow carries on what is open, behind one more token.
func follow(open []opening, heading bool, word string, token ast.Token) (_ []opening, stillHeading bool) {
	begin := func(o opening) { o.line = token.Pos.Line; open = append(open, o) }
	switch token.Type {
	case '(':
		begin(opening{word: word, unnamed: heading})
		return open, false
	case '{', '[', parse.TIf, parse.TRepeat:
		begin(opening{word: word})
	case parse.TFunction:
		begin(opening{word: word})
		return open, true
	case parse.TFor, parse.TWhile:
		begin(opening{word: word, headed: true})
	case parse.TDo:
		if last := len(open) - 1; last >= 0 && open[last].headed {
			open[last].headed = false
		} else {
			begin(opening{word: word})
		}
	case ')', '}', ']', parse.TEnd, parse.TUntil:
		if len(open) > 0 {
			open = open[:len(open)-1]
		}
	}
	return open, heading
}

// prober asks the parser what could follow.
type prober struct {
	read   string // what the parser has accepted
	before ast.Token
	open   []opening
}

// takes reports whether the parser accepts a word behind what it has read.
func (p *prober) takes(word string) bool {
	_, err := parse.Parse(strings.NewReader(p.read+" "+word), "")
	var e *parse.Error
	return err == nil || errors.As(err, &e) && e.Pos.Line == parse.EOF
}

// expected returns what Lua says that it expected in the place of a token.
func (p *prober) expected(near string, line int) string {
	const unexpected = "unexpected symbol"
	if len(p.read) > maxExplained {
		return unexpected
	}
	ends := slices.Contains([]string{"<eof>", "else", "elseif", "end", "until"}, near) // so that there are no more statements
	switch {
	case ends && (p.before.Type == parse.TReturn || p.takes("local")):
		return p.block(line)
	case p.takes("0") || p.takes("local"):
		return unexpected
	case p.takes("..."):
		return "<name> or '...' expected"
	case p.takes("x"):
		if p.takes("(") { // another variable of an assignment
			return unexpected
		}
		return "'<name>' expected"
	case p.takes("in"):
		if p.takes("=") {
			return "'=' or 'in' expected"
		}
		return "'in' expected"
	}
	for _, word := range []string{"then", "do", ")", "]", "}", "="} {
		switch {
		case !p.takes(word):
		case word == ")" || word == "}":
			return p.closing(word, line)
		default:
			return "'" + word + "' expected"
		}
	}
	switch {
	case p.takes(";"):
	case p.takes(","):
		return "',' expected"
	case p.takes("{}") && p.before.Type == ')': // an expression in parentheses that is neither called nor assigned to
		return "syntax error"
	case p.takes("{}"):
		return "function arguments expected"
	case p.takes("("):
		return "'(' expected"
	}
	return p.block(line) // behind a return
}

// block returns that the end of the innermost block was expected.
func (p *prober) block(line int) string {
	switch last := len(p.open) - 1; {
	case last < 0:
		return "'<eof>' expected"
	case p.open[last].word == "repeat":
		return p.closing("until", line)
	}
	return p.closing("end", line)
}

// closing returns that a word was expected that ends what is open.
func (p *prober) closing(word string, line int) string {
	if last := len(p.open) - 1; last >= 0 && !p.open[last].unnamed && p.open[last].line != line {
		return fmt.Sprintf("'%s' expected (to close '%s' at line %d)", word, p.open[last].word, p.open[last].line)
	}
	return "'" + word + "' expected"
}

// places turns the scanner's positions, which only grow, into offsets.
type places struct {
	source      string
	line, begin int // begin is where the line begins
}

// of returns the offset behind the character at a position.
func (p *places) of(pos ast.Position) int {
	for p.line < pos.Line {
		_, next, found := cutLine(p.source[p.begin:])
		if !found {
			break
		}
		p.line++
		p.begin = len(p.source) - len(next)
	}
	return min(p.begin+pos.Column, len(p.source))
}

// lines returns the number of the line that a text ends in.
func lines(text string) int {
	n := 1
	for {
		_, rest, found := cutLine(text)
		if !found {
			return n
		}
		n++
		text = rest
	}
}

// cutLine cuts a text behind its first line. "\r\n" and "\n\r" end one line.
func cutLine(text string) (line, rest string, found bool) {
	i := strings.IndexAny(text, "\r\n")
	if i < 0 {
		return text, "", false
	}
	end := i + 1
	if end < len(text) && (text[end] == '\r' || text[end] == '\n') && text[end] != text[i] {
		end++
	}
	return text[:i], text[end:], true
}
