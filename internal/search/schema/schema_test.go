package schema

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWhatMattersOnlyAtTheCreationDoesNotLast(t *testing.T) {
	for given, want := range map[string]string{
		"SCHEMA a TEXT":                 "SCHEMA a TEXT",
		"SKIPINITIALSCAN SCHEMA a TEXT": "SCHEMA a TEXT",
		"ON HASH skipinitialscan PREFIX 1 SKIPINITIALSCAN SKIPINITIALSCAN SCHEMA SKIPINITIALSCAN TEXT": "ON HASH PREFIX 1 SKIPINITIALSCAN SCHEMA SKIPINITIALSCAN TEXT",
	} {
		words := bytes.Fields([]byte(given))
		d, err := Parse("i", words, Checks{})
		require.NoError(t, err)
		require.Equal(t, strings.Contains(given, "SKIPINITIALSCAN SCHEMA"), d.SkipScan, given)
		require.Equal(t, want, string(bytes.Join(d.Lasting(words), []byte(" "))))
		require.Equal(t, given, string(bytes.Join(words, []byte(" "))), "the arguments stay as they are")
	}
}
