package query

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPlacesThatAreNoNumbers(t *testing.T) {
	for text, want := range map[string]string{
		"x":      `Invalid geo string "x": invalid float literal`,
		" ":      `Invalid geo string "": cannot parse float from empty string`,
		" 1,2":   `Invalid geo string "1,2": invalid float literal`,
		"-inf":   "Geo coordinates must be finite",
		"nan":    "Geo coordinates must be finite",
		"1.5abc": `Invalid geo string "1.5abc": invalid float literal`,
	} {
		require.EqualError(t, BadPlace(text), "SEARCH_PARSE_ARGS "+want, text)
	}
}
