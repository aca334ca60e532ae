package json_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/testing/crashfs"
	"github.com/atomredis/atomredis/internal/testing/servertest"
)

const makesPaths = "json-auto-create-deep-paths"

func TestObjectsOnThePathAreMade(t *testing.T) {
	b := servertest.NewStepped(t, makesPaths, "yes").Journalled()
	for _, step := range [][2]string{
		{`JSON.SET k $ {"n":1,"a":[{}]}`, `+OK`},
		{`JSON.SET k $.b.c.d 5`, `+OK`},
		{`JSON.SET k .b.e.f "x"`, `+OK`},
		{`JSON.SET k $.a[0].g.h [1] NX`, `+OK`},
		{`JSON.GET k`, `{"n":1,"a":[{"g":{"h":[1]}}],"b":{"c":{"d":5},"e":{"f":"x"}}}`},
		{`JSON.SET k $.x.y.z 1 XX`, `$-1`},
		{`JSON.SET k $.n.o.p 1`, `$-1`},                            // of a number
		{`JSON.SET k $.x[0].y 1`, `$-1`},                           // an array is not made
		{`JSON.SET k $.x.y[0] 1`, `-ERR array index out of range`}, // nor an element
		{`JSON.SET k $..x.y 1`, `-Err wrong static path`},          // nor objects in several places
		{`JSON.SET none $.x.y 1 XX`, `$-1`},
		{`JSON.SET none $.x[0] 1`, `-ERR new objects must be created at the root`},
		{`JSON.SET new $.x.y 1`, `+OK`},
		{`JSON.GET new`, `{"x":{"y":1}}`},
		{`JSON.MERGE merged .x {"y":1}`, `+OK`},
		{`JSON.GET merged`, `{"x":{"y":1}}`},
		{`JSON.MSET several $.x.y 1 several $.x.z 2 several $.w 3`, `+OK`},
		{`JSON.GET several`, `{"x":{"y":1,"z":2},"w":3}`},
		{`JSON.MSET scalar $ 1 scalar $.x.y 2`, `$-1`},
		{`JSON.GET scalar`, `1`},
		{`JSON.MERGE k $.m.n {"o":1}`, `+OK`},
		{`JSON.MSET k $.q.r.s 1 k $.q.r.t 2 k $.q.u 3`, `+OK`}, // one after the other
		{`JSON.MSET k $.w.x 1 k $.w.x.y 2`, `$-1`},
		{`JSON.GET k $.m`, `[{"n":{"o":1}}]`},
		{`JSON.GET k $.q`, `[{"r":{"s":1,"t":2},"u":3}]`},
		{`JSON.GET k $.w`, `[{"x":1}]`},
		// What other commands start from where the path leads to nothing.
		{`JSON.NUMINCRBY k $.c.d 5`, `[5]`},
		{`JSON.NUMINCRBY k $.c.d 2`, `[7]`},
		{`JSON.NUMINCRBY k .c.e 0.5`, `0.5`},
		{`JSON.NUMMULTBY k $.c.f 5`, `[]`},
		{`JSON.STRAPPEND k $.c.s "x"`, `*1 :1`},
		{`JSON.STRAPPEND k .c.s "yz"`, `:3`},
		{`JSON.ARRAPPEND k $.c.a.b 1 2`, `*1 :2`},
		{`JSON.ARRINSERT k $.c.a.c 0 3`, `*1 :1`},
		{`JSON.ARRINSERT k $.c.a.d 1 3`, `*0`},
		{`JSON.ARRAPPEND k $.c.d.e 1`, `*0`}, // of a number
		{`JSON.ARRAPPEND k $.c.x[0] 1`, `*0`},
		{`JSON.ARRAPPEND missing $.c 1`, `-ERR could not perform this operation on a key that doesn't exist`},
		{`JSON.GET k $.c`, `[{"d":7,"e":0.5,"s":"xyz","a":{"b":[1,2],"c":[3]}}]`},
	} {
		require.Equal(t, step[1], servertest.OnOneLine(b.Step(step[0])), step[0])
	}
	b.Finish()
}

// A change survives a restart, whatever the directive is then.
func TestObjectsOnThePathAreMadeAgain(t *testing.T) {
	fs := crashfs.Mem()
	d := servertest.OpenDurable(t, fs, makesPaths, "yes")
	d.Lines(`JSON.SET k $ {}`, `JSON.SET k $.a.b.c 1`)
	d.Drop()
	d = servertest.OpenDurable(t, fs)
	d.Expect("$19\r\n{\"a\":{\"b\":{\"c\":1}}}\r\n", `JSON.GET k`)
	d.Expect("$-1\r\n", `JSON.SET k $.d.e 1`)
	d.End()
}
