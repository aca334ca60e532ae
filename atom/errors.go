package atom

import (
	"context"
	"errors"
	"fmt"
)

// Code is an error code of the atom specification. It is an error itself, so that errors.Is(err, atom.NoAck) works.
type Code int

// The codes of the specification, two that the C and C++ libraries add (SerializationError and DeserializationError),
// and one of this package (DeadlinePassed).
const (
	NoError              Code = 0
	InternalError        Code = 1 // something in the library, or a wrong argument
	RedisError           Code = 2 // the server refused a command or cannot be reached
	NoAck                Code = 3 // the element did not acknowledge the command in time
	NoResponse           Code = 4 // the element did not respond within the timeout in its acknowledgement
	InvalidCommand       Code = 5 // the command packet lacks a field
	UnsupportedCommand   Code = 6 // the element has no such command
	CallbackFailed       Code = 7 // the handler failed or panicked
	SerializationError   Code = 8
	DeserializationError Code = 9
	DeadlinePassed       Code = 10 // the handler did not return within the deadline of its command

	// UserErrors is the first code for handlers: a handler's own error n is sent as UserErrors + n.
	UserErrors Code = 1000
)

var codeTexts = map[Code]string{
	NoError:              "no error",
	InternalError:        "internal error",
	RedisError:           "redis error",
	NoAck:                "no acknowledgement",
	NoResponse:           "no response",
	InvalidCommand:       "invalid command packet",
	UnsupportedCommand:   "unsupported command",
	CallbackFailed:       "the handler failed",
	SerializationError:   "cannot serialize",
	DeserializationError: "cannot deserialize",
	DeadlinePassed:       "the handler did not return within its deadline",
}

// Error returns the meaning of the code.
func (c Code) Error() string {
	if text, ok := codeTexts[c]; ok {
		return text
	}
	if n, ok := c.User(); ok {
		return fmt.Sprintf("user error %d", n)
	}
	return fmt.Sprintf("error %d", int(c))
}

// User returns the handler's own error number; ok is false for codes below UserErrors.
func (c Code) User() (n int, ok bool) { return int(c - UserErrors), c >= UserErrors }

// Error is an error with a code. errors.Is matches the code and the errors that Err wraps.
type Error struct {
	Code Code
	Op   string // the operation and its object
	Err  error  // further details; may be nil
}

// Error returns the operation, the meaning of the code, and the cause.
func (e *Error) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("atom: %s: %s", e.Op, e.Code)
	}
	return fmt.Sprintf("atom: %s: %s: %s", e.Op, e.Code, e.Err)
}

// Unwrap makes the code and the cause visible to errors.Is and errors.As.
func (e *Error) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Code}
	}
	return []error{e.Code, e.Err}
}

// UserError is an error of a handler with a code of its own: the response has UserErrors + Code.
type UserError struct {
	Code    int // from 1 on
	Message string
}

// Error returns the message.
func (e *UserError) Error() string { return e.Message }

var (
	// ErrClosed says that the element has been closed.
	ErrClosed = errors.New("the element is closed")
	// ErrNotFound says that there is no such reference, parameter, counter, member or entry, or that a queue is empty.
	ErrNotFound = errors.New("not found")
	// ErrExists says that a reference with the given key exists already.
	ErrExists = errors.New("exists already")
	// ErrNoOverride says that a parameter does not allow its fields to be changed.
	ErrNoOverride = errors.New("the parameter does not allow to override its fields")
	// ErrTimeout says that a read loop got no data within ReadLoopOptions.Timeout.
	ErrTimeout = errors.New("no data in time")
)

// misuse returns the error for a mistake in the arguments of an operation, or in a packet of another element.
func misuse(op, format string, args ...any) error {
	return &Error{Code: InternalError, Op: op, Err: fmt.Errorf(format, args...)}
}

// failed returns the error of an operation on the server. The end of a context has no code, because the caller caused
// it.
func failed(ctx context.Context, op string, err error) error {
	if err == nil {
		return nil
	}
	if ended := context.Cause(ctx); ended != nil {
		return fmt.Errorf("atom: %s: %w", op, ended)
	}
	if errors.Is(err, ErrClosed) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("atom: %s: %w", op, err)
	}
	return &Error{Code: RedisError, Op: op, Err: err}
}
