package quorum

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCriticalZones(t *testing.T) {
	for zones, want := range map[string][]string{ // of the voters; a learner is written in parentheses
		"a b c":         nil,
		"a a b":         {"a"},
		"a b":           {"a", "b"},
		"a a b b c":     nil,
		"a a a b c":     {"a"},
		"a a b b":       {"a", "b"},
		"a":             {"a"},
		"- - -":         nil,
		"a - -":         nil,
		"a b (a) (a) c": nil,
		"a a b (b) (c)": {"a"},
		"":              nil,
	} {
		var s Status
		for zone := range strings.FieldsSeq(zones) {
			m := Member{Role: Voter, Zone: strings.Trim(zone, "-")}
			if strings.HasPrefix(zone, "(") {
				m.Role, m.Zone = Learner, strings.Trim(zone, "()")
			}
			s.Members = append(s.Members, m)
		}
		require.Equal(t, want, s.CriticalZones(), zones)
	}
}
