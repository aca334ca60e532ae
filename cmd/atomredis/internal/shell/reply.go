package shell

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// reply is a reply of a server, of RESP2 or RESP3.
type reply struct {
	kind  byte    // first byte in RESP; '_' for every null
	text  []byte  // content of a reply without items; of a verbatim string without its format
	items []reply // elements; in a map keys and values alternate
}

// Limits of replies.
const (
	maxBulk  = 4 << 30 // bytes
	maxDepth = 256
)

var errProtocol = errors.New("the server does not speak the protocol")

// readReply reads a reply and skips its attributes.
func readReply(r *bufio.Reader) (reply, error) { return readNested(r, 0) }

func readNested(r *bufio.Reader, depth int) (reply, error) {
	if depth > maxDepth {
		return reply{}, fmt.Errorf("%w: more than %d arrays in each other", errProtocol, maxDepth)
	}
	line, err := readLine(r)
	if err != nil {
		return reply{}, err
	}
	kind, text := line[0], line[1:]
	switch kind {
	case '+', '-', ':', ',', '(':
		return reply{kind: kind, text: text}, nil
	case '#':
		if string(text) != "t" && string(text) != "f" {
			return reply{}, fmt.Errorf("%w: %q", errProtocol, line)
		}
		return reply{kind: kind, text: text}, nil
	case '_':
		return reply{kind: kind}, nil
	}
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil || n < -1 || n > maxBulk {
		return reply{}, fmt.Errorf("%w: %q", errProtocol, line)
	}
	switch {
	case n < 0:
		return reply{kind: '_'}, nil
	case kind == '$' || kind == '=' || kind == '!':
		return readBulk(r, kind, n)
	case kind == '%' || kind == '|':
		n *= 2
	case kind != '*' && kind != '~' && kind != '>':
		return reply{}, fmt.Errorf("%w: %q", errProtocol, line)
	}
	made := reply{kind: kind}
	for range n {
		item, err := readNested(r, depth+1)
		if err != nil {
			return reply{}, unexpected(err)
		}
		made.items = append(made.items, item)
	}
	if kind == '|' {
		return readNested(r, depth+1)
	}
	return made, nil
}

// readLine reads a line of at least one byte, without the line break.
func readLine(r *bufio.Reader) ([]byte, error) {
	line, err := r.ReadBytes('\n')
	if err != nil {
		if len(line) > 0 {
			err = unexpected(err)
		}
		return nil, err
	}
	if line = bytes.TrimRight(line, "\r\n"); len(line) == 0 {
		return nil, fmt.Errorf("%w: an empty line", errProtocol)
	}
	return line, nil
}

func readBulk(r *bufio.Reader, kind byte, n int64) (reply, error) {
	var text bytes.Buffer // grows with the bytes that arrive
	if _, err := io.CopyN(&text, r, n+2); err != nil {
		return reply{}, unexpected(err)
	}
	made := reply{kind: kind, text: text.Bytes()[:n]}
	switch kind {
	case '=':
		if n < 4 {
			return reply{}, fmt.Errorf("%w: a verbatim string of %d bytes", errProtocol, n)
		}
		made.text = made.text[4:]
	case '!':
		made.kind = '-'
	}
	return made, nil
}

func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// isError reports whether the reply is an error.
func (r reply) isError() bool { return r.kind == '-' }

// pairs calls fn for the keys and values of a map, or of an array in place of one (RESP2).
func (r reply) pairs(fn func(key string, value reply)) {
	for i := 0; i+1 < len(r.items); i += 2 {
		fn(string(r.items[i].text), r.items[i+1])
	}
}
