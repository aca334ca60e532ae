package scripting

import (
	lua "github.com/yuin/gopher-lua"
)

// scratch is memory that libraries reuse from call to call. It is theirs while they run, and they do not call each
// other.
type scratch struct {
	buf    []byte
	keys   []string
	values []lua.LValue
}

// keepList is the longest list that is kept for reuse; keepArena bounds the bytes.
const keepList = 512

// keepBuf takes back a buffer that was made of buf.
func (s *scratch) keepBuf(buf []byte) {
	if cap(buf) > keepArena {
		buf = nil
	}
	s.buf = buf[:0]
}

// keepLists takes back lists that were made of keys and values.
func (s *scratch) keepLists(keys []string, values []lua.LValue) {
	s.keys, s.values = emptied(keys), emptied(values)
}

// emptied returns a list without elements that holds on to nothing but its own memory, and to none of that if it is
// long.
func emptied[E any](list []E) []E {
	if cap(list) > keepList {
		return nil
	}
	clear(list[:cap(list)])
	return list[:0]
}
