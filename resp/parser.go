package resp

import (
	"bytes"
	"errors"
	"math"
	"strconv"

	"github.com/tidwall/redcon"
)

// headerLimit is the longest line (an inline command, or a *n or $n header) that a client may send, as in Redis.
const headerLimit = 64 * 1024

// Limits of a client that has not authenticated yet, as in Redis.
const (
	unauthMultibulk = 10
	unauthBulk      = 16384
)

// ProtocolError is a violation of RESP. Redis answers its text after "ERR " and closes the client's connection.
type ProtocolError string

// Error returns the text as Redis words it.
func (e ProtocolError) Error() string { return "Protocol error: " + string(e) }

// The violations that a parser reports.
const (
	errMultibulkLen    = ProtocolError("invalid multibulk length")
	errBulkLen         = ProtocolError("invalid bulk length")
	errBigMultibulk    = ProtocolError("too big mbulk count string")
	errBigBulk         = ProtocolError("too big bulk count string")
	errBigInline       = ProtocolError("too big inline request")
	errUnbalanced      = ProtocolError("unbalanced quotes in request")
	errUnauthMultibulk = ProtocolError("unauthenticated multibulk length")
	errUnauthBulk      = ProtocolError("unauthenticated bulk length")
)

// Parser splits the bytes of one client into commands. redcon parses whole multibulk commands. Commands that redcon
// finds incomplete or wrong are scanned here, once, for Redis's limits and error texts and for the number of bytes
// still missing. So a large command that arrives in pieces is not parsed again with each piece.
type Parser struct {
	// MaxBulk is the longest argument in bytes (proto-max-bulk-len).
	MaxBulk int
	// Unauthenticated applies the small limits for a client that has not authenticated yet.
	Unauthenticated bool
	// Many is called before a command of very many arguments is parsed: parsing it takes long, as does everything done
	// with it. It may be nil.
	Many func()

	// The state of the scan of an incomplete command, as offsets from its first byte: once need bytes have arrived, the
	// scan continues at pos with left arguments to go. need is 0 between commands. begun is the offset of the
	// incomplete argument, 0 if unknown.
	pos, left, need, begun int
}

// A command of manyArgs arguments has at least manyBytes bytes.
const (
	manyArgs  = 16384
	manyBytes = 64 << 10
)

// Next parses the first command in buf. It returns the command's arguments, appended to args[:0] as views into buf, and
// the number of bytes parsed. n is 0 when buf holds no whole command yet. n > 0 without arguments is an empty line or
// an empty array, which Redis skips. After an error the client's connection must be closed.
func (p *Parser) Next(buf []byte, args [][]byte) (out [][]byte, n int, err error) {
	if len(buf) == 0 || len(buf) < p.need {
		return args[:0], 0, nil
	}
	if buf[0] != '*' {
		return p.inline(buf, args)
	}
	if p.need > 0 || p.Unauthenticated {
		if done, n, err := p.scan(buf); !done || n > 0 || err != nil {
			return args[:0], n, err
		}
		// The whole command is present, so the number in its header can be trusted.
		if count, _, _ := header(buf, 0, nil, nil); int(count) > cap(args) {
			args = make([][]byte, 0, count)
		}
	}
	if len(buf) >= manyBytes && p.Many != nil {
		if count, _, _ := header(buf, 0, nil, nil); count >= manyArgs {
			p.Many()
		}
	}
	out, n, err = readCommand(buf, args)
	if n == 0 || err != nil || !canonical(out, n) {
		return p.split(buf, args)
	}
	p.Reset()
	if n > p.MaxBulk {
		for _, a := range out {
			if len(a) > p.MaxBulk {
				return out[:0], 0, errBulkLen
			}
		}
	}
	return out, n, nil
}

// Missing returns how many bytes at least must follow the n bytes present of an incomplete command. It may be 0 where
// that is not known.
func (p *Parser) Missing(n int) int { return max(p.need-n, 0) }

// Reset forgets an incomplete command, for a caller that will pass its bytes again from an earlier place.
func (p *Parser) Reset() { p.pos, p.left, p.need, p.begun = 0, 0, 0, 0 }

// Last returns where the last argument of an incomplete command begins, and its size in bytes. ok is false until
// everything before that argument has arrived.
func (p *Parser) Last() (start, size int, ok bool) {
	if p.need == 0 || p.left != 1 || p.begun == 0 {
		return 0, 0, false
	}
	return p.begun, p.need - p.begun - 2, true
}

// Join returns the arguments of a command that Last has reported, appended to args[:0]: as views those in head, which
// is everything before the last argument, and then last. Afterwards the parser is between commands.
func (p *Parser) Join(head, last []byte, args [][]byte) [][]byte {
	p.Reset()
	count, n, _ := header(head, 0, nil, nil)
	out, _ := arguments(head, n, int(count)-1, args[:0])
	return append(out, last)
}

// split is Next for a command that redcon finds incomplete or wrong, or reads differently. Like Redis, it skips the two
// bytes after a number and after an argument without checking them.
func (p *Parser) split(buf []byte, args [][]byte) (out [][]byte, n int, err error) {
	out = args[:0]
	if done, n, err := p.scan(buf); !done || n > 0 || err != nil {
		return out, n, err
	}
	count, n, _ := header(buf, 0, nil, nil)
	out, n = arguments(buf, n, int(count), out)
	return out, n, nil
}

// arguments appends count arguments, the first of which begins at buf[n:], to args. It also returns where the last one
// ends.
func arguments(buf []byte, n, count int, args [][]byte) ([][]byte, int) {
	for range count {
		size, start, _ := header(buf, n, nil, nil)
		n = start + int(size)
		args = append(args, buf[start:n:n])
		n += 2
	}
	return args, n
}

// readCommand calls redcon's parser, which panics on some negative bulk lengths; those become an error here.
func readCommand(buf []byte, args [][]byte) (out [][]byte, n int, err error) {
	defer func() {
		if recover() != nil {
			out, n, err = args[:0], 0, errBulkLen
		}
	}()
	complete, out, _, rest, err := redcon.ReadNextCommand(buf, args)
	if !complete {
		return out, 0, err
	}
	return out, len(buf) - len(rest), err
}

// canonical reports whether a command of n bytes has only headers that Redis accepts. redcon also reads numbers with
// leading zeros, which make a command longer than necessary, and missing numbers, which stand for empty arguments.
func canonical(args [][]byte, n int) bool {
	size := 1 + digits(len(args)) + 2
	for _, a := range args {
		if len(a) == 0 {
			return false
		}
		size += 1 + digits(len(a)) + 2 + len(a) + 2
	}
	return size == n
}

// digits returns how many decimal digits n has.
func digits(n int) int {
	d := 1
	for ; n >= 10; n /= 10 {
		d++
	}
	return d
}

// scan checks the headers of the multibulk command at the start of buf, as far as they have arrived. done reports that
// the whole command is present; skip > 0 is the length of an empty array.
func (p *Parser) scan(buf []byte) (done bool, skip int, err error) {
	if p.need == 0 || p.pos == 0 {
		count, next, err := header(buf, 0, errMultibulkLen, errBigMultibulk)
		if err != nil || next == 0 {
			return false, 0, err
		}
		if count > math.MaxInt32 {
			return false, 0, errMultibulkLen
		}
		if count <= 0 {
			p.need = 0
			return true, next, nil
		}
		if p.Unauthenticated && count > unauthMultibulk {
			return false, 0, errUnauthMultibulk
		}
		p.pos, p.left = next, int(count)
	}
	for p.left > 0 {
		p.need, p.begun = p.pos+1, 0
		if p.pos >= len(buf) {
			return false, 0, nil
		}
		if buf[p.pos] != '$' {
			// Redis looks for the end of the line first, then at its first byte.
			if lineEnd(buf[p.pos:], '\r') < 0 {
				if len(buf)-p.pos > headerLimit {
					return false, 0, errBigBulk
				}
				return false, 0, nil
			}
			return false, 0, ProtocolError("expected '$', got '" + string(buf[p.pos:p.pos+1]) + "'")
		}
		size, next, err := header(buf, p.pos, errBulkLen, errBigBulk)
		if err != nil || next == 0 {
			return false, 0, err
		}
		if size < 0 || size > int64(p.MaxBulk) {
			return false, 0, errBulkLen
		}
		if p.Unauthenticated && size > unauthBulk {
			return false, 0, errUnauthBulk
		}
		end := next + int(size) + 2
		if end > len(buf) {
			p.need, p.begun = end, next
			return false, 0, nil
		}
		p.pos = end
		p.left--
	}
	p.pos, p.need = 0, 0
	return true, 0, nil
}

// header reads the number in the *n or $n line at buf[at:]. next is the offset after the line, 0 if the line is
// incomplete.
func header(buf []byte, at int, invalid, tooBig error) (num int64, next int, err error) {
	line := buf[at:]
	i := lineEnd(line, '\r')
	if i < 0 {
		if len(line) > headerLimit {
			return 0, 0, tooBig
		}
		return 0, 0, nil
	}
	if i+1 >= len(line) {
		return 0, 0, nil
	}
	num, ok := ParseInt(line[1:i])
	if !ok {
		return 0, 0, invalid
	}
	return num, at + i + 2, nil
}

// lineEnd returns the place of the byte that ends the line at the start of buf, -1 if the line is incomplete. As in
// Redis, where lines are C strings, no line ends after a zero byte: it grows until it is too long.
func lineEnd(buf []byte, end byte) int {
	i := bytes.IndexByte(buf, end)
	if i >= 0 && bytes.IndexByte(buf[:i], 0) >= 0 {
		return -1
	}
	return i
}

// inline parses a command typed as a plain line.
func (p *Parser) inline(buf []byte, args [][]byte) ([][]byte, int, error) {
	i := lineEnd(buf, '\n')
	if i < 0 {
		if len(buf) > headerLimit {
			return args[:0], 0, errBigInline
		}
		return args[:0], 0, nil
	}
	line := buf[:i]
	if i > 0 && line[i-1] == '\r' {
		line = line[:i-1]
	}
	out, err := SplitArgs(line, args[:0])
	if err != nil {
		return out[:0], 0, errUnbalanced
	}
	return out, i + 1, nil
}

// ErrUnbalancedQuotes is returned by SplitArgs for a quote that is not closed, or is closed within a word.
var ErrUnbalancedQuotes = errors.New("unbalanced quotes")

// SplitArgs splits a line into words the way Redis does for inline commands and redis.conf: words are separated by
// white space, "…" understands \xHH \n \r \t \b \a \" \\, and '…' understands \'. A zero byte ends the line. The
// words are appended to args; words without quotes are views into line.
func SplitArgs(line []byte, args [][]byte) ([][]byte, error) {
	if zero := bytes.IndexByte(line, 0); zero >= 0 {
		line = line[:zero]
	}
	i := 0
	for {
		for i < len(line) && isSpace(line[i]) {
			i++
		}
		if i == len(line) {
			return args, nil
		}
		start := i
		for i < len(line) && !endsWord(line[i]) && line[i] != '"' && line[i] != '\'' {
			i++
		}
		if i == len(line) || endsWord(line[i]) {
			args = append(args, line[start:i])
			continue
		}
		word := append([]byte(nil), line[start:i]...)
		var ok bool
		if word, i, ok = quotedWord(line, i, word); !ok {
			return args, ErrUnbalancedQuotes
		}
		args = append(args, word)
	}
}

// quotedWord reads the rest of a word, starting at its first quote.
func quotedWord(line []byte, i int, word []byte) ([]byte, int, bool) {
	for i < len(line) && !endsWord(line[i]) {
		quote := line[i]
		if quote != '"' && quote != '\'' {
			word = append(word, quote)
			i++
			continue
		}
		i++
		for {
			if i >= len(line) {
				return word, i, false
			}
			c := line[i]
			if c == quote {
				i++
				if i < len(line) && !isSpace(line[i]) {
					return word, i, false
				}
				return word, i, true
			}
			if c != '\\' || i+1 >= len(line) {
				word = append(word, c)
				i++
				continue
			}
			next := line[i+1]
			switch {
			case quote == '\'' && next != '\'':
				word = append(word, c)
				i++
				continue
			case quote == '"' && next == 'x' && i+3 < len(line) && isHex(line[i+2]) && isHex(line[i+3]):
				v, _ := strconv.ParseUint(string(line[i+2:i+4]), 16, 8)
				word = append(word, byte(v))
				i += 4
				continue
			case quote == '"':
				next = unescape(next)
			}
			word = append(word, next)
			i += 2
		}
	}
	return word, i, true
}

func unescape(c byte) byte {
	switch c {
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	case 'b':
		return '\b'
	case 'a':
		return '\a'
	}
	return c
}

// endsWord reports whether c ends a word that began without a quote: some white space stands for itself there.
func endsWord(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

func isSpace(c byte) bool {
	return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\v' || c == '\f'
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}
