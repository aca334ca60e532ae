package resp

import (
	"encoding/binary"
	"unsafe"
)

// Template is the form of a parsed command: its number of arguments, their lengths, and its name. Commands of a
// pipeline often have the same form, and then their arguments are found without parsing: a few comparisons of eight
// bytes show that all bytes around the arguments are equal. The zero value matches no command.
type Template struct {
	size   int // the command's length in bytes; 0 for no command
	nWords int
	nArgs  int
	tries  int // how often a form was learned since Forget
	words  [maxTemplateWords]templateWord
	args   [maxTemplateArgs]struct{ start, end int }
}

// templateWord is up to eight bytes that all commands of the form have in the same place.
type templateWord struct {
	at    int    // the start of the eight bytes; the compared ones are the last of them
	want  uint64 // the eight bytes in the command it was learned from
	shift uint8  // drops the bits of bytes that are not compared
}

const (
	maxTemplateWords = 48
	maxTemplateArgs  = 24
	// forms to learn from one input before the search for equal commands is given up
	maxTemplateTries = 2
)

// Forget makes t match no command.
func (t *Template) Forget() { t.size, t.tries = 0, 0 }

// Learn makes t the form of the command in the first n bytes of buf, which Parser.Next has parsed to args, views into
// buf. It does nothing if the next command in buf has another form, or if too many forms were learned in vain.
func (t *Template) Learn(buf []byte, n int, args [][]byte) {
	t.size = 0
	const header = 8 // the shortest text before the name: *1, $1 and their line ends
	if len(buf) < 2*n || n < header || len(args) == 0 || len(args) > maxTemplateArgs || t.tries == maxTemplateTries ||
		buf[0] != '*' ||
		binary.LittleEndian.Uint64(buf) != binary.LittleEndian.Uint64(buf[n:]) {
		return
	}
	t.tries++
	t.nWords, t.nArgs = 0, len(args)
	same := 0 // where the bytes begin, up to the next argument, that are the same in all commands
	for i, a := range args {
		if len(a) == 0 {
			return // the argument may lie elsewhere
		}
		start := int(uintptr(unsafe.Pointer(unsafe.SliceData(a))) - uintptr(unsafe.Pointer(unsafe.SliceData(buf))))
		end := start + len(a)
		t.args[i].start, t.args[i].end = start, end
		if i == 0 {
			continue // the name belongs to the form
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

// expect adds buf[from:to] to the bytes that are the same in all commands. It returns false if there is no room for it.
func (t *Template) expect(buf []byte, from, to int) bool {
	for from < to {
		if t.nWords == maxTemplateWords {
			return false
		}
		k := min(to-from, 8)
		from += k
		at := from - 8 // not negative, because the first eight bytes are the same in all commands
		t.words[t.nWords] = templateWord{at: at, want: binary.LittleEndian.Uint64(buf[at:]), shift: uint8(64 - 8*k)}
		t.nWords++
	}
	return true
}

// Next is Parser.Next for a command of this form, for a Parser that is between commands. ok is false if buf does not
// begin with such a command.
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
