package search_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/testing/servertest"
	"github.com/atomredis/atomredis/server"
)

// An index shows the values of its keys, so a user must be allowed to read all of them.
func TestIndexesNeedPermissionForTheirPrefixes(t *testing.T) {
	s := servertest.Start(t, server.Options{})
	c := s.Connect()
	c.Line("FT.CREATE all SCHEMA t TEXT")
	c.Line("FT.CREATE some PREFIX 2 a: b: SCHEMA t TEXT")
	c.Line("HSET a:1 t word")
	for rules, may := range map[string][2]bool{
		"~*":            {true, true},
		"~a:* ~b:*":     {false, true},
		"%R~a:* ~b*":    {false, true},
		"~a:*":          {false, false},
		"~a:* %W~b:*":   {false, false},
		"~a:* ~b:*x":    {false, false},
		"~a:* ~b:*[^a]": {false, false},
		"~a:? ~b:*":     {false, false},
		"~a:*, ~b:*":    {false, false},
		"~[ab]:*":       {false, true},
	} {
		require.Equal(t, "+OK", c.Line("ACL SETUSER u reset on nopass +@all "+rules), rules)
		u := s.Connect()
		u.Line("AUTH u x")
		for i, index := range []string{"all", "some"} {
			got := u.Line("FT.SEARCH " + index + " word NOCONTENT")
			require.Equal(t, !may[i], strings.HasPrefix(got, "-") && strings.Contains(got, "NOPERM User does not have the required permissions"), "%s %s: %s", rules, index, got)
		}
	}
}
