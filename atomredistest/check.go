package atomredistest

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/atomredis/atomredis/resp"
)

// Set is an expected set of CheckKeys, in any order.
type Set []string

// Entry is an expected entry of a stream, for CheckKeys: fields and values in turn.
type Entry struct {
	ID     string
	Fields []string
}

// Any is an expected value of CheckKeys that matches any value; the key must exist.
type Any struct{}

// Dump returns all keys and values as readable text, in order of the names. It cuts values at 1000 bytes and rounds
// times to live to seconds. Equal data gives equal text.
func (s *Server) Dump(t testing.TB) string {
	t.Helper()
	im := s.snapshot(t)
	var b strings.Builder
	for _, db := range slices.Sorted(maps.Keys(im)) {
		fmt.Fprintf(&b, "database %d\n", db)
		for _, key := range slices.Sorted(maps.Keys(im[db])) {
			v := im[db][key]
			fmt.Fprintf(&b, "  %q: %s%s\n", key, shorten(v.String()), shorten(v.ttl(s.Now())))
		}
	}
	if b.Len() == 0 {
		return "no keys\n"
	}
	return b.String()
}

// shorten cuts texts at 1000 bytes.
func shorten(s string) string {
	const most = 1000
	if len(s) <= most {
		return s
	}
	return fmt.Sprintf("%s... (%d bytes)", s[:most], len(s))
}

// CheckKeys reports an error to t unless database 0 has exactly the wanted keys and values. Values are string, []byte,
// integers and floats for strings, []string for lists, Set for sets, map[string]string for hashes, map[string]float64
// for sorted sets, []Entry for the entries of streams, and Any for any value. Times to live are not compared. It
// reports whether the keys are as wanted.
func (s *Server) CheckKeys(t testing.TB, want map[string]any) bool {
	t.Helper()
	return s.CheckDatabase(t, 0, want)
}

// CheckDatabase is CheckKeys for database n.
func (s *Server) CheckDatabase(t testing.TB, n int, want map[string]any) bool {
	t.Helper()
	have := s.snapshot(t)[n]
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(want)) {
		expected, err := valueOf(want[key])
		if err != nil {
			t.Fatalf("key %q: %v", key, err)
		}
		v := have[key]
		switch {
		case v == nil && expected == nil:
			fmt.Fprintf(&b, "  %q does not exist\n", key)
		case v == nil:
			fmt.Fprintf(&b, "  %q does not exist, and should be %s\n", key, shorten(expected.String()))
		case expected == nil:
		default:
			v.groups = nil
			if has, wants := v.String(), expected.String(); has != wants {
				fmt.Fprintf(&b, "  %q is %s, and should be %s\n", key, shorten(has), shorten(wants))
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(have)) {
		if _, ok := want[key]; !ok {
			fmt.Fprintf(&b, "  %q is %s, and should not exist\n", key, shorten(have[key].String()))
		}
	}
	if b.Len() > 0 {
		t.Errorf("database %d is not as it should be:\n%s", n, b.String())
	}
	return b.Len() == 0
}

// valueOf returns the value that v describes, nil for Any.
func valueOf(v any) (*value, error) {
	switch v := v.(type) {
	case Any:
		return nil, nil
	case string:
		return &value{kind: "string", words: []string{v}}, nil
	case []byte:
		return &value{kind: "string", words: []string{string(v)}}, nil
	case int, int8, int16, int32, int64, uint, uint8, uint16, uint32, uint64:
		return &value{kind: "string", words: []string{fmt.Sprint(v)}}, nil
	case float32:
		return &value{kind: "string", words: []string{strconv.FormatFloat(float64(v), 'f', -1, 32)}}, nil
	case float64:
		return &value{kind: "string", words: []string{strconv.FormatFloat(v, 'f', -1, 64)}}, nil
	case []string:
		return &value{kind: "list", words: v}, nil
	case Set:
		return &value{kind: "set", words: v}, nil
	case map[string]string:
		out := &value{kind: "hash"}
		for field, content := range v {
			out.words = append(out.words, field, content)
		}
		return out, nil
	case map[string]float64:
		out := &value{kind: "zset"}
		for member, score := range v {
			out.words = append(out.words, member, string(resp.AppendFloat(nil, score)))
		}
		return out, nil
	case []Entry:
		return &value{kind: "stream", entries: v}, nil
	}
	return nil, fmt.Errorf("a %T cannot be the value of a key", v)
}
