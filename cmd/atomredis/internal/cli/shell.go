package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"github.com/spf13/cobra"

	"github.com/atomredis/atomredis/cmd/atomredis/internal/progress"
	"github.com/atomredis/atomredis/cmd/atomredis/internal/shell"
	"github.com/atomredis/atomredis/internal/files"
)

// shellFlags are the flags of "cli", named as those of redis-cli.
type shellFlags struct {
	address               shell.Address
	tls                   shell.TLS
	useTLS, resp2, resp3  bool
	raw, noRaw, csv, json bool
	uri, pushes           string
	fromStdin, exitCode   bool
	repeat                int
	interval              float64
	pipe, scan            bool
	pattern, eval         string
	count, pipeTimeout    int
	bigKeys, memKeys      bool
	memSamples            int
	hotKeys               bool
	latency, history      bool
	stat                  bool
	rdb                   string
	noAuthWarning         bool
	cluster               bool
}

const memSamplesFlag = "memkeys-samples"

func (a *app) shell() *cobra.Command {
	var f shellFlags
	c := &cobra.Command{Use: "cli [flags] [COMMAND [ARGUMENT ...]]", Short: "send commands to a server, as redis-cli does",
		Long: `Sends a command to a server, atomredis or Redis, and writes the reply. Without a command it reads commands: from a
terminal with editing, a history, completion and hints, otherwise one from each line of the input. The options are those
of redis-cli, as far as they are implemented.

The exit code is 1 if the server cannot be reached, if a command of the input fails, or with -e if the command fails.

The history is in the file that REDISCLI_HISTFILE names, or ~/.atomredis_history, without the lines that set or
show passwords.`,
		Example: `  atomredis cli SET greeting hello
  atomredis cli -h db.example.org -p 6380 --tls --cacert ca.crt
  atomredis cli --scan --pattern 'user:*'
  atomredis cli --bigkeys
  atomredis cli --stat -i 5
  atomredis cli --rdb dump.rdb
  printf 'SET a 1\nINCR a\n' | atomredis cli --no-raw
  atomredis cli --pipe < commands.resp
  atomredis cli -x SET photo < photo.jpg`,
		Args: cobra.ArbitraryArgs, DisableFlagsInUseLine: true,
		RunE: func(c *cobra.Command, args []string) error { return a.runShell(c, &f, args) }}
	flags := c.Flags()
	flags.SetInterspersed(false) // flags after the command belong to the command
	flags.StringVarP(&f.address.Host, "host", "h", "127.0.0.1", "host of the server")
	flags.IntVarP(&f.address.Port, "port", "p", 6379, "port of the server")
	flags.StringVarP(&f.address.Socket, "socket", "s", "", "Unix socket of the server, instead of host and port")
	flags.StringVarP(&f.address.Password, "pass", "a", "", "password (default: the environment variable REDISCLI_AUTH)")
	flags.StringVar(&f.address.User, "user", "", "user that the password belongs to")
	flags.BoolVar(&f.noAuthWarning, "no-auth-warning", false, "do not warn of passwords on the command line")
	flags.StringVarP(&f.uri, "uri", "u", "", "redis://[[user:]password@]host[:port][/db], or rediss:// for TLS")
	flags.IntVarP(&f.address.DB, "db", "n", 0, "number of the database")
	flags.BoolVarP(&f.resp2, "resp2", "2", false, "use RESP2")
	flags.BoolVarP(&f.resp3, "resp3", "3", false, "use RESP3")
	flags.BoolVar(&f.useTLS, "tls", false, "use TLS")
	flags.StringVar(&f.tls.ServerName, "sni", "", "name that the certificate of the server must have (default: the host)")
	flags.StringVar(&f.tls.CAFile, "cacert", "", "file with certificates of authorities for the server's certificate")
	flags.StringVar(&f.tls.CADir, "cacertdir", "", "directory with such files")
	flags.StringVar(&f.tls.CertFile, "cert", "", "file with the certificate of this client")
	flags.StringVar(&f.tls.KeyFile, "key", "", "file with the private key of that certificate")
	flags.BoolVar(&f.tls.Insecure, "insecure", false, "accept any certificate of the server")
	flags.BoolVarP(&f.cluster, "cluster", "c", false, "follow MOVED and ASK of a cluster")
	flags.BoolVar(&f.raw, "raw", false, "write replies without their types (default if the output is no terminal)")
	flags.BoolVar(&f.noRaw, "no-raw", false, "write replies with their types")
	flags.BoolVar(&f.csv, "csv", false, "write replies as CSV")
	flags.BoolVar(&f.json, "json", false, "write replies as JSON; implies -3 unless -2 is given")
	flags.StringVar(&f.pushes, "show-pushes", "", "write messages of the server that no command asked for: yes or no "+
		"(default: on a terminal)")
	flags.BoolVarP(&f.fromStdin, "stdin", "x", false, "append the input as the last argument")
	flags.BoolVarP(&f.exitCode, "exit-code", "e", false, "exit with 1 if the command fails")
	flags.IntVarP(&f.repeat, "repeat", "r", 1, "how often to run the command (-1: for ever)")
	flags.Float64VarP(&f.interval, "interval", "i", 0, "seconds between the runs of -r, the lines of --stat and those of "+
		"--latency-history, and after 100 SCAN commands")
	flags.BoolVar(&f.pipe, "pipe", false, "send the input, which is in RESP, and count replies")
	flags.IntVar(&f.pipeTimeout, "pipe-timeout", 30, "seconds that --pipe waits for a reply after the input (0: forever)")
	flags.BoolVar(&f.scan, "scan", false, "write the names of all keys")
	flags.BoolVar(&f.bigKeys, "bigkeys", false, "find the keys of each type with the most elements")
	flags.BoolVar(&f.memKeys, "memkeys", false, "find the keys of each type that take the most memory")
	flags.IntVar(&f.memSamples, memSamplesFlag, 0, "--memkeys with so many sampled elements of each key (0: all)")
	flags.BoolVar(&f.hotKeys, "hotkeys", false, "find the keys that are used most; needs a maxmemory-policy of LFU")
	flags.StringVar(&f.pattern, "pattern", "", "names of keys for --scan, --bigkeys, --memkeys and --hotkeys")
	flags.IntVar(&f.count, "count", 0, "COUNT of the SCAN commands of --scan and the like")
	flags.BoolVar(&f.latency, "latency", false, "measure how long PING takes, until an interrupt; one line if the output is "+
		"no terminal")
	flags.BoolVar(&f.history, "latency-history", false, "as --latency, with a new line every 15 seconds, or as -i says")
	flags.BoolVar(&f.stat, "stat", false, "write figures of the server every second, or as -i says")
	flags.StringVar(&f.rdb, "rdb", "", "write all data of the server to an RDB `file` (-: to the output)")
	flags.StringVar(&f.eval, "eval", "", "run the script in this file; arguments before a comma are keys")
	return c
}

func (a *app) runShell(c *cobra.Command, f *shellFlags, args []string) error {
	s := shell.Shell{Address: f.address, Out: a.out, Err: c.ErrOrStderr()}
	defer s.Close()
	if f.memKeys = f.memKeys || c.Flags().Changed(memSamplesFlag); !c.Flags().Changed(memSamplesFlag) {
		f.memSamples = -1 // the server's default
	}
	if err := f.complete(&s, a.terminal); err != nil {
		return err
	}
	ctx := c.Context()
	interval := time.Duration(f.interval * float64(time.Second))
	keys := shell.Sampling{Pattern: f.pattern, Count: f.count, Pause: interval}
	if f.bigKeys || f.memKeys || f.hotKeys || f.latency || f.history || f.stat || f.rdb != "" {
		// After an interrupt they report the results so far.
		var stop context.CancelFunc
		ctx, stop = signal.NotifyContext(ctx, os.Interrupt)
		defer stop()
	}
	switch {
	case f.pipe:
		return s.Pipe(ctx, a.in, time.Duration(f.pipeTimeout)*time.Second)
	case f.scan:
		return s.Scan(ctx, keys)
	case f.bigKeys:
		return s.BigKeys(ctx, keys)
	case f.memKeys:
		return s.MemKeys(ctx, keys, f.memSamples)
	case f.hotKeys:
		return s.HotKeys(ctx, keys)
	case f.latency, f.history:
		return s.Latency(ctx, interval, f.history)
	case f.stat:
		return s.Stat(ctx, interval)
	case f.rdb != "":
		return a.dump(ctx, &s, f.rdb)
	case f.eval != "":
		script, err := os.ReadFile(f.eval)
		if err != nil {
			return err
		}
		return f.exit(s.Eval(ctx, string(script), args))
	case f.fromStdin:
		last, err := io.ReadAll(a.in)
		if err != nil {
			return err
		}
		args = append(args, string(last))
	case len(args) == 0 && progress.Terminal(a.in) && a.terminal:
		return s.Interactive(ctx)
	case len(args) == 0:
		return s.Run(ctx, a.in)
	}
	return f.exit(s.Repeat(ctx, args, f.repeat, interval))
}

// dump writes the server's data to an RDB file, or to the output for "-". It replaces an existing file when the new one
// is complete.
func (a *app) dump(ctx context.Context, s *shell.Shell, file string) error {
	bar := progress.New(s.Err)
	defer bar.Done()
	show := func(written, size int64) { bar.Show("receiving", progress.Bytes, written, size) }
	var size int64
	write := func(w io.Writer) (err error) {
		size, err = s.Dump(ctx, w, show)
		return err
	}
	var err error
	if info, statErr := os.Stat(file); file == "-" {
		err = write(a.out)
	} else if statErr == nil && !info.Mode().IsRegular() { // a device or a pipe
		err = writeInto(file, write)
	} else {
		err = files.Replace(file, write)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(bar.Around(s.Err), "%d bytes have been written to %s\n", size, file)
	return err
}

// writeInto calls write with an existing file.
func writeInto(file string, write func(w io.Writer) error) error {
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}

// exit ignores the error reply of a command unless -e is set.
func (f *shellFlags) exit(err error) error {
	if errors.Is(err, shell.ErrReply) && !f.exitCode {
		return nil
	}
	return err
}

// complete applies the flags that depend on each other to the shell.
func (f *shellFlags) complete(s *shell.Shell, terminal bool) error {
	if f.useTLS {
		s.Address.TLS = &f.tls
	}
	if f.uri != "" {
		if err := s.Address.ParseURI(f.uri); err != nil {
			return Usagef("%w", err)
		}
		if s.Address.TLS != nil {
			s.Address.TLS = &f.tls
		}
	}
	if s.Address.Port < 1 || s.Address.Port > 65535 {
		return Usagef("invalid port %d", s.Address.Port)
	}
	if s.Address.Password != "" && !f.noAuthWarning {
		fmt.Fprintln(s.Err, "Warning: a password on the command line can be seen by others; use REDISCLI_AUTH")
	}
	if s.Address.Password == "" {
		s.Address.Password = os.Getenv("REDISCLI_AUTH")
	}
	s.Cluster = f.cluster
	s.Address.RESP3 = f.resp3 || f.json && !f.resp2
	switch {
	case f.json:
		s.Format = shell.JSON
	case f.csv:
		s.Format = shell.CSV
	case f.noRaw, terminal && !f.raw:
		s.Format = shell.Plain
	}
	switch f.pushes {
	case "":
		s.Pushes = terminal
	case "yes", "y":
		s.Pushes = true
	case "no", "n":
	default:
		return Usagef("--show-pushes is yes or no")
	}
	return nil
}
