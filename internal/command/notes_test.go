package command_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/command"
	_ "github.com/atomredis/atomredis/server" // registers the commands
)

// Each note on arguments must match an argument.
func TestEveryNoteOfDocumentationBelongsToAnArgument(t *testing.T) {
	table := command.NewTable()
	require.NotNil(t, table.Original("set"))
	require.Empty(t, command.UnusedNotes(table))
}

// Commands on keys of any type know all types.
func TestEveryTypeHasAKind(t *testing.T) {
	for typ := engine.String; typ.Known(); typ++ {
		k := command.Kinds[typ]
		require.NotNil(t, k.Encoding, typ)
		require.NotNil(t, k.Rebuild, typ)
		require.NotNil(t, k.Digest, typ)
	}
}
