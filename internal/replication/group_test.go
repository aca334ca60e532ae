package replication_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/replication"
)

func TestAGroupIsReadAsItIsTold(t *testing.T) {
	for text, g := range map[string]replication.Group{
		"self":                     {Leads: true, Members: []string{}},
		"self a:1 [::1]:2":         {Leads: true, Members: []string{"a:1", "[::1]:2"}},
		"-":                        {Members: []string{}},
		"10.0.0.1:6379 10.0.0.1:1": {Leader: "10.0.0.1:6379", Members: []string{"10.0.0.1:1"}},
	} {
		require.Equal(t, text, g.String())
		got, ok := replication.ParseGroup(text)
		require.True(t, ok, text)
		require.Equal(t, g, got)
	}
	for _, text := range []string{"", " ", "OK", "self other", "- -", "a:1 self"} {
		_, ok := replication.ParseGroup(text)
		require.False(t, ok, text)
	}
}
