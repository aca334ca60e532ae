// Package externalscaler has the messages and the gRPC service with which KEDA asks an external scaler, made from
// externalscaler.proto; it knows no server. What is generated is committed, and made again as that of package
// internal/wire/skein.
package externalscaler

//go:generate ./generate.sh
