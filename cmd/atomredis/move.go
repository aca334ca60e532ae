package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
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
	"github.com/atomredis/atomredis/persist"
	"github.com/atomredis/atomredis/persist/disk"
	"github.com/atomredis/atomredis/persist/rdb"
	"github.com/atomredis/atomredis/server"
)

// The sub-commands that import and export data.

// importCommand fills an empty data directory from files of a Redis, or of a spiderq.
func importCommand(stdout, stderr io.Writer) *cobra.Command {
	return &cobra.Command{Use: "import FILE | --spiderq FILE [redis.conf] [--dir DIR] [--directive value ...]",
		Short: "read a file of a Redis into an empty data directory",
		Long: `Reads an RDB file or an append-only file (the file or its directory) of a Redis into the directory that the
directive dir names, which must be empty. With --spiderq the file is a snapshot of a spiderq.

The exit code is 3 if the end of the file could not be read and was left out.`,
		Example: `  atomredis import dump.rdb --dir ./data
  atomredis import --spiderq snapshot --dir ./data --spiderq-queue q`,
		DisableFlagParsing: true, ValidArgsFunction: cli.CompleteDirectives,
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case asksForHelp(args):
				return c.Help()
			case len(args) > 1 && args[0] == "--spiderq":
				return importSpiderq(args[1], args[2:], stdout, stderr)
			case len(args) == 0 || strings.HasPrefix(args[0], "-"):
				return cli.Usagef("usage: %s", c.UseLine())
			}
			return importData(args[0], args[1:], stdout, stderr)
		}}
}

// asksForHelp reports whether the arguments of a command that parses them itself ask for help.
func asksForHelp(args []string) bool {
	return len(args) == 1 && (args[0] == "--help" || args[0] == "-h")
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
		return err
	}
	if left := srv.LeftOut(); left != "" {
		fmt.Fprintf(stdout, "%s has been read into %s, but not all of it\n", file, set.Files.Dir)
		return cli.ExitError{Code: exitIncomplete, Err: errors.New(left)}
	}
	_, err = fmt.Fprintf(stdout, "%s has been read into %s\n", file, set.Files.Dir)
	return err
}

// exitIncomplete is the exit code of an import that has stored the readable part of a file without its end.
const exitIncomplete = 3

// exportCommand writes the data of a stopped server to a file that a Redis loads.
func exportCommand(stdout, stderr io.Writer) *cobra.Command {
	return &cobra.Command{Use: "export --rdb FILE | --aof FILE [redis.conf] [--dir DIR] [--directive value ...]",
		Short: "write the stored data to a file that a Redis loads",
		Long: `Writes the data in the directory that the directive dir names, whose server must not run, to a file that a Redis
loads: an RDB file or an append-only file. If there are search indexes, it must be a Redis with the query engine.`,
		Example:            "  atomredis export --rdb dump.rdb --dir ./data",
		DisableFlagParsing: true, ValidArgsFunction: completeExport,
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case asksForHelp(args):
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
	srv, set, err := offline(options, stderr, bar, source{})
	if err != nil {
		return err
	}
	if err := srv.Start(); err != nil {
		return errors.Join(err, srv.Close())
	}
	write := srv.WriteRDBWithModules
	if form == "--aof" {
		write = srv.WriteAOF
	}
	if err := errors.Join(files.Replace(file, write), srv.Close()); err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "%s has been written from %s\n", file, set.Files.Dir)
	return err
}

// source says what data an offline server starts from.
type source struct {
	file  string // file of a Redis to import; "" for none
	empty bool   // the directory must have no data
}

// offline returns a server for the data in a directory that does not listen; bar, on stderr, shows the progress. The
// directory must have data unless from says otherwise.
func offline(args []string, stderr io.Writer, bar *progress.Bar, from source) (*server.Server, *config.Settings, error) {
	conf := config.NewConfig()
	if err := conf.LoadArgs(args); err != nil {
		return nil, nil, err
	}
	conf.ListenNowhere()
	set := conf.Get()
	if !set.Durable() {
		return nil, nil, errors.New("the configuration stores nothing: set appendonly or save")
	}
	exists := persist.Exists(disk.System, set.Files.Dir)
	switch {
	case from.empty && exists:
		return nil, nil, fmt.Errorf("there is data in %s already", set.Files.Dir)
	case !from.empty && from.file == "" && !exists:
		return nil, nil, fmt.Errorf("there is no data in %s", set.Files.Dir)
	case from.file != "":
		if err := openable(from.file); err != nil {
			return nil, nil, err
		}
	}
	log := slog.New(slog.NewTextHandler(bar.Around(stderr), &slog.HandlerOptions{ReplaceAttr: nameLevel}))
	srv, err := server.New(conf, log, server.Options{Import: from.file, Progress: bar.Show})
	return srv, set, err
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
	c := &cobra.Command{Use: "backup DIR", Short: "write all data of a running server to a file",
		Long: `Writes all data of a running server, atomredis or Redis, at one instant to DIR/dump.rdb. The file replaces an
older one when it is complete.`,
		Example: "  atomredis backup /var/backups/redis -h db.example.org",
		Args:    cli.Arguments(1, 1), ValidArgsFunction: completeDirs,
		RunE: func(_ *cobra.Command, args []string) error { return backup(args[0], o, stdout, stderr) }}
	o.flags(c)
	return c
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
