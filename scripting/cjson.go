package scripting

import (
	"math"
	"strconv"

	lua "github.com/yuin/gopher-lua"
)

// The library cjson converts values to and from JSON. It is our own because scripts observe more than the format: how
// numbers are printed, which tables are arrays, which texts count as numbers, and the errors with their positions.

// jsonNull is the value that scripts see as cjson.null.
var jsonNull = &lua.LUserData{Metatable: lua.LNil}

// jsonConfig are the settings of one instance of the library.
type jsonConfig struct {
	// Arrays with more than sparseRatio times as many positions as elements, and more than sparseSafe, become objects if
	// sparseConvert is set, and errors otherwise. A ratio of 0 allows all.
	sparseConvert bool
	sparseRatio   int32
	sparseSafe    int32
	// encodeDepth and decodeDepth bound the nesting.
	encodeDepth, decodeDepth int32
	// precision is the number of significant digits with which numbers are printed.
	precision int32
	// keepBuffer keeps the memory used for encoding for the next call.
	keepBuffer bool
	// encodeInvalid selects the treatment of infinities and NaN.
	encodeInvalid invalidNumbers
	// decodeInvalid allows numbers that JSON does not allow: hexadecimal, infinite, with leading zeros or plus signs.
	decodeInvalid bool
	// decodeArrays marks tables that were arrays, so that they are encoded as arrays again even when empty.
	decodeArrays bool
}

type invalidNumbers uint8

const (
	refuseInvalid invalidNumbers = iota
	printInvalid
	nullInvalid
)

// jsonDefaults are the settings with which every script starts.
var jsonDefaults = jsonConfig{sparseRatio: 2, sparseSafe: 10, encodeDepth: 1000, decodeDepth: 1000, precision: 14,
	keepBuffer: true, decodeInvalid: true}

// jsonPrecision is the highest precision.
const jsonPrecision = 14

// jsonLibrary is an instance of the library.
type jsonLibrary struct {
	m      *vm
	config jsonConfig
}

// openJSON adds the library to the globals.
func (m *vm) openJSON() {
	m.json = &jsonLibrary{m: m, config: jsonDefaults}
	m.library("cjson", m.json.table())
}

// table returns the table of an instance that scripts see.
func (j *jsonLibrary) table() *lua.LTable {
	t := j.m.functions(j.m.state.CreateTable(0, 8), map[string]lua.LGFunction{
		"decode": j.decode,
		"decode_array_with_array_mt": func(L *lua.LState) int {
			const name = "decode_array_with_array_mt"
			atMost(L, 1, name)
			argFlag(L, 1, name, &j.config.decodeArrays)
			return 1
		},
		"decode_invalid_numbers":  j.decodeInvalidNumbers,
		"decode_max_depth":        func(L *lua.LState) int { return j.depth(L, "decode_max_depth", &j.config.decodeDepth) },
		"encode":                  j.encode,
		"encode_invalid_numbers":  j.encodeInvalidNumbers,
		"encode_keep_buffer":      j.encodeKeepBuffer,
		"encode_max_depth":        func(L *lua.LState) int { return j.depth(L, "encode_max_depth", &j.config.encodeDepth) },
		"encode_number_precision": j.encodeNumberPrecision,
		"encode_sparse_array":     j.encodeSparseArray,
		"new": func(L *lua.LState) int {
			another := &jsonLibrary{m: j.m, config: jsonDefaults}
			L.Push(another.table())
			return 1
		},
	})
	t.RawSetString("null", jsonNull)
	t.RawSetString("_NAME", lua.LString("cjson"))
	t.RawSetString("_VERSION", lua.LString("2.1.0"))
	return t
}

// oneArgument refuses calls without exactly one argument.
func oneArgument(L *lua.LState, function string) {
	if L.GetTop() != 1 {
		badArgument(L, 1, function, "expected 1 argument")
	}
}

// arrayMark is the field of a metatable that makes a table an array.
const arrayMark = "__is_cjson_array"

// arrayMetatable returns the metatable of tables that were arrays. Scripts cannot change it.
func (m *vm) arrayMetatable() *lua.LTable {
	if m.arrays == nil {
		marked := m.state.CreateTable(0, 1)
		marked.RawSetString(arrayMark, lua.LTrue)
		m.arrays = m.protect(marked)
	}
	return m.arrays
}

// isArray reports whether a table's metatable makes it an array.
func (m *vm) isArray(t *lua.LTable) bool {
	meta, ok := t.Metatable.(*lua.LTable)
	return ok && lua.LVAsBool(m.behind(meta).RawGetString(arrayMark))
}

// atMost refuses calls with more than n arguments.
func atMost(L *lua.LState, n int, function string) {
	if L.GetTop() > n {
		badArgument(L, n+1, function, "found too many arguments")
	}
}

// argSetting sets value to argument n, from low to high, unless it is nil.
func argSetting(L *lua.LState, n int, function string, value *int32, low, high int32) {
	if L.Get(n) != lua.LNil {
		setting := argInt32(L, n, function)
		if setting < low || setting > high {
			// The message blames the first argument, whichever it is.
			badArgument(L, 1, function, "expected integer between "+strconv.Itoa(int(low))+" and "+strconv.Itoa(int(high)))
		}
		*value = setting
	}
}

// argSwitch sets value to argument n, a boolean or a word, unless it is nil. words are the words besides "off" and
// "on", in the order of their values.
func argSwitch[T ~uint8](L *lua.LState, n int, function string, value *T, words ...string) {
	switch v := L.Get(n).(type) {
	case *lua.LNilType:
	case lua.LBool:
		*value = 0
		if v {
			*value = 1
		}
	default:
		word := argString(L, n, function)
		for i, w := range append([]string{"off", "on"}, words...) {
			if w == word {
				*value = T(i)
				return
			}
		}
		badArgument(L, n, function, "invalid option '"+cString(word)+"'")
	}
}

// argFlag is argSwitch for a setting that is on or off. It pushes the result.
func argFlag(L *lua.LState, n int, function string, value *bool) {
	setting := uint8(0)
	if *value {
		setting = 1
	}
	argSwitch(L, n, function, &setting)
	*value = setting == 1
	L.Push(lua.LBool(*value))
}

func (j *jsonLibrary) encodeSparseArray(L *lua.LState) int {
	const name = "encode_sparse_array"
	atMost(L, 3, name)
	L.SetTop(3)
	argFlag(L, 1, name, &j.config.sparseConvert)
	argSetting(L, 2, name, &j.config.sparseRatio, 0, math.MaxInt32)
	L.Push(lua.LNumber(j.config.sparseRatio))
	argSetting(L, 3, name, &j.config.sparseSafe, 0, math.MaxInt32)
	L.Push(lua.LNumber(j.config.sparseSafe))
	return 3
}

func (j *jsonLibrary) depth(L *lua.LState, function string, value *int32) int {
	atMost(L, 1, function)
	argSetting(L, 1, function, value, 1, math.MaxInt32)
	L.Push(lua.LNumber(*value))
	return 1
}

func (j *jsonLibrary) encodeNumberPrecision(L *lua.LState) int {
	const name = "encode_number_precision"
	atMost(L, 1, name)
	argSetting(L, 1, name, &j.config.precision, 1, jsonPrecision)
	L.Push(lua.LNumber(j.config.precision))
	return 1
}

func (j *jsonLibrary) encodeKeepBuffer(L *lua.LState) int {
	const name = "encode_keep_buffer"
	atMost(L, 1, name)
	argFlag(L, 1, name, &j.config.keepBuffer)
	return 1
}

func (j *jsonLibrary) encodeInvalidNumbers(L *lua.LState) int {
	const name = "encode_invalid_numbers"
	atMost(L, 1, name)
	argSwitch(L, 1, name, &j.config.encodeInvalid, "null")
	switch j.config.encodeInvalid {
	case nullInvalid:
		L.Push(lua.LString("null"))
	default:
		L.Push(lua.LBool(j.config.encodeInvalid == printInvalid))
	}
	return 1
}

func (j *jsonLibrary) decodeInvalidNumbers(L *lua.LState) int {
	const name = "decode_invalid_numbers"
	atMost(L, 1, name)
	argFlag(L, 1, name, &j.config.decodeInvalid)
	return 1
}
