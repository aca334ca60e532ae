package scripts

import (
	"fmt"
	"slices"
	"strings"
)

// expr is a Lua expression.
type expr interface {
	// source appends the expression as Lua source.
	source(b *strings.Builder)
	// smaller returns simpler expressions, the simplest first, that may show the same difference.
	smaller() []expr
}

// atom is source that is not changed.
type atom string

func (a atom) source(b *strings.Builder) { b.WriteString(string(a)) }

func (a atom) smaller() []expr {
	switch a {
	case "nil":
		return nil
	case "0":
		return []expr{atom("nil")}
	}
	return []expr{atom("nil"), atom("0")}
}

// text is a string.
type text string

func (t text) source(b *strings.Builder) {
	b.WriteByte('"')
	for i := range len(t) {
		switch c := t[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < 0x20 || c >= 0x7f:
			fmt.Fprintf(b, "\\%03d", c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
}

func (t text) smaller() []expr {
	if t == "" {
		return nil
	}
	list := []expr{text("")}
	for size := len(t) / 2; size >= 1; size /= 2 {
		for at := 0; at+size <= len(t); at += size {
			list = append(list, t[:at]+t[at+size:])
		}
	}
	return list
}

// table is a table constructor. A field without a key is an element of the list.
type table []field

type field struct{ key, value expr }

func (t table) source(b *strings.Builder) {
	b.WriteByte('{')
	for i, f := range t {
		if i > 0 {
			b.WriteByte(',')
		}
		if f.key != nil {
			b.WriteByte('[')
			f.key.source(b)
			b.WriteString("]=")
		}
		f.value.source(b)
	}
	b.WriteByte('}')
}

func (t table) smaller() []expr {
	list := []expr{atom("nil")}
	for i, f := range t {
		list = append(list, slices.Delete(slices.Clone(t), i, i+1), f.value)
		for _, value := range f.value.smaller() {
			list = append(list, replaced(t, i, field{f.key, value}))
		}
	}
	return list
}

// call is the call of a function.
type call struct {
	// before is executed first, statement by statement.
	before   []string
	function string
	args     []expr
	form     callForm
}

type callForm int

const (
	direct callForm = iota
	protected
	method // the first argument is the object
)

func (c call) source(b *strings.Builder) {
	if len(c.before) > 0 {
		fmt.Fprintf(b, "(function() %s\nreturn ", strings.Join(c.before, " "))
	}
	args := c.args
	switch {
	case c.form == protected:
		b.WriteString("pcall(" + c.function)
		if len(args) > 0 {
			b.WriteByte(',')
		}
	case c.form == method && len(args) > 0:
		b.WriteByte('(')
		args[0].source(b)
		b.WriteString("):" + c.function[strings.IndexByte(c.function, '.')+1:] + "(")
		args = args[1:]
	default:
		b.WriteString(c.function + "(")
	}
	for i, a := range args {
		if i > 0 {
			b.WriteByte(',')
		}
		a.source(b)
	}
	b.WriteByte(')')
	if len(c.before) > 0 {
		b.WriteString(" end)()")
	}
}

func (c call) smaller() []expr {
	var list []expr
	if c.form != direct {
		list = append(list, call{c.before, c.function, c.args, direct})
	}
	for i := range c.before {
		if i > 0 { // the first declares the function's object
			list = append(list, call{slices.Delete(slices.Clone(c.before), i, i+1), c.function, c.args, c.form})
		}
	}
	for i := len(c.args) - 1; i >= 0; i-- {
		list = append(list, call{c.before, c.function, slices.Delete(slices.Clone(c.args), i, i+1), c.form})
		if inner, ok := c.args[i].(call); ok {
			list = append(list, inner)
		}
		for _, a := range c.args[i].smaller() {
			list = append(list, call{c.before, c.function, replaced(c.args, i, a), c.form})
		}
	}
	return list
}

// replaced returns a copy of a list with element i replaced.
func replaced[S ~[]E, E any](list S, i int, e E) S {
	list = slices.Clone(list)
	list[i] = e
	return list
}

func sourceOf(e expr) string {
	var b strings.Builder
	e.source(&b)
	return b.String()
}
