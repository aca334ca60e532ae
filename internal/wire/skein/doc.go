// Package skein has the messages of Skein's application master and its gRPC service, generated from skein.proto. It
// does not depend on the server. The generated code is committed. Generating it needs protoc of the Debian package
// protobuf-compiler; the versions of its plugins are in generate.sh.
package skein

//go:generate ./generate.sh
