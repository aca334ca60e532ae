package replication_test

import (
	"testing"

	"github.com/atomredis/atomredis/internal/testing/servertest"
	"github.com/atomredis/atomredis/server"
)

// The replies of Redis 7.0 when the server has no replicas and no master.
func TestAServerAlone(t *testing.T) {
	servertest.Start(t, server.Options{}).Connect().Replies(
		"ROLE", `["master" 0 []]`,
		"SET k v", "+OK",
		"WAIT 0 0", "0",
		"WAIT 1 1", "0",
		"WAIT x 0", "-ERR value is not an integer or out of range",
		"WAIT 0 x", "-ERR timeout is not an integer or out of range",
		"WAIT 0 -1", "-ERR timeout is negative",
		"REPLICAOF NO ONE", "+OK",
		"SLAVEOF NO ONE", "+OK",
		"REPLICAOF 127.0.0.1 x", "-ERR Invalid master port",
		"REPLICAOF 127.0.0.1 65536", "-ERR Invalid master port",
		"FAILOVER", "-ERR FAILOVER requires connected replicas.",
		"FAILOVER ABORT", "-ERR No failover in progress.",
		"FAILOVER NOWHERE", "-ERR syntax error",
	)
}
