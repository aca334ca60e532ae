// Package labels finds values by labels that they carry: pairs of a name and a value, such as room=kitchen.
//
// An Index knows the keys of all databases. It has for each name and value a set of keys, so that a search costs what
// the rarest of its conditions has, however many keys there are. It has no locks.
package labels

import (
	"slices"
	"strings"
)

// Label is a name with a value. A key may have several labels of one name.
type Label struct{ Name, Value string }

// Key is a key in a space: what a database is while it keeps its content.
type Key struct {
	Space uint32
	Name  string
}

// Index knows the labels of keys. The zero value is empty.
type Index struct {
	keys  map[Key]*item
	names map[string]values
}

// values are the sets of keys by the value of a label.
type values map[string]set

type set map[*item]struct{}

type item struct {
	key    Key
	labels []Label
}

// Set says that a key has labels, and no others. Both are kept, and must not change.
func (x *Index) Set(key Key, labels []Label) {
	x.Delete(key)
	if len(labels) == 0 {
		return
	}
	if x.keys == nil {
		x.keys, x.names = map[Key]*item{}, map[string]values{}
	}
	i := &item{key, labels}
	x.keys[key] = i
	for _, l := range labels {
		v := x.names[l.Name]
		if v == nil {
			v = values{}
			x.names[l.Name] = v
		}
		s := v[l.Value]
		if s == nil {
			s = set{}
			v[l.Value] = s
		}
		s[i] = struct{}{}
	}
}

// Delete says that a key has no labels, and returns those that it had.
func (x *Index) Delete(key Key) []Label {
	i := x.keys[key]
	if i == nil {
		return nil
	}
	delete(x.keys, key)
	for _, l := range i.labels {
		v := x.names[l.Name]
		s := v[l.Value]
		delete(s, i)
		if len(s) == 0 {
			delete(v, l.Value)
		}
		if len(v) == 0 {
			delete(x.names, l.Name)
		}
	}
	return i.labels
}

// DeleteSpace forgets all keys of a space.
func (x *Index) DeleteSpace(space uint32) {
	for key := range x.keys {
		if key.Space == space {
			x.Delete(key)
		}
	}
}

// Len returns the number of keys that have labels.
func (x *Index) Len() int { return len(x.keys) }

// Matcher is a condition on the label of a name.
type Matcher struct {
	Name string
	// Values are those that it must have one of; none of them if Not is set. The value "" stands for keys that have no
	// label of the name.
	Values []string
	Not    bool
}

// Selects reports whether the condition alone says which keys are meant, rather than which are not.
func (m *Matcher) Selects() bool { return !m.Not && !slices.Contains(m.Values, "") }

// Matches reports whether labels fulfil the condition.
func (m *Matcher) Matches(labels []Label) bool {
	none := true
	for i := range labels {
		if labels[i].Name == m.Name {
			none = false
			if slices.Contains(m.Values, labels[i].Value) {
				return !m.Not
			}
		}
	}
	if none {
		return slices.Contains(m.Values, "") != m.Not
	}
	return m.Not
}

// Find returns the keys, with their labels, that fulfil all conditions, in no order. One of them must select keys.
func (x *Index) Find(matchers []Matcher, fn func(key Key, labels []Label)) {
	best, size := -1, 0
	for m := range matchers {
		if !matchers[m].Selects() {
			continue
		}
		n := 0
		for _, value := range matchers[m].Values {
			n += len(x.names[matchers[m].Name][value])
		}
		if best < 0 || n < size {
			best, size = m, n
		}
	}
	if best < 0 {
		return
	}
	m := &matchers[best]
	for k, value := range m.Values {
		if slices.Contains(m.Values[:k], value) {
			continue
		}
		for i := range x.names[m.Name][value] {
			if i.first(m, k) && i.fulfils(matchers) {
				fn(i.key, i.labels)
			}
		}
	}
}

// first reports whether no value of m before the k-th leads to the key: it may have several labels of a name.
func (i *item) first(m *Matcher, k int) bool {
	if k == 0 {
		return true
	}
	before := Matcher{Name: m.Name, Values: m.Values[:k]}
	return !before.Matches(i.labels)
}

func (i *item) fulfils(matchers []Matcher) bool {
	for m := range matchers {
		if !matchers[m].Matches(i.labels) {
			return false
		}
	}
	return true
}

// Names returns the names of all labels of keys that count, in order.
func (x *Index) Names(counts func(Key) bool) []string {
	found := make([]string, 0, len(x.names))
	for name, v := range x.names {
		for _, s := range v {
			if s.any(counts) {
				found = append(found, name)
				break
			}
		}
	}
	slices.Sort(found)
	return found
}

// Values returns the values of all labels of a name, of keys that count, in order.
func (x *Index) Values(name string, counts func(Key) bool) []string {
	found := make([]string, 0, len(x.names[name]))
	for value, s := range x.names[name] {
		if s.any(counts) {
			found = append(found, value)
		}
	}
	slices.Sort(found)
	return found
}

func (s set) any(counts func(Key) bool) bool {
	for i := range s {
		if counts(i.key) {
			return true
		}
	}
	return false
}

// Compare orders keys by their names, and those of one name by their spaces.
func Compare(a, b Key) int {
	if c := strings.Compare(a.Name, b.Name); c != 0 {
		return c
	}
	return int(int64(a.Space) - int64(b.Space))
}
