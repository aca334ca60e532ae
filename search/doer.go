package search

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/atomredis/atomredis/resp"
)

// Doer executes commands: an atomredis.DB, a memory.DB, a server of atomredistest, a client of package doors/door.
type Doer interface {
	Do(ctx context.Context, args ...any) (resp.Reply, error)
}

// Caller executes commands as parts of another one: the atomredis.Ctx in the handler of a custom command.
type Caller interface {
	Call(args ...any) (resp.Reply, error)
}

// DoFunc is a function that executes commands.
type DoFunc func(ctx context.Context, args ...any) (resp.Reply, error)

// Do calls f.
func (f DoFunc) Do(ctx context.Context, args ...any) (resp.Reply, error) { return f(ctx, args...) }

// Errors for errors.Is. errors.As also finds the error reply of the server, a resp.Error, if there is one.
var (
	// ErrNoIndex says that the index does not exist.
	ErrNoIndex = errors.New("search: there is no such index")
	// ErrNotFound says that there is no document with the ID.
	ErrNotFound = errors.New("search: there is no such document")
	// ErrDifferent says that the existing index differs from the one that the struct describes; errors.As finds a
	// *DifferenceError with the differences.
	ErrDifferent = errors.New("search: the index is different")
	// ErrTimeout says that a query took too long, and search-on-timeout is fail.
	ErrTimeout = errors.New("search: the query took too long")
)

// DifferenceError says how an index differs from its struct and options. errors.Is(err, ErrDifferent) holds for it.
type DifferenceError struct {
	Index       string
	Differences []string // such as "field price: TAG, not NUMERIC"
}

// Error lists the differences.
func (e *DifferenceError) Error() string {
	return fmt.Sprintf("search: the index %q is different: %s", e.Index, strings.Join(e.Differences, "; "))
}

// Is reports whether target is ErrDifferent.
func (e *DifferenceError) Is(target error) bool { return target == ErrDifferent }

// explained wraps an error reply with the error of this package that it means.
func explained(err error) error {
	reply := resp.Error("")
	if !errors.As(err, &reply) {
		return err
	}
	text := strings.ToLower(reply.Error())
	for part, known := range map[string]error{"no such index": ErrNoIndex, "unknown index name": ErrNoIndex, "index not found": ErrNoIndex,
		"timeout limit was reached": ErrTimeout} {
		if strings.Contains(text, part) {
			return fmt.Errorf("%w: %w", known, err)
		}
	}
	return err
}

// do executes a command.
func do(ctx context.Context, db Doer, args []any) (resp.Reply, error) {
	r, err := db.Do(ctx, args...)
	return r, explained(err)
}
