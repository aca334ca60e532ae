package memory

import "github.com/atomredis/atomredis/resp"

// Reply is the answer to a command, with the types of RESP3. Its accessors convert it: an error reply is returned as
// an Error, null as ErrNull, and a reply that cannot be converted as an error that says so.
//
//	func (r Reply) Int() (int64, error)             // an integer, also one that is a string
//	func (r Reply) Float() (float64, error)         // a number, likewise
//	func (r Reply) Bool() (bool, error)             // a boolean, or an integer that is not 0
//	func (r Reply) Text() (string, error)           // a string, a number, a boolean
//	func (r Reply) Bytes() ([]byte, error)          // likewise; the reply's own memory
//	func (r Reply) Slice() ([]Reply, error)         // the elements of an array or a set
//	func (r Reply) Texts() ([]string, error)        // the elements as strings
//	func (r Reply) Map() (map[string]Reply, error)  // a map, or an array of keys and values
//	func (r Reply) Scan(dst any) error              // into values of Go: scalars, slices, maps, structs with redis tags
//	func (r Reply) IsNull() bool                    // there is no such key or element, or time was up
//	func (r Reply) Err() error                      // the Error that the reply is
//	func (r Reply) String() string                  // as redis-cli shows it
//
// go doc github.com/atomredis/atomredis/resp.Reply has more on each.
type Reply = resp.Reply

// Error is an error reply: its code word and text, as Redis words them.
//
//	func (e Error) Code() string   // the first word: "WRONGTYPE", "NOPERM", "ERR"
//	func (e Error) Error() string  // the whole text
type Error = resp.Error

// Errors of the accessors of a Reply without a value.
var (
	// ErrNull says that the reply is null: the key or element does not exist, or the time of a blocking command was up.
	ErrNull = resp.ErrNull
	// ErrNoReply says that there is no reply yet: the Reply is the zero value, or that of a transaction that was not
	// committed.
	ErrNoReply = resp.ErrNoReply
)
