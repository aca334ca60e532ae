package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/atomredis/atomredis/cmd/atomredis/internal/cli"
	"github.com/atomredis/atomredis/cmd/atomredis/internal/link"
	"github.com/atomredis/atomredis/cmd/atomredis/internal/progress"
	"github.com/atomredis/atomredis/engine/hashes"
	"github.com/atomredis/atomredis/engine/lists"
	"github.com/atomredis/atomredis/engine/sets"
	"github.com/atomredis/atomredis/engine/streams"
	"github.com/atomredis/atomredis/engine/zsets"
	"github.com/atomredis/atomredis/internal/config"
	"github.com/atomredis/atomredis/internal/files"
	"github.com/atomredis/atomredis/internal/transfer"
	"github.com/atomredis/atomredis/persist"
	"github.com/atomredis/atomredis/persist/disk"
	"github.com/atomredis/atomredis/persist/rdb"
	"github.com/atomredis/atomredis/server"
)

// The sub-commands that import and export data.

// importCommand fills an empty data directory from files of a Redis, or of a spiderq.
func importCommand(stdout, stderr io.Writer) *cobra.Command {
	return &cobra.Command{
		Use:   "import [--check] [--skip-unsupported] FILE | --spiderq FILE [redis.conf] [--dir DIR] [--directive value ...]",
		Short: "read a file of a Redis into an empty data directory",
		Long: `Reads an RDB file or an append-only file (the file or its directory) of a Redis into the directory that the
directive dir names, which must be empty. With --spiderq the file is a snapshot of a spiderq.

A file that has values of types that do not exist here, because they belong to modules, is refused. With --skip-unsupported
these values are left out and the rest is stored; import-report.tsv in the data directory has a line for each.
--check only reads the file: it writes the keys that would be left out, and what else there is.

The exit code is 3 if the end of the file could not be read and was left out, 4 if values were left out, and 5 if the
file was refused because of them.`,
		Example: `  atomredis import dump.rdb --dir ./data
  atomredis import --check dump.rdb
  atomredis import --spiderq snapshot --dir ./data --spiderq-queue q`,
		DisableFlagParsing: true, ValidArgsFunction: cli.CompleteDirectives,
		RunE: func(c *cobra.Command, args []string) error {
			args, check := without(args, "--check")
			args, skip := without(args, "--skip-unsupported")
			if skip {
				args = append(args, "--import-skip-unsupported", "yes")
			}
			switch {
			case cli.AsksForHelp(args):
				return c.Help()
			case check && len(args) > 0 && !strings.HasPrefix(args[0], "-"):
				return checkFile(args[0], args[1:], stdout, stderr)
			case len(args) > 1 && args[0] == "--spiderq":
				return importSpiderq(args[1], args[2:], stdout, stderr)
			case len(args) == 0 || strings.HasPrefix(args[0], "-"):
				return cli.Usagef("usage: %s", c.UseLine())
			}
			return importData(args[0], args[1:], stdout, stderr)
		}}
}

// without returns the arguments without a word, and whether it was there.
func without(args []string, word string) (rest []string, found bool) {
	rest = slices.DeleteFunc(slices.Clone(args), func(arg string) bool { return arg == word })
	return rest, len(rest) < len(args)
}

func importData(file string, options []string, stdout, stderr io.Writer) error {
	bar := progress.New(stderr)
	defer bar.Done()
	stdout = bar.Around(stdout)
	srv, set, err := offline(options, stderr, bar, source{file: file})
	if err != nil {
		return err
	}
	err = srv.Start()
	if errors.Is(err, server.ErrNotEmpty) {
		err = fmt.Errorf("there is data in %s already", set.Files.Dir)
	}
	if err = errors.Join(err, srv.Close()); err != nil {
		return withCode(err)
	}
	left, unsupported := srv.LeftOut(), srv.Unsupported()
	if left == "" && unsupported.Keys == 0 {
		_, err = fmt.Fprintf(stdout, "%s has been read into %s\n", file, set.Files.Dir)
		return err
	}
	fmt.Fprintf(stdout, "%s has been read into %s, but not all of it\n", file, set.Files.Dir)
	return incomplete(left, unsupported)
}

// Exit codes of import, and of a server that imports a file as it starts.
const (
	exitIncomplete = 3 // the end of the file was left out
	exitLeftOut    = 4 // values of types that do not exist here were left out
	exitRefused    = 5 // the file was refused because it has such values
)

// incomplete returns the error of an import that has stored what could be read. left is about the end of the file, "" if
// it was read.
func incomplete(left string, unsupported *transfer.Unsupported) error {
	if unsupported.Keys == 0 {
		return cli.ExitError{Code: exitIncomplete, Err: errors.New(left)}
	}
	err := fmt.Errorf("%d keys have been left out (%s), and %s has a line for each", unsupported.Keys, unsupported,
		unsupported.Report)
	if left != "" {
		err = errors.Join(err, errors.New(left))
	}
	return cli.ExitError{Code: exitLeftOut, Err: err}
}

// withCode gives the error that refuses a file because of its values the exit code that says so.
func withCode(err error) error {
	if _, ok := errors.AsType[*transfer.UnsupportedError](err); ok {
		return cli.ExitError{Code: exitRefused, Err: err}
	}
	return err
}

// checkFile reads a file as import does, and stores nothing. It ends with the exit code that import would end with.
func checkFile(file string, options []string, stdout, stderr io.Writer) error {
	bar := progress.New(stderr)
	defer bar.Done()
	stdout = bar.Around(stdout)
	conf := config.NewConfig()
	if err := conf.LoadArgs(options); err != nil {
		return err
	}
	conf.ListenNowhere()
	skip := conf.Get().Files.SkipUnsupported
	for _, d := range [...][2]string{{"save", ""}, {"appendonly", "no"}} { // the server is to have no data directory
		if err := conf.Set(d[0], d[1], false); err != nil {
			return err
		}
	}
	srv, err := server.New(conf, logTo(bar.Around(stderr)), server.Options{Progress: bar.Show})
	if err != nil {
		return err
	}
	defer srv.Discard()
	checked, err := srv.CheckFile(file, func(db int, key []byte, typ string) {
		fmt.Fprintf(stdout, "%s in database %d: %s\n", strconv.Quote(string(key)), db, typ)
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "%s: %d keys, %d expired keys, %d functions, %d commands\n", file, checked.Keys, checked.Expired,
		checked.Functions, checked.Commands)
	unsupported := &checked.Unsupported
	switch {
	case unsupported.Keys == 0 && checked.LeftOut == "":
		return nil
	case unsupported.Keys == 0:
		return cli.ExitError{Code: exitIncomplete, Err: errors.New(checked.LeftOut)}
	case skip:
		return cli.ExitError{Code: exitLeftOut, Err: fmt.Errorf("import would leave out %d keys (%s)", unsupported.Keys, unsupported)}
	}
	return withCode(&transfer.UnsupportedError{Unsupported: *unsupported})
}

// exportCommand writes the data of a stopped server to a file that a Redis loads.
func exportCommand(stdout, stderr io.Writer) *cobra.Command {
	return &cobra.Command{Use: "export --rdb FILE | --aof FILE [redis.conf] [--dir DIR] [--directive value ...]",
		Short: "write the stored data to a file that a Redis loads",
		Long: `Writes the data in the directory that the directive dir names, whose server must not run, to a file that a Redis
loads: an RDB file or an append-only file. If there are search indexes, it must be a Redis with the query engine. Nothing
is written if there are keys that no Redis reads: these are listed.`,
		Example:            "  atomredis export --rdb dump.rdb --dir ./data",
		DisableFlagParsing: true, ValidArgsFunction: completeExport,
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case cli.AsksForHelp(args):
				return c.Help()
			case len(args) < 2 || args[0] != "--rdb" && args[0] != "--aof":
				return cli.Usagef("usage: %s", c.UseLine())
			}
			return exportData(args[0], args[1], args[2:], stdout, stderr)
		}}
}

// completeExport completes the arguments of export; the first one selects the kind of file.
func completeExport(c *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return []string{"--rdb", "--aof"}, cobra.ShellCompDirectiveNoFileComp
	}
	return cli.CompleteDirectives(c, args, toComplete)
}

func exportData(form, file string, options []string, stdout, stderr io.Writer) error {
	bar := progress.New(stderr)
	defer bar.Done()
	stdout = bar.Around(stdout)
	return writeStored(file, options, stdout, stderr, bar, func(srv *server.Server) error {
		write := srv.WriteRDBWithModules
		if form == "--aof" {
			write = srv.WriteAOF
		}
		if err := refuseUnreadable(srv, stdout); err != nil {
			return err
		}
		return files.Replace(file, write)
	})
}

// writeStored starts a server with the stored data, without listening, and calls write to write a file.
func writeStored(file string, options []string, stdout, stderr io.Writer, bar *progress.Bar, write func(*server.Server) error) error {
	srv, set, err := offline(options, stderr, bar, source{})
	if err != nil {
		return err
	}
	if err := srv.Start(); err != nil {
		return errors.Join(err, srv.Close())
	}
	if err = errors.Join(write(srv), srv.Close()); err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "%s has been written from %s\n", file, set.Files.Dir)
	return err
}

// refuseUnreadable returns an error if there are keys that no Redis reads, which it writes.
func refuseUnreadable(srv *server.Server, stdout io.Writer) error {
	n := 0
	err := srv.Unreadable(func(db int, key, typ string) {
		n++
		fmt.Fprintf(stdout, "%s in database %d: %s\n", strconv.Quote(key), db, typ)
	})
	if err == nil && n > 0 {
		err = fmt.Errorf("%d keys have values that no Redis reads: delete them before the export", n)
	}
	return err
}

// source says what data an offline server starts from.
type source struct {
	file  string // file of a Redis to import; "" for none
	empty bool   // the directory must have no data
	// restore is the data of an archive that the directory, which must have no data, is to have; nil for none.
	restore *restoring
}

// stored reports whether the data is what a stopped server has stored.
func (s *source) stored() bool { return !s.empty && s.file == "" && s.restore == nil }

// offline returns a server for the data in a directory that does not listen; bar, on stderr, shows the progress. The
// directory must have data unless from says otherwise.
func offline(args []string, stderr io.Writer, bar *progress.Bar, from source) (*server.Server, *config.Settings, error) {
	conf := config.NewConfig()
	if err := conf.LoadArgs(args); err != nil {
		return nil, nil, err
	}
	conf.ListenNowhere()
	if err := conf.Set("archive", "", false); err != nil { // what works on stored data adds nothing to the server's archive
		return nil, nil, err
	}
	set := conf.Get()
	if !set.Durable() {
		return nil, nil, errors.New("the configuration stores nothing: set appendonly or save")
	}
	exists := persist.Exists(disk.System, set.Files.Dir)
	switch {
	case (from.empty || from.restore != nil) && exists:
		return nil, nil, fmt.Errorf("there is data in %s already", set.Files.Dir)
	case from.stored() && !exists:
		return nil, nil, fmt.Errorf("there is no data in %s", set.Files.Dir)
	case from.file != "":
		if err := openable(from.file); err != nil {
			return nil, nil, err
		}
	}
	o := server.Options{Import: from.file, Progress: bar.Show, Stopped: from.stored()}
	if from.restore != nil {
		o.Restore, o.Clock = from.restore, from.restore.clock
	}
	srv, err := server.New(conf, logTo(bar.Around(stderr)), o)
	return srv, set, err
}

// logTo returns a log that goes to w.
func logTo(w io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{ReplaceAttr: nameLevel}))
}

// openable returns an error if a file or directory cannot be opened, before anything is created.
func openable(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	return f.Close()
}

// connectOptions select the server.
type connectOptions struct {
	host, socket, password, user string
	port                         int
}

// flags adds the flags for the options to a command.
func (o *connectOptions) flags(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVarP(&o.host, "host", "h", "127.0.0.1", "`host` of the server")
	flags.IntVarP(&o.port, "port", "p", 6379, "`port` of the server")
	flags.StringVarP(&o.socket, "socket", "s", "", "Unix `socket` of the server, instead of host and port")
	flags.StringVarP(&o.password, "pass", "a", "", "`password` (default: the environment variable REDISCLI_AUTH)")
	flags.StringVar(&o.user, "user", "", "`user` that the password belongs to")
}

// dial connects to the server.
func (o *connectOptions) dial(timeout time.Duration) (net.Conn, error) {
	if o.password == "" {
		o.password = os.Getenv("REDISCLI_AUTH")
	}
	network, addr := "tcp", net.JoinHostPort(o.host, strconv.Itoa(o.port))
	if o.socket != "" {
		network, addr = "unix", o.socket
	}
	return net.DialTimeout(network, addr, timeout)
}

// backupCommand writes all data of a running server to dump.rdb in a directory.
func backupCommand(stdout, stderr io.Writer) *cobra.Command {
	var o connectOptions
	var data string
	c := &cobra.Command{Use: "backup DIR", Short: "write all data of a server to a file",
		Long: `Writes all data of a running server, atomredis or Redis, at one instant to DIR/dump.rdb. The file replaces an
older one when it is complete. With --dir it reads the data directory of a server that does not run.`,
		Example: "  atomredis backup /var/backups/redis -h db.example.org\n  atomredis backup /var/backups/redis --dir ./data",
		Args:    cli.Arguments(1, 1), ValidArgsFunction: completeDirs,
		PreRunE: func(c *cobra.Command, _ []string) error {
			if err := c.ValidateFlagGroups(); err != nil {
				return cli.Usagef("%w", err)
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if data != "" {
				return backupStopped(args[0], data, stdout, stderr)
			}
			return backup(args[0], o, stdout, stderr)
		}}
	o.flags(c)
	c.Flags().StringVar(&data, "dir", "", "data `directory` of a stopped server, instead of a running one")
	for _, ofServer := range []string{"host", "port", "socket", "pass", "user"} {
		c.MarkFlagsMutuallyExclusive("dir", ofServer)
	}
	return c
}

// backupStopped writes the data of a stopped server to dump.rdb in a directory.
func backupStopped(dir, data string, stdout, stderr io.Writer) error {
	bar := progress.New(stderr)
	defer bar.Done()
	undo, err := files.MakeDir(dir, 0o700)
	if err != nil {
		return err
	}
	file := filepath.Join(dir, "dump.rdb")
	err = writeStored(file, []string{"--dir", data}, bar.Around(stdout), stderr, bar, func(srv *server.Server) error {
		return files.Replace(file, srv.WriteRDB)
	})
	if err != nil {
		undo()
	}
	return err
}

func backup(dir string, o connectOptions, stdout, stderr io.Writer) error {
	bar := progress.New(stderr)
	defer bar.Done()
	stdout = bar.Around(stdout)
	conn, err := o.dial(backupTimeout)
	if err != nil {
		return err
	}
	defer conn.Close()
	undo, err := files.MakeDir(dir, 0o700)
	if err != nil {
		return err
	}
	l := link.New(conn, backupTimeout)
	file := filepath.Join(dir, "dump.rdb")
	var size int64
	var keys int
	err = files.Replace(file, func(w io.Writer) (err error) {
		size, keys, err = receive(w, l, o, bar)
		return err
	})
	if err != nil {
		undo()
		return err
	}
	_, err = fmt.Fprintf(stdout, "%s: %d bytes, %d keys\n", file, size, keys)
	return err
}

// backupTimeout is how long the server may be silent: it may have to finish other copies first.
const backupTimeout = 10 * time.Minute

// receive writes the server's data to w. It also parses it, so that an accepted file can be restored.
func receive(w io.Writer, l *link.Link, o connectOptions, bar *progress.Bar) (size int64, keys int, err error) {
	if err := l.Auth(o.user, o.password); err != nil {
		return 0, 0, err
	}
	file, _, err := l.RDB()
	if err != nil {
		return 0, 0, err
	}
	out := &countingWriter{out: w}
	from := io.TeeReader(file, out)
	r := rdb.NewReader(from, rdb.Limits{Hash: hashes.Limits{}, Set: sets.Limits{}, ZSet: zsets.DefaultLimits,
		List: lists.DefaultLimit, Stream: streams.DefaultLimits})
	for {
		item, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return 0, 0, err
		}
		if _, ok := item.(*rdb.Key); ok {
			keys++
			bar.Show("receiving keys", "keys", int64(keys), r.Announced)
		}
	}
	behind, err := io.Copy(io.Discard, from)
	if err == nil && (behind > 0 || len(r.Rest()) > 0) {
		err = errors.New("the server sends more than an RDB file")
	}
	return out.n, keys, err
}

// countingWriter counts the bytes that are written.
type countingWriter struct {
	out io.Writer
	n   int64
}

func (c *countingWriter) Write(p []byte) (int, error) {
	n, err := c.out.Write(p)
	c.n += int64(n)
	return n, err
}
