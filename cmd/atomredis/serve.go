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

// instance is one of the servers of the process, of which there is usually one.
type instance struct {
	conf *config.Config
	log  *appLog
	srv  *server.Server
	exit []func() // what is done when it has ended, the last first
}

// newInstance makes a server, which does not run yet. What it logs has the attributes of label, too.
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
		// The loops have processors of the scheduler to themselves, so that what runs beside them need not wait for them,
		// nor they for it.
		runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + set.Threads.Loops)
	}
	if endpoint := set.Registered[tracing.Directive]; endpoint != "" {
		exporter, err := tracing.New(endpoint, in.log.Logger)
		if err != nil {
			return in, fmt.Errorf("%s: %w", tracing.Directive, err)
		}
		in.exit = append(in.exit, func() { exporter.Close() }) // what cannot be exported is logged
		options.Slow = exporter.Slow
	}
	in.srv, err = server.New(conf, in.log.Logger, options)
	return in, err
}

// start has the server serve clients.
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

// cleanUp does what is to be done when the server has ended.
func (in *instance) cleanUp() {
	for i := len(in.exit) - 1; i >= 0; i-- {
		in.exit[i]()
	}
}

// ends ends the server, as what has come from the signal, if one did, is to end it.
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
	signal.Ignore(syscall.SIGPIPE) // the reader of the log may end first
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
	// On a terminal a bar takes the place of lines of the log.
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

// makeDir makes the directory of the data, if there is none. The data is its owner's alone. A directory that exists keeps
// its permissions, and what is made in it is private. undo removes a directory that was made, unless there is something
// in it by now.
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

// dirError says, as Redis does, why the server cannot work in its directory.
func dirError(set *config.Settings, err error) error {
	return fmt.Errorf("Can't chdir to '%s': %s", set.Files.Dir, files.Reason(err))
}

const serveName = "serve"

// serveCommand runs several servers in one process.
func serveCommand(stdout io.Writer, signals <-chan os.Signal) *cobra.Command {
	return &cobra.Command{Use: serveName + " FILE [FILE ...]", Short: "run a server for each configuration file, in one process",
		Long: `Runs a server for each configuration file, in one process: servers of several shards on one machine, for
instance. Each needs a dir, a port, and what else it listens on, of its own; relative paths count from the working directory.
They log to their log files, or to standard output with their port. SHUTDOWN ends one of them, a signal all; the process ends
with the last one.`,
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

// serveAll runs servers until a signal ends them, or clients have ended all of them. ready is called when all serve.
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
	quit := make(chan struct{}) // closed by the signal that ends all
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
				signal.Reset(syscall.SIGINT, syscall.SIGTERM) // a second one ends the process at once
				by, ending = sig, true
				supervisor.stopping()
				close(quit)
				continue
			}
			supervisor.reloading()
			for _, in := range all {
				in.log.Info("looking at files again", "signal", sig.String())
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

// maxMemoryOf is within how many bytes servers are to keep their data, 0 if one of them has no limit.
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

// usedMemoryOf is how many bytes the data of servers takes.
func usedMemoryOf(all []*instance) (sum int64) {
	for _, in := range all {
		sum += in.srv.UsedMemory()
	}
	return sum
}

// pidFile returns where the number of the process is written, "" for nowhere.
func pidFile(process *config.ProcessSettings) string {
	if process.PidFile == "" && process.Daemonize {
		return daemonPidFile
	}
	return process.PidFile
}

// shutdownFlags returns how a signal ends the server.
func shutdownFlags(conf *config.Config, sig os.Signal) config.ShutdownFlags {
	if sig == syscall.SIGINT {
		return conf.Get().Process.ShutdownOnSigint
	}
	return conf.Get().Process.ShutdownOnSigterm
}
