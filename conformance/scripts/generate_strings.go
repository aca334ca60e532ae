package scripts

import (
	"fmt"
	"strconv"
	"strings"
)

// The calls of Lua's own libraries.

func (g *generator) format() call {
	var b strings.Builder
	c := call{function: "string.format", args: []expr{nil}}
	for range 1 + g.rnd.IntN(3) {
		b.WriteString(g.bytes(g.rnd.IntN(3)))
		if g.chance(4) {
			b.WriteString("%%")
			continue
		}
		b.WriteByte('%')
		for range g.rnd.IntN(3) {
			b.WriteString(g.pick("-", "+", " ", "#", "0"))
		}
		if g.chance(3) {
			b.WriteString("-+ #0-")
		}
		if g.chance(50) {
			b.WriteString(strconv.Itoa(g.rnd.IntN(25)))
		}
		if g.chance(50) {
			b.WriteByte('.')
			if g.chance(90) {
				b.WriteString(strconv.Itoa(g.rnd.IntN(25)))
			}
		}
		if g.chance(2) {
			b.WriteString(strconv.Itoa(g.rnd.IntN(2000)))
		}
		verb := g.pick("d", "i", "o", "u", "x", "X", "e", "E", "f", "g", "G", "g", "s", "s", "q", "c", "d", "x", "f")
		if g.chance(2) {
			verb = g.pick("a", "p", "n", "D", "", "\x00", "%", "é")
		}
		b.WriteString(verb)
		switch {
		case verb == "s" || verb == "q":
			switch {
			case g.chance(15):
				c.args = append(c.args, g.number())
			case g.chance(8):
				c.args = append(c.args, text(strings.Repeat(g.bytes(10), 9+g.rnd.IntN(3))))
			default:
				c.args = append(c.args, text(g.bytes(g.rnd.IntN(15))))
			}
		case verb == "c":
			c.args = append(c.args, atom(strconv.Itoa(g.rnd.IntN(300)-20)))
		case g.chance(7):
			c.args = append(c.args, g.numberText())
		default:
			c.args = append(c.args, g.number())
		}
	}
	b.WriteString(g.bytes(g.rnd.IntN(3)))
	if g.chance(2) {
		b.WriteByte('%')
	}
	c.args[0] = text(b.String())
	return c
}

// pattern returns a Lua pattern, sometimes an invalid one.
func (g *generator) pattern() string {
	var b strings.Builder
	if g.chance(15) {
		b.WriteByte('^')
	}
	open := 0
	for range 1 + g.rnd.IntN(5) {
		switch g.rnd.IntN(12) {
		case 0:
			b.WriteByte('(')
			open++
			continue
		case 1:
			if open > 0 {
				b.WriteByte(')')
				open--
				continue
			}
			b.WriteString("()")
		case 2:
			b.WriteString(g.set())
		case 3, 4:
			b.WriteString("%" + g.pick("a", "c", "d", "l", "p", "s", "u", "w", "x", "z", "A", "C", "D", "L", "P", "S", "U",
				"W", "X", "Z", ".", "%", "-", "g", "\xff"))
		case 5:
			b.WriteString(g.pick("%b()", "%bxy", "%baa", "%f[%w]", "%f[^ab]", "%1", "%2", "%0", "%b", "%f", "%fa", "%bx"))
			continue
		case 6:
			b.WriteByte('.')
		case 7:
			b.WriteString(g.pick("$", "-", "*", "]", "%", "[", "[^", "[]", "[a", ")", "\x00"))
		default:
			b.WriteString(g.pick("a", "b", "c", "x", "y", "0", "1", " ", ".", "A"))
		}
		if g.chance(35) {
			b.WriteString(g.pick("*", "+", "-", "?"))
		}
	}
	for range open {
		if g.chance(95) {
			b.WriteByte(')')
		}
	}
	if g.chance(10) {
		b.WriteByte('$')
	}
	return b.String()
}

func (g *generator) set() string {
	var b strings.Builder
	b.WriteByte('[')
	if g.chance(30) {
		b.WriteByte('^')
	}
	if g.chance(10) {
		b.WriteByte(']')
	}
	for range 1 + g.rnd.IntN(3) {
		b.WriteString(g.pick("a", "b", "x", "a-c", "0-9", "z-a", "%d", "%s", "%]", "%-", "-", "^", "%", "+--", "\x00-\x1f",
			"é", "%a-z", "a-%%"))
	}
	b.WriteByte(']')
	return b.String()
}

// subject returns a string that patterns match now and then.
func (g *generator) subject() expr {
	var b strings.Builder
	for range g.rnd.IntN(14) {
		b.WriteString(g.pick("a", "b", "c", "x", "y", "0", "1", " ", "(", ")", ".", "A", "é", "\x00", "-", "aa", "ab", "xy"))
	}
	return text(b.String())
}

func (g *generator) find() call {
	function := g.pick("find", "match", "find", "match", "gmatch")
	c := call{function: "string." + function, args: []expr{g.subject(), text(g.pattern())}}
	if function == "gmatch" {
		return call{function: "collect", args: c.args}
	}
	if g.chance(25) {
		c.args = append(c.args, g.small())
		if function == "find" && g.chance(30) {
			c.args = append(c.args, atom(g.pick("true", "false", "1", "nil")))
		}
	}
	return c
}

func (g *generator) substitute() call {
	c := call{function: "string.gsub", args: []expr{g.subject(), text(g.pattern())}}
	switch g.rnd.IntN(6) {
	case 0:
		c.args = append(c.args, table{{text("a"), text("X")}, {text("b"), atom("5")},
			{text("x"), atom(g.pick("false", "true", "{}", "0.1"))}})
	case 1:
		c.args = append(c.args, atom(g.pick("function(...) return table.concat({...},'|') end", "function() end",
			"function(a) return false end",
			"function(a) return {} end", "function(a,b) return b end", "string.upper", "string.rep")))
	case 2:
		c.args = append(c.args, g.number())
	default:
		var b strings.Builder
		for range g.rnd.IntN(4) {
			b.WriteString(g.pick("%0", "%1", "%2", "%%", "x", "<", "%a", "%", "\x00", "é"))
		}
		c.args = append(c.args, text(b.String()))
	}
	if g.chance(15) {
		c.args = append(c.args, g.small())
	}
	return c
}

func (g *generator) toNumber() call {
	c := call{function: "tonumber", args: []expr{g.numberText()}}
	if g.chance(35) {
		c.args = append(c.args, atom(strconv.Itoa(g.rnd.IntN(40))))
		if g.chance(70) {
			s := g.pick("", "-", "+", " ", "0x", "-0x", " 0X") +
				strconv.FormatUint(g.rnd.Uint64()>>g.rnd.IntN(64), 2+g.rnd.IntN(35))
			if g.chance(10) {
				s = string(g.mutate([]byte(s), "0123zZ -+x"))
			}
			c.args[0] = text(s + g.pick("", "", "", " ", "\x00", "zz", "ffffffffffffffff"))
		}
	}
	return c
}

func (g *generator) toString() call {
	switch g.rnd.IntN(5) {
	case 0: // numbers that are not literals
		return call{function: "tostring", args: []expr{call{function: "tonumber", args: []expr{g.numberText()}}}}
	case 1: // results of operators on strings and numbers; the interpreter under test has no negative zero
		operation := "local function f(a,b) local r=a" + g.pick("+", "-", "*", "/", "..") + "b " +
			"\nif type(r)=='number' then r=r+0 end return r end"
		return call{before: []string{operation}, function: "f", args: []expr{g.operand(), g.operand()}}
	case 2: // where its remainder is more exact than Lua's, they differ
		a, b := g.rnd.IntN(2000)-1000, g.rnd.IntN(50)+1
		if g.chance(50) {
			b = -b
		}
		return call{function: "tostring", args: []expr{atom(fmt.Sprintf("%d%%%d+0", a, b))}}
	}
	return call{function: "tostring", args: []expr{g.number()}}
}

func (g *generator) operand() expr {
	if g.chance(30) {
		return g.numberText()
	}
	return g.number()
}

func (g *generator) strings() call {
	s := expr(text(g.bytes(g.rnd.IntN(12))))
	function := g.pick("byte", "char", "len", "lower", "upper", "reverse", "rep", "sub", "sub", "byte")
	c := call{function: "string." + function, args: []expr{s}}
	switch function {
	case "byte", "sub":
		for range g.rnd.IntN(3) {
			c.args = append(c.args, g.small())
		}
	case "rep":
		c.args = append(c.args, atom(strconv.Itoa(g.rnd.IntN(20)-4)+g.pick("", ".5", "e-1")))
	case "char":
		c.args = nil
		for range g.rnd.IntN(5) {
			c.args = append(c.args, atom(strconv.Itoa(g.rnd.IntN(270)-5)))
		}
	}
	return c
}

// mathematics calls functions whose results are exact.
func (g *generator) mathematics() call {
	function := g.pick("abs", "ceil", "floor", "fmod", "frexp", "ldexp", "max", "min", "modf", "sqrt", "deg", "rad",
		"random", "mod")
	c := call{function: "math." + function}
	n := 1
	switch function {
	case "fmod", "mod":
		n = 2
	case "ldexp":
		return call{function: "math.ldexp", args: []expr{g.number(), atom(strconv.Itoa(g.rnd.IntN(4000) - 2000))}}
	case "max", "min":
		n = 1 + g.rnd.IntN(4)
	case "random":
		c.before = []string{"math.randomseed(" + literal(g.float()) + ")"}
		c.before = append([]string{"local _"}, c.before...)
		n = g.rnd.IntN(3)
	}
	for range n {
		if function == "random" && g.chance(70) {
			c.args = append(c.args, atom(strconv.Itoa(g.rnd.IntN(1000)-100)))
		} else {
			c.args = append(c.args, g.operand())
		}
	}
	return c
}

func (g *generator) lists() call {
	var t table
	for range g.rnd.IntN(8) {
		if g.chance(70) {
			t = append(t, field{nil, g.number()})
		} else {
			t = append(t, field{nil, text(g.bytes(g.rnd.IntN(4)))})
		}
	}
	switch g.rnd.IntN(5) {
	case 0:
		c := call{function: "table.concat", args: []expr{t, text(g.bytes(g.rnd.IntN(3)))}}
		if g.chance(40) {
			c.args = append(c.args, atom(strconv.Itoa(g.rnd.IntN(6))), atom(strconv.Itoa(g.rnd.IntN(9))))
		}
		return c
	case 1:
		return call{function: "unpack", args: []expr{t, atom(strconv.Itoa(g.rnd.IntN(4))), atom(strconv.Itoa(g.rnd.IntN(9)))}}
	case 2:
		c := call{function: "select", args: []expr{g.small()}}
		if g.chance(20) {
			c.args[0] = text(g.pick("#", "#x", "2", "x"))
		}
		for range g.rnd.IntN(5) {
			c.args = append(c.args, g.number())
		}
		return c
	case 3:
		return call{before: []string{"local function f(t,i) local v=table.remove(t,i) return v,t end"}, function: "f",
			args: []expr{t, g.small()}}
	}
	for i := range t { // sorted, and so of one type
		t[i].value = atom(literal(g.float()))
	}
	return call{before: []string{"local function f(t) table.sort(t) return t end"}, function: "f", args: []expr{t}}
}
