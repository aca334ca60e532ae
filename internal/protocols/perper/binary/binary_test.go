package binary_test

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/protocols/perper/binary"
)

func unhex(t testing.TB, text string) []byte {
	b, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
	require.NoError(t, err)
	return b
}

func TestIDs(t *testing.T) {
	for name, id := range map[string]int32{
		"ExecutionData": 922529474, "StreamListener": -1232432076, "InstanceData": -737201729, "PerperAgent": -1528168411,
		"PerperStream": 399128160, "PerperDictionary": -2096371850, "PerperList": 2029244286, "PerperExecution": 1182283832,
	} {
		require.Equal(t, id, binary.ID(name), name)
	}
	for name, id := range map[string]int32{"executions": 539514971, "stream-listeners": -1302551502, "instances": 29097598,
		"": 0, "ä😀": 228*31*31 + 0xd83d*31 + 0xde00} {
		require.Equal(t, id, binary.Hash(name), name)
	}
	var fields []int32
	for _, name := range []string{"agent", "instance", "delegate", "finished", "parameters", "result", "error"} {
		fields = append(fields, binary.ID(name))
	}
	require.Equal(t, int32(-0x2bd7559d), binary.SchemaID(fields), "63 aa 28 d4")
	require.Zero(t, binary.SchemaID(nil))
}

// objects has an object of every type, with its text.
var objects = []struct{ hex, text string }{
	{"01 ff", "byte(-1)"},
	{"02 ffff", "short(-1)"},
	{"03 ffffffff", "int(-1)"},
	{"04 ffffffffffffffff", "-1"},
	{"05 0000c03f", "float(1.5)"},
	{"06 000000000000f03f", "1.0"},
	{"06 000000000000f07f", "double(+Inf)"},
	{"07 6100", `char("a")`},
	{"08 00", "false"},
	{"08 01", "true"},
	{"09 03000000 783d31", "x=1"},
	{"09 00000000", `""`},
	{"09 01000000 35", `"5"`},
	{"09 04000000 6e756c6c", `"null"`},
	{"09 06000000 696e74283529", `"int(5)"`},
	{"0a 0807060504030201 100f0e0d0c0b0a09", "uuid(01020304-0506-0708-090a-0b0c0d0e0f10)"},
	{"0b e803000000000000", `date("1970-01-01T00:00:01.000Z")`},
	{"0b ffffffffffffff7f", `date(9223372036854775807)`},
	{"0c 02000000 01ff", "byte[1, -1]"},
	{"0d 01000000 0100", "short[1]"},
	{"0e 01000000 01000000", "int[1]"},
	{"0f 01000000 0100000000000000", "long[1]"},
	{"10 01000000 0000c03f", "float[1.5]"},
	{"11 01000000 000000000000f03f", "double[1.0]"},
	{"12 02000000 61006200", `char["a", "b"]`},
	{"13 02000000 0100", "bool[true, false]"},
	{"14 02000000 09 01000000 61 65", `["a", null]`},
	{"15 01000000 65", "[null]"},
	{"16 01000000 0b 0000000000000000", `[date("1970-01-01T00:00:00.000Z")]`},
	{"17 ffffffff 02000000 03 01000000 09 01000000 61", `[int(1), "a"]`},
	{"18 01000000 01 65", "list[null]"},
	{"19 01000000 01 09 01000000 61 04 0100000000000000", `{"a": 1}`},
	{"1c 05000000 07000000", "type#5(7)"},
	{"1d ffffffff 01000000 1c 05000000 07000000", "[type#5(7)]"},
	{"1e 02000000 02000000 3039", "decimal(123.45)"},
	{"1e 04000000 01000000 85", "decimal(-0.0005)"},
	{"1e feffffff 01000000 07", "decimal(700)"},
	{"1f 01000000 1e 00000000 01000000 07", "[decimal(7)]"},
	{"21 e803000000000000 01000000", `timestamp("1970-01-01T00:00:01.000000001Z")`},
	{"22 01000000 65", "[null]"},
	{"24 e803000000000000", `time("00:00:01.000")`},
	{"25 01000000 65", "[null]"},
	{"26 05000000 07000000", "type#5(7)"},
	{"65", "null"},
	{"66 05000000", "hex(6605000000)"},
	{"67 01 0000 05000000 00000000 18000000 00000000 00000000", "type#5{}"},
}

func TestTextsOfObjects(t *testing.T) {
	for _, o := range objects {
		b := unhex(t, o.hex)
		n, err := binary.Len(append(b, 0xff))
		require.NoError(t, err, o.text)
		require.Equal(t, len(b), n, o.text)
		require.Equal(t, o.text, string(binary.AppendText(nil, b, nil)))
		for i := range b {
			_, err := binary.Len(b[:i])
			require.Error(t, err, o.text)
		}
		if b[0] <= byte(binary.UUID) && b[0] != byte(binary.Char) {
			got, err := binary.ParseText([]byte(o.text))
			require.NoError(t, err, o.text)
			require.Equal(t, b, got, o.text)
		}
		got, err := binary.ParseText([]byte("hex(" + hex.EncodeToString(b) + ")"))
		require.NoError(t, err)
		require.Equal(t, b, got)
	}
	require.Equal(t, "hex(ff)", string(binary.AppendText(nil, []byte{0xff}, nil)))
}

func TestTextsThatAreRead(t *testing.T) {
	for text, want := range map[string]string{
		`"a\nb"`: "09 03000000 610a62", "-": "09 01000000 2d", "1e3": "06 0000000000408f40", "0x1p4": "09 05000000 3078317034",
		"9223372036854775808": "09 13000000 39323233333732303336383534373735383038", "other(5)": "09 08000000 6f74686572283529",
	} {
		got, err := binary.ParseText([]byte(text))
		require.NoError(t, err, text)
		require.Equal(t, unhex(t, want), got, text)
	}
	for _, text := range []string{`"a`, "byte(128)", "int(x)", "float(x)", "double()", "uuid(12)", "hex(0)", "hex(09)", "long(1.5)"} {
		_, err := binary.ParseText([]byte(text))
		require.ErrorIs(t, err, binary.ErrText, text)
	}
}

func TestWrappedObjects(t *testing.T) {
	object := binary.AppendObject(nil, 5, []binary.Field{{ID: 7, Value: binary.AppendBool(nil, true)}})
	wrapped := binary.AppendWrapped(nil, object)
	require.Equal(t, append(append(unhex(t, "1b 22000000"), object...), 0, 0, 0, 0), wrapped)
	n, err := binary.Len(wrapped)
	require.NoError(t, err)
	require.Equal(t, len(wrapped), n)
	got, err := binary.Unwrap(wrapped)
	require.NoError(t, err)
	require.Equal(t, object, got)
	require.Equal(t, []byte{8, 1}, binary.AppendWrapped(nil, []byte{8, 1}))

	got, err = binary.Unwrap(unhex(t, "1b 04000000 00 08 01 00 01000000"))
	require.NoError(t, err)
	require.Equal(t, []byte{8, 1}, got, "an offset")
	for _, bad := range []string{"1b 02000000 0801 02000000", "1b 02000000 0801 ffffffff", "1b 01000000 08 00000000"} {
		_, err := binary.Unwrap(unhex(t, bad))
		require.ErrorIs(t, err, binary.ErrMalformed, bad)
	}
}

// Complex objects in arrays, collections and maps are wrapped one by one in replies, and stored unwrapped.
func TestWrappedElements(t *testing.T) {
	object := binary.AppendObject(nil, 5, []binary.Field{{ID: 7, Value: binary.AppendBool(nil, true)}})
	inner := append(unhex(t, "17 ffffffff 02000000 65"), object...)
	list := append(append(unhex(t, "18 02000000 01"), inner...), 8, 1)
	stored := append(unhex(t, "19 01000000 01 03 01000000"), list...)
	wrapped := append(append(unhex(t, "1b 22000000"), object...), 0, 0, 0, 0)
	shown := append(append(unhex(t, "19 01000000 01 03 01000000 18 02000000 01 17 ffffffff 02000000 65"), wrapped...), 8, 1)
	require.Equal(t, shown, binary.AppendWrapped(nil, stored))
	got, err := binary.Unwrap(shown)
	require.NoError(t, err)
	require.Equal(t, stored, got)

	for _, plain := range []string{"17 ffffffff 00000000", "18 01000000 00 65", "19 01000000 01 0801 0800"} {
		require.Equal(t, unhex(t, plain), binary.AppendWrapped(nil, unhex(t, plain)))
		got, err := binary.Unwrap(unhex(t, plain))
		require.NoError(t, err)
		require.Equal(t, unhex(t, plain), got)
	}
	_, err = binary.Unwrap(unhex(t, "18 01000000 00 1b 02000000 0801 02000000"))
	require.ErrorIs(t, err, binary.ErrMalformed)
}

func TestFieldsOfComplexObjects(t *testing.T) {
	// Python's ExecutionData has offsets of a byte and no ids of fields.
	values := unhex(t, "09 01000000 69 09 01000000 61 08 00")
	ids := []int32{binary.ID("instance"), binary.ID("agent"), binary.ID("finished")}
	compact := append(unhex(t, "67 01 2b00 c2aefc36 01000000 29000000 05000000 26000000"), values...)
	compact = append(compact, 0x18, 0x1e, 0x24)
	o, err := binary.ParseObject(compact)
	require.NoError(t, err)
	require.Equal(t, int32(922529474), o.TypeID)
	require.Equal(t, int32(5), o.SchemaID)
	schemas := func(typeID, schemaID int32) []int32 {
		if typeID == 922529474 && schemaID == 5 {
			return ids
		}
		return nil
	}
	v, err := o.Field(schemas, ids[2])
	require.NoError(t, err)
	require.Equal(t, []byte{8, 0}, v)
	v, err = o.Field(schemas, 1)
	require.NoError(t, err)
	require.Nil(t, v)
	_, err = o.Field(func(int32, int32) []int32 { return nil }, ids[2])
	require.ErrorContains(t, err, "schema 5")

	// Our objects contain the ids of their fields.
	full := binary.AppendObject(nil, 922529474, []binary.Field{{ID: ids[0], Value: binary.AppendString(nil, "i")},
		{ID: ids[2], Value: binary.AppendBool(nil, true)}})
	o, err = binary.ParseObject(full)
	require.NoError(t, err)
	require.Equal(t, binary.SchemaID([]int32{ids[0], ids[2]}), o.SchemaID)
	v, err = o.Field(nil, ids[2])
	require.NoError(t, err)
	require.Equal(t, []byte{8, 1}, v)
	types := binary.Types(func(id int32) *binary.Type {
		return &binary.Type{Name: "ExecutionData", Fields: []binary.TypeField{{Name: "instance", ID: ids[0]}},
			Schemas: []binary.Schema{{ID: 5, Fields: ids}}}
	})
	require.Equal(t, `ExecutionData{instance: "i", #-673660814: true}`, string(binary.AppendText(nil, full, types)))
	require.Equal(t, `ExecutionData{instance: "i", #92750597: "a", #-673660814: false}`,
		string(binary.AppendText(nil, compact, types)))
}

func TestTypesAreMerged(t *testing.T) {
	a := &binary.Type{ID: 5, Name: "T", Fields: []binary.TypeField{{"a", 9, 97}}, Schemas: []binary.Schema{{1, []int32{97}}}}
	b := &binary.Type{ID: 5, Name: "T", Affinity: "b", Fields: []binary.TypeField{{"a", 9, 97}, {"b", 3, 98}},
		Schemas: []binary.Schema{{1, []int32{97}}, {2, []int32{97, 98}}}}
	require.NoError(t, a.Merge(b))
	require.Equal(t, b, a)
	got, err := binary.ParseType(a.Append(nil))
	require.NoError(t, err)
	require.Equal(t, a, got)
	require.ErrorContains(t, a.Merge(&binary.Type{Enum: true}), "enum")
	require.ErrorContains(t, a.Merge(&binary.Type{Affinity: "c"}), "affinity")
	require.ErrorContains(t, a.Merge(&binary.Type{Fields: []binary.TypeField{{"a", 3, 97}}}), "another type")
	e := &binary.Type{ID: 6, Name: "E", Enum: true, Values: []binary.EnumValue{{"A", 0}, {"B", 1}}}
	got, err = binary.ParseType(e.Append(nil))
	require.NoError(t, err)
	require.Equal(t, e, got)
	text := binary.AppendText(nil, unhex(t, "26 06000000 01000000"), func(int32) *binary.Type { return e })
	require.Equal(t, "E(B)", string(text))
	b1 := a.Append(nil)
	for n := range b1 {
		_, err := binary.ParseType(b1[:n])
		require.Error(t, err)
	}
}

func TestNestingIsBounded(t *testing.T) {
	deep := []byte{}
	for range 1000 {
		deep = append(deep, 0x18, 1, 0, 0, 0, 1)
	}
	_, err := binary.Len(append(deep, 0x65))
	require.ErrorIs(t, err, binary.ErrTooDeep)

	// Overlapping fields give a small object a long text.
	object := []byte{0x65}
	for range 20 {
		fields := make([]binary.Field, 1)
		fields[0] = binary.Field{ID: 1, Value: object}
		object = binary.AppendObject(nil, 5, fields)
		footer := object[len(object)-8:]
		for range 7 {
			object = append(object, footer...)
		}
		object[12], object[13] = byte(len(object)), byte(len(object)>>8)
	}
	require.Less(t, len(binary.AppendText(nil, object, nil)), 2<<20)
}

func FuzzObjects(f *testing.F) {
	for _, o := range objects {
		f.Add(unhex(f, o.hex))
	}
	f.Add(binary.AppendWrapped(nil, binary.AppendObject(nil, 5, []binary.Field{{ID: 7, Value: binary.AppendBool(nil, true)}})))
	types := func(id int32) *binary.Type { return &binary.Type{Schemas: []binary.Schema{{5, []int32{1, 2, 3}}}} }
	f.Fuzz(func(t *testing.T, b []byte) {
		n, err := binary.Len(b)
		if err == nil {
			if inner, err := binary.Unwrap(b[:n]); err == nil {
				binary.AppendText(nil, inner, types)
				again, err := binary.Unwrap(binary.AppendWrapped(nil, inner))
				require.NoError(t, err)
				require.Equal(t, inner, again)
			}
		}
		binary.AppendText(nil, b, types)
		if typ, err := binary.ParseType(b); err == nil {
			again, err := binary.ParseType(typ.Append(nil))
			require.NoError(t, err)
			require.Equal(t, typ, again)
		}
		if object, err := binary.ParseText(b); err == nil {
			text := binary.AppendText(nil, object, nil)
			back, err := binary.ParseText(text)
			if object[0] <= byte(binary.UUID) && object[0] != byte(binary.Char) {
				require.NoError(t, err)
				if object[0] != byte(binary.String) { // invalid UTF-8 is shown approximately
					require.Equal(t, object, back)
				}
			}
		}
	})
}
