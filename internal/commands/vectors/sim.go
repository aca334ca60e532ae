package vectors

import (
	"math"

	"github.com/atomredis/atomredis/engine/vectors"
	"github.com/atomredis/atomredis/engine/vectors/filter"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/resp"
)

const (
	errSimSyntax command.Error = "ERR syntax error in VSIM command"
	errCount     command.Error = "ERR invalid COUNT"
	errEpsilon   command.Error = "ERR invalid EPSILON"
	errFilterEF  command.Error = "ERR invalid FILTER-EF"
	errElement   command.Error = "ERR element not found in set"
)

// Defaults of VSIM.
const (
	defaultCount = 10
	// defaultFilterEF is the default number of visited nodes for each requested element, with a filter.
	defaultFilterEF = 100
)

// similarity has the arguments of VSIM.
type similarity struct {
	element    []byte // nil if a vector is given
	vector     []float32
	search     vectors.Search
	filter     *filter.Filter
	scores     bool
	attributes bool
	epsilon    float64
}

// parseSimilarity reads the arguments after the key.
func parseSimilarity(c *command.Ctx) (q similarity, err command.Error) {
	args := c.Args[2:]
	var ok bool
	if command.EqualFold(args[0], "ele") {
		q.element, args = args[1], args[2:]
	} else if q.vector, args, ok = parseVector(args); !ok {
		return q, errVector
	}
	q.epsilon = math.Inf(1)
	q.search.Count = defaultCount
	for o := command.OptionsIn(args); o.Next(); {
		switch {
		case o.Is("withscores"):
			q.scores = true
		case o.Is("withattribs"):
			q.attributes = true
		case o.Is("truth"):
			q.search.All = true
		case o.Is("nothread"): // no effect: there are no threads
		case o.Is("count") && o.More():
			if q.search.Count, ok = natural(o.Arg(), 1, math.MaxInt64); !ok {
				return q, errCount
			}
		case o.Is("ef") && o.More():
			if q.search.EF, ok = natural(o.Arg(), 1, vectors.MaxEF); !ok {
				return q, errEF
			}
		case o.Is("epsilon") && o.More():
			if q.epsilon, ok = resp.ParseFloat(o.Arg()); !ok || q.epsilon <= 0 {
				return q, errEpsilon
			}
		case o.Is("filter-ef") && o.More():
			if q.search.Effort, ok = natural(o.Arg(), 1, math.MaxInt64); !ok {
				return q, errFilterEF
			}
		case o.Is("filter") && o.More():
			var err error
			if q.filter, err = filter.Parse(string(o.Arg())); err != nil {
				return q, command.Error("ERR " + command.OneLine(err.Error()))
			}
		default:
			return q, errSimSyntax
		}
	}
	if q.search.Effort == 0 && q.search.Count < math.MaxInt/defaultFilterEF {
		q.search.Effort = q.search.Count * defaultFilterEF
	}
	return q, ""
}

func cmdSim(c *command.Ctx) {
	s, ok := set(c)
	if !ok {
		return
	}
	if s == nil { // whatever the other arguments are
		c.W.Array(0)
		return
	}
	q, err := parseSimilarity(c)
	if err != "" {
		c.Err(err)
		return
	}
	if p := s.Projection(); p != nil && q.vector != nil && len(q.vector) != s.Dim() && len(q.vector) != p.Input {
		c.Err(otherInput(q.vector, p))
		return
	}
	from := vectors.QueryVector(q.vector)
	if len(q.vector) != s.Dim() { // one that has the dimensions of the set counts as projected, as in Redis
		from = vectors.QueryVector(s.Project(q.vector))
	}
	switch id, found := s.Find(q.element); {
	case q.vector == nil && !found:
		c.Err(errElement)
		return
	case q.vector == nil:
		from = vectors.QueryNode(id)
	case from.Dim() != s.Dim():
		c.Err(otherDimensions(q.vector, s))
		return
	}
	if q.filter != nil {
		q.search.Accept = func(id uint32) bool {
			attributes, _ := s.Attributes(id)
			return attributes != "" && q.filter.Match(attributes)
		}
	}
	c.Long(s.Work(q.search), 8*s.Len()) // copying the set takes about that long
	found := s.Similar(from, q.search)
	n := 0
	for n < len(found) && 1-found[n].Score <= q.epsilon {
		n++
	}
	q.reply(c.W, s, found[:n])
}

func (q *similarity) reply(w *resp.Writer, s *vectors.Set, found []vectors.Found) {
	more := 0
	if q.scores {
		more++
	}
	if q.attributes {
		more++
	}
	if w.Proto == 3 && more > 0 {
		w.Map(len(found))
	} else {
		w.Array(len(found) * (1 + more))
	}
	for _, f := range found {
		w.BulkString(s.Name(f.ID))
		if w.Proto == 3 && more == 2 {
			w.Array(2)
		}
		if q.scores {
			w.Double(f.Score)
		}
		if q.attributes {
			writeAttributes(w, s, f.ID)
		}
	}
}

// writeAttributes writes the attributes of an element, or null.
func writeAttributes(w *resp.Writer, s *vectors.Set, id uint32) {
	attributes, ok := s.Attributes(id)
	if !ok {
		w.Null()
		return
	}
	w.BulkString(attributes)
}
