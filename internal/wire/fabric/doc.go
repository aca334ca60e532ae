// Package fabric has the messages of Perper's Fabric and its gRPC service, made from fabric.proto; it knows no server.
// What is generated is committed, and made again as that of package internal/wire/skein.
package fabric

//go:generate ./generate.sh
