package scripting

import (
	lua "github.com/yuin/gopher-lua"
)

// scratch is memory that libraries reuse from call to call. It is theirs while they run, and they do not call each other.
type scratch struct {
	buf    []byte
	values []lua.LValue
}

// keepList is the longest list of values that is kept for reuse; keepArena bounds the bytes.
const keepList = 4096

// keepBuf takes back a buffer that was made of buf.
func (s *scratch) keepBuf(buf []byte) {
	if cap(buf) > keepArena {
		buf = nil
	}
	s.buf = buf[:0]
}

// keepValues takes back a slice that was made of values.
func (s *scratch) keepValues(values []lua.LValue) {
	if cap(values) > keepList {
		s.values = nil
		return
	}
	clear(values[:cap(values)])
	s.values = values[:0]
}
