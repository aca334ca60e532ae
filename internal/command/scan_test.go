package command

import (
	"math"
	"testing"

	"github.com/atomredis/atomredis/resp"
	"github.com/stretchr/testify/require"
)

// replyCtx is a Ctx of which only the reply can be used.
type replyCtx struct {
	Ctx
	out resp.Writer
}

func newReplyCtx() *replyCtx {
	b := &replyCtx{}
	b.W = &b.out
	return b
}

func TestScanCursorsAreReadAsStrtoulReadsThem(t *testing.T) {
	for _, c := range []struct {
		text   string
		cursor uint64
		ok     bool
	}{
		{"0", 0, true},
		{"", 0, true},
		{"007", 7, true},
		{"+1", 1, true},
		{"-1", 0, false},
		{"-01", math.MaxUint64, true},
		{"18446744073709551615", math.MaxUint64, true},
		{"-018446744073709551615", 1, true},
		{"1\x00a", 1, true},
		{"\x001", 0, true},
		{"18446744073709551616", 0, false},
		{"-18446744073709551616", 0, false},
		{"99999999999999999999", 0, false},
		{"+", 0, false},
		{"-\x00", 0, false},
		{"--1", 0, false},
		{" 1", 0, false},
		{"1 ", 0, false},
		{"\n1", 0, false},
		{"1a", 0, false},
		{"0x10", 0, false},
		{"1.5", 0, false},
	} {
		b := newReplyCtx()
		cursor, ok := b.ScanCursor([]byte(c.text))
		require.Equal(t, c.ok, ok, "%q", c.text)
		if c.ok {
			require.Equal(t, c.cursor, cursor, "%q", c.text)
			require.Empty(t, b.out.Buf, "%q", c.text)
		} else {
			require.Equal(t, "-ERR invalid cursor\r\n", string(b.out.Buf), "%q", c.text)
		}
	}
}

func TestScanOptionsAreRefusedWhereTheyAreUnknownOrIncomplete(t *testing.T) {
	for _, c := range []struct {
		allow ScanAllow
		words []string
		want  Error
	}{
		{0, []string{"count", "5", "MATCH", "a*"}, ""},
		{ScanType, []string{"type", "nosuchtype"}, ""},
		{ScanNoValues, []string{"NOVALUES"}, ""},
		{0, []string{"type", "hash"}, ErrSyntax},
		{0, []string{"novalues"}, errNoValues},
		{0, []string{"count"}, ErrSyntax},
		{0, []string{"match"}, ErrSyntax},
		{ScanType, []string{"type"}, ErrSyntax},
		{0, []string{"count", "0"}, ErrSyntax},
		{0, []string{"count", "-1"}, ErrSyntax},
		{0, []string{"count", "10", "count", "0"}, ErrSyntax},
		{0, []string{"count", "x"}, ErrNotInteger},
		{0, []string{"count", "9223372036854775808"}, ErrNotInteger},
	} {
		b := newReplyCtx()
		b.Args = [][]byte{[]byte("scan"), []byte("0")}
		for _, w := range c.words {
			b.Args = append(b.Args, []byte(w))
		}
		_, ok := b.ScanOptions(1, c.allow)
		require.Equal(t, c.want == "", ok, "%q", c.words)
		if c.want != "" {
			require.Equal(t, "-"+string(c.want)+"\r\n", string(b.out.Buf), "%q", c.words)
		}
	}
}

func TestScanPatternOfOneStarIsNoFilter(t *testing.T) {
	for _, c := range []struct {
		pattern, key string
		match        bool
	}{
		{"*", "", true}, // a pattern would not match an empty key
		{"**", "", false},
		{"", "", true},
		{"", "a", false},
		{"a*", "ab", true},
		{"a*", "ba", false},
	} {
		b := newReplyCtx()
		b.Args = [][]byte{[]byte("scan"), []byte("0"), []byte("match"), []byte(c.pattern)}
		o, ok := b.ScanOptions(1, 0)
		require.True(t, ok)
		require.Equal(t, c.match, o.Match([]byte(c.key)), "%q %q", c.pattern, c.key)
	}
}
