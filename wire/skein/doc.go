// Package skein has the messages of Skein's application master and its gRPC service, made from skein.proto; it knows no
// server. What is generated is committed. It is made again, with protoc of the Debian package protobuf-compiler and the
// versions of its plugins named here, by
//
//	go generate ./wire/skein
package skein

//go:generate sh -c "GOBIN=$PWD/bin go install google.golang.org/protobuf/cmd/protoc-gen-go@v1.36.12"
//go:generate sh -c "GOBIN=$PWD/bin go install google.golang.org/grpc/cmd/protoc-gen-go-grpc@v1.6.0"
//go:generate protoc --plugin=bin/protoc-gen-go --plugin=bin/protoc-gen-go-grpc --go_out=. --go_opt=paths=source_relative --go-grpc_out=. --go-grpc_opt=paths=source_relative skein.proto
//go:generate rm -r bin
