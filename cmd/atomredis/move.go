package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/atomredis/atomredis/config"
	"github.com/atomredis/atomredis/engine/hashes"
	"github.com/atomredis/atomredis/engine/lists"
	"github.com/atomredis/atomredis/engine/sets"
	"github.com/atomredis/atomredis/engine/streams"
	"github.com/atomredis/atomredis/engine/zsets"
	"github.com/atomredis/atomredis/persist"
	"github.com/atomredis/atomredis/persist/disk"
	"github.com/atomredis/atomredis/persist/rdb"
	"github.com/atomredis/atomredis/server"
)

// The sub-commands that move data in and out. They return exit codes as check does.

// importData fills an empty data directory from files of a Redis.
func importData(args []string, stdout, stderr io.Writer) int {
	if len(args) > 1 && args[0] == "--spiderq" {
		return importSpiderq(args[1], args[2:], stdout, stderr)
	}
	if len(args) == 0 || strings.HasPrefix(args[0], "-") {
		fmt.Fprintln(stderr, "Usage: atomredis import FILE | --spiderq FILE [redis.conf] [--dir DIR] [--directive value ...]")
		return 2
	}
	srv, set, err := offline(args[1:], stderr, source{file: args[0]})
	if err != nil {
		fmt.Fprintln(stderr, "atomredis import:", err)
		return 1
	}
	err = srv.Start()
	if errors.Is(err, server.ErrNotEmpty) {
		err = fmt.Errorf("there is data in %s already", set.Dir)
	}
	if err = errors.Join(err, srv.Close()); err != nil {
		fmt.Fprintln(stderr, "atomredis import:", err)
		return 1
	}
	if left := srv.LeftOut(); left != "" {
		fmt.Fprintf(stdout, "%s has been read into %s, but not all of it\n", args[0], set.Dir)
		fmt.Fprintln(stderr, "atomredis import:", left)
		return exitIncomplete
	}
	fmt.Fprintf(stdout, "%s has been read into %s\n", args[0], set.Dir)
	return 0
}

// exitIncomplete is the exit code of an import that has stored what could be read, and left out the end of the file.
const exitIncomplete = 3

// exportData writes the data of a server that is not running to a file that a Redis loads.
func exportData(args []string, stdout, stderr io.Writer) int {
	if len(args) < 2 || args[0] != "--rdb" && args[0] != "--aof" {
		fmt.Fprintln(stderr, "Usage: atomredis export --rdb FILE | --aof FILE [redis.conf] [--dir DIR] [--directive value ...]")
		return 2
	}
	file := args[1]
	err := func() error {
		srv, set, err := offline(args[2:], stderr, source{})
		if err != nil {
			return err
		}
		if err := srv.Start(); err != nil {
			return errors.Join(err, srv.Close())
		}
		write := srv.WriteRDB
		if args[0] == "--aof" {
			write = srv.WriteAOF
		}
		if err := errors.Join(replaceFile(file, write), srv.Close()); err != nil {
			return err
		}
		fmt.Fprintf(stdout, "%s has been written from %s\n", file, set.Dir)
		return nil
	}()
	if err != nil {
		fmt.Fprintln(stderr, "atomredis export:", err)
		return 1
	}
	return 0
}

// source says what a server is made of that is not for clients.
type source struct {
	file  string // of a Redis, to be imported; "" if none is
	empty bool   // there must be no data
}

// offline returns a server for the data in a directory that listens nowhere. There must be data unless from says
// otherwise.
func offline(args []string, stderr io.Writer, from source) (*server.Server, *config.Settings, error) {
	conf := config.NewConfig()
	if err := conf.LoadArgs(args); err != nil {
		return nil, nil, err
	}
	conf.ListenNowhere()
	set := conf.Get()
	if !set.Durable() {
		return nil, nil, errors.New("the configuration says that nothing is stored: neither appendonly nor save")
	}
	exists := persist.Exists(disk.FS, set.Dir)
	switch {
	case from.empty && exists:
		return nil, nil, fmt.Errorf("there is data in %s already", set.Dir)
	case !from.empty && from.file == "" && !exists:
		return nil, nil, fmt.Errorf("there is no data in %s", set.Dir)
	case from.file != "":
		if err := openable(from.file); err != nil {
			return nil, nil, err
		}
	}
	if err := os.MkdirAll(set.Dir, 0o700); err != nil {
		return nil, nil, err
	}
	log := slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{ReplaceAttr: nameLevel}))
	srv, err := server.New(conf, log, server.Options{Import: from.file})
	return srv, set, err
}

// openable returns why a file or directory cannot be read, before anything is made for it.
func openable(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	return f.Close()
}

// replaceFile has write write a file, which takes the place of one of that name when it is whole and on the disk.
func replaceFile(name string, write func(w io.Writer) error) error {
	f, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".tmp*") // for its owner alone
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 1<<20)
	if err = write(w); err == nil {
		err = w.Flush()
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	dir, err := os.Open(filepath.Dir(name))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// backup writes everything that a running server has to dump.rdb in a directory.
func backup(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("atomredis backup", flag.ContinueOnError)
	flags.SetOutput(stderr)
	host := flags.String("h", "127.0.0.1", "`host` of the server")
	port := flags.Int("p", 6379, "`port` of the server")
	socket := flags.String("s", "", "Unix `socket` of the server, instead of host and port")
	password := flags.String("a", os.Getenv("REDISCLI_AUTH"),
		"`password` (default: the environment variable REDISCLI_AUTH)")
	user := flags.String("user", "", "`user` that the password belongs to")
	flags.Usage = func() {
		fmt.Fprintln(stderr, "Usage: atomredis backup DIR [-h host] [-p port] [-s socket] [-a password] [--user user]")
		flags.PrintDefaults()
	}
	var dirs []string // the flags may stand before the directory or after it
	for {
		if err := flags.Parse(args); err != nil {
			return 2
		}
		if args = flags.Args(); len(args) == 0 {
			break
		}
		dirs, args = append(dirs, args[0]), args[1:]
	}
	if len(dirs) != 1 {
		flags.Usage()
		return 2
	}
	err := func() error {
		network, addr := "tcp", net.JoinHostPort(*host, strconv.Itoa(*port))
		if *socket != "" {
			network, addr = "unix", *socket
		}
		conn, err := net.DialTimeout(network, addr, backupTimeout)
		if err != nil {
			return err
		}
		defer conn.Close()
		if err := os.MkdirAll(dirs[0], 0o700); err != nil {
			return err
		}
		file := filepath.Join(dirs[0], "dump.rdb")
		b := backupClient{conn: conn, in: bufio.NewReaderSize(conn, 1<<20)}
		if err := replaceFile(file, func(w io.Writer) error { return b.receive(w, *user, *password) }); err != nil {
			return err
		}
		fmt.Fprintf(stdout, "%s: %d bytes, %d keys\n", file, b.bytes, b.keys)
		return nil
	}()
	if err != nil {
		fmt.Fprintln(stderr, "atomredis backup:", err)
		return 1
	}
	return 0
}

// backupTimeout is how long the server may be silent: it may have to make other copies first.
const backupTimeout = 10 * time.Minute

// backupClient is a connection over which a server sends everything.
type backupClient struct {
	conn  net.Conn
	in    *bufio.Reader
	bytes int64
	keys  int
}

// Read implements io.Reader with the timeout.
func (b *backupClient) Read(p []byte) (int, error) {
	if err := b.conn.SetReadDeadline(time.Now().Add(backupTimeout)); err != nil {
		return 0, err
	}
	return b.in.Read(p)
}

// command sends a command and returns the first line of the reply.
func (b *backupClient) command(args ...string) (string, error) {
	request := fmt.Sprintf("*%d\r\n", len(args))
	for _, a := range args {
		request += fmt.Sprintf("$%d\r\n%s\r\n", len(a), a)
	}
	if err := b.conn.SetDeadline(time.Now().Add(backupTimeout)); err != nil {
		return "", err
	}
	if _, err := io.WriteString(b.conn, request); err != nil {
		return "", err
	}
	for {
		line, err := b.in.ReadString('\n')
		if err != nil {
			return "", err
		}
		switch line = strings.TrimRight(line, "\r\n"); {
		case strings.HasPrefix(line, "-"):
			return "", errors.New(line[1:])
		case line != "": // an empty one says that the server is still there
			return line, nil
		}
	}
}

// receive writes what the server has to w. It reads it too: what is accepted can be restored.
func (b *backupClient) receive(out io.Writer, user, password string) error {
	auth := []string{"AUTH", user, password}
	if user == "" {
		auth = []string{"AUTH", password}
	}
	if password != "" {
		if _, err := b.command(auth...); err != nil {
			return err
		}
	}
	for _, option := range [][2]string{{"capa", "eof"}, {"rdb-only", "1"}} {
		if _, err := b.command("REPLCONF", option[0], option[1]); err != nil {
			return err
		}
	}
	line, err := b.command("SYNC")
	if err != nil {
		return err
	}
	// A server that knows the length tells it, and one that does not sends a mark, which it repeats behind the end.
	mark, marked := strings.CutPrefix(line, "$EOF:")
	data := &io.LimitedReader{R: b, N: math.MaxInt64}
	if !marked {
		if data.N, err = strconv.ParseInt(strings.TrimPrefix(line, "$"), 10, 64); err != nil || data.N < 0 {
			return fmt.Errorf("the server sends %q instead of a length", line)
		}
	}
	file := &fileWriter{out: out, behind: len(mark)}
	from := io.TeeReader(data, file)
	r := rdb.NewReader(from, rdb.Limits{Hash: hashes.Limits{}, Set: sets.Limits{}, ZSet: zsets.DefaultLimits,
		List: lists.DefaultLimit, Stream: streams.DefaultLimits})
	for {
		item, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		if _, ok := item.(*rdb.Key); ok {
			b.keys++
		}
	}
	missing := int64(len(mark) - len(r.Rest()))
	if !marked && data.N > 0 || missing < 0 {
		return errors.New("the server sends more than an RDB file")
	}
	if _, err := io.CopyN(io.Discard, from, missing); err != nil {
		return err
	}
	if string(file.end) != mark {
		return errors.New("the file of the server does not end where it should")
	}
	b.bytes = file.written
	return nil
}

// fileWriter writes all but the last bytes, which are behind the file.
type fileWriter struct {
	out     io.Writer
	behind  int    // how many
	end     []byte // what is not written
	written int64
}

func (f *fileWriter) Write(p []byte) (int, error) {
	f.end = append(f.end, p...)
	n := len(f.end) - f.behind
	if n <= 0 {
		return len(p), nil
	}
	if _, err := f.out.Write(f.end[:n]); err != nil {
		return 0, err
	}
	f.written += int64(n)
	f.end = f.end[:copy(f.end, f.end[n:])]
	return len(p), nil
}
