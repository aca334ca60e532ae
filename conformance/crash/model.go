package crash

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/atomredis/atomredis/internal/testing/transcript"
)

// place names a key in a database.
type place struct {
	db  int
	key string
}

func (p place) String() string {
	return fmt.Sprintf("%s of database %d", transcript.Quote(p.key), p.db)
}

// window is a span of wall-clock time in Unix milliseconds.
type window struct{ from, to int64 }

// value is the value of a key, in the model and on the server.
type value struct {
	// kind is the reply to TYPE.
	kind string
	text string
	list []string
	// elems are the fields and values of a hash, the members of a set, or the members and scores of a sorted set;
	// series, sketches, vector sets and arrays describe their own use.
	elems  map[string]string
	stream *stream
	// fields are the deadlines of fields of a hash, like lo and hi.
	fields map[string]window
	// doc is a JSON document.
	doc any
	// The deadline, in Unix milliseconds, lies between lo and hi; both are 0 without one. Deadlines read from the
	// server are exact.
	lo, hi int64
	// blessed says that the key is never evicted; it is read with the deadlines of members.
	blessed bool
}

// model is the expected state of a worker's keys.
type model map[place]*value

// snapshot is all data of a server, read while nobody writes.
type snapshot struct {
	data model
	read window
	// owned lists the keys of each worker, the word before the colon.
	owned map[string][]place
}

// clockSlack is how many milliseconds the clock that a server reads once per round may be behind or ahead of ours.
const clockSlack = 20

// newValue makes an empty value.
func newValue(kind string) *value {
	v := &value{kind: kind}
	switch kind {
	case "set", "zset", "hash", seriesKind, bloomKind, cuckooKind, countsKind, topKind, digestKind,
		vectorKind, arrayKind, pathHashKind:
		v.elems = map[string]string{}
	case "stream":
		v.stream = &stream{groups: map[string]*group{}}
	}
	return v
}

// open returns the value of a key, and makes an empty one if there is none.
func (m model) open(p place, kind string) *value {
	if m[p] == nil {
		m[p] = newValue(kind)
	}
	return m[p]
}

// peek returns the value of a key, or an empty one that the model does not keep.
func (m model) peek(p place, kind string) *value {
	if v := m[p]; v != nil {
		return v
	}
	return newValue(kind)
}

// clone makes a deep copy of a value.
func (v *value) clone() *value {
	w := *v
	w.list = slices.Clone(v.list)
	w.elems = maps.Clone(v.elems)
	w.fields = maps.Clone(v.fields)
	if v.stream != nil {
		w.stream = v.stream.clone()
	}
	w.doc = cloneJSON(v.doc)
	return &w
}

// empty reports whether Redis would delete the key of the value.
func (v *value) empty() bool {
	switch v.kind {
	case "list":
		return len(v.list) == 0
	case "set", "zset", "hash", vectorKind, arrayKind, pathHashKind:
		return len(v.elems) == 0
	}
	return false
}

// same reports whether a value read within the window is the expected one; nil means no key.
func same(want, got *value, read window) bool {
	if want != nil && want.hi != 0 {
		if want.hi+clockSlack < read.from {
			want = nil
		} else if want.lo-clockSlack <= read.to && got == nil {
			return true // it may have expired while we read
		}
	}
	want = want.alive(got, read)
	if want == nil || got == nil {
		return want == got
	}
	return want.kind == got.kind && want.blessed == got.blessed && want.lo <= got.lo && got.lo <= want.hi && want.text == got.text &&
		slices.Equal(want.list, got.list) && maps.Equal(want.elems, got.elems) && sameFields(want.fields, got.fields) &&
		want.stream.equal(got.stream) && reflect.DeepEqual(want.doc, got.doc)
}

// difference describes briefly how two values differ.
func difference(want, got *value) string {
	switch {
	case want == nil && got == nil:
		return "nothing"
	case want == nil:
		return "expected no key, found " + got.summary()
	case got == nil:
		return "expected " + want.summary() + ", found no key"
	case want.kind != got.kind || want.text != got.text:
		at := 0
		for at < min(len(want.text), len(got.text)) && want.text[at] == got.text[at] {
			at++
		}
		return fmt.Sprintf("expected %s, found %s; from byte %d on: expected %s, found %s", want.summary(), got.summary(), at,
			short(want.text[at:]), short(got.text[at:]))
	case got.lo < want.lo || got.lo > want.hi:
		return fmt.Sprintf("expected a deadline from %d to %d, found %d", want.lo, want.hi, got.lo)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "expected %s, found %s", want.summary(), got.summary())
	switch {
	case want.stream != nil:
		b.WriteString(want.stream.difference(got.stream))
	case want.kind == "list":
		for i := range max(len(want.list), len(got.list)) {
			if i >= len(want.list) || i >= len(got.list) || want.list[i] != got.list[i] {
				fmt.Fprintf(&b, "; from element %d on: expected %s, found %s", i, excerpt(want.list, i), excerpt(got.list, i))
				break
			}
		}
	default:
		if want.doc != nil {
			want, got = &value{elems: flat(want.doc)}, &value{elems: flat(got.doc)}
		}
		if !slices.Equal(want.list, got.list) {
			fmt.Fprintf(&b, "; expected %q, found %q", want.list, got.list)
		}
		shown := 0
		for _, e := range slices.Sorted(maps.Keys(want.elems)) {
			if g, ok := got.elems[e]; (!ok || g != want.elems[e]) && shown < 5 {
				shown++
				fmt.Fprintf(&b, "; %s: expected %s, found %s (%t)", short(e), short(want.elems[e]), short(g), ok)
			}
		}
		for _, f := range slices.Sorted(maps.Keys(want.fields)) {
			if w, g := want.fields[f], got.fields[f]; (g.from < w.from || g.to > w.to) && shown < 10 {
				shown++
				fmt.Fprintf(&b, "; %s: expected a deadline from %d to %d, found %d", short(f), w.from, w.to, g.from)
			}
		}
		for _, e := range slices.Sorted(maps.Keys(got.elems)) {
			if _, ok := want.elems[e]; !ok && shown < 10 {
				shown++
				fmt.Fprintf(&b, "; unexpected %s: %s", short(e), short(got.elems[e]))
			}
		}
	}
	return b.String()
}

func (v *value) summary() string {
	s := "a " + v.kind
	switch v.kind {
	case "string":
		s += fmt.Sprintf(" of %d bytes %s", len(v.text), short(v.text))
	case "list":
		s += fmt.Sprintf(" of %d", len(v.list))
	case "stream":
		s += fmt.Sprintf(" of %d up to %s", len(v.stream.entries), v.stream.last)
	default:
		s += fmt.Sprintf(" of %d", len(v.elems))
	}
	if v.lo != 0 {
		s += fmt.Sprintf(" until %d", v.lo)
	}
	if v.blessed {
		s += ", blessed"
	}
	return s
}

func short(s string) string {
	if len(s) > 40 {
		return transcript.Quote(s[:40]) + "…"
	}
	return transcript.Quote(s)
}

// excerpt shows a few elements of a list.
func excerpt(list []string, from int) string {
	if from >= len(list) {
		return "its end"
	}
	var words []string
	for _, e := range list[from:min(from+3, len(list))] {
		words = append(words, short(e))
	}
	return strings.Join(words, " ")
}
