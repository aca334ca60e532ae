package query

import "fmt"

// Error is the error of a refused query. Clients get its text.
type Error struct {
	Code Code
	Text string
}

// Error implements error.
func (e *Error) Error() string { return e.Text }

// Code is the kind of an error. Releases from 8.8 on write its name before the text.
type Code string

// The codes that queries have.
const (
	Syntax        Code = "SEARCH_SYNTAX"
	BadArguments  Code = "SEARCH_PARSE_ARGS"
	NoParameter   Code = "SEARCH_PARAM_NOT_FOUND"
	BadAttribute  Code = "SEARCH_OPTION_INVALID"
	BadOrder      Code = "SEARCH_ORDER_OPTION_BAD"
	NoSuchFeature Code = "SEARCH_GENERIC"
)

// errorf returns an error.
func errorf(code Code, format string, args ...any) *Error {
	return &Error{code, fmt.Sprintf(format, args...)}
}
