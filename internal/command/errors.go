package command

import (
	"bytes"
	"fmt"
	"strings"
)

// Error is an error reply: its code word and text, exactly as Redis sends them.
type Error string

// Errors that several commands share.
const (
	ErrWrongType         Error = "WRONGTYPE Operation against a key holding the wrong kind of value"
	ErrSyntax            Error = "ERR syntax error"
	ErrNotInteger        Error = "ERR value is not an integer or out of range"
	ErrNotFloat          Error = "ERR value is not a valid float"
	ErrOutOfRange        Error = "ERR value is out of range"
	ErrOpposite          Error = "ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807"
	ErrNotPositive       Error = "ERR value is out of range, must be positive"
	ErrNoKey             Error = "ERR no such key"
	ErrIndexRange        Error = "ERR index out of range"
	ErrOverflow          Error = "ERR increment or decrement would overflow"
	ErrNaN               Error = "ERR increment would produce NaN or Infinity"
	ErrStringTooLong     Error = "ERR string exceeds maximum allowed size (proto-max-bulk-len)"
	ErrDBRange           Error = "ERR DB index is out of range"
	ErrInvalidDB         Error = "ERR invalid DB index"
	ErrSameObject        Error = "ERR source and destination objects are the same"
	ErrTimeoutNotFloat   Error = "ERR timeout is not a float or out of range"
	ErrTimeoutNegative   Error = "ERR timeout is negative"
	ErrTimeoutNotInteger Error = "ERR timeout is not an integer or out of range"
	ErrTimeoutRange      Error = "ERR timeout is out of range"
	ErrInvalidCursor     Error = "ERR invalid cursor"
	ErrNumKeys           Error = "ERR numkeys should be greater than 0"
	ErrNumKeysRange      Error = "ERR Number of keys can't be greater than number of args"
	ErrPayload           Error = "ERR DUMP payload version or checksum are wrong"
	ErrNegativeLimit     Error = "ERR LIMIT can't be negative"
	ErrMasterDown        Error = "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'."
	ErrLoading           Error = "LOADING Redis is loading the dataset in memory"
	ErrReadOnly          Error = "READONLY You can't write against a read only replica."
	ErrRoleChanged       Error = "UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)"
)

// Errors of commands while the disk fails. The system's error text follows ErrMisconfAOF.
const (
	ErrMisconfAOF Error = "MISCONF Errors writing to the AOF file: "
	ErrMisconfRDB Error = "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk. " +
		"Commands that may modify the data set are disabled, because this instance is configured to report errors during " +
		"writes if RDB snapshotting fails (stop-writes-on-bgsave-error option). Please check the Redis logs for details " +
		"about the RDB error."
)

// UnknownCommand returns the error for a command that does not exist.
func UnknownCommand(args [][]byte) Error {
	var b strings.Builder
	fmt.Fprintf(&b, "ERR unknown command '%s', with args beginning with: ", Printed(args[0]))
	start := b.Len()
	for _, a := range args[1:] {
		if b.Len()-start >= 128 {
			break
		}
		b.WriteByte('\'')
		a = UntilNUL(a)
		b.Write(a[:min(len(a), 128-(b.Len()-1-start))])
		b.WriteString("' ")
	}
	return Error(b.String())
}

// UntilNUL returns b up to its first NUL, as C prints it.
func UntilNUL(b []byte) []byte {
	b, _, _ = bytes.Cut(b, []byte{0})
	return b
}

// Printed is UntilNUL cut to 128 bytes, for errors. A precision in a Go format would count characters.
func Printed(b []byte) []byte {
	b = UntilNUL(b)
	return b[:min(len(b), 128)]
}

// WrongArity returns the error for a command that got too few or too many arguments.
func WrongArity(cmd *Command) Error {
	name := cmd.Name
	if cmd.Capital {
		name = strings.ToUpper(name)
	}
	return Error("ERR wrong number of arguments for '" + name + "' command")
}

// OneLine returns text without line breaks, which an error reply must not have.
func OneLine(text string) string { return strings.NewReplacer("\r", " ", "\n", " ").Replace(text) }
