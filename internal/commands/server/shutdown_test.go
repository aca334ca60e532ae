package server_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/testing/servertest"
	"github.com/atomredis/atomredis/server"
)

func TestShutdown(t *testing.T) {
	servertest.EachTransport(t, func(t *testing.T, o server.Options, settings ...string) {
		s := servertest.Start(t, o, settings...)
		c := s.Connect()
		for _, step := range [][2]string{
			{"SHUTDOWN FOO", "-ERR syntax error"},
			{"SHUTDOWN SAVE NOSAVE", "-ERR syntax error"},
			{"SHUTDOWN ABORT NOW", "-ERR syntax error"},
			{"SHUTDOWN ABORT", "-ERR No shutdown in progress."},
			{"SHUTDOWN SAVE", "-ERR Errors trying to SHUTDOWN. Check logs."},
			{"SHUTDOWN NOSAVE NOW FORCE", "closed"},
		} {
			require.Equal(t, step[1], c.Line(step[0]), step[0])
		}
		<-s.Done()
	})
}

func TestModulesCannotBeLoaded(t *testing.T) {
	c := servertest.Start(t, server.Options{}).Connect()
	require.Contains(t, c.Line("MODULE LOAD x.so"), "-ERR MODULE command not allowed.")
	c = servertest.Start(t, server.Options{}, "enable-module-command", "local").Connect()
	require.Equal(t, "-ERR Error loading the extension. Please check the server logs.", c.Line("MODULE LOAD x.so"))
	require.Equal(t, "-ERR Error loading the extension. Please check the server logs.", c.Line("MODULE LOADEX x.so ARGS a"))
	require.Equal(t, "-ERR Error unloading module: no such module with that name", c.Line("MODULE UNLOAD x"))
}
