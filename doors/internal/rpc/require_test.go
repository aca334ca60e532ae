package rpc_test

// A requirement of cockroachdb/errors is a version of google.golang.org/genproto from before the packages that gRPC needs
// became a module of their own, so that their imports are ambiguous. This import keeps a newer one in go.mod, also for
// modules that import doors.
import _ "google.golang.org/genproto/protobuf/source_context"
