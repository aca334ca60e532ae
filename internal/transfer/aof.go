package transfer

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/persist/rdb"
	"github.com/atomredis/atomredis/resp"
)

// aof repeats commands. A transaction is executed only if its end is in the file.
func (l *load) aof(r io.Reader, last bool) error {
	commands := resp.NewCommandReader(r)
	l.by.Select(0)
	l.db = 0
	var queue [][][]byte // of the transaction that is open
	open := false
	whole := int64(0) // length of the part that has been repeated
	for {
		args, err := commands.Next()
		switch {
		case err == io.EOF && open, err == io.ErrUnexpectedEOF:
			if !last || !l.files.Config.Get().Files.AOFLoadTruncated {
				return fmt.Errorf("the file ends in the middle of command %d", commands.Count+1)
			}
			// A killed Redis leaves an incomplete command after complete ones. A file without complete commands is
			// something else.
			if l.commands == 0 && !l.preamble {
				return errors.New("the file ends in the middle of its first command or transaction: nothing of it can be read")
			}
			l.leftOut = fmt.Sprintf("the end of the append-only file is left out, %d bytes of a command or transaction that is cut", commands.Received-whole)
			l.files.Log.Warn(l.leftOut, "commands", l.commands)
			return nil
		case err == io.EOF && l.commands == 0 && !l.preamble && commands.Received > 0:
			return errors.New("there is no command in the file")
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
		switch {
		case args[0][0] == '#': // a remark, such as a time
		case command.EqualFold(args[0], "multi"):
			if open {
				return fmt.Errorf("command %d: a transaction within a transaction", commands.Count)
			}
			open = true
		case command.EqualFold(args[0], "exec"):
			for _, q := range queue {
				if err = l.command(q); err != nil {
					break
				}
			}
			queue, open = nil, false
		case open:
			queue = append(queue, resp.CloneArgs(args))
		default:
			err = l.command(args)
		}
		if err != nil {
			return fmt.Errorf("command %d: %w", commands.Count, err)
		}
		if !open {
			whole = commands.Consumed
		}
	}
}

// command repeats a command. It leaves out unknown commands and values of unknown types. But if the first command of a
// file is unknown, the file is no append-only file.
func (l *load) command(args [][]byte) error {
	l.lock()
	l.commands++
	if command.EqualFold(args[0], "select") && len(args) == 2 {
		l.db, _ = strconv.Atoi(string(args[1])) // a wrong number is an error of the command
	}
	var err error
	if !l.look {
		if err = l.by.Command(args); err == nil {
			return nil
		}
	}
	known := l.by.Knows(args)
	switch {
	case !known && l.commands == 1 && !l.preamble:
		return cmp.Or(err, fmt.Errorf("%.40q is no command", args[0]))
	case !known && !l.look && !l.skip:
		return fmt.Errorf("%w (import-skip-unsupported yes leaves it out)", err)
	case !known:
		var key []byte
		if len(args) > 1 {
			key = args[1]
		}
		return l.leaveOutKey(l.db, key, fmt.Sprintf("the command %.40q", args[0]))
	}
	if typ := l.restores(args); typ != "" {
		return l.leaveOutKey(l.db, args[1], typ)
	}
	return err
}

// restores returns the type of the value in a RESTORE if that type does not exist here, otherwise "".
func (l *load) restores(args [][]byte) string {
	if len(args) <= 3 || !command.EqualFold(args[0], "restore") && !command.EqualFold(args[0], "restore-asking") {
		return ""
	}
	_, err := rdb.Restore(args[3], l.limits())
	if unknown, ok := errors.AsType[*rdb.UnknownType](err); ok {
		return typeName(unknown)
	}
	return ""
}
