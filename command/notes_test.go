package command_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/command"
	_ "github.com/atomredis/atomredis/server" // registers the commands
)

// What is said of arguments beside the table must be said of some.
func TestEveryNoteOfDocumentationBelongsToAnArgument(t *testing.T) {
	table := command.NewTable()
	require.NotNil(t, table.Original("set"))
	require.Empty(t, command.UnusedNotes(table))
}
