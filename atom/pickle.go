package atom

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"unicode/utf8"
)

// pickleCodec reads and writes pickles of plain data: None, booleans, numbers, text, bytes, lists, tuples and
// dictionaries. The Python client pickles the items of queues. Objects of Python classes are refused; reading a pickle
// never executes code.
type pickleCodec struct{}

func (pickleCodec) Name() string { return Pickle }

// The opcodes of a pickle, by the names that Python's pickletools gives them.
const (
	opProto, opFrame, opStop, opMemoize                   = 0x80, 0x95, '.', 0x94
	opNone, opTrue, opFalse                               = 'N', 0x88, 0x89
	opBinInt, opBinInt1, opBinInt2, opLong1, opLong4      = 'J', 'K', 'M', 0x8a, 0x8b
	opBinFloat                                            = 'G'
	opShortBinUnicode, opBinUnicode, opBinUnicode8        = 0x8c, 'X', 0x8d
	opShortBinBytes, opBinBytes, opBinBytes8              = 'C', 'B', 0x8e
	opByteArray8                                          = 0x96
	opMark, opEmptyList, opAppend, opAppends              = '(', ']', 'a', 'e'
	opEmptyDict, opSetItem, opSetItems                    = '}', 's', 'u'
	opEmptyTuple, opTuple1, opTuple2, opTuple3            = ')', 0x85, 0x86, 0x87
	opTuple                                               = 't'
	opBinGet, opLongBinGet, opBinPut, opLongBinPut        = 'h', 'j', 'q', 'r'
	pickleVersion                                    byte = 4 // Python reads it from 3.4 on
)

func (pickleCodec) Encode(v any) ([]byte, error) {
	out, err := appendPickle([]byte{opProto, pickleVersion}, v, 0)
	return append(out, opStop), err
}

func appendPickle(out []byte, v any, depth int) ([]byte, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("nested deeper than %d levels", maxDepth)
	}
	var err error
	switch v := v.(type) {
	case nil:
		return append(out, opNone), nil
	case bool:
		if v {
			return append(out, opTrue), nil
		}
		return append(out, opFalse), nil
	case int64:
		return appendPickleInt(out, big.NewInt(v)), nil
	case uint64:
		return appendPickleInt(out, new(big.Int).SetUint64(v)), nil
	case float64:
		return binary.BigEndian.AppendUint64(append(out, opBinFloat), math.Float64bits(v)), nil
	case string:
		if !utf8.ValidString(v) {
			return nil, errors.New("text that is not UTF-8: use bytes")
		}
		return append(appendPickleLen(out, len(v), opShortBinUnicode, opBinUnicode, opBinUnicode8), v...), nil
	case []byte:
		return append(appendPickleLen(out, len(v), opShortBinBytes, opBinBytes, opBinBytes8), v...), nil
	case []any:
		out = append(out, opEmptyList, opMark)
		for _, item := range v {
			if out, err = appendPickle(out, item, depth+1); err != nil {
				return nil, err
			}
		}
		return append(out, opAppends), nil
	case map[string]any:
		out = append(out, opEmptyDict, opMark)
		for _, name := range sortedKeys(v) {
			if out, err = appendPickle(out, name, depth+1); err != nil {
				return nil, err
			}
			if out, err = appendPickle(out, v[name], depth+1); err != nil {
				return nil, err
			}
		}
		return append(out, opSetItems), nil
	case map[any]any:
		out = append(out, opEmptyDict, opMark)
		for key, item := range v {
			if out, err = appendPickle(out, key, depth+1); err != nil {
				return nil, err
			}
			if out, err = appendPickle(out, item, depth+1); err != nil {
				return nil, err
			}
		}
		return append(out, opSetItems), nil
	}
	// Other values are converted to the types above through msgpack, so structs follow the same rules in both.
	plain, err := viaMsgpack(v)
	if err != nil {
		return nil, err
	}
	switch plain.(type) {
	case nil, bool, int64, uint64, float64, string, []byte, []any, map[string]any, map[any]any:
		return appendPickle(out, plain, depth+1)
	}
	return nil, fmt.Errorf("a %T cannot be pickled", v)
}

func viaMsgpack(v any) (plain any, err error) {
	data, err := msgpackCodec{}.Encode(v)
	if err != nil {
		return nil, err
	}
	return plain, msgpackCodec{}.Decode(data, &plain)
}

// appendPickleInt writes a LONG1: the bytes of the two's complement, lowest first.
func appendPickleInt(out []byte, n *big.Int) []byte {
	if n.IsInt64() && n.Int64() == int64(int32(n.Int64())) {
		return binary.LittleEndian.AppendUint32(append(out, opBinInt), uint32(n.Int64()))
	}
	size := n.BitLen()/8 + 1
	if n.Sign() < 0 {
		n = new(big.Int).Add(n, new(big.Int).Lsh(big.NewInt(1), uint(8*size)))
	}
	digits := n.FillBytes(make([]byte, size))
	slices.Reverse(digits)
	return append(append(out, opLong1, byte(size)), digits...)
}

func appendPickleLen(out []byte, n int, short, long, huge byte) []byte {
	switch {
	case n < 1<<8:
		return append(out, short, byte(n))
	case uint64(n) < 1<<32:
		return binary.LittleEndian.AppendUint32(append(out, long), uint32(n))
	}
	return binary.LittleEndian.AppendUint64(append(out, huge), uint64(n))
}

func (pickleCodec) Decode(data []byte, into any) error {
	v, err := (&unpickler{data: data}).load()
	if err != nil {
		return err
	}
	if into, ok := into.(*any); ok {
		*into = v
		return nil
	}
	packed, err := msgpackCodec{}.Encode(v)
	if err != nil {
		return err
	}
	return msgpackCodec{}.Decode(packed, into)
}

// unpickler is the stack machine that executes a pickle.
type unpickler struct {
	data  []byte
	stack []any
	memo  []any
}

// mark is the stack entry before the items of a list, tuple or dictionary.
type mark struct{}

// container is a list, tuple or dictionary. The memo may refer to it while it grows.
type container struct {
	dict  bool
	items []any // alternating keys and values, if dict

	done, visiting bool
	value          any // the finished value, once done
	size           int // number of values; shared values count each time
}

// maxPickled limits the values of a pickle: nested lists that share elements grow exponentially when copied.
const maxPickled = 1 << 24

var errPickle = errors.New("damaged pickle")

func (u *unpickler) load() (any, error) {
	for {
		code, err := u.take(1)
		if err != nil {
			return nil, err
		}
		if code[0] == opStop {
			if len(u.stack) != 1 {
				return nil, errPickle
			}
			return finish(u.stack[0], 0)
		}
		if err := u.step(code[0]); err != nil {
			return nil, err
		}
	}
}

func (u *unpickler) step(code byte) error {
	switch code {
	case opProto:
		_, err := u.take(1)
		return err
	case opFrame:
		_, err := u.take(8)
		return err
	case opMemoize:
		top, err := u.top()
		u.memo = append(u.memo, top)
		return err
	case opBinPut, opLongBinPut:
		return u.put(map[byte]int{opBinPut: 1, opLongBinPut: 4}[code])
	case opBinGet, opLongBinGet:
		i, err := u.number(map[byte]int{opBinGet: 1, opLongBinGet: 4}[code])
		if err != nil || i >= len(u.memo) {
			return errPickle
		}
		u.push(u.memo[i])
	case opNone:
		u.push(nil)
	case opTrue:
		u.push(true)
	case opFalse:
		u.push(false)
	case opBinInt:
		n, err := u.number(4)
		u.push(int64(int32(n)))
		return err
	case opBinInt1, opBinInt2:
		n, err := u.number(map[byte]int{opBinInt1: 1, opBinInt2: 2}[code])
		u.push(int64(n))
		return err
	case opLong1, opLong4:
		return u.long(map[byte]int{opLong1: 1, opLong4: 4}[code])
	case opBinFloat:
		b, err := u.take(8)
		if err != nil {
			return err
		}
		u.push(math.Float64frombits(binary.BigEndian.Uint64(b)))
	case opShortBinUnicode, opBinUnicode, opBinUnicode8:
		b, err := u.sized(map[byte]int{opShortBinUnicode: 1, opBinUnicode: 4, opBinUnicode8: 8}[code])
		u.push(string(b))
		return err
	case opShortBinBytes, opBinBytes, opBinBytes8, opByteArray8:
		b, err := u.sized(map[byte]int{opShortBinBytes: 1, opBinBytes: 4, opBinBytes8: 8, opByteArray8: 8}[code])
		u.push(bytes.Clone(b))
		return err
	case opMark:
		u.push(mark{})
	case opEmptyList, opEmptyTuple:
		u.push(&container{})
	case opEmptyDict:
		u.push(&container{dict: true})
	case opAppend, opSetItem:
		return u.fill(map[byte]int{opAppend: 1, opSetItem: 2}[code])
	case opAppends, opSetItems:
		n, err := u.marked()
		if err != nil {
			return err
		}
		u.stack = slices.Delete(u.stack, len(u.stack)-n-1, len(u.stack)-n)
		return u.fill(n)
	case opTuple1, opTuple2, opTuple3:
		return u.tuple(int(code) - opTuple1 + 1)
	case opTuple:
		n, err := u.marked()
		if err != nil {
			return err
		}
		u.stack = slices.Delete(u.stack, len(u.stack)-n-1, len(u.stack)-n)
		return u.tuple(n)
	default:
		return fmt.Errorf("opcode 0x%02x: only pickles of plain data can be read, not those of Python objects", code)
	}
	return nil
}

func (u *unpickler) push(v any) { u.stack = append(u.stack, v) }

func (u *unpickler) top() (any, error) {
	if len(u.stack) == 0 {
		return nil, errPickle
	}
	return u.stack[len(u.stack)-1], nil
}

func (u *unpickler) take(n int) ([]byte, error) {
	if n < 0 || n > len(u.data) {
		return nil, errTruncated
	}
	b := u.data[:n]
	u.data = u.data[n:]
	return b, nil
}

// number reads an unsigned number. A number that is too large for an int becomes negative, which every caller refuses.
func (u *unpickler) number(width int) (int, error) {
	b, err := u.take(width)
	if err != nil {
		return 0, err
	}
	var full [8]byte
	copy(full[:], b)
	return int(binary.LittleEndian.Uint64(full[:])), nil
}

func (u *unpickler) sized(width int) ([]byte, error) {
	n, err := u.number(width)
	if err != nil {
		return nil, err
	}
	return u.take(n)
}

// put stores the top of the stack in the memo. Python numbers memo entries in order; other numbers are refused.
func (u *unpickler) put(width int) error {
	i, err := u.number(width)
	if err != nil {
		return err
	}
	top, err := u.top()
	switch {
	case err != nil || i > len(u.memo):
		return errPickle
	case i == len(u.memo):
		u.memo = append(u.memo, top)
	default:
		u.memo[i] = top
	}
	return nil
}

func (u *unpickler) long(width int) error {
	b, err := u.sized(width)
	if err != nil {
		return err
	}
	digits := bytes.Clone(b)
	slices.Reverse(digits)
	n := new(big.Int).SetBytes(digits)
	if len(digits) > 0 && digits[0] >= 0x80 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(digits))))
	}
	switch {
	case n.IsInt64():
		u.push(n.Int64())
	case n.IsUint64():
		u.push(n.Uint64())
	default:
		return errors.New("a number of more than 64 bits")
	}
	return nil
}

// marked returns how many values stand above the last mark.
func (u *unpickler) marked() (int, error) {
	for i := len(u.stack) - 1; i >= 0; i-- {
		if u.stack[i] == any(mark{}) {
			return len(u.stack) - 1 - i, nil
		}
	}
	return 0, errPickle
}

// fill moves the last n values into the container below them.
func (u *unpickler) fill(n int) error {
	at := len(u.stack) - n - 1
	if at < 0 {
		return errPickle
	}
	c, ok := u.stack[at].(*container)
	if !ok || c.dict && n%2 != 0 {
		return errPickle
	}
	c.items = append(c.items, u.stack[at+1:]...)
	u.stack = u.stack[:at+1]
	return nil
}

func (u *unpickler) tuple(n int) error {
	at := len(u.stack) - n
	if at < 0 {
		return errPickle
	}
	c := &container{items: slices.Clone(u.stack[at:])}
	u.stack = append(u.stack[:at], c)
	return nil
}

// finish turns containers into slices and maps. It converts a shared container once, and refuses one that contains
// itself.
func finish(v any, depth int) (any, error) {
	c, ok := v.(*container)
	if !ok {
		if v == any(mark{}) {
			return nil, errPickle
		}
		return v, nil
	}
	switch {
	case c.done:
		return c.value, nil
	case c.visiting:
		return nil, errors.New("a value that contains itself")
	case depth > maxDepth:
		return nil, fmt.Errorf("nested deeper than %d levels", maxDepth)
	}
	c.visiting = true
	items := make([]any, len(c.items))
	for i, item := range c.items {
		var err error
		if items[i], err = finish(item, depth+1); err != nil {
			return nil, err
		}
		if inner, ok := item.(*container); ok {
			c.size += inner.size
		}
	}
	if c.size += len(items); c.size > maxPickled {
		return nil, fmt.Errorf("more than %d values", maxPickled)
	}
	c.value = items
	if c.dict {
		m, err := mapOf(items)
		if err != nil {
			return nil, err
		}
		c.value = m
	}
	c.done = true
	return c.value, nil
}
