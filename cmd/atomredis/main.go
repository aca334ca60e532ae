// Command atomredis is a Redis server. It is started like redis-server: with a configuration file, with options named
// like the directives of such a file, or with both. With the name of a sub-command it is a client of a server, or
// works on data.
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

	"github.com/spf13/cobra"

	"github.com/atomredis/atomredis/cmd/atomredis/internal/cli"
	"github.com/atomredis/atomredis/cmd/atomredis/internal/progress"
	"github.com/atomredis/atomredis/cmd/atomredis/internal/tracing"
	"github.com/atomredis/atomredis/config"
	_ "github.com/atomredis/atomredis/doors/http"
	_ "github.com/atomredis/atomredis/doors/perper-grpc"
	_ "github.com/atomredis/atomredis/doors/perper-ignite"
	_ "github.com/atomredis/atomredis/doors/sentinel"
	_ "github.com/atomredis/atomredis/doors/skein"
	_ "github.com/atomredis/atomredis/doors/spiderq"
	"github.com/atomredis/atomredis/internal/version"
	"github.com/atomredis/atomredis/server"
)

const usage = `Usage: atomredis [redis.conf] [--directive value ...] [-]
       atomredis - (reads the configuration from standard input)
       atomredis check [--repair] DIR (verifies the data that a server has stored there)
       atomredis import FILE [--dir DIR] (reads an RDB file or an append-only file of a Redis into an empty DIR)
       atomredis import --spiderq FILE [--dir DIR] (reads a snapshot of a spiderq)
       atomredis export --rdb FILE | --aof FILE [--dir DIR] (writes a file that a Redis loads)
       atomredis backup DIR [-h host] [-p port] (writes all that a running server has to DIR/dump.rdb)
       atomredis cli [-h host] [-p port] [COMMAND ...] (sends commands to a server, as redis-cli; see atomredis cli --help)
       atomredis ping [-h host] [-p port] (ends with 0 if a server answers)
       atomredis top [-h host] [-p port] (shows what a server is doing; see atomredis top --help)
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

// dataCommands are the sub-commands that work on files, or ask a server one thing, and then end.
func dataCommands(stdout, stderr io.Writer) []*cobra.Command {
	return []*cobra.Command{checkCommand(stdout, stderr), importCommand(stdout, stderr), exportCommand(stdout, stderr),
		backupCommand(stdout, stderr), pingCommand(stdout)}
}

// run is the program; it returns the exit code. The server runs until a signal arrives that ends it, or a client
// shuts it down.
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
	onData := dataCommands(stdout, stderr)
	isOnData := func(c *cobra.Command) bool { return c.Name() == args[0] }
	if len(args) > 0 && slices.ContainsFunc(onData, isOnData) {
		signal.Reset() // a signal ends the process at once, which harms no data
		return cli.Run(context.Background(), args, os.Stdin, stdout, stderr, onData...)
	}
	if len(args) > 0 && slices.Contains(cli.Names, args[0]) {
		if args[0] == cli.Interactive {
			signal.Reset(os.Interrupt) // which ends the program, or what is running at its prompt
		}
		ctx, cancel := context.WithCancelCause(context.Background())
		defer cancel(nil)
		go func() {
			for ctx.Err() == nil {
				select {
				case sig := <-signals:
					if sig != syscall.SIGHUP { // it outlives the terminal that it was started from
						cancel(fmt.Errorf("stopped by a signal (%s)", sig))
					}
				case <-ctx.Done():
				}
			}
		}()
		return cli.Run(ctx, args, os.Stdin, stdout, stderr, onData...)
	}
	if err := serve(args, stdout, stderr, signals); err != nil {
		fmt.Fprintln(stderr, "atomredis:", err)
		return 1
	}
	return 0
}

// serve runs the server, in the background if the configuration says so.
func serve(args []string, stdout, stderr io.Writer, signals <-chan os.Signal) (err error) {
	signal.Ignore(syscall.SIGPIPE) // whoever reads the log may go away
	parent := newDaemonParent()
	defer func() { parent.tell(err) }()
	conf, stdin, err := loadConfig(args)
	if err != nil {
		return err
	}
	set := conf.Get()
	supervisor := newSupervisor(set.Supervised)
	if parent == nil && inBackground(set, supervisor) {
		return startDaemon(args, stdin)
	}
	if set.Durable() {
		// The data is its owner's alone. A directory that exists keeps its permissions, and what is made in it is private.
		if err := os.Mkdir(set.Dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
			return fmt.Errorf("dir: %w", err)
		}
	}
	if err := os.Chdir(set.Dir); err != nil && (set.Durable() || !errors.Is(err, os.ErrNotExist) || conf.IsSet("dir")) {
		return fmt.Errorf("dir: %w", err)
	}
	// On a terminal a bar takes the place of lines of the log.
	var shown func(step, unit string, done, total int64)
	if set.LogFile == "" && !set.SyslogEnabled && progress.Terminal(stderr) {
		bar := progress.New(stderr)
		defer bar.Done()
		shown, stdout = bar.Show, bar.Around(stdout)
	}
	log, err := openLog(conf, stdout)
	if err != nil {
		return fmt.Errorf("logfile: %w", err)
	}
	defer log.close()
	if names := conf.WithoutEffect(); len(names) > 0 {
		log.Info("some directives of the configuration have no effect here", "directives", strings.Join(names, " "))
	}
	options := server.Options{RDBFile: true, Progress: shown, Supervised: supervisor.kind,
		SpareProcessors: !strings.Contains(os.Getenv("GODEBUG"), "asyncpreemptoff=1")}
	if options.SpareProcessors {
		// The loops have processors of the scheduler to themselves, so that what runs beside them need not wait for them,
		// nor they for it.
		runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + set.IOThreads)
	}
	if options.Listeners, err = inheritedSockets(conf); err != nil {
		return err
	}
	if endpoint := set.Registered[tracing.Directive]; endpoint != "" {
		exporter, err := tracing.New(endpoint, log.Logger)
		if err != nil {
			return fmt.Errorf("%s: %w", tracing.Directive, err)
		}
		defer exporter.Close() // what cannot be exported is logged
		options.Slow = exporter.Slow
	}
	srv, err := server.New(conf, log.Logger, options)
	if err != nil {
		return err
	}
	ended := make(chan struct{})
	defer close(ended)
	go tuneCollector(ended, func() int64 { return int64(conf.Get().MaxMemory) })
	if err := srv.Start(); err != nil {
		return err
	}
	var addrs []string
	for _, a := range srv.Addrs() {
		addrs = append(addrs, a.String())
	}
	if len(addrs) == 0 {
		return errors.Join(errors.New("configured to listen nowhere: set port and bind, or unixsocket"), srv.Close())
	}
	if file := pidFile(set); file != "" {
		if err := os.WriteFile(file, []byte(strconv.Itoa(os.Getpid())+"\n"), 0o644); err != nil {
			log.Warn("cannot write the pid file", "error", err)
		} else {
			defer os.Remove(file)
		}
	}
	log.Info("ready to accept connections", "version", version.Number, "pid", os.Getpid(), "addresses",
		strings.Join(addrs, " "))
	parent.tell(nil)
	if err := supervisor.ready(); err != nil {
		log.Warn("cannot tell the service manager that the server is ready", "error", err.Error())
	}
	end := waitForEnd(srv, conf, log, supervisor, signals)
	supervisor.stopping()
	err = end()
	log.Info("stopped")
	return err
}

// pidFile returns where the number of the process is written, "" for nowhere.
func pidFile(set *config.Settings) string {
	if set.PidFile == "" && set.Daemonize {
		return daemonPidFile
	}
	return set.PidFile
}

// waitForEnd returns when a signal ends the server, or a client has; end is how it closes.
func waitForEnd(srv *server.Server, conf *config.Config, log *appLog, supervisor *supervisor,
	signals <-chan os.Signal) (end func() error) {
	for {
		select {
		case sig := <-signals:
			if sig == syscall.SIGHUP {
				log.Info("looking at files again", "signal", sig.String())
				supervisor.reloading()
				log.reopen()
				srv.RereadFiles()
				supervisor.reloaded()
				continue
			}
			log.Info("shutting down", "signal", sig.String())
			signal.Reset(syscall.SIGINT, syscall.SIGTERM) // a second one ends the process at once
			if shutdownFlags(conf, sig)&config.ShutdownNoSave != 0 {
				return srv.Abandon
			}
		case <-srv.Done():
		}
		return srv.Close
	}
}

// shutdownFlags returns how a signal ends the server.
func shutdownFlags(conf *config.Config, sig os.Signal) config.ShutdownFlags {
	if sig == syscall.SIGINT {
		return conf.Get().ShutdownOnSigint
	}
	return conf.Get().ShutdownOnSigterm
}
