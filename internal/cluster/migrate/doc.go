// Package migrate moves slots with their keys from one shard of a cluster to another. The records of the shards (package
// cluster) hold what the shards agree on; this package does the work of their leaders.
//
// The target's leader runs an import (import.go) until its shard claims the slots or the import fails. After a failure, and
// for an import that another leader began, it asks the source's leader for the outcome. That leader either has exported
// the slots, or ends the task so that it never exports them. The source's leader sends the keys (export.go, frame.go). While
// it sends the last ones, commands on the slots wait (hold.go). A shard removes keys of slots that it has exported, and
// those of failed imports (trim.go).
//
// The package sees the server as [Host], the record of the shard as shards.Shards, and the group's journal as
// shards.Node. docs/moving-slots.md explains why no key is lost.
package migrate
