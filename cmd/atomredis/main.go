// Command atomredis is a Redis server. It is started like redis-server: with a configuration file, with options named
// like the directives of such a file, or with both. With the name of a sub-command it is a client of a server, or works
// on stored data.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	_ "time/tzdata" // for schedules, on machines without time zones

	"github.com/spf13/cobra"

	"github.com/atomredis/atomredis/cmd/atomredis/internal/cli"
	_ "github.com/atomredis/atomredis/doors/http"
	_ "github.com/atomredis/atomredis/doors/perper-grpc"
	_ "github.com/atomredis/atomredis/doors/perper-ignite"
	_ "github.com/atomredis/atomredis/doors/sentinel"
	_ "github.com/atomredis/atomredis/doors/skein"
	_ "github.com/atomredis/atomredis/doors/spiderq"
	_ "github.com/atomredis/atomredis/internal/archive/s3" // archives in buckets
	_ "github.com/atomredis/atomredis/internal/durable"    // storage, archives and groups
	"github.com/atomredis/atomredis/internal/nearest"
	"github.com/atomredis/atomredis/internal/version"
)

const usage = `Usage: atomredis [redis.conf] [--directive value ...] [-]
       atomredis - (reads the configuration from standard input)
       atomredis serve FILE [FILE ...] (runs a server for each configuration file, in one process)
       atomredis check [--repair] DIR (verifies the data in a directory)
       atomredis import FILE [--dir DIR] (reads an RDB file or an append-only file of a Redis into an empty DIR)
       atomredis import --check FILE (says what import would read and leave out)
       atomredis import --spiderq FILE [--dir DIR] (reads a snapshot of a spiderq)
       atomredis export --rdb FILE | --aof FILE [--dir DIR] (writes a file that a Redis loads)
       atomredis backup DIR [-h host] [-p port] (writes all data of a running server to DIR/dump.rdb)
       atomredis restore --from ARCHIVE --to TIME [--dir DIR] (brings back the data of a past second from an archive)
       atomredis archive check|list ARCHIVE (verifies an archive, or shows what it has)
       atomredis cli [-h host] [-p port] [COMMAND ...] (sends commands to a server, as redis-cli; see atomredis cli --help)
       atomredis ping [-h host] [-p port] (ends with 0 if a server answers)
       atomredis top [-h host] [-p port] (shows the activity of a server; see atomredis top --help)
       atomredis changes [--from POSITION] (writes what changes on a server as lines of JSON)
       atomredis atom COMMAND (atom elements on a server; see atomredis atom --help)
       atomredis pressure COMMAND (queues on a server; see atomredis pressure --help)
       atomredis skein COMMAND (a Skein application on a server; see atomredis skein --help)
       atomredis cluster COMMAND (servers that share a journal: start, status, check; see atomredis cluster --help)
       atomredis completion bash|zsh|fish (writes a script that makes the shell complete arguments)
       atomredis man DIR (writes pages of the manual into DIR)
       atomredis -v or --version
       atomredis -h or --help

Examples:
       atomredis
       atomredis --port 7777
       atomredis /etc/redis/redis.conf --loglevel verbose
       echo 'bind 127.0.0.1' | atomredis -
`

func main() {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr, signals))
}

// dataCommands returns the sub-commands that work on files or send a server a single request.
func dataCommands(stdout, stderr io.Writer) []*cobra.Command {
	return []*cobra.Command{checkCommand(stdout, stderr), importCommand(stdout, stderr), exportCommand(stdout, stderr),
		backupCommand(stdout, stderr), restoreCommand(stdout, stderr), archiveCommand(stdout, stderr), pingCommand(stdout)}
}

// run runs the program and returns the exit code. The server runs until a signal or SHUTDOWN ends it.
func run(args []string, stdout, stderr io.Writer, signals <-chan os.Signal) int {
	if len(args) == 1 {
		switch args[0] {
		case "-v", "--version":
			fmt.Fprintf(stdout, "atomredis v=%s redis=%s go=%s bits=%d\n", version.Number, version.Redis,
				strings.TrimPrefix(runtime.Version(), "go"), strconv.IntSize)
			return 0
		case "-h", "--help":
			fmt.Fprint(stdout, usage)
			return 0
		}
	}
	onData := append(dataCommands(stdout, stderr), serveCommand(stdout, signals))
	isOnData := func(c *cobra.Command) bool { return c.Name() == args[0] }
	if len(args) > 0 && slices.ContainsFunc(onData, isOnData) {
		if args[0] != serveName {
			signal.Reset() // a signal ends the process at once, and harms no data
		}
		return cli.Run(context.Background(), args, os.Stdin, stdout, stderr, onData...)
	}
	if len(args) > 0 && slices.Contains(cli.Names, args[0]) {
		if args[0] == cli.Interactive {
			signal.Reset(os.Interrupt) // the sub-command handles it, at its prompt too
		}
		ctx, cancel := context.WithCancelCause(context.Background())
		defer cancel(nil)
		go func() {
			for ctx.Err() == nil {
				select {
				case sig := <-signals:
					if sig != syscall.SIGHUP { // the command survives its terminal
						cancel(fmt.Errorf("stopped by a signal (%s)", sig))
					}
				case <-ctx.Done():
				}
			}
		}()
		return cli.Run(ctx, args, os.Stdin, stdout, stderr, onData...)
	}
	var meant string
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		if _, err := os.Stat(args[0]); errors.Is(err, os.ErrNotExist) {
			meant = nearest.Question(args[0], commandNames(onData))
		}
	}
	if err := serve(args, stdout, stderr, signals); err != nil {
		fmt.Fprintf(stderr, "atomredis: %v%s\n", err, meant)
		if exit, ok := errors.AsType[cli.ExitError](withCode(err)); ok {
			return exit.Code
		}
		return 1
	}
	return 0
}

// commandNames returns the names of all sub-commands: those of given and of package cli.
func commandNames(given []*cobra.Command) (names []string) {
	for _, c := range given {
		names = append(names, c.Name())
	}
	for _, name := range cli.Names {
		if !strings.HasPrefix(name, "_") { // the others are for completion scripts
			names = append(names, name)
		}
	}
	return names
}
