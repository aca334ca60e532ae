// Package peer implements the protocol of connections between servers, which arrive at raft-addr.
//
// A connection starts with a hello: the versions of this protocol that the dialling server speaks, the purpose of
// the connection, and fields for authentication. The other server answers with the version that both speak, or refuses
// with a code and a text. With a secret (raft-secret) a second hello and a second answer follow, with proofs that the
// servers know it (secret.go). Hellos and answers have the same form:
//
//	magic   4 bytes, 0xA7 'a' 'r' 'p'
//	size    4 bytes, big-endian, of the fields: at most 64 KiB
//	fields  each a number and a length, as uvarints, and that many bytes
//
// Fields with unknown numbers are skipped, so that later versions can add some. Servers before this protocol have
// never sent this first byte; package old has their forms.
//
// Messages follow as frames, except with [Raft], whose library has a form of its own:
//
//	kind     1 byte
//	size     uvarint
//	payload  size bytes
//
// Request, Reply and Failed are the same for all purposes; other kinds belong to the purpose. Memory for a payload is
// allocated as its bytes arrive.
package peer
