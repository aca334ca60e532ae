// Package fabric has the messages of Perper's Fabric and its gRPC service, generated from fabric.proto. It does not
// depend on the server. The generated code is committed; generate.sh makes it.
package fabric

//go:generate ./generate.sh
