package protocols_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis"
)

// The command lines on the pages of types print what the pages say.
func TestTutorialsOfTypesRunAsWritten(t *testing.T) {
	for _, name := range []string{"json", "timeseries", "vectors"} {
		t.Run(name, func(t *testing.T) {
			db, err := atomredis.Open(atomredis.Options{Addr: "127.0.0.1:0", Config: testConfig()})
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, db.Close()) })
			page, err := os.ReadFile("../../docs/" + name + ".md")
			require.NoError(t, err)
			blocks := strings.Split(string(page), "```console\n")[1:]
			require.NotEmpty(t, blocks)
			for _, block := range blocks {
				block, _, _ = strings.Cut(block, "```")
				runConsole(t, db, block)
			}
		})
	}
}
