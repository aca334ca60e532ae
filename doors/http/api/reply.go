package api

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"unicode/utf8"

	"github.com/atomredis/atomredis/resp"
)

// writeReply writes a reply that is no error.
func (x *exchange) writeReply(out *bufio.Writer, r resp.Reply) {
	if x.resp2 {
		out.Write(r.Encoded())
		return
	}
	out.WriteString(`{"result":`)
	if text, err := r.Text(); err == nil && r.Encoded()[0] == '+' && text == "OK" {
		out.WriteString(`"OK"`) // never in base64
	} else {
		writeValue(out, r.Encoded(), x.base64)
	}
	out.WriteByte('}')
}

// writeValue writes the first of replies in RESP2 as JSON, and returns the others. Integers are numbers. Strings are
// strings, in base64 or with U+FFFD for bytes that are not UTF-8.
func writeValue(out *bufio.Writer, replies []byte, encoded bool) (rest []byte) {
	r, rest, err := resp.NextReply(replies)
	if err != nil {
		out.WriteString("null")
		return nil
	}
	raw := r.Encoded()
	switch {
	case r.IsNull():
		out.WriteString("null")
	case r.Err() != nil:
		writeError(out, r.Err().Error())
	case raw[0] == '*':
		line, elements, _ := bytes.Cut(raw[1:], []byte("\r\n"))
		n, _ := resp.ParseInt(line)
		out.WriteByte('[')
		for i := range n {
			if i > 0 {
				out.WriteByte(',')
			}
			elements = writeValue(out, elements, encoded)
		}
		out.WriteByte(']')
	default:
		content, _ := r.Bytes()
		switch {
		case raw[0] == ':':
			out.Write(content)
		case encoded:
			writeBase64(out, content)
		default:
			writeString(out, content)
		}
	}
	return rest
}

// writeBase64 writes bytes as a string in base64.
func writeBase64(out *bufio.Writer, b []byte) {
	const part = 3 << 10 // a multiple of 3, so that only the last part is padded
	out.WriteByte('"')
	for len(b) > 0 {
		n := min(len(b), part)
		out.Write(base64.StdEncoding.AppendEncode(out.AvailableBuffer(), b[:n]))
		b = b[n:]
	}
	out.WriteByte('"')
}

// writeString writes bytes as a string. Bytes that are not UTF-8 become U+FFFD.
func writeString(out *bufio.Writer, b []byte) {
	const hex = "0123456789abcdef"
	out.WriteByte('"')
	plain := 0 // where the bytes begin that need no change
	for i := 0; i < len(b); {
		c, n := rune(b[i]), 1
		if c >= utf8.RuneSelf {
			c, n = utf8.DecodeRune(b[i:])
		}
		wrong := c == utf8.RuneError && n == 1
		if c >= 0x20 && c != '"' && c != '\\' && !wrong {
			i += n
			continue
		}
		out.Write(b[plain:i])
		switch {
		case wrong:
			out.WriteRune(utf8.RuneError)
		case c < 0x20:
			out.WriteString(`\u00`)
			out.WriteByte(hex[c>>4])
			out.WriteByte(hex[c&15])
		default:
			out.WriteByte('\\')
			out.WriteByte(byte(c))
		}
		i += n
		plain = i
	}
	out.Write(b[plain:])
	out.WriteByte('"')
}

// writeError writes an error.
func writeError(out *bufio.Writer, text string) {
	out.WriteString(`{"error":`)
	writeString(out, []byte(text))
	out.WriteByte('}')
}
