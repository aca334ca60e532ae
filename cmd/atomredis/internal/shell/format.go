package shell

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/atomredis/atomredis/resp"
)

// Format is a form in which replies are written.
type Format int

// The formats, as in redis-cli.
const (
	Raw   Format = iota // without types, one item per line
	Plain               // with types and numbers, for people
	CSV
	JSON
)

// appendReply appends a reply and a line break.
func (f Format) appendReply(dst []byte, r reply) []byte {
	switch f {
	case Plain:
		return appendPlain(dst, r, "")
	case CSV:
		dst = appendCSV(dst, r)
	case JSON:
		dst = appendJSON(dst, r)
	default:
		dst = appendRaw(dst, r)
	}
	return append(dst, '\n')
}

func appendRaw(dst []byte, r reply) []byte {
	switch r.kind {
	case '-':
		return append(append(dst, r.text...), '\n')
	case '#':
		return append(dst, boolText(r)...)
	case '%':
		for i, item := range r.items {
			if i > 0 {
				dst = append(dst, " \n"[(i+1)%2])
			}
			dst = appendRaw(dst, item)
		}
		return dst
	}
	for i, item := range r.items {
		if i > 0 {
			dst = append(dst, '\n')
		}
		dst = appendRaw(dst, item)
	}
	return append(dst, r.text...)
}

func boolText(r reply) string {
	if string(r.text) == "t" {
		return "(true)"
	}
	return "(false)"
}

// appendPlain appends a reply and a line break. All lines of an array but the first begin with prefix.
func appendPlain(dst []byte, r reply, prefix string) []byte {
	switch r.kind {
	case '-':
		dst = append(append(dst, "(error) "...), r.text...)
	case ':':
		dst = append(append(dst, "(integer) "...), r.text...)
	case ',':
		dst = append(append(dst, "(double) "...), r.text...)
	case '_':
		dst = append(dst, "(nil)"...)
	case '#':
		dst = append(dst, boolText(r)...)
	case '$':
		dst = resp.AppendQuoted(dst, r.text)
	case '*', '~', '%', '>':
		return appendItems(dst, r, prefix)
	default:
		dst = append(dst, r.text...)
	}
	return append(dst, '\n')
}

// appendItems appends the numbered items of an array, a set, a map or a push.
func appendItems(dst []byte, r reply, prefix string) []byte {
	name, mark, step := "array", byte(')'), 1
	switch r.kind {
	case '~':
		name, mark = "set", '~'
	case '%':
		name, mark, step = "hash", '#', 2
	case '>':
		name = "push"
	}
	if len(r.items) == 0 {
		return append(append(append(dst, "(empty "...), name...), ")\n"...)
	}
	width := len(strconv.Itoa(len(r.items) / step))
	inner := prefix + strings.Repeat(" ", width+2)
	for i := 0; i < len(r.items); i += step {
		if i > 0 {
			dst = append(dst, prefix...)
		}
		dst = fmt.Appendf(dst, "%*d%c ", width, i/step+1, mark)
		dst = appendPlain(dst, r.items[i], inner)
		if step == 2 {
			dst = append(dst[:len(dst)-1], " => "...)
			if len(r.items[i+1].items) > 0 {
				dst = append(append(dst, '\n'), inner...)
			}
			dst = appendPlain(dst, r.items[i+1], inner)
		}
	}
	return dst
}

func appendCSV(dst []byte, r reply) []byte {
	switch r.kind {
	case '-':
		return resp.AppendQuoted(append(dst, "ERROR,"...), r.text)
	case ':', ',':
		return append(dst, r.text...)
	case '_':
		return append(dst, "NULL"...)
	case '#':
		return strconv.AppendBool(dst, string(r.text) == "t")
	case '*', '~', '%', '>':
		for i, item := range r.items {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendCSV(dst, item)
		}
		return dst
	}
	return resp.AppendQuoted(dst, r.text)
}

func appendJSON(dst []byte, r reply) []byte {
	switch r.kind {
	case '-':
		return appendJSONString(append(dst, "error:"...), r.text)
	case ':', ',':
		return append(dst, r.text...)
	case '_':
		return append(dst, "null"...)
	case '#':
		return strconv.AppendBool(dst, string(r.text) == "t")
	case '*', '~', '>':
		dst = append(dst, '[')
		for i, item := range r.items {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendJSON(dst, item)
		}
		return append(dst, ']')
	case '%':
		dst = append(dst, '{')
		for i := 0; i+1 < len(r.items); i += 2 {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(appendJSONKey(dst, r.items[i]), ':')
			dst = appendJSON(dst, r.items[i+1])
		}
		return append(dst, '}')
	}
	return appendJSONString(dst, r.text)
}

// appendJSONKey appends the key of a map, which is a string in JSON.
func appendJSONKey(dst []byte, r reply) []byte {
	key := appendJSON(nil, r)
	if bytes.HasPrefix(key, []byte{'"'}) {
		return append(dst, key...)
	}
	return appendJSONString(dst, key)
}

// appendJSONString appends a JSON string. Invalid UTF-8 stays unchanged.
func appendJSONString(dst, s []byte) []byte {
	dst = append(dst, '"')
	for _, c := range s {
		switch {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c == '\n':
			dst = append(dst, `\n`...)
		case c == '\r':
			dst = append(dst, `\r`...)
		case c == '\t':
			dst = append(dst, `\t`...)
		case c == '\b':
			dst = append(dst, `\b`...)
		case c == '\f':
			dst = append(dst, `\f`...)
		case c < ' ':
			dst = fmt.Appendf(dst, `\u%04x`, c)
		default:
			dst = append(dst, c)
		}
	}
	return append(dst, '"')
}
