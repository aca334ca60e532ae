#!/bin/sh
# Makes the code from fabric.proto. The versions are part of what is generated.
set -e
export GOBIN="$PWD/bin" PATH="$PWD/bin:$PATH"
go install google.golang.org/protobuf/cmd/protoc-gen-go@v1.36.12
go install google.golang.org/grpc/cmd/protoc-gen-go-grpc@v1.6.0
protoc --go_out=. --go_opt=paths=source_relative --go-grpc_out=. --go-grpc_opt=paths=source_relative fabric.proto
rm -r bin
