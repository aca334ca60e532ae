package session

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/clients/acl"
	"github.com/atomredis/atomredis/internal/command"
)

func TestReadingArbitraryKeysTakesThePermissionForAll(t *testing.T) {
	b := newHarness(t)
	s := b.session()
	get := b.Table.Find([]byte("get"))
	args := [][]byte{[]byte("GET"), []byte("k")}
	require.True(t, s.MayReadAll(get, args))
	for rules, want := range map[string]bool{"+@all ~k": false, "+@all %R~*": true, "+@all %W~*": false,
		"+@all -get ~*": false, "+@all ~k (+get %R~*)": true} {
		merged, _ := acl.Merge(strings.Fields("reset " + rules))
		require.NoError(t, b.Users.Set(nil, acl.DefaultName, merged))
		require.Equal(t, want, s.MayReadAll(get, args), rules)
	}
	s.account.Store(nil)
	require.True(t, s.MayReadAll(get, args))
	b.finish(t, s)
}

func TestLimitsOfStrangersEndWithTheirPasswords(t *testing.T) {
	b := newHarness(t)
	require.NoError(t, b.Users.Set(nil, acl.DefaultName, []string{">secret"}))
	s := b.session()
	require.True(t, s.in.parser.Unauthenticated)
	require.NoError(t, b.Users.Set(nil, acl.DefaultName, []string{"nopass"}))
	require.Equal(t, "-ERR unknown command 'A', with args beginning with: 'b' 'b' 'b' 'b' 'b' 'b' 'b' 'b' 'b' 'b' 'b' \r\n",
		b.feed(s, request(strings.Split("A"+strings.Repeat("b", 11), "")...)))
	b.finish(t, s)
}

// Checks for a user that may do everything cost nothing, and checks for other users allocate nothing for the usual
// commands.
func TestDecisionsNeedNoMemory(t *testing.T) {
	b := newHarness(t)
	s := b.session()
	defer b.finish(t, s)
	get := b.Table.Find([]byte("get"))
	args := [][]byte{[]byte("GET"), []byte("user:1")}
	for rules, most := range map[string]float64{"+@all ~* &*": 0, "+@all ~other* ~user:* %R~x": 1} {
		require.NoError(t, b.Users.Set(nil, acl.DefaultName,
			append([]string{"reset", "on", "nopass"}, strings.Fields(rules)...)))
		require.LessOrEqual(t, testing.AllocsPerRun(100, func() {
			if !s.unrestricted() && s.denied(command.FromClient, get, args) != "" {
				t.Fatal("refused")
			}
		}), most, rules)
	}
}

func BenchmarkDecision(b *testing.B) {
	h := newHarness(b)
	s := h.session()
	get := h.Table.Find([]byte("get"))
	args := [][]byte{[]byte("GET"), []byte("user:1")}
	for _, rules := range []string{"+@all ~* &*", "+@all -@dangerous ~* &*", "+@all ~other* ~user:* %R~x"} {
		require.NoError(b, h.Users.Set(nil, acl.DefaultName,
			append([]string{"reset", "on", "nopass"}, strings.Fields(rules)...)))
		b.Run(rules, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if !s.unrestricted() && s.denied(command.FromClient, get, args) != "" {
					b.Fatal("refused")
				}
			}
		})
	}
	h.finish(b, s)
}
