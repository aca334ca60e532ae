package command

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// outline shows a tree on one line: name:kind/TOKEN, with ? for optional, + for multiple, ++ if with its token.
func outline(args []*Argument) string {
	var parts []string
	for _, a := range args {
		s := a.Name + ":" + a.Kind
		if a.Token != "" && a.Kind != ArgPureToken {
			s += "/" + a.Token
		}
		if a.Kind == ArgKey {
			s += fmt.Sprint(a.KeySpec)
		}
		if a.Optional {
			s += "?"
		}
		if a.Multiple {
			s += "+"
		}
		if a.MultipleToken {
			s += "+"
		}
		if len(a.Args) > 0 {
			s += "{" + outline(a.Args) + "}"
		}
		parts = append(parts, s)
	}
	return strings.Join(parts, " ")
}

func TestSyntaxBecomesATreeOfArguments(t *testing.T) {
	for _, tc := range []struct{ syntax, specs, want string }{
		{"", "", ""},
		{"key value", "i1+r0/1/0[RW]", "key:key0 value:string"},
		{"channel [channel ...]", "", "channel:string+"},
		{"[key [key ...]]", "i1+r0/1/0[RW]", "key:key0?+"},
		{"key value [key value ...]", "i1+r-1/2/0[OW]", "key_value:block+{key:key0 value:string}"},
		{"key [NX | XX] [GET] [EX seconds | PXAT unix-time-milliseconds | KEEPTTL]", "i1+r0/1/0[RW]",
			"key:key0 nx_xx:oneof?{nx:pure-token xx:pure-token} get:pure-token? " +
				"seconds_unix-time-milliseconds_keepttl:oneof?{seconds:integer/EX unix-time-milliseconds:unix-time/PXAT keepttl:pure-token}"},
		{"<LEFT | RIGHT>", "", "left_right:oneof{left:pure-token right:pure-token}"},
		{"source destination", "i1+r0/1/0[RW] i2+r0/1/0[RW]", "source:key0 destination:key1"},
		{"destination numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE <SUM | MAX>]",
			"i1+r0/1/0[OW] i2+n0/1/1[RO]",
			"destination:key0 numkeys:integer key:key1+ weight:double/WEIGHTS?+ sum_max:oneof/AGGREGATE?{sum:pure-token max:pure-token}"},
		{"[PREFIX prefix [PREFIX prefix ...]]", "", "prefix:string/PREFIX?++"},
		{"[COUNT count] STREAMS key [key ...] id [id ...]", "kw:STREAMS@1+r-1/1/2[RO]",
			"count:integer/COUNT? key_id:block/STREAMS{key:key0+ id:string+}"},
		{"[<MAXLEN | MINID> [= | ~] threshold [LIMIT count]] <* | id>", "",
			"maxlen_minid_equal_approximately_threshold_count:block?{maxlen_minid:oneof{maxlen:pure-token minid:pure-token} " +
				"equal_approximately:oneof?{equal:pure-token approximately:pure-token} threshold:string count:integer/LIMIT?} " +
				"auto_id:oneof{auto:pure-token id:string}"},
		{"[LIMIT offset count]", "", "offset_count:block/LIMIT?{offset:integer count:integer}"},
		{"[A a | B] [[A a | B] ...]", "", "a_b:oneof?+{a:string/A b:pure-token}"},
		{"<id | >>", "", "id_new:oneof{id:string new:pure-token}"},
	} {
		cmd := &Command{Name: "test", Syntax: tc.syntax, Keys: Keys(tc.specs)}
		args, err := cmd.Arguments()
		require.NoError(t, err, tc.syntax)
		require.Equal(t, tc.want, outline(args), tc.syntax)
	}
}

func TestSyntaxThatDoesNotParseIsAnError(t *testing.T) {
	for _, syntax := range []string{"[a", "a]", "<a", "a>", "[]", "<a | >", "a | b", "...", "a ...", "a [b ...]",
		"[a ...] a"} {
		_, err := (&Command{Name: "test", Syntax: syntax}).Arguments()
		require.Error(t, err, syntax)
	}
}

func TestNotesAreForTheFirstArgumentThatTheyFit(t *testing.T) {
	cmd := &Command{Name: "test", Syntax: "a [A a | B b] [C a]"}
	args, err := cmd.Arguments()
	require.NoError(t, err)
	var notes []argumentNote
	for _, s := range []string{"a", "a_* choice @1.0.0", "a :integer !2.0.0", "a c #3", "none x"} {
		notes = append(notes, parseArgumentNote(s))
	}
	require.Equal(t, notes[4:], annotate(args, notes))
	require.Equal(t, "a:string choice:oneof?{a:integer/A b:string/B} c:string/C?", outline(args))
	require.Equal(t, "1.0.0", args[1].Since)
	require.Equal(t, "2.0.0", args[1].Args[0].Deprecated)
	require.Equal(t, 3, args[2].KeySpec)
}
