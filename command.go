package atomredis

import (
	"context"
	"encoding"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/atomredis/atomredis/server"
)

// What keeps commands from being executed, or their replies from being given; errors.Is finds them.
var (
	// ErrClosed says that the DB is closed. What a command did that was executed meanwhile may have happened or not.
	ErrClosed = server.ErrClosed
	// ErrKilled says that CLIENT KILL ended the command, or that a subscriber did not take its messages.
	ErrKilled = server.ErrKilled
	// ErrNotDurable says that the journal has failed: what the command did may be lost.
	ErrNotDurable = server.ErrNotDurable
	// ErrNeedsConnection says that the command changes the state of its connection, which Do has none of: use Tx, Subscribe, Database
	// or Dial.
	ErrNeedsConnection = server.ErrNeedsConnection
)

// Args are a command: its name and its arguments.
type Args []any

// Do executes a command without a connection, in the caller's goroutine, and returns its reply. Under appendfsync always the reply
// comes when what it tells is durable.
//
// Arguments may be strings, []byte, integers, floats, booleans (sent as 1 and 0), time.Duration (as nanoseconds), time.Time (as RFC 3339
// with nanoseconds), nil (as the empty string) and encoding.BinaryMarshaler; anything else is an error. They are not kept.
//
// The error is an Error if the reply is one. Blocking commands wait as long as ctx lasts; when it ends they have taken nothing, or
// return what they have taken. Commands that change the state of a connection are refused with ErrNeedsConnection.
func (db *DB) Do(ctx context.Context, args ...any) (Reply, error) {
	e := encoders.Get().(*encoder)
	defer e.release()
	if err := e.add(args); err != nil {
		return Reply{}, err
	}
	d, err := db.srv.Direct(db.number)
	if err != nil {
		return Reply{}, wrap(err)
	}
	defer d.Release()
	if err := d.Run(ctx, e.commands()[0]); err != nil {
		return Reply{}, wrap(err)
	}
	raw, err := d.Flush()
	if err != nil {
		return Reply{}, wrap(err)
	}
	r := Reply{raw}
	return r, r.Err()
}

// DoMany executes commands one after the other, others' commands possibly between them, and returns their replies when all are there.
// Error replies are among them; the error says why there are fewer replies than commands.
func (db *DB) DoMany(ctx context.Context, commands ...Args) ([]Reply, error) {
	e := encoders.Get().(*encoder)
	defer e.release()
	for _, c := range commands {
		if err := e.add(c); err != nil {
			return nil, err
		}
	}
	d, err := db.srv.Direct(db.number)
	if err != nil {
		return nil, wrap(err)
	}
	defer d.Release()
	for _, c := range e.commands() {
		if err = d.Run(ctx, c); err != nil {
			break
		}
	}
	raw, flushErr := d.Flush()
	if err == nil {
		err = flushErr
	}
	replies := make([]Reply, 0, len(commands))
	for len(raw) > 0 {
		r, rest, malformed := nextReply(raw)
		if malformed != nil {
			return replies, malformed
		}
		replies = append(replies, r)
		raw = rest
	}
	return replies, wrap(err)
}

// wrap says where an error comes from.
func wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("atomredis: %w", err)
}

// encoder turns commands into what the server executes. Memory is reused.
type encoder struct {
	buf  []byte // all arguments but those that are []byte
	args []encoded
	ends []int // of the commands, in args
	out  [][]byte
	list [][][]byte
}

// encoded is one argument: bytes of its own, or a part of encoder.buf.
type encoded struct {
	own        []byte
	start, end int
}

var encoders = sync.Pool{New: func() any { return new(encoder) }}

const (
	maxKeptBuffer = 64 << 10 // bytes
	maxKeptArgs   = 1024
)

func (e *encoder) release() {
	if cap(e.buf) > maxKeptBuffer || cap(e.args) > maxKeptArgs {
		return
	}
	clear(e.args)
	clear(e.out)
	clear(e.list)
	*e = encoder{e.buf[:0], e.args[:0], e.ends[:0], e.out[:0], e.list[:0]}
	encoders.Put(e)
}

// add encodes one command.
func (e *encoder) add(args []any) error {
	if len(args) == 0 {
		return fmt.Errorf("atomredis: a command has no name")
	}
	for i, a := range args {
		if b, ok := a.([]byte); ok {
			e.args = append(e.args, encoded{own: b})
			continue
		}
		start := len(e.buf)
		var err error
		if e.buf, err = appendArg(e.buf, a); err != nil {
			return fmt.Errorf("atomredis: argument %d of %v: %w", i, args[0], err)
		}
		e.args = append(e.args, encoded{start: start, end: len(e.buf)})
	}
	e.ends = append(e.ends, len(e.args))
	return nil
}

// commands returns all commands that were added; they are valid until the next call of add or release.
func (e *encoder) commands() [][][]byte {
	e.out, e.list = e.out[:0], e.list[:0]
	for _, a := range e.args {
		b := a.own
		if b == nil {
			b = e.buf[a.start:a.end:a.end]
		}
		e.out = append(e.out, b)
	}
	start := 0
	for _, end := range e.ends {
		e.list = append(e.list, e.out[start:end:end])
		start = end
	}
	return e.list
}

// appendArg appends an argument as it is sent.
func appendArg(dst []byte, a any) ([]byte, error) {
	switch v := a.(type) {
	case nil:
		return dst, nil
	case string:
		return append(dst, v...), nil
	case []byte:
		return append(dst, v...), nil
	case int:
		return strconv.AppendInt(dst, int64(v), 10), nil
	case int8:
		return strconv.AppendInt(dst, int64(v), 10), nil
	case int16:
		return strconv.AppendInt(dst, int64(v), 10), nil
	case int32:
		return strconv.AppendInt(dst, int64(v), 10), nil
	case int64:
		return strconv.AppendInt(dst, v, 10), nil
	case uint:
		return strconv.AppendUint(dst, uint64(v), 10), nil
	case uint8:
		return strconv.AppendUint(dst, uint64(v), 10), nil
	case uint16:
		return strconv.AppendUint(dst, uint64(v), 10), nil
	case uint32:
		return strconv.AppendUint(dst, uint64(v), 10), nil
	case uint64:
		return strconv.AppendUint(dst, v, 10), nil
	case float32:
		return strconv.AppendFloat(dst, float64(v), 'f', -1, 32), nil
	case float64:
		return strconv.AppendFloat(dst, v, 'f', -1, 64), nil
	case bool:
		if v {
			return append(dst, '1'), nil
		}
		return append(dst, '0'), nil
	case time.Duration:
		return strconv.AppendInt(dst, v.Nanoseconds(), 10), nil
	case time.Time:
		return v.AppendFormat(dst, time.RFC3339Nano), nil
	case encoding.BinaryMarshaler:
		b, err := v.MarshalBinary()
		if err != nil {
			return dst, err
		}
		return append(dst, b...), nil
	}
	return dst, fmt.Errorf("a %T cannot be sent", a)
}
