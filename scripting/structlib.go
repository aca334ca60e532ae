package scripting

import (
	"encoding/binary"
	"math"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// structLibrary returns the functions that scripts see as struct. They convert values to and from binary data described
// by a format.
func (m *vm) structLibrary() *lua.LTable {
	return m.functions(m.state.CreateTable(0, 8), map[string]lua.LGFunction{
		"pack":   structPack,
		"size":   structSize,
		"unpack": structUnpack,
	})
}

const (
	// maxIntegerSize is the size of the largest integers, in bytes.
	maxIntegerSize = 32
	// nativeAlignment is the alignment for "!" without a number.
	nativeAlignment = 8
	// maxFormatNumber bounds the numbers within a format.
	maxFormatNumber = math.MaxInt32
)

// structFormat reads a format, option by option. It starts with the byte order of common machines and without
// alignment.
type structFormat struct {
	L         *lua.LState
	function  string
	rest      string
	bigEndian bool
	alignment uint64 // at least 1
}

func argFormat(L *lua.LState, function string) structFormat {
	text, _, _ := strings.Cut(argString(L, 1, function), "\x00")
	return structFormat{L: L, function: function, rest: text, alignment: 1}
}

// next reads an option and its size, which is 0 if the option has none.
func (f *structFormat) next() (option byte, size uint64) {
	option = f.rest[0]
	f.rest = f.rest[1:]
	switch option {
	case 'b', 'B', 'x':
		return option, 1
	case 'h', 'H':
		return option, 2
	case 'f':
		return option, 4
	case 'l', 'L', 'T', 'd':
		return option, 8
	case 'c':
		return option, f.number(1)
	case 'i', 'I':
		size = f.number(4)
		if size > maxIntegerSize {
			fail(f.L, "integral size %d is larger than limit of %d", size, maxIntegerSize)
		}
		return option, size
	}
	return option, 0
}

// number reads the number that may follow an option.
func (f *structFormat) number(otherwise uint64) uint64 {
	if f.rest == "" || !isDigit(f.rest[0]) {
		return otherwise
	}
	n := uint64(0)
	for f.rest != "" && isDigit(f.rest[0]) {
		n = n*10 + uint64(f.rest[0]-'0')
		f.rest = f.rest[1:]
		if n > maxFormatNumber {
			fail(f.L, "integral size overflow")
		}
	}
	return n
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// padding returns the number of bytes that align an offset for an option.
func (f *structFormat) padding(offset uint64, option byte, size uint64) uint64 {
	if size == 0 || option == 'c' {
		return 0
	}
	size = min(size, f.alignment)
	return (size - offset&(size-1)) & (size - 1)
}

// control executes an option that describes no data.
func (f *structFormat) control(option byte) {
	switch option {
	case ' ':
	case '>':
		f.bigEndian = true
	case '<':
		f.bigEndian = false
	case '!':
		f.alignment = f.number(nativeAlignment)
		if f.alignment == 0 || f.alignment&(f.alignment-1) != 0 {
			fail(f.L, "alignment %d is not a power of 2", f.alignment)
		}
	default:
		badArgument(f.L, 1, f.function, "invalid format option '"+string([]byte{option})+"'")
	}
}

func structPack(L *lua.LState) int {
	f := argFormat(L, "pack")
	var buf []byte
	arg := 1
	for f.rest != "" {
		option, size := f.next()
		buf = append(buf, make([]byte, f.padding(uint64(len(buf)), option, size))...)
		switch option {
		case 'b', 'B', 'h', 'H', 'l', 'L', 'T', 'i', 'I':
			arg++
			buf = f.appendInteger(buf, unsigned(f.packNumber(arg)), size)
		case 'x':
			buf = append(buf, 0)
		case 'f':
			arg++
			buf = f.appendInteger(buf, uint64(math.Float32bits(float32(f.packNumber(arg)))), size)
		case 'd':
			arg++
			buf = f.appendInteger(buf, math.Float64bits(f.packNumber(arg)), size)
		case 'c', 's':
			arg++
			s := f.packString(arg)
			if size == 0 {
				size = uint64(len(s))
			}
			if uint64(len(s)) < size {
				badArgument(L, arg+1, f.function, "string too short")
			}
			buf = append(buf, s[:size]...)
			if option == 's' {
				buf = append(buf, 0)
			}
		default:
			f.control(option)
		}
		mustFitMemory(L, len(buf))
	}
	L.Push(lua.LString(buf))
	return 1
}

// packNumber reads an argument of pack. A missing one counts as nil.
func (f *structFormat) packNumber(arg int) float64 {
	v, ok := toNumber(f.L.Get(arg))
	if !ok {
		badArgument(f.L, arg, f.function, "number expected, got "+f.L.Get(arg).Type().String())
	}
	return v
}

func (f *structFormat) packString(arg int) string {
	v := f.L.Get(arg)
	if !lua.LVCanConvToString(v) {
		badArgument(f.L, arg, f.function, "string expected, got "+v.Type().String())
	}
	return toText(v)
}

// appendInteger appends the lowest size bytes of an integer, and zeros beyond eight.
func (f *structFormat) appendInteger(buf []byte, n, size uint64) []byte {
	var field [maxIntegerSize]byte
	if f.bigEndian {
		binary.BigEndian.PutUint64(field[maxIntegerSize-8:], n)
		return append(buf, field[maxIntegerSize-size:]...)
	}
	binary.LittleEndian.PutUint64(field[:], n)
	return append(buf, field[:size]...)
}

// readInteger reads an integer as long as data, and returns its lowest eight bytes.
func (f *structFormat) readInteger(data string) uint64 {
	var field [8]byte
	if f.bigEndian {
		n := min(len(data), 8)
		copy(field[8-n:], data[len(data)-n:])
		return binary.BigEndian.Uint64(field[:])
	}
	copy(field[:], data)
	return binary.LittleEndian.Uint64(field[:])
}

func structUnpack(L *lua.LState) int {
	f := argFormat(L, "unpack")
	data := argString(L, 2, "unpack")
	// Positions are unsigned, so positions before the start appear beyond the end.
	at, length := uint64(0), uint64(len(data))
	if L.Get(3) != lua.LNil {
		start := truncate(argNumber(L, 3, "unpack"))
		if start == 0 {
			badArgument(L, 3, "unpack", "offset must be 1 or greater")
		}
		at = uint64(start) - 1
	}
	mustFit := func(size uint64) {
		if size > length || at > length-size {
			badArgument(L, 2, "unpack", "data string too short")
		}
	}
	results := 0
	push := func(v lua.LValue) {
		L.Push(v)
		results++
	}
	for f.rest != "" {
		option, size := f.next()
		at += f.padding(at, option, size)
		mustFit(size)
		if 2+results+2 > maxStack {
			fail(L, "stack overflow (too many results)")
		}
		switch option {
		case 'b', 'h', 'l', 'i':
			n := f.readInteger(data[at : at+size])
			// As in Redis, the sign of integers longer than eight bytes is read from the wrong place.
			if sign := uint64(math.MaxUint64) << ((8*size - 1) & 63); n&sign != 0 {
				n |= sign
			}
			push(lua.LNumber(int64(n)))
		case 'B', 'H', 'L', 'T', 'I':
			push(lua.LNumber(f.readInteger(data[at : at+size])))
		case 'x':
		case 'f':
			push(lua.LNumber(math.Float32frombits(uint32(f.readInteger(data[at : at+size])))))
		case 'd':
			push(lua.LNumber(math.Float64frombits(f.readInteger(data[at : at+size]))))
		case 'c':
			if size == 0 {
				previous, ok := toNumber(L.Get(-1))
				if results == 0 || !ok {
					fail(L, "format 'c0' needs a previous size")
				}
				L.Pop(1)
				results--
				size = unsigned(previous)
				mustFit(size)
			}
			push(lua.LString(data[at : at+size]))
		case 's':
			end := strings.IndexByte(data[at:], 0)
			if end < 0 {
				fail(L, "unfinished string in data")
			}
			push(lua.LString(data[at : at+uint64(end)]))
			size = uint64(end) + 1
		default:
			f.control(option)
		}
		at += size
	}
	push(lua.LNumber(int64(at + 1)))
	return results
}

// structSize returns the size of the data that a format without variable parts describes.
func structSize(L *lua.LState) int {
	f := argFormat(L, "size")
	total := uint64(0)
	for f.rest != "" {
		option, size := f.next()
		total += f.padding(total, option, size)
		switch {
		case option == 's':
			badArgument(L, 1, "size", "option 's' has no fixed size")
		case option == 'c' && size == 0:
			badArgument(L, 1, "size", "option 'c0' has no fixed size")
		case !isAlphanumeric(option):
			f.control(option)
		}
		total += size
	}
	L.Push(lua.LNumber(int64(total)))
	return 1
}

func isAlphanumeric(c byte) bool { return isDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'z' }
