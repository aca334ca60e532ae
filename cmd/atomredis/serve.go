package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/atomredis/atomredis/cmd/atomredis/internal/cli"
	"github.com/atomredis/atomredis/cmd/atomredis/internal/progress"
	"github.com/atomredis/atomredis/cmd/atomredis/internal/tracing"
	"github.com/atomredis/atomredis/internal/config"
	"github.com/atomredis/atomredis/internal/files"
	"github.com/atomredis/atomredis/internal/version"
	"github.com/atomredis/atomredis/server"
)

// instance is a server of the process, which usually has one.
type instance struct {
	conf *config.Config
	log  *appLog
	srv  *server.Server
	exit []func() // cleanups after the server has ended, in reverse order
}

// newInstance makes a server that does not run yet. Its log lines have the attributes label.
func newInstance(conf *config.Config, stdout io.Writer, options server.Options, label ...any) (in *instance, err error) {
	in = &instance{conf: conf}
	defer func() {
		if err != nil {
			in.cleanUp()
		}
	}()
	set := conf.Get()
	noTCP := set.Network.Port == 0 && set.TLS.Port == 0 || len(set.Network.Bind) == 0
	if len(options.Listeners) == 0 && set.Network.UnixSocket == "" && noTCP {
		return in, errors.New("configured to listen nowhere: set port and bind, or unixsocket")
	}
	if in.log, err = openLog(conf, stdout); err != nil {
		return in, fmt.Errorf("logfile: %w", err)
	}
	in.exit = append(in.exit, in.log.close)
	in.log.Logger = in.log.With(label...)
	if names := conf.WithoutEffect(); len(names) > 0 {
		in.log.Info("some directives of the configuration have no effect here", "directives", strings.Join(names, " "))
	}
	for _, file := range set.Commands.Modules {
		in.log.Warn("a module is not loaded: docs/compatibility.md lists the commands of modules that are built in", "file", file)
	}
	options.RDBFile, options.SpareProcessors = true, !strings.Contains(os.Getenv("GODEBUG"), "asyncpreemptoff=1")
	if options.SpareProcessors {
		// Each loop gets a processor of the scheduler (GOMAXPROCS) in addition, so that loops and other goroutines do
		// not wait for each other.
		runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + set.Threads.Loops)
	}
	if endpoint := set.Registered[tracing.Directive]; endpoint != "" {
		exporter, err := tracing.New(endpoint, in.log.Logger)
		if err != nil {
			return in, fmt.Errorf("%s: %w", tracing.Directive, err)
		}
		in.exit = append(in.exit, func() { exporter.Close() }) // New logs failures of exports
		options.Slow = exporter.Slow
	}
	in.srv, err = server.New(conf, in.log.Logger, options)
	return in, err
}

// start makes the server accept clients.
func (in *instance) start() error {
	if err := in.srv.Start(); err != nil {
		return err
	}
	var addrs []string
	for _, a := range in.srv.Addrs() {
		addrs = append(addrs, a.String())
	}
	if file := pidFile(&in.conf.Get().Process); file != "" {
		if err := os.WriteFile(file, []byte(strconv.Itoa(os.Getpid())+"\n"), 0o644); err != nil {
			in.log.Warn("cannot write the pid file", "error", err)
		} else {
			in.exit = append(in.exit, func() { os.Remove(file) })
		}
	}
	in.log.Info("Ready to accept connections", "version", version.Number, "pid", os.Getpid(), "addresses",
		strings.Join(addrs, " "))
	return nil
}

// cleanUp runs the cleanups after the server has ended.
func (in *instance) cleanUp() {
	for i := len(in.exit) - 1; i >= 0; i-- {
		in.exit[i]()
	}
}

// ends ends the server, after a signal in the way that the configuration has for it.
func (in *instance) ends(sig os.Signal) error {
	end := in.srv.Close
	if sig != nil {
		in.log.Info("shutting down", "signal", sig.String())
		if shutdownFlags(in.conf, sig)&config.ShutdownNoSave != 0 {
			end = in.srv.Abandon
		}
	}
	err := end()
	in.log.Info("stopped")
	return err
}

// serve runs the server, in the background if the configuration says so.
func serve(args []string, stdout, stderr io.Writer, signals <-chan os.Signal) (err error) {
	signal.Ignore(syscall.SIGPIPE) // the reader of the log may end before the server
	parent := newDaemonParent()
	defer func() { parent.tell(err) }()
	conf, stdin, err := loadConfig(args)
	if err != nil {
		return err
	}
	set := conf.Get()
	supervisor := newSupervisor(set.Process.Supervised)
	if parent == nil && inBackground(set, supervisor) {
		return startDaemon(args, stdin)
	}
	undo, err := makeDir(set)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			undo()
		}
	}()
	if err := os.Chdir(set.Files.Dir); err != nil && (set.Durable() || !errors.Is(err, os.ErrNotExist) || conf.IsSet("dir")) {
		return dirError(set, err)
	}
	options := server.Options{Supervised: supervisor.kind}
	// On a terminal a bar replaces log lines.
	if set.Log.File == "" && !set.Log.SyslogEnabled && progress.Terminal(stderr) {
		bar := progress.New(stderr)
		defer bar.Done()
		options.Progress, stdout = bar.Show, bar.Around(stdout)
	}
	if options.Listeners, err = inheritedSockets(conf); err != nil {
		return err
	}
	in, err := newInstance(conf, stdout, options)
	if err != nil {
		return err
	}
	return serveAll([]*instance{in}, supervisor, signals, func() { parent.tell(nil) })
}

// makeDir creates the data directory if it does not exist, readable by the owner alone. An existing directory keeps its
// permissions; files in it are private. undo removes a directory that makeDir has created, unless it has files by now.
func makeDir(set *config.Settings) (undo func(), err error) {
	if !set.Durable() {
		return func() {}, nil
	}
	err = os.Mkdir(set.Files.Dir, 0o700)
	if errors.Is(err, os.ErrExist) {
		return func() {}, nil
	}
	if err != nil {
		return nil, dirError(set, err)
	}
	return func() { os.Remove(set.Files.Dir) }, nil
}

// dirError returns Redis's error for a directory that the server cannot use.
func dirError(set *config.Settings, err error) error {
	return fmt.Errorf("Can't chdir to '%s': %s", set.Files.Dir, files.Reason(err))
}

const serveName = "serve"

// serveCommand runs several servers in one process.
func serveCommand(stdout io.Writer, signals <-chan os.Signal) *cobra.Command {
	return &cobra.Command{Use: serveName + " FILE [FILE ...]", Short: "run a server for each configuration file, in one process",
		Long: `Runs a server for each configuration file, in one process, for example servers of several shards on one
machine. Each needs its own dir, port and other addresses; relative paths start at the working directory.
They log to their log files, or to standard output with their ports. SHUTDOWN ends one of them, a signal ends
all; the process ends with the last one.`,
		Example: "  atomredis serve shard1.conf shard2.conf",
		Args:    cli.Arguments(1, -1), DisableFlagsInUseLine: true,
		RunE: func(_ *cobra.Command, files []string) error { return serveFiles(files, stdout, signals) }}
}

// serveFiles runs a server for each configuration file.
func serveFiles(files []string, stdout io.Writer, signals <-chan os.Signal) error {
	signal.Ignore(syscall.SIGPIPE)
	var all []*instance
	kind := config.SupervisedNo
	for _, file := range files {
		in, err := instanceOf(file, stdout)
		if err != nil {
			for _, in := range all {
				in.srv.Close()
				in.cleanUp()
			}
			return fmt.Errorf("%s: %w", file, err)
		}
		all = append(all, in)
		kind = max(kind, in.conf.Get().Process.Supervised)
	}
	return serveAll(all, newSupervisor(kind), signals, func() {})
}

// instanceOf makes the server of a configuration file.
func instanceOf(file string, stdout io.Writer) (*instance, error) {
	conf := config.NewConfig()
	if err := conf.LoadArgsFrom([]string{file}, nil); err != nil {
		return nil, err
	}
	set := conf.Get()
	undo, err := makeDir(set)
	if err != nil {
		return nil, err
	}
	var label []any
	if set.Log.File == "" {
		label = []any{"port", set.Network.Port}
	}
	in, err := newInstance(conf, stdout, server.Options{}, label...)
	if err != nil {
		undo()
		return nil, err
	}
	in.exit = append(in.exit, undo)
	return in, nil
}

// serveAll runs servers until a signal ends them, or SHUTDOWN has ended each of them. It calls ready when all accept
// clients.
func serveAll(all []*instance, supervisor *supervisor, signals <-chan os.Signal, ready func()) error {
	ended := make(chan struct{})
	defer close(ended)
	go tuneCollector(ended, func() int64 { return maxMemoryOf(all) }, func() int64 { return usedMemoryOf(all) })
	for i, in := range all {
		if err := in.start(); err != nil {
			for _, before := range all[:i] {
				err = errors.Join(err, before.ends(nil))
			}
			for _, in := range all {
				in.cleanUp()
			}
			return err
		}
	}
	ready()
	if err := supervisor.ready(); err != nil {
		all[0].log.Warn("cannot tell the service manager that the server is ready", "error", err.Error())
	}
	quit := make(chan struct{}) // closed by the signal that ends all servers
	var by os.Signal
	done := make(chan struct{})
	errs := make([]error, len(all))
	var running sync.WaitGroup
	for i, in := range all {
		running.Go(func() {
			defer in.cleanUp()
			select {
			case <-in.srv.Done():
				errs[i] = in.ends(nil)
			case <-quit:
				errs[i] = in.ends(by)
			}
		})
	}
	go func() {
		running.Wait()
		close(done)
	}()
	for ending := false; ; {
		select {
		case sig := <-signals:
			if ending {
				continue
			}
			if sig != syscall.SIGHUP {
				signal.Reset(syscall.SIGINT, syscall.SIGTERM) // a second signal ends the process at once
				by, ending = sig, true
				supervisor.stopping()
				close(quit)
				continue
			}
			supervisor.reloading()
			for _, in := range all {
				in.log.Info("reopening the log file, rereading certificates and the ACL file", "signal", sig.String())
				in.log.reopen()
				in.srv.RereadFiles()
			}
			supervisor.reloaded()
		case <-done:
			if !ending {
				supervisor.stopping()
			}
			return errors.Join(errs...)
		}
	}
}

// maxMemoryOf returns the sum of the servers' maxmemory in bytes, 0 if one of them has no limit.
func maxMemoryOf(all []*instance) (sum int64) {
	for _, in := range all {
		n := int64(in.conf.Get().Memory.Max)
		if n == 0 {
			return 0
		}
		sum += n
	}
	return sum
}

// usedMemoryOf returns the bytes of data of all servers.
func usedMemoryOf(all []*instance) (sum int64) {
	for _, in := range all {
		sum += in.srv.UsedMemory()
	}
	return sum
}

// pidFile returns the path of the pid file, "" for none.
func pidFile(process *config.ProcessSettings) string {
	if process.PidFile == "" && process.Daemonize {
		return daemonPidFile
	}
	return process.PidFile
}

// shutdownFlags returns the configured flags for a shutdown by a signal.
func shutdownFlags(conf *config.Config, sig os.Signal) config.ShutdownFlags {
	if sig == syscall.SIGINT {
		return conf.Get().Process.ShutdownOnSigint
	}
	return conf.Get().Process.ShutdownOnSigterm
}
