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
		{`JSON.SET k $..x.y 1`, `-Err wrong static path`},          // nor in several places
		{`JSON.SET none $.x.y 1`, `-ERR new objects must be created at the root`},
		{`JSON.MERGE k $.m.n {"o":1}`, `+OK`},
		{`JSON.MSET k $.q.r.s 1 k $.q.r.t 2 k $.q.u 3`, `+OK`}, // one after the other
		{`JSON.MSET k $.w.x 1 k $.w.x.y 2`, `$-1`},
		{`JSON.GET k $.m`, `[{"n":{"o":1}}]`},
		{`JSON.GET k $.q`, `[{"r":{"s":1,"t":2},"u":3}]`},
		{`JSON.GET k $.w`, `[{"x":1}]`},
	} {
		require.Equal(t, step[1], servertest.OnOneLine(b.Step(step[0])), step[0])
	}
	b.Finish()
}

// A change is there after a restart, whatever the directive says by then.
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
