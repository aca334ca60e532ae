// Package resp turns a client's bytes into commands and replies into bytes, in RESP2 and RESP3. It does no I/O of its own.
//
// This package is no API: programs import atomredis, and what is exported here may change in any version.
//
// # Commands
//
// [Parser] finds commands in a buffer; arguments are views into it. [Template] recognizes a command of the same form as
// the one before it, by comparing the bytes around its arguments. Parser.Last and Parser.Join serve a long last
// argument that is received into memory of its own. [CommandReader] splits a stream.
//
// # Replies
//
// [Writer] encodes replies into one buffer, in the client's version of the protocol. A long string can be lent to it
// (BulkLent): the writer notes where the string belongs in the output, and the sender of the output writes the pieces.
// RawPart turns a long stretch of messages into a part that is not moved when more follow. Len counts everything;
// positions in Buf do not count the parts that lie elsewhere. [Reply] is a reply as a value, for the embedding API and
// doors.
package resp
