// Package labels finds values by labels that they carry: pairs of a name and a value, such as room=kitchen.
//
// An Index covers the keys of all databases. It has a set of keys for each name and value, so the cost of a search
// depends on the rarest of its conditions, not on the number of keys. It has no locks.
package labels

import (
	"slices"
	"strings"
)

// Label is a name with a value. A key may have several labels of the same name.
type Label struct{ Name, Value string }

// Key is a key in a space: the identity of a database's content.
type Key struct {
	Space uint32
	Name  string
}

// Index has the labels of keys. The zero value is empty.
type Index struct {
	keys  map[Key]*item
	names map[string]values
}

// values are sets of keys by the value of a label.
type values map[string]set

type set map[*item]struct{}

type item struct {
	key    Key
	labels []Label
}

// Set sets the labels of a key, replacing earlier ones. It keeps both arguments, which must not change.
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

// Delete removes all labels of a key, and returns them.
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

// DeleteSpace removes all keys of a space.
func (x *Index) DeleteSpace(space uint32) {
	for key := range x.keys {
		if key.Space == space {
			x.Delete(key)
		}
	}
}

// Len returns the number of keys with labels.
func (x *Index) Len() int { return len(x.keys) }

// Matcher is a condition on a key's labels of one name.
type Matcher struct {
	Name string
	// Values are the permitted values, or the excluded ones if Not is set. The value "" stands for a key without a
	// label of this name.
	Values []string
	Not    bool
}

// Selects reports whether the condition alone includes keys, instead of excluding some.
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

// Find calls fn with the keys, and their labels, that fulfil all conditions, in no order. At least one must select
// keys.
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

// first reports whether none of the first k values of m leads to the key, which may have several labels of a name.
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

// Names returns, sorted, the names of all labels of keys for which counts returns true.
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

// Values returns, sorted, the values of all labels of a name, of keys for which counts returns true.
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

// Compare orders keys by name, then by space.
func Compare(a, b Key) int {
	if c := strings.Compare(a.Name, b.Name); c != 0 {
		return c
	}
	return int(int64(a.Space) - int64(b.Space))
}
