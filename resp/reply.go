package resp

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Error is an error reply: its code word and text, as Redis words them.
type Error string

// Error returns the text.
func (e Error) Error() string { return string(e) }

// Code returns the first word of the text, by which programs distinguish errors: "WRONGTYPE", "MOVED", "ERR". It is ""
// if the text does not begin with a word of capitals.
func (e Error) Code() string {
	code, _, _ := strings.Cut(string(e), " ")
	for _, c := range []byte(code) {
		if c < 'A' || c > 'Z' {
			return ""
		}
	}
	return code
}

// Errors that the accessors of a Reply without a value return.
var (
	// ErrNull reports that the reply is null: the key or element does not exist, or a blocking command timed out.
	ErrNull = errors.New("atomredis: the reply is null")
	// ErrNoReply reports that there is no reply yet: the Reply is the zero value, or belongs to a transaction that was
	// not committed.
	ErrNoReply = errors.New("atomredis: there is no reply")
)

// Reply is the answer to a command, with the types of RESP3. Its accessors convert it. They return an error reply as an
// Error, null as ErrNull, and for a reply that cannot be converted an error that says so.
type Reply struct{ raw []byte }

// NewReply returns the reply that b encodes; b must hold nothing else. The reply keeps b and reads it lazily, so b must
// not change.
func NewReply(b []byte) Reply { return Reply{b} }

// NextReply splits the first reply off from encoded ones; it keeps their memory.
func NextReply(b []byte) (r Reply, rest []byte, err error) {
	n, err := replyLen(b)
	if err != nil {
		return Reply{}, nil, err
	}
	return Reply{b[:n:n]}, b[n:], nil
}

// Encoded returns the reply in RESP3, nil if there is none. The bytes are the reply's own memory.
func (r Reply) Encoded() []byte { return r.raw }

// Err returns the Error if the reply is one, and otherwise nil.
func (r Reply) Err() error {
	if len(r.raw) > 0 && (r.raw[0] == '-' || r.raw[0] == '!') {
		text, err := r.content()
		if err != nil {
			return err
		}
		return Error(text)
	}
	return nil
}

// IsNull reports whether the reply is null.
func (r Reply) IsNull() bool {
	if len(r.raw) == 0 {
		return false
	}
	return r.raw[0] == '_' || len(r.raw) > 1 && r.raw[1] == '-' && bytes.IndexByte([]byte("$*~%"), r.raw[0]) >= 0
}

// Int returns an integer. It also accepts a string that contains one, and a boolean as 1 or 0.
func (r Reply) Int() (int64, error) {
	b, err := r.scalar()
	if err != nil {
		return 0, err
	}
	if r.raw[0] == '#' {
		return boolInt(b), nil
	}
	n, ok := ParseInt(b)
	if !ok {
		return 0, r.isNo("integer")
	}
	return n, nil
}

// Float returns a number. It also accepts an integer, and a string that contains a number.
func (r Reply) Float() (float64, error) {
	b, err := r.scalar()
	if err != nil {
		return 0, err
	}
	f, ok := ParseFloat(b)
	if !ok {
		return 0, r.isNo("number")
	}
	return f, nil
}

// Bool returns a boolean. It also accepts an integer; all but 0 are true.
func (r Reply) Bool() (bool, error) {
	n, err := r.Int()
	return n != 0, err
}

// Bytes returns a string. It also accepts a number, and a boolean as 1 or 0. The bytes are the reply's own memory.
func (r Reply) Bytes() ([]byte, error) {
	b, err := r.scalar()
	if err != nil {
		return nil, err
	}
	if r.raw[0] == '#' {
		return strconv.AppendInt(nil, boolInt(b), 10), nil
	}
	return b[:len(b):len(b)], nil
}

// Text is Bytes as a string.
func (r Reply) Text() (string, error) {
	b, err := r.Bytes()
	return string(b), err
}

// Slice returns the elements of an array or a set, and for a map its keys, each followed by its value.
func (r Reply) Slice() ([]Reply, error) {
	if err := r.unusable(); err != nil {
		return nil, err
	}
	n, rest, err := r.elements()
	if err != nil {
		return nil, err
	}
	out := make([]Reply, 0, min(n, len(rest)))
	for range n {
		var e Reply
		if e, rest, err = NextReply(rest); err != nil {
			return nil, err
		}
		out = append(out, e)
	}
	return out, nil
}

// Texts returns the elements of an array or a set as strings; null elements are empty strings.
func (r Reply) Texts() ([]string, error) {
	elements, err := r.Slice()
	if err != nil {
		return nil, err
	}
	out := make([]string, len(elements))
	for i, e := range elements {
		if out[i], err = e.Text(); err != nil && err != ErrNull {
			return nil, err
		}
	}
	return out, nil
}

// Map returns a map. It also accepts an array of keys, each followed by its value, which is how Redis sends maps in
// RESP2.
func (r Reply) Map() (map[string]Reply, error) {
	elements, err := r.pairs()
	if err != nil {
		return nil, err
	}
	out := make(map[string]Reply, len(elements)/2)
	for i := 0; i < len(elements); i += 2 {
		key, err := elements[i].Text()
		if err != nil {
			return nil, err
		}
		out[key] = elements[i+1]
	}
	return out, nil
}

func boolInt(b []byte) int64 {
	if string(b) == "t" {
		return 1
	}
	return 0
}

// unusable returns the reason why the reply has no value.
func (r Reply) unusable() error {
	switch {
	case len(r.raw) == 0:
		return ErrNoReply
	case r.IsNull():
		return ErrNull
	}
	return r.Err()
}

// scalar returns the content of a reply that is not a collection.
func (r Reply) scalar() ([]byte, error) {
	if err := r.unusable(); err != nil {
		return nil, err
	}
	return r.content()
}

// content returns the characters of a reply without elements.
func (r Reply) content() ([]byte, error) {
	line, rest, ok := bytes.Cut(r.raw[1:], []byte("\r\n"))
	if !ok {
		return nil, errMalformed
	}
	switch r.raw[0] {
	case '#':
		if len(line) != 1 {
			return nil, errMalformed
		}
		return line, nil
	case '+', '-', ':', ',', '(':
		return line, nil
	case '$', '!', '=':
		n, ok := ParseInt(line)
		if !ok || n < 0 || n > int64(len(rest)) {
			return nil, errMalformed
		}
		if r.raw[0] == '=' {
			return rest[min(4, n):n], nil // behind the format
		}
		return rest[:n], nil
	}
	return nil, r.isNo("string or number")
}

// elements returns the number of elements, and their encoding.
func (r Reply) elements() (n int, rest []byte, err error) {
	kind := r.raw[0]
	if kind != '*' && kind != '~' && kind != '>' && kind != '%' {
		return 0, nil, r.isNo("array")
	}
	line, rest, _ := bytes.Cut(r.raw[1:], []byte("\r\n"))
	count, ok := ParseInt(line)
	if !ok || count < 0 || count > int64(len(rest)) {
		return 0, nil, errMalformed
	}
	if kind == '%' {
		count *= 2
	}
	return int(count), rest, nil
}

// isNo returns the error for a reply of another kind.
func (r Reply) isNo(want string) error {
	const most = 60
	shown := r.raw
	if len(shown) > most {
		shown = shown[:most]
	}
	return fmt.Errorf("atomredis: the reply %q is no %s", shown, want)
}

var errMalformed = errors.New("atomredis: the reply is malformed")

// replyLen returns the length of the first reply in b.
func replyLen(b []byte) (int, error) {
	n := 0
	for left := 1; left > 0; left-- {
		end := bytes.Index(b[n:], []byte("\r\n"))
		if end < 1 {
			return 0, errMalformed
		}
		kind, line := b[n], b[n+1:n+end]
		n += end + 2
		switch kind {
		case '+', '-', ':', ',', '#', '(', '_':
			continue
		}
		size, ok := ParseInt(line)
		if !ok || size < -1 || size > int64(len(b)) {
			return 0, errMalformed
		}
		switch kind {
		case '$', '!', '=':
			if size >= 0 {
				n += int(size) + 2
			}
		case '*', '~', '>':
			left += max(int(size), 0)
		case '%':
			left += 2 * max(int(size), 0)
		default:
			return 0, errMalformed
		}
		if n > len(b) {
			return 0, errMalformed
		}
	}
	return n, nil
}

// Reply writes a reply, which is in RESP3, in the protocol of w. If it fails, part of the reply may have been written.
func (w *Writer) Reply(r Reply) error {
	if len(r.raw) == 0 {
		return ErrNoReply
	}
	if w.Proto == 3 {
		w.Raw(r.raw)
		return nil
	}
	_, err := w.nextReply(r.raw)
	return err
}

// nextReply writes the first of the replies in b, and returns the rest.
func (w *Writer) nextReply(b []byte) (rest []byte, err error) {
	r, rest, err := NextReply(b)
	if err != nil {
		return nil, err
	}
	if r.IsNull() {
		w.Null()
		return rest, nil
	}
	switch kind := r.raw[0]; kind {
	case '*', '~', '>', '%':
		n, elements, err := r.elements()
		if err != nil {
			return nil, err
		}
		w.Array(n)
		for range n {
			if elements, err = w.nextReply(elements); err != nil {
				return nil, err
			}
		}
	default:
		content, err := r.content()
		if err != nil {
			return nil, err
		}
		switch kind {
		case '#':
			w.Bool(content[0] == 't')
		case ',', '(', '=':
			w.Bulk(content)
		case '!':
			w.Error(string(content))
		default:
			w.Raw(r.raw)
		}
	}
	return rest, nil
}
