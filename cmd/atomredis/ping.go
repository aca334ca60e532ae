package main

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/atomredis/atomredis/cmd/atomredis/internal/cli"
	"github.com/atomredis/atomredis/cmd/atomredis/internal/link"
)

// pingCommand checks whether a server answers, for health checks in images without another client.
func pingCommand(stdout io.Writer) *cobra.Command {
	var o connectOptions
	var timeout time.Duration
	c := &cobra.Command{Use: "ping", Short: "ask whether a server answers",
		Long: `Sends PING and ends with 0 if the server answers PONG. A server that is loading its data, or that needs a
password and gets none, does not.`,
		Example: "  atomredis ping -h db.example.org",
		Args:    cli.Arguments(0, 0),
		RunE: func(*cobra.Command, []string) error {
			conn, err := o.dial(timeout)
			if err != nil {
				return err
			}
			defer conn.Close()
			l := link.New(conn, timeout)
			if err := l.Auth(o.user, o.password); err != nil {
				return err
			}
			reply, err := l.Command("PING")
			if err != nil {
				return err
			}
			if reply != "+PONG" {
				return fmt.Errorf("the server says %q", reply)
			}
			_, err = fmt.Fprintln(stdout, "PONG")
			return err
		}}
	o.flags(c)
	c.Flags().DurationVar(&timeout, "timeout", 3*time.Second, "`time` that the server may be silent")
	return c
}
