package crash

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/atomredis/atomredis/internal/testing/transcript"
)

// vectorSets adds vectors to a set of each quantisation, and removes elements. A value of this kind has in elems, for
// each element, the components and the attributes. No quantisation rounds the components.
type vectorSets struct {
	noObserver
	label string
	// elements has the set and the name of each existing element.
	elements map[place]map[string]bool
	n        int
}

const (
	vectorKind = "vectorset"
	// largestComponent is Q8's value for the largest component of a vector, so all integers up to it are exact.
	largestComponent = 127
)

// spaces describe the sets.
var spaces = []struct {
	quantisation string
	dim, size    int
}{{"NOQUANT", 5, 100}, {"Q8", 24, 600}, {"BIN", 70, 200}}

func (g *vectorSets) key(i int) string {
	return g.label + ":" + strings.ToLower(spaces[i].quantisation)
}

func (g *vectorSets) restart(m model) {
	g.elements = map[place]map[string]bool{}
	for p, v := range m {
		g.elements[p] = map[string]bool{}
		for e := range v.elems {
			g.elements[p][e] = true
		}
	}
}

// attributes makes attributes, often none.
func (g *vectorSets) attributes(r *rand.Rand) string {
	g.n++
	return []string{"", "", fmt.Sprintf(`{"n":%d}`, g.n), strconv.Itoa(g.n) + strings.Repeat("a", r.IntN(600))}[r.IntN(4)]
}

// add makes a VADD.
func (g *vectorSets) add(r *rand.Rand, i int, key, element string) []string {
	c := spaces[i]
	args := []string{"VADD", key, "VALUES", strconv.Itoa(c.dim)}
	longest := r.IntN(c.dim)
	for n := range c.dim {
		x := r.IntN(2*largestComponent+1) - largestComponent
		if n == longest {
			x = []int{-largestComponent, largestComponent}[r.IntN(2)]
		}
		args = append(args, strconv.Itoa(x))
	}
	args = append(args, element, c.quantisation, "M", "8", "EF", strconv.Itoa(10+r.IntN(50)))
	if r.IntN(3) == 0 {
		args = append(args, "SETATTR", g.attributes(r))
	}
	return args
}

func (g *vectorSets) next(r *rand.Rand) *op {
	if g.elements == nil {
		g.restart(nil)
	}
	i := r.IntN(len(spaces))
	key := g.key(i)
	p := place{0, key}
	there := g.elements[p]
	if there == nil {
		there = map[string]bool{}
		g.elements[p] = there
	}
	element := "e" + strconv.Itoa(r.IntN(spaces[i].size))
	switch n := r.IntN(1000); {
	case n == 0:
		clear(there)
		return plain("DEL", key)
	case n < 10 && len(there) > 0:
		return plain("COPY", key, key+"copy", "REPLACE")
	case n < 20 && len(there) > 0:
		there[element] = true
		moved := key + "moved"
		return transaction(command{args: []string{"RENAME", key, moved}}, command{args: g.add(r, i, moved, element)},
			command{args: []string{"RENAME", moved, key}})
	case n < 200:
		return plain("VSETATTR", key, element, g.attributes(r))
	case n < 450:
		delete(there, element)
		return plain("VREM", key, element)
	}
	there[element] = true
	return plain(g.add(r, i, key, element)...)
}

// vectorText joins components and attributes.
func vectorText(components []string, attributes string) string {
	return strings.Join(components, " ") + " " + attributes
}

// vadd models VADD key VALUES dim … element quantisation M 8 EF ef with SETATTR attributes, or none.
func vadd(m model, c *call) {
	v := m.open(c.place(1), vectorKind)
	dim := c.int(3)
	components, rest := slices.Clone(c.args[4:4+dim]), c.args[4+dim:]
	if rest[1] == "BIN" {
		for i, x := range components {
			if n, _ := strconv.Atoi(x); n > 0 {
				components[i] = "1"
			} else {
				components[i] = "-1"
			}
		}
	}
	attributes := ""
	if old := strings.SplitN(v.elems[rest[0]], " ", dim+1); len(old) > dim {
		attributes = old[dim]
	}
	if len(rest) > 6 {
		attributes = rest[7]
	}
	v.elems[rest[0]] = vectorText(components, attributes)
}

func vsetattr(m model, c *call) {
	v := m.peek(c.place(1), vectorKind)
	if old, ok := v.elems[c.args[2]]; ok {
		parts := strings.Split(old, " ")
		v.elems[c.args[2]] = vectorText(parts[:len(parts)-1], c.args[3])
	}
}

// readVectors reads the elements, by name, and looks up some of them in the graph.
func (v *value) readVectors(c *transcript.Conn, key string, names []transcript.Value) error {
	with := 0
	for part := range slices.Chunk(names, chunk) {
		var commands [][]string
		for _, e := range part {
			commands = append(commands, []string{"VEMB", key, e.Text}, []string{"VGETATTR", key, e.Text})
		}
		replies, err := ask(c, commands...)
		if err != nil {
			return err
		}
		for i, e := range part {
			var components []string
			for _, x := range replies[2*i].Elems {
				n, err := strconv.ParseFloat(x.Text, 64)
				if err != nil || math.Abs(n-math.Round(n)) > 0.01 {
					return fmt.Errorf("element %s has the component %s", e.Text, x.Text)
				}
				components = append(components, strconv.Itoa(int(math.Round(n))))
			}
			attributes := replies[2*i+1]
			if !attributes.Null {
				with++
			}
			v.elems[e.Text] = vectorText(components, attributes.Text)
		}
	}
	if len(names) == 0 {
		return nil
	}
	some := names[len(names)/2].Text
	replies, err := ask(c, []string{"VINFO", key}, []string{"VSIM", key, "ELE", some, "TRUTH", "COUNT", strconv.Itoa(2 * len(names))},
		[]string{"VSIM", key, "ELE", some, "COUNT", "1", "EF", "500", "WITHSCORES"})
	if err != nil {
		return err
	}
	info, all, near := fields(replies[0]), replies[1].Elems, replies[2].Elems
	if info["size"] != strconv.Itoa(len(names)) || info["attributes-count"] != strconv.Itoa(with) || len(all) != len(names) {
		return fmt.Errorf("%d elements, %d of them with attributes; VINFO says %s and %s, VSIM finds %d", len(names), with,
			info["size"], info["attributes-count"], len(all))
	}
	if len(near) != 2 {
		return fmt.Errorf("nothing is near element %s: %s", some, replies[2])
	}
	if score, err := strconv.ParseFloat(near[1].Text, 64); err != nil || score < 0.98 {
		return fmt.Errorf("nearest to element %s is %s by %s", some, near[0].Text, near[1].Text)
	}
	return nil
}

func init() {
	maps.Copy(effects, map[string]func(model, *call){"VADD": vadd, "VREM": remove, "VSETATTR": vsetattr})
}
