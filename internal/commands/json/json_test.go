package json

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/documents"
	"github.com/atomredis/atomredis/internal/testing/commandtest"
)

// large returns a document of about so many bytes.
func large(size int) string {
	var b bytes.Buffer
	b.WriteString(`{"items":[`)
	for i := 0; b.Len() < size; i++ {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"id":%d,"name":"the name of item %d","price":%d.5,"tags":["a","b"]}`, i, i, i)
	}
	b.WriteString("]}")
	return b.String()
}

func bulk(s string) string { return "$" + strconv.Itoa(len(s)) + "\r\n" + s + "\r\n" }

func TestNumbersOfHomogeneousArraysAreRounded(t *testing.T) {
	c := commandtest.New(t)
	set, get := commandtest.Named(t, "json.set"), commandtest.Named(t, "json.get")
	incr := commandtest.Named(t, "json.numincrby")
	for word, want := range map[string]string{
		"FP16": "[0.3333,65504.0,6e-8,0.3]", "BF16": "[0.334,65536.0,6e-8,0.3]",
		"FP32": "[0.33333334,65504.0,6e-8,0.3]", "FP64": "[0.3333333333333333,65504.0,6e-8,0.3]",
	} {
		require.Equal(t, "+OK\r\n", c.Call(set, "json.set", "k", "$", "[0.3333333333333333,65504,6e-8,0.3]", "FPHA", word))
		require.Equal(t, bulk(want), c.Call(get, "json.get", "k"))
		require.Equal(t, "+OK\r\n", c.Call(set, "json.set", "k", "$", "[60000,0.25]", "FPHA", word))
		c.Call(incr, "json.numincrby", "k", "$[0]", "10000.0")
		require.Contains(t, []string{bulk("[70000.0,0.25]"), bulk("[69632.0,0.25]"), bulk("[70144.0,0.25]")},
			c.Call(get, "json.get", "k"))
	}
	require.Equal(t, "-value out of range for F16\r\n", c.Call(set, "json.set", "k", "$", "[0.5,65520]", "FPHA", "FP16"))
	require.Equal(t, "+OK\r\n", c.Call(set, "json.set", "k", "$", `{"a":[1,2],"b":[1,"x",0.1]}`, "FPHA", "FP16"))
	require.Equal(t, bulk(`{"a":[1.0,2.0],"b":[1.0,"x",0.1]}`), c.Call(get, "json.get", "k"))
}

func TestLargeDocuments(t *testing.T) {
	size := 4 << 20
	if os.Getenv("ATOMREDIS_FULL_TESTS") != "" {
		size = 64 << 20
	}
	c := commandtest.New(t)
	text := large(size)
	require.Equal(t, "+OK\r\n", c.Call(commandtest.Named(t, "json.set"), "json.set", "k", "$", text))
	require.Equal(t, bulk(`[{"id":20000,"name":"the name of item 20000","price":20000.5,"tags":["a","b"]}]`),
		c.Call(commandtest.Named(t, "json.get"), "json.get", "k", "$.items[20000]"))
	require.True(t, c.Call(commandtest.Named(t, "json.get"), "json.get", "k", ".") == bulk(text))
	require.Greater(t, c.Read([]byte("k")).MemoryUsage(), size/2)
	require.Less(t, c.Read([]byte("k")).MemoryUsage(), size)
	require.Equal(t, "+OK\r\n", c.Call(commandtest.Named(t, "json.set"), "json.set", "k", "$.more", "1"))
	require.Equal(t, ":1\r\n", c.Call(commandtest.Named(t, "json.del"), "json.del", "k", "$.items"))
	require.Less(t, c.Read([]byte("k")).MemoryUsage(), size/4)
	require.Equal(t, ":1\r\n", c.Call(commandtest.Named(t, "json.del"), "json.del", "k", "$.more"))
	require.Nil(t, c.Read([]byte("k")))
}

func TestADocumentIsNoDeeperThanAValue(t *testing.T) {
	c := commandtest.New(t)
	set := commandtest.Named(t, "json.set")
	require.Equal(t, "+OK\r\n", c.Call(set, "json.set", "k", "$", strings.Repeat("[", 127)+strings.Repeat("]", 127)))
	inner := "$" + strings.Repeat("[0]", 126)
	deep := "-" + string(errTooDeep) + "\r\n"
	require.Equal(t, "+OK\r\n", c.Call(set, "json.set", "k", inner, "1"))
	require.Equal(t, "+OK\r\n", c.Call(set, "json.set", "k", inner, "{}"))
	require.Equal(t, "$-1\r\n", c.Call(set, "json.set", "k", inner, "[[]]"))
	require.Equal(t, "$-1\r\n", c.Call(set, "json.set", "k", inner+".a", "[]"))
	require.Equal(t, "$-1\r\n", c.Call(commandtest.Named(t, "json.merge"), "json.merge", "k", inner, `{"a":[]}`))
	require.Equal(t, "$-1\r\n", c.Call(commandtest.Named(t, "json.mset"), "json.mset", "k", inner, `[[]]`))
	require.Equal(t, "+OK\r\n", c.Call(set, "json.set", "k", inner, "[]"))
	require.Equal(t, deep, c.Call(commandtest.Named(t, "json.arrappend"), "json.arrappend", "k", inner, "[]"))
	require.Equal(t, "*1\r\n:1\r\n", c.Call(commandtest.Named(t, "json.arrappend"), "json.arrappend", "k", inner, "1"))
	require.Equal(t, "+OK\r\n", c.Call(set, "json.set", "m", "$", `{"a":1}`))
	require.Equal(t, "+OK\r\n", c.Call(set, "json.set", "m", "$", `{"a":`+strings.Repeat("[", 126)+strings.Repeat("]", 126)+`}`))
	require.Equal(t, "$-1\r\n", c.Call(set, "json.set", "m", "$.a[0]", strings.Repeat("[", 126)+strings.Repeat("]", 126)))
}

func TestRepliesThatExplodeAreRefused(t *testing.T) {
	c := commandtest.New(t)
	set, get := commandtest.Named(t, "json.set"), commandtest.Named(t, "json.get")
	require.Equal(t, "+OK\r\n", c.Call(set, "json.set", "k", "$", "["+strings.Repeat("[1,2],", 20_000)+"0]"))
	require.Equal(t, "-"+string(errTooLarge)+"\r\n",
		c.Call(set, "json.set", "k", "$.*", `"`+strings.Repeat("x", 1<<16)+`"`))
	require.Equal(t, "-"+string(errTooLarge)+"\r\n",
		c.Call(commandtest.Named(t, "json.arrappend"), "json.arrappend", "k", "$.*", `"`+strings.Repeat("x", 1<<16)+`"`))
	require.Equal(t, bulk("[[1,2]]"), c.Call(get, "json.get", "k", "$[0]"))
	deep := strings.Repeat("[", 100) + `"` + strings.Repeat("x", 1<<24) + `"` + strings.Repeat("]", 100)
	require.Equal(t, "+OK\r\n", c.Call(set, "json.set", "k", "$", deep))
	require.Equal(t, "-"+string(errTooLarge)+"\r\n", c.Call(commandtest.Named(t, "json.resp"), "json.resp", "k", "$..*"))
}

func FuzzCommands(f *testing.F) {
	f.Add(`{"a":[1,{"b":"x"}],"c":2.5}`, "$..b", `"y"`)
	f.Add("[1,2,[3]]", "..[0]", "-1")
	f.Add(`{"a":null}`, "$.x", `{"a":{"b":null}}`)
	f.Fuzz(func(t *testing.T, doc, path, arg string) {
		if len(doc) > 1000 {
			return
		}
		c := commandtest.New(t)
		for _, words := range [][]string{
			{"json.set", "k", path, arg}, {"json.get", "k", path}, {"json.merge", "k", path, arg}, {"json.type", "k", path},
			{"json.arrappend", "k", path, arg}, {"json.arrinsert", "k", path, arg, arg}, {"json.arrpop", "k", path, arg},
			{"json.arrtrim", "k", path, arg, arg}, {"json.arrindex", "k", path, arg}, {"json.numincrby", "k", path, arg},
			{"json.numpowby", "k", path, arg}, {"json.strappend", "k", path, arg}, {"json.toggle", "k", path},
			{"json.clear", "k", path}, {"json.del", "k", path}, {"json.resp", "k", path}, {"json.objkeys", "k", path},
			{"json.mset", "k", path, arg, "k", path, arg}, {"json.get", "k", path, arg},
		} {
			c.Call(commandtest.Named(t, "json.set"), "json.set", "k", "$", doc)
			c.Call(commandtest.Named(t, words[0]), words...)
			if e := c.Read([]byte("k")); e != nil && e.Type() == engine.JSON {
				require.LessOrEqual(t, e.JSON().Root().Depth(), documents.MaxDepth)
			}
		}
	})
}

func BenchmarkSetOfAPath(b *testing.B) {
	for _, size := range []int{1 << 10, 100 << 10, 10 << 20} {
		b.Run(strconv.Itoa(size), func(b *testing.B) {
			c := commandtest.New(b)
			c.Call(commandtest.Named(b, "json.set"), "json.set", "k", "$", large(size))
			set := commandtest.Named(b, "json.set")
			b.ReportAllocs()
			for b.Loop() {
				c.Call(set, "json.set", "k", "$.items[5].price", "7.25")
			}
		})
	}
}
