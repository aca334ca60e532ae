package scripting

import (
	lua "github.com/yuin/gopher-lua"
)

// scratch is memory that libraries reuse from call to call. Only one library uses it at a time, since they do not call
// each other.
type scratch struct {
	buf    []byte
	keys   []string
	values []lua.LValue
}

// keepList is the longest list kept for reuse; keepArena bounds the bytes.
const keepList = 512

// keepBuf takes back a buffer that was grown from buf.
func (s *scratch) keepBuf(buf []byte) {
	if cap(buf) > keepArena {
		buf = nil
	}
	s.buf = buf[:0]
}

// keepLists takes back lists that were grown from keys and values.
func (s *scratch) keepLists(keys []string, values []lua.LValue) {
	s.keys, s.values = emptied(keys), emptied(values)
}

// emptied returns a list without elements and without references to them. It drops the list's own memory too if the
// list is long.
func emptied[E any](list []E) []E {
	if cap(list) > keepList {
		return nil
	}
	clear(list[:cap(list)])
	return list[:0]
}
