// Package fabric has the messages of Perper's Fabric and its gRPC service, made from fabric.proto; it knows no server.
// The generated code is committed; generate.sh makes it.
package fabric

//go:generate ./generate.sh
