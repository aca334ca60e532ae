package server

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/testing/commandtest"
)

func TestDebugHelpHasAllThatDoesSomething(t *testing.T) {
	help := commandtest.New(t).Call(debugCommand, "DEBUG", "HELP")
	for name := range debugCommands {
		if !strings.Contains(help, strings.ToUpper(name)) {
			require.Contains(t, []string{"pause-cron", "quicklist-packed-threshold", "assert", "crash-and-recover", "leak",
				"oom", "panic", "reply-copy-avoidance", "restart", "segfault", "set-allow-access-expired"}, name)
		}
	}
}
