package rpc_test

// cockroachdb/errors requires an old google.golang.org/genproto that still contains the packages that gRPC needs. They
// are a separate module now, so their imports would be ambiguous. This import keeps a newer version in go.mod, also for
// modules that import doors.
import _ "google.golang.org/genproto/protobuf/source_context"
