package keys

import (
	"bytes"
	"slices"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/lists"
	"github.com/atomredis/atomredis/internal/command"
)

func init() { command.Register(sortCommands) }

// SORT and SORT_RO. They read keys whose names follow from the data, so they need the whole keyspace.
var sortCommands = []*command.Command{
	{Name: "sort", Group: "generic", Since: "1.0.0", Arity: -2,
		Flags:      command.Write | command.DenyOOM | command.WholeKeyspace,
		ACL:        command.CatSet | command.CatSortedSet | command.CatList | command.CatDangerous,
		Keys:       sortKeys("i1+r0/1/0[RO,ACCESS] ?+?[RO,ACCESS] ?+?[OW,UPDATE]"),
		Summary:    "Sorts a list, a set or a sorted set, by its elements or by other keys, and may store the result",
		Syntax:     "key [BY by-pattern] [LIMIT offset count] [GET get-pattern [GET get-pattern ...]] [ASC | DESC] [ALPHA] [STORE destination]",
		Complexity: "O(N+M*log(M)), where N is the number of elements and M that of elements to return. Without sorting it is O(N)", Do: cmdSort},
	{Name: "sort_ro", Group: "generic", Since: "7.0.0", Arity: -2, Flags: command.ReadOnly | command.WholeKeyspace,
		ACL:        command.CatSet | command.CatSortedSet | command.CatList | command.CatDangerous,
		Keys:       sortKeys("i1+r0/1/0[RO,ACCESS] ?+?[RO,ACCESS]"),
		Summary:    "Sorts a list, a set or a sorted set, by its elements or by other keys",
		Syntax:     "key [BY by-pattern] [LIMIT offset count] [GET get-pattern [GET get-pattern ...]] [ASC | DESC] [ALPHA]",
		Complexity: "O(N+M*log(M)), where N is the number of elements and M that of elements to return. Without sorting it is O(N)", Do: cmdSortRO},
}

const (
	errSortScore        command.Error = "ERR One or more scores can't be converted into double"
	errSortBy           command.Error = "ERR BY option of SORT denied due to insufficient ACL permissions."
	errSortByInCluster  command.Error = "ERR BY option of SORT denied in Cluster mode."
	errSortGetInCluster command.Error = "ERR GET option of SORT denied in Cluster mode."
	errSortGet          command.Error = "ERR GET option of SORT denied due to insufficient ACL permissions."
)

// sortKeys completes the key specs of SORT. The notation cannot describe the destination, because STORE may stand
// anywhere, and the value of another option may be the word STORE.
func sortKeys(notation string) []command.KeySpec {
	specs := command.Keys(notation)
	specs[1].Notes = "Which keys BY and GET read follows from the elements"
	if len(specs) > 2 {
		specs[2].Notes = "The destination of STORE, which may stand anywhere among the options"
		specs[2].Find = sortDestination
	}
	return specs
}

// sortDestination returns the index of the key that the last STORE names, 0 if there is none.
func sortDestination(args [][]byte) int {
	at := 0
	for i := 2; i < len(args); i++ {
		switch {
		case command.EqualFold(args[i], "limit"):
			i += 2
		case command.EqualFold(args[i], "get") || command.EqualFold(args[i], "by"):
			i++
		case command.EqualFold(args[i], "store") && i+1 < len(args):
			i++
			at = i
		}
	}
	return at
}

func cmdSort(c *command.Ctx)   { replySorted(c, true) }
func cmdSortRO(c *command.Ctx) { replySorted(c, false) }

// sorting has the options of SORT.
type sorting struct {
	desc, alpha   bool
	keep          bool // do not sort
	by            *sortPattern
	get           []sortPattern
	offset, count int64
	store         []byte // the destination; nil if the result is the reply
}

// sortOptions reads the options; if they are wrong, it writes an error and ok is false.
func sortOptions(c *command.Ctx, mayStore bool) (s sorting, ok bool) {
	s.count = -1
	for o := c.Options(2); o.Next(); {
		switch {
		case o.Is("asc"):
			s.desc = false
		case o.Is("desc"):
			s.desc = true
		case o.Is("alpha"):
			s.alpha = true
		case o.Is("limit") && o.Left() >= 2:
			if s.offset, ok = c.Int(o.Arg()); !ok {
				return s, false
			}
			if s.count, ok = c.Int(o.Arg()); !ok {
				return s, false
			}
		case o.Is("store") && o.More() && mayStore:
			s.store = o.Arg()
		case o.Is("by") && o.More():
			p := newSortPattern(o.Arg())
			s.by = &p
			s.keep = s.keep || p.star < 0
			switch {
			case p.star >= 0 && c.ClusterMode():
				c.Err(errSortByInCluster)
				return s, false
			case p.star >= 0 && !c.Client.MayReadAll(c.Cmd, c.Args):
				c.Err(errSortBy)
				return s, false
			}
		case o.Is("get") && o.More():
			s.get = append(s.get, newSortPattern(o.Arg()))
			switch {
			case c.ClusterMode():
				c.Err(errSortGetInCluster)
				return s, false
			case !c.Client.MayReadAll(c.Cmd, c.Args):
				c.Err(errSortGet)
				return s, false
			}
		default:
			c.Err(command.ErrSyntax)
			return s, false
		}
	}
	return s, true
}

// sortPattern finds a value for an element: that of the key with the element in place of the star, or of a field of
// that key.
type sortPattern struct {
	text  []byte
	star  int // index of the star, -1 if there is none
	after int // index of the end of the text after the star in the key
	field []byte
	key   []byte // scratch
}

func newSortPattern(text []byte) sortPattern {
	p := sortPattern{text: text, star: bytes.IndexByte(command.UntilNUL(text), '*'), after: len(text)}
	if p.star >= 0 {
		rest := text[p.star+1:]
		if i := bytes.Index(command.UntilNUL(rest), []byte("->")); i >= 0 && i+2 < len(rest) {
			p.after, p.field = p.star+1+i, rest[i+2:]
		}
	}
	return p
}

// itself reports whether the pattern stands for the element itself.
func (p *sortPattern) itself() bool { return string(p.text) == "#" }

// value returns the value of the pattern for an element, a view that is valid until the keyspace changes. ok is false without
// a value.
func (p *sortPattern) value(c *command.Ctx, element []byte) (v []byte, ok bool) {
	if p.itself() {
		return element, true
	}
	if p.star < 0 {
		return nil, false
	}
	p.key = append(append(append(p.key[:0], p.text[:p.star]...), element...), p.text[p.star+1:p.after]...)
	e := c.Read(p.key)
	switch {
	case e == nil:
		return nil, false
	case p.field != nil:
		if e.Type() != engine.Hash {
			return nil, false
		}
		return e.Hash().Get(p.field)
	case e.Type() != engine.String:
		return nil, false
	}
	return e.Bytes(), true
}

// replySorted executes SORT.
func replySorted(c *command.Ctx, mayStore bool) {
	s, ok := sortOptions(c, mayStore)
	if !ok {
		return
	}
	e := c.Read(c.Args[1])
	if e != nil && e.Type() != engine.List && e.Type() != engine.Set && e.Type() != engine.ZSet {
		c.Err(command.ErrWrongType)
		return
	}
	isSet := e != nil && e.Type() == engine.Set
	// A stored result must not depend on the order of the members in a set.
	if s.keep && isSet && (s.store != nil || c.Origin.In(command.FromScript)) {
		s.keep, s.alpha, s.by = false, true, nil
	}
	n := sortLength(e)
	first, last := s.bounds(n)
	if s.alone() {
		steps := n
		if s.keep {
			steps = last - first + 1
		}
		c.Long(steps, n)
	}
	if s.store != nil {
		result := command.Result(c, func() *lists.List {
			elements, order, ok := s.sort(c, e, first, last, n)
			if !ok {
				return nil
			}
			result := lists.New(c.Host.ListLimit())
			eachSorted(c, elements, order, &s, func(v []byte, _ bool) { result.PushBack(v) })
			return result
		})
		storeSorted(c, s.store, result)
		return
	}
	elements, order, ok := s.sort(c, e, first, last, n)
	if !ok {
		c.Err(errSortScore)
		return
	}
	c.W.Array(len(order) * max(len(s.get), 1))
	eachSorted(c, elements, order, &s, func(v []byte, ok bool) {
		if ok {
			c.W.Bulk(v)
		} else {
			c.W.Null()
		}
	})
}

// alone reports whether the sorted key is the only key that is read.
func (s *sorting) alone() bool {
	return (s.by == nil || s.by.star < 0 || s.by.itself()) &&
		!slices.ContainsFunc(s.get, func(p sortPattern) bool { return !p.itself() })
}

// sort returns the elements of e, which has n, and the sorted order from first to last; ok is false if a sort key
// must be a number and is not.
func (s *sorting) sort(c *command.Ctx, e *engine.Entry, first, last, n int) (elements texts, order []sortKey, ok bool) {
	isSet := e != nil && e.Type() == engine.Set
	if s.keep {
		elements = sortElements(e, first, last, s.desc && !isSet)
		return elements, inTurn(elements.len()), true
	}
	elements = sortElements(e, 0, n-1, false)
	o, ok := newSortOrder(c, s, elements, isSet)
	if !ok {
		return elements, nil, false
	}
	return elements, o.choose(first, last), true
}

// bounds returns the indices of the first and the last of n elements within LIMIT; last is smaller than first if
// there are none.
func (s *sorting) bounds(n int) (first, last int) {
	offset := min(max(s.offset, 0), int64(n))
	count := min(max(s.count, -1), int64(n))
	if count < 0 {
		count = int64(n)
	}
	return int(offset), int(min(offset+count, int64(n))) - 1
}

// eachSorted calls fn with the values of the result, in order; ok is false if GET finds nothing.
func eachSorted(c *command.Ctx, elements texts, order []sortKey, s *sorting, fn func(v []byte, ok bool)) {
	for _, k := range order {
		element := elements.at(k.element)
		if len(s.get) == 0 {
			fn(element, true)
		}
		for j := range s.get {
			fn(s.get[j].value(c, element))
		}
	}
}

// storeSorted replaces the value under key by a result, and replies with its size. A nil result is an error: a sort
// key is not a number.
func storeSorted(c *command.Ctx, key []byte, result *lists.List) {
	if result == nil {
		c.Err(errSortScore)
		return
	}
	n := result.Len()
	e := c.G.Write(c.DB, key)
	switch {
	case n == 0 && e != nil:
		c.G.Remove(e, engine.EventGeneric, "del")
	case n == 0:
	case e != nil:
		c.G.OverwriteCollection(e, result)
		c.G.Changed(e, engine.EventList, "sortstore")
	default:
		c.G.Changed(c.G.Create(c.DB, key, result), engine.EventList, "sortstore")
	}
	c.W.Int(int64(n))
}

func sortLength(e *engine.Entry) int {
	if e == nil {
		return 0
	}
	switch e.Type() {
	case engine.List:
		return e.List().Len()
	case engine.Set:
		return e.Set().Len()
	default:
		return e.ZSet().Len()
	}
}

// sortElements returns copies of the elements first to last, from the end if reverse is set; for sets reverse has no
// effect.
func sortElements(e *engine.Entry, first, last int, reverse bool) texts {
	var elements texts
	if last < first {
		return elements
	}
	elements.ends = make([]int, 0, last-first+1)
	add := func(v []byte) bool {
		elements.add(v)
		return true
	}
	switch e.Type() {
	case engine.List:
		l := e.List()
		if reverse {
			n := l.Len()
			l.RangeReverse(n-1-last, n-1-first, add)
		} else {
			l.Range(first, last, add)
		}
	case engine.Set:
		i := 0
		for member := range e.Set().All() {
			if i >= first {
				elements.add(member)
			}
			if i++; i > last {
				break
			}
		}
	case engine.ZSet:
		e.ZSet().RangeByRank(first, last, reverse, func(member []byte, _ float64) bool { return add(member) })
	}
	return elements
}
