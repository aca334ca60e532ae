package keys

import (
	"bytes"
	"slices"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

var texts = []string{"", "\x00", "a", "a\x00", "ab", "b", "é", "\ud7ff", "\U00010000", "\U0001f600", "\U0010ffff", "\ue000",
	"\uffff", "a\U00010000", "a\uffffb", "\U00010000\uffff", "\uffff\U00010000"}

func unitsOf(s string) []uint16 { return utf16.Encode([]rune(s)) }

// check compares the order of two texts, and of their members, with that of their code units.
func check(t *testing.T, a, b string) {
	want := slices.Compare(unitsOf(a), unitsOf(b))
	require.Equal(t, want, Compare(a, []byte(b)), "%q %q", a, b)
	ma, mb := Member(nil, []byte(a)), Member(nil, []byte(b))
	require.Equal(t, want, bytes.Compare(ma, mb), "%q %q", a, b)
	require.Equal(t, a, string(Key(nil, ma)))
	require.Equal(t, b, string(Key(nil, mb)))
}

func TestTheOrderOfKeysIsThatOfUTF16CodeUnits(t *testing.T) {
	for _, a := range texts {
		for _, b := range texts {
			check(t, a, b)
		}
	}
}

func TestRangesHaveTheirStartAndNotTheirEnd(t *testing.T) {
	for _, test := range []struct {
		start, end, key string
		want            bool
	}{
		{"", "", "", true}, {"\x00", "", "", true}, {"", "\x00", "", true}, {"a", "", "a", true}, {"a", "b", "b", false},
		{"a", "a\x00", "a", true}, {"a", "a\x00", "aa", false}, {"b", "a", "b", false}, {"b", "a", "a", false},
		{"\U0001f600", "\uffff", "\ue000", true}, {"\ue000", "", "\U0001f600", false},
	} {
		require.Equal(t, test.want, Contains(test.start, test.end, test.key), "%+q", test)
	}
}

func FuzzOrder(f *testing.F) {
	for _, s := range texts {
		f.Add(s, "x"+s)
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		Key(nil, []byte(a)) // whatever it is
		if utf8.ValidString(a) && utf8.ValidString(b) {
			check(t, a, b)
		}
	})
}
