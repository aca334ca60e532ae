package crash

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/atomredis/atomredis/internal/testing/transcript"
)

// library replaces and deletes a library of functions, and calls its function, which writes its version to a key.
type library struct {
	noObserver
	label string
	n     int
}

const (
	libraryName = "crashlibrary"
	// libraryDatabase is the database of places that belong to no database.
	libraryDatabase = -1
	// libraryOwner is the worker that owns the library.
	libraryOwner = "library"
)

// libraryPlace is where the model stores the source of the library, as a string.
var libraryPlace = place{libraryDatabase, libraryOwner + ":source"}

func librarySource(version int) string {
	return fmt.Sprintf(`#!lua name=%s
redis.register_function('crashnote', function(keys, args)
	redis.call('RPUSH', keys[1], args[1] .. ' by %d')
	redis.call('LTRIM', keys[1], -100, -1)
	return redis.call('INCR', keys[2])
end)`, libraryName, version)
}

// version returns the version in a source.
func version(source string) string {
	_, rest, _ := strings.Cut(source, "' by ")
	number, _, _ := strings.Cut(rest, "'")
	return number
}

func (g *library) restart(m model) {
	g.n = 0
	if v := m[place{0, g.label + ":count"}]; v != nil {
		g.n, _ = strconv.Atoi(v.text)
	}
}

func (g *library) next(r *rand.Rand) *op {
	g.n++
	var o *op
	switch r.IntN(12) {
	case 0, 1:
		return plain("FUNCTION", "LOAD", "REPLACE", librarySource(r.IntN(1_000_000)))
	case 2:
		o = plain("FUNCTION", "DELETE", libraryName)
	default:
		o = plain("FCALL", "crashnote", "2", g.label+":list", g.label+":count", strconv.Itoa(g.n))
	}
	o.mayFail = true // the library may not exist; the result is checked
	return o
}

// function models FUNCTION LOAD REPLACE source and FUNCTION DELETE name.
func function(m model, c *call) {
	c.touched = append(c.touched, libraryPlace)
	if c.args[1] == "DELETE" {
		delete(m, libraryPlace)
		return
	}
	m[libraryPlace] = &value{kind: "string", text: c.args[3]}
}

func fcall(m model, c *call) {
	list, count := c.place(3), c.place(4)
	source := m[libraryPlace]
	if source == nil {
		return
	}
	v := m.open(list, "list")
	v.list = append(v.list, c.args[5]+" by "+version(source.text))
	v.list = v.list[max(0, len(v.list)-100):]
	n := m.open(count, "string")
	n.text = addInt(n.text, 1)
}

// readLibrary reads the source of the library.
func (s *snapshot) readLibrary(c *transcript.Conn) error {
	replies, err := ask(c, []string{"FUNCTION", "LIST", "LIBRARYNAME", libraryName, "WITHCODE"})
	if err != nil {
		return err
	}
	for _, l := range replies[0].Elems {
		s.data[libraryPlace] = &value{kind: "string", text: fields(l)["library_code"]}
	}
	return nil
}
