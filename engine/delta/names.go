package delta

import (
	"iter"
	"slices"
)

// Names is a collection of names of parts, which can have repetitions. It grows little by little, so that adding a name
// never takes long.
//
// Most values rarely change the same part twice, and a list takes less memory and time than a set. But where parts come
// and go all the time a list would never end. So from a certain length on, the list moves into a set, a few names at a
// time.
type Names struct {
	chunks [][]string // of namesChunk each, except the last
	listed int        // names in chunks
	parts  int        // the most parts that the value had when a name was added
	set    map[string]struct{}
}

const (
	namesChunk = 1024
	// minListed is how many names are always listed, whatever the value.
	minListed = 4096
	// namesMoved is how many names move to the set when another one is added.
	namesMoved = 2
)

// add adds a name. parts is about how many parts the value has.
func (n *Names) add(name string, parts int) {
	if n.set == nil {
		n.parts = max(n.parts, parts) // emptying a value changes as many parts as it had
		if n.listed < minListed+2*n.parts {
			n.list(name)
			return
		}
		n.set = map[string]struct{}{}
	}
	n.set[name] = struct{}{}
	for range min(namesMoved, n.listed) {
		n.set[n.unlist()] = struct{}{}
	}
}

func (n *Names) list(name string) {
	k := len(n.chunks) - 1
	if k < 0 {
		n.chunks = append(n.chunks, nil) // append may grow it: few values have many changed parts
		k++
	} else if len(n.chunks[k]) == namesChunk {
		n.chunks = append(n.chunks, make([]string, 0, namesChunk))
		k++
	}
	n.chunks[k] = append(n.chunks[k], name)
	n.listed++
}

// unlist removes a name from the list, which must not be empty, and returns it.
func (n *Names) unlist() string {
	k := len(n.chunks) - 1
	chunk := n.chunks[k]
	name := chunk[len(chunk)-1]
	if n.chunks[k] = chunk[:len(chunk)-1]; len(chunk) == 1 {
		n.chunks = n.chunks[:k]
	}
	n.listed--
	return name
}

// len returns the number of names, with repetitions.
func (n *Names) len() int {
	if n == nil {
		return 0
	}
	return n.listed + len(n.set)
}

// all iterates over the names, in no order.
func (n *Names) all() iter.Seq[string] {
	return func(yield func(string) bool) {
		if n == nil {
			return
		}
		for _, chunk := range n.chunks {
			for _, name := range chunk {
				if !yield(name) {
					return
				}
			}
		}
		for name := range n.set {
			if !yield(name) {
				return
			}
		}
	}
}

// Sorted returns the names in order, each once. A nil *Names has none.
func (n *Names) Sorted() []string {
	names := slices.AppendSeq(make([]string, 0, n.len()), n.all())
	slices.Sort(names)
	return slices.Compact(names)
}
