// Package shell is a client of a Redis server for people and shell scripts, like redis-cli: it sends commands and
// writes the replies.
package shell

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/atomredis/atomredis/resp"
)

// Shell sends commands to one server, or to the servers of a cluster. It connects when it sends a command, and again if
// the connection has ended before. A command whose reply is lost is not repeated.
type Shell struct {
	Address Address
	Format  Format
	Out     *bufio.Writer
	Err     io.Writer
	// Pushes makes the shell write messages that no command asked for.
	Pushes bool
	// Cluster makes the shell follow MOVED and ASK.
	Cluster bool
	// Clock measures durations; nil means the system's clock.
	Clock Clock

	conn     *conn
	tx       bool // within MULTI
	docs     docs
	terminal bool // the user types lines on a terminal
}

// ErrReply says that a command has failed; its error reply has been written.
var ErrReply = errors.New("a command failed")

// Close ends the connection.
func (s *Shell) Close() {
	if s.conn != nil {
		s.conn.close()
		s.conn = nil
	}
	s.tx = false
}

// connect ensures a connection that is ready for commands.
func (s *Shell) connect(ctx context.Context) error {
	for s.conn != nil {
		select {
		case r, ok := <-s.conn.replies:
			if !ok {
				s.Close() // the connection has ended meanwhile
			} else if s.Pushes {
				s.write(r)
			}
			continue
		default:
			return nil
		}
	}
	c, err := s.Address.dial(ctx)
	if err != nil {
		return err
	}
	s.conn = newConn(c)
	for _, args := range s.greeting() {
		r, err := s.ask(ctx, args)
		if err != nil {
			s.Close()
			return err
		}
		if r.isError() { // commands that need it will fail too
			fmt.Fprintf(s.Err, "%s failed: %s\n", args[0], r.text)
		}
	}
	return nil
}

// greeting returns the commands with which a connection begins.
func (s *Shell) greeting() (list [][]string) {
	a := &s.Address
	if a.Password != "" && a.User != "" {
		list = append(list, []string{"AUTH", a.User, a.Password})
	} else if a.Password != "" {
		list = append(list, []string{"AUTH", a.Password})
	}
	if a.RESP3 {
		list = append(list, []string{"HELLO", "3"})
	}
	if a.DB != 0 {
		list = append(list, []string{"SELECT", strconv.Itoa(a.DB)})
	}
	return list
}

// next waits for a reply. If ctx ends first, it closes the connection.
func (s *Shell) next(ctx context.Context) (reply, error) {
	select {
	case r, ok := <-s.conn.replies:
		if !ok {
			err := s.conn.err
			s.Close()
			return reply{}, err
		}
		return r, nil
	case <-ctx.Done():
		s.Close()
		return reply{}, context.Cause(ctx)
	}
}

// ask sends a command and returns its reply. Pushes that come before it are written.
func (s *Shell) ask(ctx context.Context, args []string) (reply, error) {
	if err := s.conn.send(args); err != nil {
		s.Close()
		return reply{}, err
	}
	for {
		r, err := s.next(ctx)
		if err != nil || r.kind != '>' || subscribes(args) {
			return r, err
		}
		if s.Pushes {
			s.write(r)
		}
	}
}

// write writes a reply and flushes the output.
func (s *Shell) write(r reply) error {
	s.Out.Write(s.Format.appendReply(nil, r))
	return s.Out.Flush()
}

// subscribes reports whether a command makes the server send messages until the connection ends.
func subscribes(args []string) bool {
	switch strings.ToLower(args[0]) {
	case "subscribe", "psubscribe", "ssubscribe":
		return true
	}
	return false
}

// isText reports whether the reply of a command is text for people, to be written unchanged.
func isText(args []string) bool {
	second := ""
	if len(args) > 1 {
		second = strings.ToLower(args[1])
	}
	switch strings.ToLower(args[0]) {
	case "info", "lolwut":
		return true
	case "client":
		return second == "list" || second == "info"
	case "cluster":
		return len(args) == 2 && (second == "nodes" || second == "info")
	case "debug":
		return second == "htstats" || second == "htstats-key"
	case "latency":
		return second == "doctor" || second == "graph"
	case "memory":
		return second == "doctor" || second == "malloc-stats"
	}
	return false
}

// Do runs a command and writes its reply. MONITOR and commands that subscribe run until ctx ends, which is not an
// error. ErrReply says that the reply is an error.
func (s *Shell) Do(ctx context.Context, args []string) error {
	if err := s.connect(ctx); err != nil {
		return err
	}
	r, err := s.ask(ctx, args)
	if err == nil && s.Cluster {
		r, err = s.follow(ctx, args, r)
	}
	if err == errClosed && strings.EqualFold(args[0], "shutdown") {
		return nil // it replies only if the server does not end
	}
	if err != nil {
		return err
	}
	if isText(args) {
		s.Out.Write(appendRaw(nil, r))
		err = s.Out.Flush()
	} else if r.isError() {
		err = s.write(r)
	}
	switch {
	case err != nil:
		return err
	case r.isError():
		return ErrReply
	case isText(args):
		return nil
	}
	monitors := strings.EqualFold(args[0], "monitor")
	if subscribes(args) && s.Format != Raw {
		s.Out.WriteString("Reading messages... (press Ctrl-C to quit)\n")
	}
	s.note(args)
	err = s.write(r)
	for err == nil && (monitors || subscribes(args)) {
		if r, err = s.next(ctx); err == nil {
			err = s.write(r)
		} else if ctx.Err() != nil {
			return nil
		}
	}
	return err
}

// mostRedirects limits how often a command is redirected.
const mostRedirects = 5

// follow sends a command to the server that r, a MOVED or ASK, names, and returns the reply. The connection stays with
// that server. Any other r is returned.
func (s *Shell) follow(ctx context.Context, args []string, r reply) (reply, error) {
	for range mostRedirects {
		words := strings.Fields(string(r.text))
		if !r.isError() || len(words) != 3 || words[0] != "MOVED" && words[0] != "ASK" {
			break
		}
		host, text, err := net.SplitHostPort(words[2])
		port, portErr := strconv.Atoi(text)
		if err != nil || portErr != nil {
			break
		}
		s.Close()
		if s.Address.Port, s.Address.Socket = port, ""; host != "" { // without a host it is that of the current server
			s.Address.Host = host
		}
		if s.Format != Raw {
			fmt.Fprintf(s.Out, "-> Redirected to slot [%s] located at %s\n", words[1], s.Address.String())
		}
		if err := s.connect(ctx); err != nil {
			return r, err
		}
		if words[0] == "ASK" {
			if _, err := s.ask(ctx, []string{"ASKING"}); err != nil {
				return r, err
			}
		}
		if r, err = s.ask(ctx, args); err != nil {
			return r, err
		}
	}
	return r, nil
}

// note records the effect of an executed command on the connection.
func (s *Shell) note(args []string) {
	switch strings.ToLower(args[0]) {
	case "multi":
		s.tx = true
	case "exec", "discard":
		s.tx = false
	case "select":
		if n, err := strconv.Atoi(args[len(args)-1]); err == nil && !s.tx {
			s.Address.DB = n
		}
	case "hello":
		s.Address.RESP3 = len(args) > 1 && args[1] == "3" || len(args) == 1 && s.Address.RESP3
	case "reset":
		s.Address.DB, s.Address.RESP3, s.tx = 0, false, false
	case "auth":
		s.Address.User, s.Address.Password = "", args[len(args)-1]
		if len(args) == 3 {
			s.Address.User = args[1]
		}
	}
}

// Repeat runs a command n times, or until ctx ends if n is negative, with an interval between the runs. It continues
// after error replies and returns the last one.
func (s *Shell) Repeat(ctx context.Context, args []string, n int, interval time.Duration) (failed error) {
	for ; n != 0; n-- {
		err := s.Do(ctx, args)
		if err != nil && !errors.Is(err, ErrReply) {
			return err
		}
		if err != nil {
			failed = err
		}
		if interval > 0 && n != 1 && s.sleep(ctx, interval) != nil {
			return failed
		}
	}
	return failed
}

// Run runs each line of in as a command. A line may begin with a number of repetitions. Run continues after error
// replies, and then returns ErrReply.
func (s *Shell) Run(ctx context.Context, in io.Reader) (failed error) {
	lines := bufio.NewReaderSize(in, 64<<10)
	for {
		line, readErr := lines.ReadString('\n')
		ended, err := s.line(ctx, line)
		if errors.Is(err, ErrReply) {
			failed, err = err, nil
		}
		if err != nil || ended || readErr == io.EOF {
			return errors.Join(failed, err)
		}
		if readErr != nil {
			return readErr
		}
	}
}

// line runs a typed line, and reports whether it is the last one.
func (s *Shell) line(ctx context.Context, line string) (last bool, err error) {
	split, err := resp.SplitArgs([]byte(strings.TrimRight(line, "\r\n")), nil)
	if err != nil {
		s.Out.WriteString("Invalid argument(s)\n")
		return false, errors.Join(ErrReply, s.Out.Flush())
	}
	args := make([]string, len(split))
	for i, a := range split {
		args[i] = string(a)
	}
	repeat := 1
	if len(args) > 1 {
		if n, err := strconv.Atoi(args[0]); err == nil && n > 0 {
			repeat, args = n, args[1:]
		}
	}
	if len(args) == 0 {
		return false, nil
	}
	switch word := strings.ToLower(args[0]); {
	case word == "quit" || word == "exit":
		return true, nil
	case word == "connect" && len(args) == 3:
		s.Close()
		if s.Address.Port, err = strconv.Atoi(args[2]); err != nil {
			return false, err
		}
		s.Address.Host, s.Address.Socket = args[1], ""
		return false, s.connect(ctx)
	case word == "clear" && len(args) == 1:
		if s.terminal {
			s.Out.WriteString("\x1b[H\x1b[2J")
		}
		return false, s.Out.Flush()
	case word == "help" || word == "?":
		s.help(ctx, args[1:])
		return false, s.Out.Flush()
	}
	return false, s.Repeat(ctx, args, repeat, 0)
}

// prompt returns the prompt before a line.
func (s *Shell) prompt() string {
	if s.conn == nil {
		return "not connected> "
	}
	p := s.Address.String()
	if s.Address.DB != 0 {
		p += "[" + strconv.Itoa(s.Address.DB) + "]"
	}
	if s.tx {
		p += "(TX)"
	}
	return p + "> "
}

// Scan writes the names of all keys, one per line.
func (s *Shell) Scan(ctx context.Context, o Sampling) error {
	if err := s.connect(ctx); err != nil {
		return err
	}
	return s.scan(ctx, o, func(keys []reply) error {
		for _, key := range keys {
			if err := s.write(key); err != nil {
				return err
			}
		}
		return nil
	})
}

// Eval runs a script. The args before a comma are its keys.
func (s *Shell) Eval(ctx context.Context, script string, args []string) error {
	keys := len(args)
	command := []string{"EVAL", script, ""}
	for i, arg := range args {
		if arg == "," && keys == len(args) {
			keys = i
			continue
		}
		command = append(command, arg)
	}
	command[2] = strconv.Itoa(keys)
	return s.Do(ctx, command)
}

// Pipe sends commands in RESP without waiting for their replies, and counts the replies. After the end of in the server
// may be silent for the timeout at most; 0 means no limit.
func (s *Shell) Pipe(ctx context.Context, in io.Reader, timeout time.Duration) error {
	if err := s.connect(ctx); err != nil {
		return err
	}
	mark := "end of " + s.Address.String() + " " + strconv.FormatInt(time.Now().UnixNano(), 36)
	sent := make(chan error, 1)
	go func(c net.Conn) {
		_, err := io.Copy(c, in)
		if err == nil {
			_, err = c.Write(append([]byte("\r\n"), appendCommand(nil, []string{"ECHO", mark})...))
		}
		sent <- err
	}(s.conn.Conn)
	replies, failed := 0, 0
	var silence <-chan time.Time
	var timer *time.Timer
	allSent := func(err error) error {
		if err != nil {
			return err
		}
		sent = nil
		s.Out.WriteString("All data transferred. Waiting for the last reply...\n")
		return s.Out.Flush()
	}
	for {
		select {
		case err := <-sent:
			if err := allSent(err); err != nil {
				return err
			}
			if timeout > 0 {
				timer = time.NewTimer(timeout)
				silence = timer.C
			}
		case r, ok := <-s.conn.replies:
			if !ok {
				return fmt.Errorf("after %d replies: %w", replies, s.conn.err)
			}
			if timer != nil {
				timer.Reset(timeout)
			}
			if bytes.Equal(r.text, []byte(mark)) {
				if sent != nil { // the reply was faster
					if err := allSent(<-sent); err != nil {
						return err
					}
				}
				fmt.Fprintf(s.Out, "Last reply received from server.\nerrors: %d, replies: %d\n", failed, replies)
				if failed > 0 {
					return errors.Join(ErrReply, s.Out.Flush())
				}
				return s.Out.Flush()
			}
			replies++
			if r.isError() {
				failed++
				fmt.Fprintf(s.Err, "%s\n", r.text)
			}
		case <-silence:
			return fmt.Errorf("no reply for %s: errors: %d, replies: %d", timeout, failed, replies)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
