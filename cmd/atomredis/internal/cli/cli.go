// Package cli has the tree of sub-commands of atomredis. It implements the clients: "cli" for any command, "top",
// "changes", "cluster", "atom" for atom elements, "pressure" for queues and "skein" for applications of Skein. It also implements
// "completion" and "man", which describe the tree.
package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/atomredis/atomredis/cmd/atomredis/internal/progress"
	"github.com/atomredis/atomredis/cmd/atomredis/internal/shell"
	"github.com/atomredis/atomredis/internal/nearest"
)

// The exit codes.
const (
	exitOK    = 0
	exitError = 1 // the command has failed
	ExitUsage = 2 // the arguments are wrong
)

// Names are the first arguments of the program that this package handles.
var Names = []string{"atom", "changes", "cli", "cluster", "completion", "man", "pressure", "skein", "top", cobra.ShellCompRequestCmd,
	cobra.ShellCompNoDescRequestCmd}

// Interactive is the name in Names whose command handles interrupts itself.
const Interactive = "cli"

// ExitError is an error with an exit code other than 1.
type ExitError struct {
	Code int
	Err  error
}

func (e ExitError) Error() string { return e.Err.Error() }
func (e ExitError) Unwrap() error { return e.Err }

// Usagef returns the error for wrong arguments.
func Usagef(format string, args ...any) error {
	return ExitError{ExitUsage, fmt.Errorf(format, args...)}
}

// app is one run of the program.
type app struct {
	in       io.Reader
	out      *bufio.Writer
	terminal bool // out is a terminal
	server   serverFlags
	json     bool
	client   *redis.Client // set once a command runs
}

// Run runs a command until it is done or ctx ends. args begin with one of Names, or with the name of one of others,
// which Run adds to the tree. It returns the exit code, and writes an error to stderr in one line.
func Run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer, others ...*cobra.Command) int {
	a := &app{in: stdin, out: newWriter(stdout), terminal: progress.Terminal(stdout)}
	root := a.root()
	root.AddCommand(others...)
	root.SetArgs(args)
	root.SetOut(a.out)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if a.client != nil {
		err = errors.Join(err, a.client.Close())
	}
	if flushErr := a.out.Flush(); err == nil {
		err = flushErr
	}
	if err == nil {
		return exitOK
	}
	if errors.Is(err, shell.ErrReply) { // the command has written it
		return exitError
	}
	fmt.Fprintln(stderr, "atomredis:", strings.ReplaceAll(err.Error(), "\n", "; "))
	if exit := (ExitError{}); errors.As(err, &exit) {
		return exit.Code
	}
	return exitError
}

// root returns the tree. The server itself does not use it: the flags of the root only appear in descriptions.
func (a *app) root() *cobra.Command {
	root := &cobra.Command{Use: "atomredis [redis.conf] [--directive value ...] [-]", Short: "a Redis server",
		Long: `A server for Redis clients. It is started like redis-server: with a configuration file, with options named like
the directives of such a file, or with both; - reads directives from standard input. The data is kept in the directory
of the directive dir.

Without a sub-command the server runs until a signal (SIGTERM, SIGINT) or SHUTDOWN ends it.`,
		Example: `  atomredis
  atomredis --port 7777
  atomredis /etc/redis/redis.conf --loglevel verbose
  echo 'bind 127.0.0.1' | atomredis -`,
		SilenceErrors: true, SilenceUsage: true, DisableFlagsInUseLine: true, Args: cobra.ArbitraryArgs,
		RunE:              func(*cobra.Command, []string) error { return nil },
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true}}
	root.SetHelpCommand(&cobra.Command{Hidden: true})
	root.PersistentFlags().Bool("help", false, "show this help") // no short form: -h is the host, as in redis-cli
	root.SetFlagErrorFunc(badFlag)
	addServerFlags(root)
	root.AddCommand(a.withServer(a.pressure()), a.withServer(a.atom()), a.withServer(a.skein()), a.withServer(a.top()),
		a.withServer(a.changes()),
		a.withServer(a.cluster()), a.shell(),
		a.completion(), a.man())
	return root
}

// badFlag is the error for a flag of a command that cannot be parsed.
func badFlag(c *cobra.Command, err error) error {
	unknown, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok {
		return Usagef("%w", err)
	}
	name := unknown.GetSpecifiedName()
	if short := unknown.GetSpecifiedShortnames(); short != "" {
		name = short // pflag reads a word after a single dash as letters
	}
	var names []string
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	if found := nearest.Of(name, names); found != "" {
		return Usagef("%w; did you mean --%s?", err, found)
	}
	return Usagef("%w", err)
}

// withServer adds the flags and the connection for a server to a command.
func (a *app) withServer(c *cobra.Command) *cobra.Command {
	flags := c.PersistentFlags()
	flags.StringVarP(&a.server.host, "host", "h", "127.0.0.1", "host of the server")
	flags.IntVarP(&a.server.port, "port", "p", 6379, "port of the server")
	flags.StringVarP(&a.server.socket, "socket", "s", "", "Unix socket of the server, instead of host and port")
	flags.StringVarP(&a.server.password, "pass", "a", "", "password (default: the environment variable REDISCLI_AUTH)")
	flags.StringVar(&a.server.user, "user", "", "user that the password belongs to")
	flags.IntVarP(&a.server.db, "db", "n", 0, "number of the database")
	flags.BoolVar(&a.json, "json", false, "write JSON")
	c.PersistentPreRunE = func(*cobra.Command, []string) error { return a.connect() }
	return c
}

// group returns a command that only has sub-commands.
func group(use, short string, commands ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short}
	c.Args = cobra.ArbitraryArgs
	c.RunE = func(c *cobra.Command, args []string) error {
		if len(args) == 0 {
			return Usagef("%s needs a command; see %s --help", c.CommandPath(), c.CommandPath())
		}
		var names []string
		for _, sub := range c.Commands() {
			names = append(names, sub.Name())
		}
		if name := nearest.Of(args[0], names); name != "" {
			return Usagef("unknown command %q; did you mean %s %s?", args[0], c.CommandPath(), name)
		}
		return Usagef("unknown command %q; see %s --help", args[0], c.CommandPath())
	}
	c.AddCommand(commands...)
	return c
}

// Arguments accepts from min to max arguments; a negative max means any number.
func Arguments(min, max int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) < min || max >= 0 && len(args) > max {
			return Usagef("usage: %s", c.UseLine())
		}
		return nil
	}
}

// AsksForHelp reports whether the arguments of a command that parses them itself ask for help.
func AsksForHelp(args []string) bool {
	return len(args) == 1 && (args[0] == "--help" || args[0] == "-h")
}

// serverFlags select the server.
type serverFlags struct {
	host, socket, user, password string
	port, db                     int
}

// connect makes the client, which connects when it needs to.
func (a *app) connect() error {
	s := a.server
	if s.port < 1 || s.port > 65535 {
		return Usagef("invalid port %d", s.port)
	}
	if s.db < 0 {
		return Usagef("invalid database %d", s.db)
	}
	if s.password == "" {
		s.password = os.Getenv("REDISCLI_AUTH")
	}
	o := &redis.Options{
		Addr: fmt.Sprintf("%s:%d", s.host, s.port), Username: s.user, Password: s.password, DB: s.db,
		MaxRetries:    -1, // no command is executed twice when a connection breaks
		DialerRetries: 1,
		DialTimeout:   5 * time.Second,
		ReadTimeout:   10 * time.Second,
		// The feature is not used; enabled, the client would ask servers that do not have it.
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
	if strings.Contains(s.host, ":") { // IPv6
		o.Addr = fmt.Sprintf("[%s]:%d", s.host, s.port)
	}
	if s.socket != "" {
		o.Network, o.Addr = "unix", s.socket
	}
	quiet.Do(func() { redis.SetLogger(discard{}) }) // errors have the details
	a.client = redis.NewClient(o)
	return nil
}

var quiet sync.Once

// discard is a logger of go-redis that writes nothing.
type discard struct{}

func (discard) Printf(context.Context, string, ...any) {}

// ended returns nil if err comes from the end of ctx, for commands that run until an interrupt.
func ended(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return nil
	}
	return err
}
