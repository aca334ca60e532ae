package load

import (
	"bytes"
	"fmt"
	"strconv"
)

// Scanner finds the ends of replies in a stream of RESP2 that arrives in pieces. It resumes where it stopped, so that a
// large reply is not read again and again.
type Scanner struct {
	// Errors treats error replies like other replies.
	Errors bool

	pos  int // where the next element of the reply begins
	left int // elements of the reply still to come; 0 before its beginning
}

// Next returns the length of the reply at the start of b, or 0 if its end has not arrived yet; then it must be called
// again with the same bytes and more. An error reply, also within an array, is returned as an error.
func (s *Scanner) Next(b []byte) (int, error) {
	if s.left == 0 {
		s.pos, s.left = 0, 1
	}
	for s.left > 0 {
		end := bytes.IndexByte(b[s.pos:], '\n')
		if end < 0 {
			return 0, nil
		}
		line, next := b[s.pos:s.pos+end+1], s.pos+end+1
		if len(line) < 3 {
			return 0, fmt.Errorf("not a reply: %q", line)
		}
		s.left--
		switch line[0] {
		case '+', ':':
		case '-':
			if s.Errors {
				break
			}
			return 0, fmt.Errorf("error reply: %s", line[1:len(line)-2])
		case '$', '*':
			n, err := strconv.Atoi(string(line[1 : len(line)-2]))
			if err != nil {
				return 0, fmt.Errorf("not a reply: %q", line)
			}
			if n < 0 {
				break // nothing follows
			}
			if line[0] == '*' {
				s.left += n
			} else if next += n + 2; next > len(b) {
				s.left++
				return 0, nil
			}
		default:
			return 0, fmt.Errorf("not a reply: %q", line)
		}
		s.pos = next
	}
	return s.pos, nil
}

// Elements iterates over the elements of a complete reply, arrays before their elements.
type Elements []byte

// Next returns the next element: its kind (its first character), and the length of an array or the text of any other
// element. The kind is 0 at the end.
func (e *Elements) Next() (kind byte, n int, text []byte) {
	end := bytes.IndexByte(*e, '\n')
	if end < 0 {
		return 0, 0, nil
	}
	kind, text = (*e)[0], (*e)[1:end-1]
	*e = (*e)[end+1:]
	if kind == '$' || kind == '*' {
		n, _ = strconv.Atoi(string(text)) // a Scanner has already parsed it
		text = nil
	}
	if kind == '$' && n >= 0 {
		text, *e = (*e)[:n], (*e)[n+2:]
	}
	return kind, n, text
}

// Array returns the length of the next array, and 0 for another element.
func (e *Elements) Array() int {
	_, n, _ := e.Next()
	return max(n, 0)
}

// Text returns the next text.
func (e *Elements) Text() []byte {
	_, _, text := e.Next()
	return text
}
