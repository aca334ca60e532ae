package scripting

import (
	"strings"
	"unicode/utf8"

	lua "github.com/yuin/gopher-lua"
)

func (j *jsonLibrary) decode(L *lua.LState) int {
	oneArgument(L, "decode")
	text := argString(L, 1, "decode")
	if len(text) >= 2 && (text[0] == 0 || text[1] == 0) {
		fail(L, "JSON parser does not support UTF-16 or UTF-32")
	}
	d := jsonDecoder{m: j.m, L: L, config: &j.config, text: text, keys: j.m.scratch.keys, values: j.m.scratch.values}
	d.next()
	v := d.value(0, 1)
	if d.next(); d.token != tokenEnd {
		d.fail("the end")
	}
	j.m.scratch.keepLists(d.keys, d.values)
	L.Push(v)
	return 1
}

// jsonToken is a kind of token.
type jsonToken uint8

const (
	tokenInvalid jsonToken = iota
	tokenUnknown           // the first byte does not determine the kind
	tokenSpace
	tokenObject
	tokenObjectEnd
	tokenArray
	tokenArrayEnd
	tokenString
	tokenNumber
	tokenBoolean
	tokenNull
	tokenColon
	tokenComma
	tokenEnd
)

// tokenNames are the names of tokens in messages.
var tokenNames = [...]string{tokenObject: "T_OBJ_BEGIN", tokenObjectEnd: "T_OBJ_END", tokenArray: "T_ARR_BEGIN",
	tokenArrayEnd: "T_ARR_END", tokenString: "T_STRING", tokenNumber: "T_NUMBER", tokenBoolean: "T_BOOLEAN",
	tokenNull: "T_NULL", tokenColon: "T_COLON", tokenComma: "T_COMMA", tokenEnd: "T_END"}

// firstBytes gives the kind of a token by its first byte. A text ends at its first zero byte.
var firstBytes = func() (kinds [256]jsonToken) {
	for c, kind := range map[byte]jsonToken{'{': tokenObject, '}': tokenObjectEnd, '[': tokenArray, ']': tokenArrayEnd,
		',': tokenComma, ':': tokenColon, 0: tokenEnd, ' ': tokenSpace, '\t': tokenSpace, '\n': tokenSpace,
		'\r': tokenSpace} {
		kinds[c] = kind
	}
	for _, c := range []byte(`"+-0123456789ftnNiI`) {
		kinds[c] = tokenUnknown
	}
	return kinds
}()

// jsonDecoder reads a text token by token.
type jsonDecoder struct {
	effort
	m      *vm
	L      *lua.LState
	config *jsonConfig
	text   string
	at     int // the position after the current token

	token   jsonToken
	start   int        // where the token, or its mistake, begins
	trouble string     // of an invalid token
	string  string     // a string's value
	scalar  lua.LValue // a number's or a boolean's value
	// The keys and values of the tables being read; those of the innermost table are last.
	keys   []string
	values []lua.LValue
}

// byteAt returns a byte of the text, and 0 after its end.
func (d *jsonDecoder) byteAt(i int) byte {
	if i < len(d.text) {
		return d.text[i]
	}
	return 0
}

// invalid makes the current token an invalid one.
func (d *jsonDecoder) invalid(at int, trouble string) {
	d.token, d.start, d.trouble = tokenInvalid, at, trouble
}

// fail complains that the current token is not the expected one.
func (d *jsonDecoder) fail(expected string) {
	found := d.trouble
	if d.token != tokenInvalid {
		found = tokenNames[d.token]
	}
	fail(d.L, "Expected %s but found %s at character %d", expected, found, d.start+1)
}

// next reads a token.
func (d *jsonDecoder) next() {
	at := d.at
	for at < len(d.text) && firstBytes[d.text[at]] == tokenSpace {
		at++
	}
	d.at, d.start = at, at
	c := d.byteAt(at)
	d.token = firstBytes[c]
	switch d.token {
	case tokenEnd:
		return
	case tokenInvalid:
		d.invalid(at, "invalid token")
		return
	case tokenUnknown:
	default:
		d.at++
		return
	}
	switch rest := d.text[at:]; {
	case c == '"':
		d.readString()
	case c == '-' || isDigit(c):
		if !d.config.decodeInvalid && beyondJSON(rest) {
			d.invalid(at, "invalid number")
			return
		}
		d.readNumber()
	case strings.HasPrefix(rest, "true"):
		d.token, d.scalar, d.at = tokenBoolean, lua.LTrue, at+4
	case strings.HasPrefix(rest, "false"):
		d.token, d.scalar, d.at = tokenBoolean, lua.LFalse, at+5
	case strings.HasPrefix(rest, "null"):
		d.token, d.at = tokenNull, at+4
	case d.config.decodeInvalid && beyondJSON(rest):
		d.readNumber()
	default:
		d.invalid(at, "invalid token")
	}
}

// beyondJSON reports whether s begins like a number that C's library can read and JSON does not allow.
func beyondJSON(s string) bool {
	if s[0] == '+' {
		return true
	}
	s = strings.TrimPrefix(s, "-")
	if s == "" {
		return false
	}
	if s[0] == '0' {
		return len(s) > 1 && (s[1]|0x20 == 'x' || isDigit(s[1]))
	}
	return hasWord(s, "inf") || hasWord(s, "nan")
}

func (d *jsonDecoder) readNumber() {
	f, length := leadingNumber(d.text[d.at:])
	if length == 0 {
		d.invalid(d.at, "invalid number")
		return
	}
	d.token, d.scalar = tokenNumber, lua.LNumber(f)
	d.at += length
}

// readString reads a string; its opening quote is next.
func (d *jsonDecoder) readString() {
	d.token = tokenString
	start := d.at + 1
	for i := start; i < len(d.text); i++ {
		switch d.text[i] {
		case '"':
			d.string, d.at = d.text[start:i], i+1
			return
		case '\\':
			d.readEscaped(start, i)
			return
		case 0:
			d.invalid(i, "unexpected end of string")
			return
		}
	}
	d.invalid(len(d.text), "unexpected end of string")
}

// readEscaped reads a string, starting at its first escape, which is at i.
func (d *jsonDecoder) readEscaped(start, i int) {
	buf := append(make([]byte, 0, i-start+32), d.text[start:i]...)
	for {
		c := d.byteAt(i)
		switch c {
		case '"':
			d.string, d.at = string(buf), i+1
			return
		case 0:
			d.invalid(i, "unexpected end of string")
			return
		case '\\':
			switch c = d.byteAt(i + 1); c {
			case '"', '\\', '/':
			case 'b':
				c = '\b'
			case 't':
				c = '\t'
			case 'n':
				c = '\n'
			case 'f':
				c = '\f'
			case 'r':
				c = '\r'
			case 'u':
				r, length := codePoint(d.text[i:])
				if length == 0 {
					d.invalid(i, "invalid unicode escape code")
					return
				}
				buf = utf8.AppendRune(buf, r)
				i += length
				continue
			default:
				d.invalid(i, "invalid escape code")
				return
			}
			i++
		}
		buf = append(buf, c)
		i++
	}
}

// codePoint reads an escape \uXXXX, or two that are a surrogate pair, at the start of s. A length of 0 means that there
// is none.
func codePoint(s string) (r rune, length int) {
	const escape = len(`\uXXXX`)
	r, ok := hexRune(s)
	if !ok {
		return 0, 0
	}
	if r&^0x7ff != 0xd800 {
		return r, escape
	}
	s = s[escape:]
	if r >= 0xdc00 || !strings.HasPrefix(s, `\u`) {
		return 0, 0
	}
	low, ok := hexRune(s)
	if !ok || low&^0x3ff != 0xdc00 {
		return 0, 0
	}
	return 0x10000 + (r&0x3ff)<<10 | low&0x3ff, 2 * escape
}

// hexRune reads the four digits after \u.
func hexRune(s string) (r rune, ok bool) {
	if len(s) < 6 {
		return 0, false
	}
	for _, c := range []byte(s[2:6]) {
		digit, ok := hexDigit(c)
		if !ok {
			return 0, false
		}
		r = r<<4 | rune(digit)
	}
	return r, true
}

// valueEffort is the number of steps for reading a value; see effort.
const valueEffort = 32

// value returns the value that begins with the current token. depth is the number of tables around it, and used how
// much of Lua's stack is in use there.
func (d *jsonDecoder) value(depth int32, used int) lua.LValue {
	d.spend(d.L, valueEffort)
	switch d.token {
	case tokenString:
		return lua.LString(d.string)
	case tokenNumber, tokenBoolean:
		return d.scalar
	case tokenObject:
		return d.object(depth+1, used)
	case tokenArray:
		return d.array(depth+1, used)
	case tokenNull:
		return jsonNull
	}
	d.fail("value")
	return lua.LNil
}

// descend bounds the nesting; needed is the part of Lua's stack that the table needs.
func (d *jsonDecoder) descend(depth int32, used, needed int) {
	if depth > d.config.decodeDepth || used+needed > maxStack {
		fail(d.L, "Found too many nested data structures (%d) at character %d", depth, d.at)
	}
}

func (d *jsonDecoder) array(depth int32, used int) lua.LValue {
	d.descend(depth, used, 2)
	mark := len(d.values)
	for d.next(); d.token != tokenArrayEnd || len(d.values) > mark; d.next() {
		v := d.value(depth, used+1)
		d.values = append(d.values, v)
		if d.next(); d.token == tokenArrayEnd {
			break
		}
		if d.token != tokenComma {
			d.fail("comma or array end")
		}
	}
	list := d.values[mark:]
	t := d.L.CreateTable(len(list), 0)
	for i, v := range list {
		t.RawSetInt(i+1, v)
	}
	d.values = d.values[:mark]
	if d.config.decodeArrays {
		t.Metatable = d.m.arrayMetatable()
	}
	return t
}

func (d *jsonDecoder) object(depth int32, used int) lua.LValue {
	d.descend(depth, used, 3)
	firstKey, firstValue := len(d.keys), len(d.values)
	for d.next(); d.token != tokenObjectEnd || len(d.keys) > firstKey; d.next() {
		if d.token != tokenString {
			d.fail("object key string")
		}
		d.keys = append(d.keys, d.string)
		if d.next(); d.token != tokenColon {
			d.fail("colon")
		}
		d.next()
		v := d.value(depth, used+2)
		d.values = append(d.values, v)
		if d.next(); d.token == tokenObjectEnd {
			break
		}
		if d.token != tokenComma {
			d.fail("comma or object end")
		}
	}
	keys, values := d.keys[firstKey:], d.values[firstValue:]
	t := d.L.CreateTable(0, len(keys))
	for i, key := range keys {
		t.RawSetString(key, values[i])
	}
	d.keys, d.values = d.keys[:firstKey], d.values[:firstValue]
	return t
}
