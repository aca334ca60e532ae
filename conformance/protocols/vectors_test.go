package protocols_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis"
)

func TestTheTutorialOfVectorSetsRunsAsWritten(t *testing.T) {
	page, err := os.ReadFile("../../docs/vectors.md")
	require.NoError(t, err)
	_, console, ok := strings.Cut(string(page), "```console\n")
	require.True(t, ok)
	console, _, _ = strings.Cut(console, "```")
	db, err := atomredis.Open(atomredis.Options{Addr: "127.0.0.1:0", Config: testConfig()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	runConsole(t, db, console)
}
