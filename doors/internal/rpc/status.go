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

// refusals has the codes of error replies by their first words. Other error replies are INTERNAL: a door calls existing
// commands with checked arguments.
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

// Status converts an error for the peer. It returns an error of package status unchanged. Errors of package door, of a
// context, and error replies become a status with their text.
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
