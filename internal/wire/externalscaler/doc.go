// Package externalscaler has the messages and the gRPC service with which KEDA queries an external scaler, generated
// from externalscaler.proto. It does not depend on the server. The generated code is committed; it is generated in
// the same way as that of package internal/wire/skein.
package externalscaler

//go:generate ./generate.sh
