// Package resp turns a client's bytes into commands and replies into bytes, in RESP2 and RESP3. It does no I/O of its own.
//
// This package is no API: programs import atomredis, and what is exported here may change in any version.
//
// # Commands
//
// [Parser] finds commands in a buffer; arguments are views into it. [Template] recognizes a command of the form of
// the one before by comparing what lies around its arguments. Parser.Last and Parser.Join are for a long last
// argument that is received into memory of its own. [CommandReader] splits a stream.
//
// # Replies
//
// [Writer] encodes replies into one buffer, in the client's version of the protocol. A long string can be lent to it:
// the writer notes its place in the output (BulkLent), and the sender of the output writes the pieces. RawPart turns
// a long stretch of messages into a part that is not moved as more come. Len counts everything; positions within Buf
// do not count what lies elsewhere. [Reply] is a reply as a value, for the embedding API and doors.
package resp
