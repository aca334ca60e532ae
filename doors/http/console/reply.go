package console

import (
	"encoding/json"
	"regexp"
	"strconv"
	"unicode/utf8"

	"github.com/atomredis/atomredis/resp"
)

// binary has bytes. In JSON it is a string with a character from U+0000 to U+00FF for each byte: this works for any
// bytes, and ASCII text stays legible.
type binary []byte

// UnmarshalJSON implements json.Unmarshaler.
func (b *binary) UnmarshalJSON(from []byte) error {
	var s string
	if err := json.Unmarshal(from, &s); err != nil {
		return err
	}
	*b = make(binary, 0, len(s))
	for _, r := range s {
		if r > 0xFF {
			return errRequest
		}
		*b = append(*b, byte(r))
	}
	return nil
}

// MarshalJSON implements json.Marshaler.
func (b binary) MarshalJSON() ([]byte, error) { return appendBinary(nil, b), nil }

func appendBinary(dst []byte, b []byte) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	for _, c := range b {
		switch {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c < 0x20:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			dst = utf8.AppendRune(dst, rune(c))
		}
	}
	return append(dst, '"')
}

// appendError appends an error in the form of an error reply.
func appendError(dst []byte, text string) []byte {
	return append(appendBinary(append(dst, `{"error":`...), []byte(text)), '}')
}

// appendReply appends a reply as JSON, with secrets hidden. Strings (as binary), numbers, true, false, null and arrays
// keep their JSON types. Other types are an object with one member: error, status, set, map (keys and values in turn),
// text (a verbatim string), double and big (text of numbers that JSON cannot express).
func appendReply(dst []byte, r resp.Reply) []byte { return appendMasked(dst, r, "") }

// hidden replaces secrets.
const hidden = "(hidden)"

// secrets has names that precede a secret in any reply, mostly directives.
var secrets = map[string]bool{
	"requirepass": true, "masterauth": true, "primaryauth": true, "raft-secret": true,
	"tls-key-file-pass": true, "tls-client-key-file-pass": true,
}

// hash matches a password hash in replies of ACL commands, and rule a hash in a line of ACL LIST.
var (
	hash = regexp.MustCompile(`^#?[0-9a-f]{64}$`)
	rule = regexp.MustCompile(`#[0-9a-f]{64}`)
)

// mask returns a string, or hidden for a secret. before is the string before it in the same array or map.
func mask(b []byte, before string) []byte {
	switch {
	case secrets[before] && len(b) > 0, before == "passwords" && hash.Match(b):
		return []byte(hidden)
	case len(b) > 64 && string(b[:5]) == "user ":
		return rule.ReplaceAll(b, []byte(hidden))
	}
	return b
}

// maxInteger is the largest integer that every JSON parser reads exactly.
const maxInteger = 1<<53 - 1

func appendMasked(dst []byte, r resp.Reply, before string) []byte {
	if err := r.Err(); err != nil {
		return appendError(dst, err.Error())
	}
	if r.IsNull() {
		return append(dst, "null"...)
	}
	raw := r.Encoded()
	if len(raw) == 0 {
		return append(dst, "null"...)
	}
	member, end := "", ""
	wrap := func(name string) { member, end = `{"`+name+`":`, "}" }
	switch raw[0] {
	case '*', '>', '~', '%':
		switch raw[0] {
		case '~':
			wrap("set")
		case '%':
			wrap("map")
		}
		elements, _ := r.Slice() // a malformed reply is empty
		dst = append(append(dst, member...), '[')
		last := ""
		for i, e := range elements {
			if i > 0 {
				dst = append(dst, ',')
			}
			kind := e.Encoded()[0]
			if kind == '*' || kind == '~' { // passwords of a user are an array
				dst = appendElements(dst, e, last)
			} else {
				dst = appendMasked(dst, e, last)
			}
			last = ""
			if kind == '$' || kind == '+' {
				last, _ = e.Text()
			}
		}
		return append(append(dst, ']'), end...)
	}
	content, err := r.Bytes()
	if err != nil {
		return appendError(dst, err.Error())
	}
	switch raw[0] {
	case '#':
		return strconv.AppendBool(dst, content[0] == '1')
	case ':':
		if n, err := r.Int(); err == nil && n >= -maxInteger && n <= maxInteger {
			return append(dst, content...)
		}
		wrap("big")
	case '+':
		wrap("status")
	case '=':
		wrap("text")
	case ',':
		wrap("double")
	case '(':
		wrap("big")
	}
	return append(appendBinary(append(dst, member...), mask(content, before)), end...)
}

// appendElements appends an array whose strings are all masked with the string before the array.
func appendElements(dst []byte, r resp.Reply, before string) []byte {
	if before != "passwords" {
		return appendMasked(dst, r, "")
	}
	elements, _ := r.Texts()
	dst = append(dst, '[')
	for i, e := range elements {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendBinary(dst, mask([]byte(e), before))
	}
	return append(dst, ']')
}
