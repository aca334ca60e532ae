package documents

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/engine/delta"
)

func printed(v Value) string { return string(v.AppendJSON(nil, Layout{})) }

func TestValuesArePrintedAsTheyWereRead(t *testing.T) {
	for text, want := range map[string]string{
		"null": "", "true": "", "false": "", " [ ] ": "[]", "{ }": "{}", "0": "", "-1": "", "9223372036854775807": "",
		"-9223372036854775808": "", "18446744073709551615": "", "18446744073709551616": "1.8446744073709552e19",
		"45232446983204764922041": "4.523244698320477e22", "1.0": "", "-0": "-0.0", "1e2": "100.0", "1e15": "1000000000000000.0",
		"1e16": "1e16", "1E+20": "1e20", "0.00001": "", "0.000001": "1e-6", "12.340": "12.34", "-1.5e-7": "",
		"1234500000.25": "", "5e-324": "", "1.7976931348623157e308": "", `"a"`: "", `"sevenby"`: "", `"eightbyt"`: "",
		`"\u00e4\ud83d\ude00\/\b\f\n\r\t\"\\\u0001"`: `"ä😀/\b\f\n\r\t\"\\\u0001"`, `{"a":1,"b":2,"a":3}`: `{"a":3,"b":2}`,
		`[1,[2,{"a":[]}],"x"]`: "", `{"b":1,"a":{"":2}}`: "",
	} {
		v, err := Parse([]byte(text))
		require.NoError(t, err, text)
		if want == "" {
			want = text
		}
		require.Equal(t, want, printed(v))
		require.Equal(t, want, printed(New(v).Root().Clone()))
	}
	v, err := Parse([]byte(`{"a":[1,{"b":[]}],"c":{}}`))
	require.NoError(t, err)
	require.Equal(t, "{\n\t\"a\": [\n\t\t1,\n\t\t{\n\t\t\t\"b\": []\n\t\t}\n\t],\n\t\"c\": {}\n}",
		string(v.AppendJSON(nil, Layout{Indent: "\t", Newline: "\n", Space: " "})))
	l := Layout{Indent: strings.Repeat(" ", 1000), Limit: 2000}
	text := v.AppendJSON(nil, l)
	require.True(t, l.Full(text))
	require.Less(t, len(text), 10_000)
}

func TestTextsThatAreNoJSON(t *testing.T) {
	for text, want := range map[string]string{
		"": "EOF while parsing a value at line 1 column 0", "x": "expected value at line 1 column 1",
		"inf": "expected value at line 1 column 1", "-inf": "invalid number at line 1 column 2",
		"[1,]": "trailing comma at line 1 column 4", "[1": "EOF while parsing a list at line 1 column 2",
		"[1 2]": "expected `,` or `]` at line 1 column 4", "{1:2}": "key must be a string at line 1 column 2",
		`{"a" 1}`: "expected `:` at line 1 column 6", `{"a":1`: "EOF while parsing an object at line 1 column 6",
		`{"a":1,}`: "trailing comma at line 1 column 8", "1 2": "trailing characters at line 1 column 3",
		"nul": "EOF while parsing a value at line 1 column 3", "nulx": "expected ident at line 1 column 4",
		`"a`: "EOF while parsing a string at line 1 column 2", `"\x"`: "invalid escape at line 1 column 3",
		`"\ud800"`: "unexpected end of hex escape at line 1 column 8", `"\udc00"`: "lone leading surrogate in hex escape at line 1 column 7",
		`"\ud800\u0041"`: "lone leading surrogate in hex escape at line 1 column 13",
		"\"\n\"":         "control character (\\u0000-\\u001F) found while parsing a string at line 2 column 0",
		"01":             "invalid number at line 1 column 2", "1.": "EOF while parsing a value at line 1 column 2",
		"1e": "EOF while parsing a value at line 1 column 2", "1e999": "number out of range at line 1 column 5",
		"-": "EOF while parsing a value at line 1 column 1", "+1": "expected value at line 1 column 1",
		"\xff": "ERR Couldn't parse as UTF-8 string",
		strings.Repeat("[", 129) + strings.Repeat("]", 129): "recursion limit exceeded at line 1 column 128",
	} {
		_, err := Parse([]byte(text))
		require.EqualError(t, err, want, text)
	}
	v, err := Parse([]byte(strings.Repeat("[", 127) + strings.Repeat("]", 127)))
	require.NoError(t, err)
	require.Equal(t, 127, v.Depth())
}

// TestAPlaceInALargeDocumentChangesNothingElse counts the parts that a change touches.
func TestAPlaceInALargeDocumentChangesNothingElse(t *testing.T) {
	var b []byte
	for i := range 1000 {
		b = append(b, `,{"id":`+strconv.Itoa(i)+`,"name":"the name of it","tags":["a","b","c"],"more":{"x":1.5}}`...)
	}
	b = append(b, ']')
	b[0] = '['
	v, err := Parse(b)
	require.NoError(t, err)
	d := New(v)
	require.True(t, d.Large())
	epochs := &delta.Epochs{Current: 1}
	log := delta.NewLog(1, epochs)
	d.Track(log)
	parts := len(log.Frozen().Sorted())
	require.Zero(t, parts)
	epochs.Current++
	parts = len(log.Frozen().Sorted())
	require.Greater(t, parts, 20)
	log.Done()
	require.True(t, d.Replace((*Place)(nil).Element(500).Member("more").Member("x"), Int(7)))
	epochs.Current++
	require.Len(t, log.Frozen().Sorted(), 1)
	size := 0
	for _, name := range log.Frozen().Sorted() {
		part, ok := log.AppendFrozen(nil, name, d)
		require.True(t, ok)
		size += len(part)
	}
	require.Less(t, size, 2*maxChunk)
}

// TestPagesFindTheirPlaces grows an array at both ends and at one place in the middle, where keys run out.
func TestPagesFindTheirPlaces(t *testing.T) {
	text := Text(strings.Repeat("x", 1500))
	d := New(NewArray())
	var want []Value
	insert := func(i int, v Value) {
		require.True(t, d.Insert(nil, i, v))
		want = slices.Insert(want, i, v)
	}
	for i := range 500 {
		insert(0, text)
		insert(len(want), Int(int64(i)))
		insert(len(want), text)
	}
	middle := len(want) / 2
	for i := range 300 {
		insert(middle+i%2, text)
		insert(middle, Int(int64(i)))
	}
	check(t, d)
	for i, v := range want {
		require.True(t, Equal(v, d.Root().At(i)))
	}
	// Nowhere else are keys this close together.
	b := d.root.refs[0]
	for k, ch := range b.chunks {
		ch.key = uint64(k) + 5
	}
	for range 10 {
		insert(middle, text)
		insert(0, text)
		insert(len(want), text)
	}
	check(t, d)
	for i, v := range want {
		require.True(t, Equal(v, d.Root().At(i)))
	}
	require.True(t, d.RemoveRange(nil, 10, len(want)-10))
	require.Equal(t, 20, d.Root().Len())
	check(t, d)
}

func TestOutermostPlacesCanBeRemoved(t *testing.T) {
	root := (*Place)(nil)
	a := root.Member("a")
	places := []*Place{a.Element(1), a.Element(10), a.Element(1).Member("x"), a.Element(2), root.Member("b"), a.Element(2)}
	require.Equal(t, []*Place{a.Element(10), a.Element(2), a.Element(1), root.Member("b")}, Outermost(places))
	require.Equal(t, []*Place{nil}, Outermost(append(places, nil)))
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{`{"a":[1,2.5,"x",null,true]}`, `"\ud83d\ude00"`, "-0", "1e5", `{"a":{"a":{}}}`, "[[[]]]"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		v, err := Parse(text)
		if err != nil {
			return
		}
		require.True(t, json.Valid(text))
		once := v.AppendJSON(nil, Layout{})
		again, err := Parse(once)
		require.NoError(t, err)
		require.Equal(t, string(once), printed(again))
		require.True(t, Equal(v, again))
		d := New(v)
		check(t, d)
		if !d.Large() {
			stored, err := DecodeBlob(d.AppendBlob(nil))
			require.NoError(t, err)
			require.Equal(t, string(once), printed(stored.Root()))
		}
	})
}

func FuzzDecodeBlob(f *testing.F) {
	for _, text := range []string{`{"a":[1,2.5,"x",null,true]}`, "18446744073709551615", `"long enough"`} {
		v, err := Parse([]byte(text))
		require.NoError(f, err)
		f.Add(New(v).AppendBlob(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := DecodeBlob(b)
		if err == nil {
			use(t, d)
		}
	})
}

// use applies to a loaded document what is usually done with documents.
func use(t *testing.T, d *Document) {
	check(t, d)
	root := d.Root()
	text := printed(root)
	require.True(t, Equal(root, root.Clone()))
	if root.Kind() == Array {
		require.True(t, d.Insert(nil, root.Len(), Bool(true), Text("a longer text")))
		n := d.Root().Len()
		require.True(t, d.RemoveRange(nil, n-2, n))
		require.Equal(t, text, printed(d.Root()))
	}
	require.True(t, d.Replace(nil, Int(1)))
	check(t, d)
}

// FuzzLoader reads parts: one byte each for the container, the chunk and the length, followed by the data.
func FuzzLoader(f *testing.F) {
	f.Add([]byte{0, 0, 10, format, tagArrayRef, 1, 0, 0, 0, 0, 0, 0, 0, 1, 1, 4, format, tagArray, tagNull, tagTrue})
	f.Add([]byte{0, 0, 10, format, tagObjectRef, 1, 0, 0, 0, 0, 0, 0, 0, 1, 1, 16, format, tagObject, 1, 'a', tagArrayRef,
		2, 0, 0, 0, 0, 0, 0, 0, 1, 'b', tagNull, 2, 9, 3, format, tagArray, tagNull})
	f.Fuzz(func(t *testing.T, b []byte) {
		l := NewLoader()
		for len(b) >= 3 {
			n := min(int(b[2]), len(b)-3)
			if l.Add([]byte(partName(uint64(b[0]), uint64(b[1]))), b[3:3+n]) != nil {
				return
			}
			b = b[3+n:]
		}
		if d, err := l.Finish(nil); err == nil {
			printed(d.Root())
			require.True(t, Equal(d.Root(), d.Root().Clone()))
			require.True(t, d.Replace(nil, Int(1)))
		}
	})
}

func TestNumbersAreComparedExactly(t *testing.T) {
	big := Uint(math.MaxUint64)
	for _, c := range []struct {
		a, b Value
		want int
	}{
		{Int(1), Double(1), 0}, {Int(math.MaxInt64), big, -1}, {big, Int(-1), 1}, {big, big, 0}, {Int(-2), Int(-1), -1},
		{Double(1.5), Int(1), 1}, {Uint(1 << 63), big, -1}, {Int(math.MaxInt64 - 1), Int(math.MaxInt64), -1},
	} {
		require.Equal(t, c.want, CompareNumbers(c.a, c.b))
	}
}
