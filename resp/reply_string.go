package resp

import (
	"bytes"
	"fmt"
	"strconv"
)

// String returns the reply as redis-cli shows it at a terminal, for logs and failing tests: strings in quotes,
// "(integer) 1", "(nil)", and a line for each element of a collection.
func (r Reply) String() string {
	if len(r.raw) == 0 {
		return "(no reply)"
	}
	text, _ := appendReply(nil, r.raw, 0)
	return string(text)
}

// appendReply appends the first of the replies in b, with its further lines indented, and returns the rest.
func appendReply(dst, b []byte, indent int) (out, rest []byte) {
	r, rest, err := NextReply(b)
	if err != nil {
		return fmt.Appendf(dst, "(malformed) %q", b), nil
	}
	if r.IsNull() {
		return append(dst, "(nil)"...), rest
	}
	switch kind := r.raw[0]; kind {
	case '*', '~', '>', '%':
		return appendElements(dst, r, indent), rest
	default:
		content, err := r.content()
		if err != nil {
			return fmt.Appendf(dst, "(malformed) %q", r.raw), rest
		}
		switch kind {
		case '$':
			return AppendQuoted(dst, content), rest
		case '#':
			return fmt.Appendf(dst, "(%t)", content[0] == 't'), rest
		}
		prefixes := map[byte]string{'-': "(error) ", '!': "(error) ", ':': "(integer) ", ',': "(double) "}
		return append(append(dst, prefixes[kind]...), content...), rest
	}
}

// appendElements appends a collection.
func appendElements(dst []byte, r Reply, indent int) []byte {
	kind := r.raw[0]
	n, rest, err := r.elements()
	if err != nil {
		return fmt.Appendf(dst, "(malformed) %q", r.raw)
	}
	if n == 0 {
		names := map[byte]string{'*': "array", '~': "set", '>': "push", '%': "hash"}
		return fmt.Appendf(dst, "(empty %s)", names[kind])
	}
	mark := map[byte]string{'*': ")", '~': "~", '>': ">", '%': "#"}[kind]
	lines := n
	if kind == '%' {
		lines /= 2
	}
	digits := len(strconv.Itoa(lines))
	inner := indent + digits + 2
	for i := range lines {
		if i > 0 {
			dst = append(dst, '\n')
			dst = append(dst, bytes.Repeat([]byte(" "), indent)...)
		}
		dst = fmt.Appendf(dst, "%*d%s ", digits, i+1, mark)
		dst, rest = appendReply(dst, rest, inner)
		if kind == '%' {
			dst = append(dst, " => "...)
			dst, rest = appendReply(dst, rest, inner)
		}
	}
	return dst
}
