package vectors

import (
	"fmt"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/vectors"
	"github.com/atomredis/atomredis/internal/command"
)

const (
	errBehind     command.Error = "ERR invalid option after element"
	errM          command.Error = "ERR invalid M"
	errOtherQuant command.Error = "ERR asked quantization mismatch with existing vector set"
	errOtherM     command.Error = "ERR asked M value mismatch with existing vector set"
	errProjection command.Error = "ERR cannot add projection to existing set without projection"
)

// addition has the arguments of VADD.
type addition struct {
	vector       []float32
	reduce       int // 0 without a projection
	element      []byte
	quant        vectors.Quantisation
	m, ef        int
	attributes   []byte
	setAttribute bool
}

// parseAddition reads the arguments after the key.
func parseAddition(c *command.Ctx) (a addition, err command.Error) {
	args := c.Args[2:]
	var ok bool
	if command.EqualFold(args[0], "reduce") {
		if a.reduce, ok = natural(args[1], 1, vectors.MaxDim); !ok {
			return a, errVector
		}
		args = args[2:]
	}
	if a.vector, args, ok = parseVector(args); !ok || a.reduce > len(a.vector) {
		return a, errVector
	}
	if len(args) == 0 {
		return a, command.WrongArity(c.Cmd)
	}
	a.element, args = args[0], args[1:]
	a.m, a.ef = vectors.DefaultM, vectors.DefaultBuildEF
	for o := command.OptionsIn(args); o.Next(); {
		switch {
		case o.Is("cas"):
		case o.Is("q8"):
			a.quant = vectors.Q8
		case o.Is("bin"):
			a.quant = vectors.Bin
		case o.Is("noquant"):
			a.quant = vectors.None
		case o.Is("ef") && o.More():
			if a.ef, ok = natural(o.Arg(), 1, vectors.MaxEF); !ok {
				return a, errEF
			}
		case o.Is("m") && o.More():
			if a.m, ok = natural(o.Arg(), vectors.MinM, vectors.MaxM); !ok {
				return a, errM
			}
		case o.Is("setattr") && o.More():
			a.attributes, a.setAttribute = o.Arg(), true
			if a.attributes == nil {
				a.attributes = []byte{}
			}
		default:
			return a, errBehind
		}
	}
	return a, ""
}

// settings returns the settings of a new set for the addition.
func (a *addition) settings() (vectors.Settings, bool) {
	s := vectors.Settings{Dim: len(a.vector), Quant: a.quant, M: a.m}
	if a.reduce > 0 {
		s.Dim, s.Input = a.reduce, len(a.vector)
	}
	return s, s.Dim <= vectors.MaxDim && s.Input <= vectors.MaxProjection/s.Dim
}

// fits returns an error if the addition does not fit into a set.
func (a *addition) fits(s *vectors.Set) command.Error {
	p := s.Projection()
	switch {
	case p == nil && a.reduce > 0:
		return errProjection
	case p == nil && len(a.vector) != s.Dim() || p != nil && a.reduce != s.Dim():
		return otherDimensions(a.vector, s)
	case p != nil && len(a.vector) != p.Input:
		return otherInput(a.vector, p)
	case a.quant != s.Quant():
		return errOtherQuant
	case a.m != s.M():
		return errOtherM
	}
	return ""
}

// otherInput is the error for a vector whose dimensions do not match a projection's input.
func otherInput(v []float32, p *vectors.Projection) command.Error {
	return command.Error(fmt.Sprintf("ERR Input dimension mismatch for projection - got %d but projection expects %d", len(v), p.Input))
}

// otherDimensions is the error for a vector whose dimensions do not match a set.
func otherDimensions(v []float32, s *vectors.Set) command.Error {
	return command.Error(fmt.Sprintf("ERR Vector dimension mismatch - got %d but set has %d", len(v), s.Dim()))
}

func cmdAdd(c *command.Ctx) {
	a, err := parseAddition(c)
	if err != "" {
		c.Err(err)
		return
	}
	e, ok := c.WriteAs(c.Args[1], engine.VectorSet)
	if !ok {
		return
	}
	if e == nil {
		settings, ok := a.settings()
		if !ok {
			c.Err(errVector)
			return
		}
		s := vectors.New(settings)
		s.Add(a.element, s.Project(a.vector), a.attributes, a.ef)
		c.G.Changed(c.G.Create(c.DB, c.Args[1], s), engine.EventModule, "vadd")
		c.W.Bool(true)
		return
	}
	s := e.Vectors()
	if err := a.fits(s); err != "" {
		c.Err(err)
		return
	}
	id, replaced := s.Find(a.element)
	if replaced {
		if !a.setAttribute {
			if was, ok := s.Attributes(id); ok {
				a.attributes = append([]byte{}, was...)
			}
		} else if len(a.attributes) == 0 {
			a.attributes = nil // as in Redis, only a new element can have empty attributes
		}
		s.Remove(id)
	}
	s.Add(a.element, s.Project(a.vector), a.attributes, a.ef)
	c.G.Changed(e, engine.EventModule, "vadd")
	c.W.Bool(!replaced)
}
