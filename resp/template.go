package resp

import (
	"encoding/binary"
	"unsafe"
)

// Template is the form of a command that has been parsed: its number of arguments, their lengths, and its name.
// Pipelines are full of commands of one form, whose arguments can be found without parsing them again: all that lies
// around the arguments must be the same, which a few comparisons of eight bytes show. The zero value is the form of
// none.
type Template struct {
	size   int // of the command in bytes; 0 if it is the form of none
	nWords int
	nArgs  int
	tries  int // how often it was learned since Forget
	words  [maxTemplateWords]templateWord
	args   [maxTemplateArgs]struct{ start, end int }
}

// templateWord is up to eight bytes that all commands of the form have at the same place.
type templateWord struct {
	at    int    // where the eight bytes begin of which these are the last
	want  uint64 // the eight bytes of the command it was learned from
	shift uint8  // drops the bits of those of them that do not count
}

const (
	maxTemplateWords = 48
	maxTemplateArgs  = 24
	// forms that are learned before it is given up to find two commands of one in what a client has sent
	maxTemplateTries = 2
)

// Forget makes t the form of none.
func (t *Template) Forget() { t.size, t.tries = 0, 0 }

// Learn makes t the form of the command that takes the first n bytes of buf, and that Parser.Next has parsed to args,
// views into buf. It does not if the form is of no use: what follows in buf is something else, or too many that were
// of no use have been learned.
func (t *Template) Learn(buf []byte, n int, args [][]byte) {
	t.size = 0
	const header = 8 // the least that comes before the name: *1, $1 and the ends of the lines
	if len(buf) < 2*n || n < header || len(args) == 0 || len(args) > maxTemplateArgs || t.tries == maxTemplateTries ||
		buf[0] != '*' ||
		binary.LittleEndian.Uint64(buf) != binary.LittleEndian.Uint64(buf[n:]) {
		return
	}
	t.tries++
	t.nWords, t.nArgs = 0, len(args)
	same := 0 // where the bytes begin that are the same for all, up to the next argument
	for i, a := range args {
		if len(a) == 0 {
			return // it may not lie where it was found
		}
		start := int(uintptr(unsafe.Pointer(unsafe.SliceData(a))) - uintptr(unsafe.Pointer(unsafe.SliceData(buf))))
		end := start + len(a)
		t.args[i].start, t.args[i].end = start, end
		if i == 0 {
			continue // the name is the same too
		}
		if !t.expect(buf, same, start) {
			return
		}
		same = end
	}
	if t.expect(buf, same, n) {
		t.size = n
	}
}

// expect notes that buf[from:to] is the same for all. It reports false if there is no room for that.
func (t *Template) expect(buf []byte, from, to int) bool {
	for from < to {
		if t.nWords == maxTemplateWords {
			return false
		}
		k := min(to-from, 8)
		from += k
		at := from - 8 // which is not negative, because the first eight bytes are the same for all
		t.words[t.nWords] = templateWord{at: at, want: binary.LittleEndian.Uint64(buf[at:]), shift: uint8(64 - 8*k)}
		t.nWords++
	}
	return true
}

// Next is Parser.Next for a command of the form, for a Parser that is between commands. ok is false if there is none
// of the form at the start of buf.
func (t *Template) Next(buf []byte, args [][]byte) (out [][]byte, n int, ok bool) {
	if t.size == 0 || len(buf) < t.size {
		return nil, 0, false
	}
	for i := range t.words[:t.nWords] {
		w := &t.words[i]
		if (binary.LittleEndian.Uint64(buf[w.at:])^w.want)>>w.shift != 0 {
			return nil, 0, false
		}
	}
	out = args[:0]
	for i := range t.args[:t.nArgs] {
		a := &t.args[i]
		out = append(out, buf[a.start:a.end:a.end])
	}
	return out, t.size, true
}
