package peer

import "errors"

// Code identifies errors of other servers. It is an error too, for errors.Is.
type Code string

// The codes of errors. A code keeps its meaning in all versions.
const (
	NotLeading  Code = "not-leading"  // the server does not lead its group
	NotAdmitted Code = "not-admitted" // the server may not take part in its group yet
	Busy        Code = "busy"         // another task must end first
	BadVersion  Code = "version"      // no version of the protocol is known to both servers
	BadPurpose  Code = "purpose"      // the server has no connections of this purpose
	Again       Code = "again"        // something has changed meanwhile; the question may be repeated
	Refused     Code = "refused"      // the question is wrong; the text is for the client
	Untrusted   Code = "untrusted"    // the server does not prove that it may connect
)

// Error implements error.
func (c Code) Error() string { return "code " + string(c) }

// Error is an error of the other server. errors.Is finds its code.
type Error struct {
	Code Code // "" for errors that need no reaction of their own
	Text string
}

// Error implements error.
func (e *Error) Error() string { return e.Text }

// Is implements the interface of errors.Is.
func (e *Error) Is(target error) bool {
	c, ok := target.(Code)
	return ok && c == e.Code && c != ""
}

// asError returns the error as it is sent.
func asError(err error) Error {
	var e *Error
	if errors.As(err, &e) {
		return Error{e.Code, err.Error()}
	}
	return Error{Text: err.Error()}
}

var (
	// ErrFrame means that the other server has sent an unexpected frame.
	ErrFrame = errors.New("the other server has sent an unexpected frame")
	// ErrTooLong means that a payload is longer than the limit of its connection.
	ErrTooLong = errors.New("the other server has sent too long a frame")
)
