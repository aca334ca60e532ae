package memory

import "github.com/atomredis/atomredis/resp"

// Reply is the answer to a command, with the types of RESP3. Its accessors convert it: an error reply is returned as
// an Error, null as ErrNull, and a reply that cannot be converted as an error that says so.
//
// go doc github.com/atomredis/atomredis/resp.Reply lists its methods.
type Reply = resp.Reply

// Error is an error reply: its code word and text, as Redis words them.
//
// go doc github.com/atomredis/atomredis/resp.Error lists its methods.
type Error = resp.Error

// Errors of the accessors of a Reply without a value.
var (
	// ErrNull says that the reply is null: the key or element does not exist, or a blocking command timed out.
	ErrNull = resp.ErrNull
	// ErrNoReply says that there is no reply yet: the Reply is the zero value, or its transaction was not committed.
	ErrNoReply = resp.ErrNoReply
)
