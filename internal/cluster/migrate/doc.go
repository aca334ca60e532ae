// Package migrate moves slots that have keys from one shard of a cluster to another. What the shards agree on meanwhile
// is in their records (package cluster); the package does what their leaders do.
//
// The leader of the target works on an import (import.go) until the slots are claimed or it has failed. Then, or if it
// was another server that had begun, it asks the leader of the source what has become of the task: that has exported
// the slots, or ends the task so that it never can. The leader of the source sends the keys (export.go, frame.go). While it
// sends the last of them, commands on the slots wait (hold.go). Keys that are a shard's no longer, or not after all, are
// removed (trim.go).
//
// The package sees the server as [Host], the record of the shard as shards.Shards, and the group's journal as
// shards.Node. docs/moving-slots.md explains why no key is lost.
package migrate
