package rpc

import (
	"context"
	"errors"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/atomredis/atomredis/doors/door"
	"github.com/atomredis/atomredis/resp"
)

// refusals are the codes of error replies, by their first words. Others are INTERNAL: a door asks for what exists, with
// arguments that it has checked.
var refusals = map[string]codes.Code{
	"NOPERM":     codes.PermissionDenied,
	"NOAUTH":     codes.Unauthenticated,
	"WRONGPASS":  codes.Unauthenticated,
	"OOM":        codes.ResourceExhausted,
	"WRONGTYPE":  codes.FailedPrecondition,
	"READONLY":   codes.FailedPrecondition,
	"LOADING":    codes.Unavailable,
	"BUSY":       codes.Unavailable,
	"MISCONF":    codes.Unavailable,
	"MASTERDOWN": codes.Unavailable,
	"NOREPLICAS": codes.Unavailable,
}

// Status converts an error for the peer: err itself if it is of package status, or the status for an error of package
// door, of a context, or an error reply, whose text becomes the message.
func Status(err error) error {
	if _, ok := status.FromError(err); ok {
		return err
	}
	code := codes.Internal
	var refused resp.Error
	switch {
	case errors.As(err, &refused):
		word, _, _ := strings.Cut(refused.Error(), " ")
		if c, ok := refusals[word]; ok {
			code = c
		}
	case errors.Is(err, door.ErrTooManyClients), errors.Is(err, door.ErrSlow):
		code = codes.ResourceExhausted
	case errors.Is(err, door.ErrClosed), errors.Is(err, door.ErrKilled), errors.Is(err, door.ErrNotDurable):
		code = codes.Unavailable
	case errors.Is(err, context.Canceled):
		code = codes.Canceled
	case errors.Is(err, context.DeadlineExceeded):
		code = codes.DeadlineExceeded
	}
	return status.Error(code, err.Error())
}
