package version

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestModulesHaveTheNumbersOfTheirVersions(t *testing.T) {
	require.Equal(t, numberOf(Redis), modules)
}

// numberOf returns the number of a version in the form of modules.
func numberOf(version string) int {
	var major, minor, patch int
	if _, err := fmt.Sscanf(version, "%d.%d.%d", &major, &minor, &patch); err != nil {
		panic(err)
	}
	return major*10000 + minor*100 + patch
}
