package expr

import (
	"strings"

	"github.com/atomredis/atomredis/internal/search/query"
	"github.com/atomredis/atomredis/internal/search/value"
)

// lower and upper change ASCII letters. For other values they are null.
func lower(args []value.Value) (value.Value, error) { return mapASCII(args[0], 'A', 'Z') }
func upper(args []value.Value) (value.Value, error) { return mapASCII(args[0], 'a', 'z') }

func mapASCII(v value.Value, from, to byte) (value.Value, error) {
	if v.Kind() != value.String {
		return value.Nil, nil
	}
	s := []byte(v.Text())
	for i, c := range s {
		if from <= c && c <= to {
			s[i] = c ^ ('a' - 'A')
		}
	}
	return value.Str(string(s)), nil
}

// substr is some bytes of a string. A negative offset counts from the end, and before the start it is the end, as in
// Redis; a negative length drops so many bytes at the end.
func substr(args []value.Value) (value.Value, error) {
	for i := 1; i <= 2; i++ {
		if err := must(value.Number, "substr", args, i); err != nil {
			return value.Value{}, err
		}
	}
	if args[0].Kind() != value.String {
		return value.Value{}, errorf(query.BadArguments, "Invalid type for substr. Expected string")
	}
	s := args[0].Text()
	at, n := clamp(args[1].Float(), len(s)), clamp(args[2].Float(), len(s))
	if at < 0 {
		if at = int(max(args[1].Float(), -float64(len(s))-1)) + len(s); at < 0 {
			at = len(s)
		}
	}
	if n < 0 {
		n = max(0, n+len(s)-at)
	}
	return value.Str(s[at:min(len(s), at+n)]), nil
}

// clamp returns the whole part of a number, cut at a length on both sides.
func clamp(f float64, length int) int {
	switch n := float64(length); {
	case f >= n:
		return length
	case f <= -n:
		return -length
	case f != f:
		return 0
	}
	return int(f)
}

func strlen(args []value.Value) (value.Value, error) {
	if err := mustText("strlen", args, 1); err != nil {
		return value.Value{}, err
	}
	return value.Num(float64(len(args[0].Text()))), nil
}

// contains counts the occurrences of a string in another, including overlapping ones.
func contains(args []value.Value) (value.Value, error) {
	if err := mustText("contains", args, 2); err != nil {
		return value.Value{}, err
	}
	s, part := args[0].Text(), args[1].Text()
	if part == "" {
		return value.Num(float64(len(s) + 1)), nil
	}
	n := 0
	for i := strings.Index(s, part); i >= 0; i = strings.Index(s, part) {
		n++
		s = s[i+1:]
	}
	return value.Num(float64(n)), nil
}

func startsWith(args []value.Value) (value.Value, error) {
	if err := mustText("startswith", args, 2); err != nil {
		return value.Value{}, err
	}
	return value.Bool(strings.HasPrefix(args[0].Text(), args[1].Text())), nil
}

// maxText is the length of the longest result of format.
const maxText = 16 << 20

// format replaces each %s by the next argument, and %% by %.
func format(args []value.Value) (value.Value, error) {
	if err := mustText("format", args, 1); err != nil {
		return value.Value{}, err
	}
	s, args := args[0].Text(), args[1:]
	var b strings.Builder
	for {
		i := strings.IndexByte(s, '%')
		if i < 0 {
			b.WriteString(s)
			return value.Str(b.String()), nil
		}
		b.WriteString(s[:i])
		if i+1 == len(s) {
			return value.Value{}, errorf(query.BadArguments, "Bad format string!")
		}
		verb := s[i+1]
		s = s[i+2:]
		switch {
		case verb == '%':
			b.WriteByte('%')
			continue
		case len(args) == 0:
			return value.Value{}, errorf(query.BadArguments, "Not enough arguments for format")
		case verb != 's':
			return value.Value{}, errorf(query.BadArguments, "Unknown format specifier passed")
		case args[0].IsNull():
			b.WriteString("(null)")
		default:
			b.WriteString(args[0].ToText())
		}
		if b.Len() > maxText {
			return value.Value{}, errorf(query.BadExpression, "format: the text would be longer than %d bytes", maxText)
		}
		args = args[1:]
	}
}

// split splits a string at each byte of the second argument, and trims the bytes of the third from the parts.
func split(args []value.Value) (value.Value, error) {
	const most = 1024
	if err := mustText("split", args, len(args)); err != nil {
		return value.Value{}, err
	}
	separators, strip := ",", " "
	if len(args) > 1 {
		separators = args[1].Text()
	}
	if len(args) > 2 {
		strip = args[2].Text()
	}
	var parts []string
	for s := args[0].Text(); s != "" && len(parts) < most; {
		part := s
		if i := indexByteOf(s, separators); i >= 0 {
			part, s = s[:i], s[i+1:]
		} else {
			s = ""
		}
		for part != "" && strings.IndexByte(strip, part[0]) >= 0 {
			part = part[1:]
		}
		for part != "" && strings.IndexByte(strip, part[len(part)-1]) >= 0 {
			part = part[:len(part)-1]
		}
		if part != "" {
			parts = append(parts, part)
		}
	}
	return value.Strings(parts), nil
}

// indexByteOf returns the first byte of s that is in a set, -1 if none is.
func indexByteOf(s, set string) int {
	for i := range len(s) {
		if strings.IndexByte(set, s[i]) >= 0 {
			return i
		}
	}
	return -1
}

func toNumber(args []value.Value) (value.Value, error) {
	f, ok := args[0].ToNumber()
	if !ok {
		text := args[0].Text()
		if args[0].Kind() != value.String {
			text = "(null)"
		}
		return value.Value{}, errorf(query.BadArguments, "to_number: cannot convert string '%s'", text)
	}
	return value.Num(f), nil
}

func toStr(args []value.Value) (value.Value, error) { return value.Str(args[0].ToText()), nil }
