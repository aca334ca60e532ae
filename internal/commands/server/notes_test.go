package server_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/command"
)

// Each note on arguments must match an argument.
func TestEveryNoteOfDocumentationBelongsToAnArgument(t *testing.T) {
	table := command.NewTable()
	require.NotNil(t, table.Original("set"))
	require.Empty(t, command.UnusedNotes(table))
}
