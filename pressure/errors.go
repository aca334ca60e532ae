package pressure

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

var (
	// ErrQueueExists says that Create found a queue of that name.
	ErrQueueExists = errors.New("the queue exists already")
	// ErrNoQueue says that there is no queue of that name, or that it was deleted while an operation waited.
	ErrNoQueue = errors.New("the queue does not exist")
	// ErrClosed says that the queue is closed: Put fails, and so does Get once the queue is empty.
	ErrClosed = errors.New("the queue is closed")
	// ErrDuplicate says that a message with the same key was put a short time ago.
	ErrDuplicate = errors.New("a message with this key was put a short time ago")
	// ErrNotReserved says that a message is not reserved any more: it has returned, was acknowledged, or is dead.
	ErrNotReserved = errors.New("the message is not reserved")
	// ErrTimeout says that an operation did not finish within Options.Timeout.
	ErrTimeout = errors.New("timed out")
)

// failed adds the operation and the queue to an error. An error due to the end of the context wraps the context's
// cause.
func failed(ctx context.Context, op, name string, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		err = context.Cause(ctx)
	}
	return fmt.Errorf("pressure: %s %q: %w", op, name, err)
}

// nativeErrors are the errors of the queue commands of atomredis, by the first word of the reply.
var nativeErrors = map[string]error{"QUEUEEXISTS": ErrQueueExists, "NOQUEUE": ErrNoQueue, "QUEUECLOSED": ErrClosed,
	"DUPLICATE": ErrDuplicate}

// nativeError returns the error of this package for an error reply, or err itself.
func nativeError(err error) error {
	if err == nil {
		return nil
	}
	code, _, _ := strings.Cut(err.Error(), " ")
	if known, ok := nativeErrors[code]; ok {
		return known
	}
	return err
}
