// Package skein has the messages of Skein's application master and its gRPC service, made from skein.proto; it knows no
// server. What is generated is committed. To make it again takes protoc of the Debian package protobuf-compiler; the
// versions of its plugins are in generate.sh.
package skein

//go:generate ./generate.sh
