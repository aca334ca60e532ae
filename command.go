package atomredis

import (
	"context"
	"fmt"
	"reflect"
	"strconv"
	"sync"
	"time"

	"github.com/atomredis/atomredis/resp"
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
// Arguments may be strings, []byte, integers, floats, booleans (sent as 1 and 0), types of these kinds, pointers to them (nil stands for the
// zero value), nil (the empty string), time.Time (RFC 3339 with nanoseconds), time.Duration (nanoseconds), net.IP (its bytes),
// encoding.BinaryMarshaler, and what else has encoding.TextMarshaler. Slices, arrays and maps are as many arguments as they have elements, or keys
// and values in order of the keys, and structs are the names and values of their fields with a tag such as `redis:"name"` or
// `redis:"name,omitempty"`, as go-redis has them. Anything else is an error. Arguments are not kept.
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
	r := resp.NewReply(raw)
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
		r, rest, malformed := resp.NextReply(raw)
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
	before := len(e.args)
	for i, a := range args {
		if err := e.arg(a, 0); err != nil {
			return fmt.Errorf("atomredis: argument %d of %v: %w", i, args[0], err)
		}
	}
	if len(e.args) == before {
		return fmt.Errorf("atomredis: a command has no name")
	}
	e.ends = append(e.ends, len(e.args))
	return nil
}

// arg encodes a value, which may be several arguments; depth is how many collections it is in.
func (e *encoder) arg(a any, depth int) error {
	if b, ok := a.([]byte); ok {
		e.args = append(e.args, encoded{own: b})
		return nil
	}
	start := len(e.buf)
	buf, ok := appendScalar(e.buf, a)
	if !ok {
		return e.reflected(a, depth)
	}
	e.buf = buf
	e.args = append(e.args, encoded{start: start, end: len(e.buf)})
	return nil
}

// reflected encodes a value of a type that appendScalar does not know.
func (e *encoder) reflected(a any, depth int) error {
	if depth > maxNesting {
		return errTooDeep
	}
	v := reflect.ValueOf(a)
	if scalar, ok, err := scalarOf(v, a); ok || err != nil {
		if err != nil {
			return err
		}
		return e.arg(scalar, depth)
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			return e.arg(v.Elem().Interface(), depth+1)
		}
		if v.Type().Elem().Kind() == reflect.Struct && !isTime(v.Type().Elem()) {
			return nil // go-redis has it so: no fields
		}
		return e.arg(reflect.Zero(v.Type().Elem()).Interface(), depth+1)
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			if err := e.arg(v.Index(i).Interface(), depth+1); err != nil {
				return err
			}
		}
		return nil
	case reflect.Map:
		for _, k := range sortedKeys(v) {
			if err := e.arg(k.Interface(), depth+1); err != nil {
				return err
			}
			if err := e.arg(v.MapIndex(k).Interface(), depth+1); err != nil {
				return err
			}
		}
		return nil
	case reflect.Struct:
		fields := taggedFields(v)
		if fields == nil {
			return fmt.Errorf("a %T cannot be sent: none of its fields has a tag `redis:\"name\"`", a)
		}
		for _, f := range fields {
			if f.omitted {
				continue
			}
			_ = e.arg(f.name, depth+1) // a string
			if err := e.arg(f.value.Interface(), depth+1); err != nil {
				return fmt.Errorf("field %s: %w", f.name, err)
			}
		}
		return nil
	}
	return fmt.Errorf("a %T cannot be sent", a)
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

// appendScalar appends a value as it is sent, if it is of a type that most arguments have.
func appendScalar(dst []byte, a any) (out []byte, ok bool) {
	switch v := a.(type) {
	case nil:
		return dst, true
	case string:
		return append(dst, v...), true
	case int:
		return strconv.AppendInt(dst, int64(v), 10), true
	case int8:
		return strconv.AppendInt(dst, int64(v), 10), true
	case int16:
		return strconv.AppendInt(dst, int64(v), 10), true
	case int32:
		return strconv.AppendInt(dst, int64(v), 10), true
	case int64:
		return strconv.AppendInt(dst, v, 10), true
	case uint:
		return strconv.AppendUint(dst, uint64(v), 10), true
	case uint8:
		return strconv.AppendUint(dst, uint64(v), 10), true
	case uint16:
		return strconv.AppendUint(dst, uint64(v), 10), true
	case uint32:
		return strconv.AppendUint(dst, uint64(v), 10), true
	case uint64:
		return strconv.AppendUint(dst, v, 10), true
	case float32:
		return strconv.AppendFloat(dst, float64(v), 'f', -1, 32), true
	case float64:
		return strconv.AppendFloat(dst, v, 'f', -1, 64), true
	case bool:
		if v {
			return append(dst, '1'), true
		}
		return append(dst, '0'), true
	case time.Duration:
		return strconv.AppendInt(dst, v.Nanoseconds(), 10), true
	case time.Time:
		return v.AppendFormat(dst, time.RFC3339Nano), true
	}
	return dst, false
}
