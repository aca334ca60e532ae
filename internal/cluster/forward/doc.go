// Package forward sends the commands of a follower's clients to the leader of the group (replicated-proxy), and those of
// clients of doors that are always served so (door.Kind.AtLeader) also to the leaders of other shards.
//
// Each client that needs the leader has a connection of its own from the follower to the leader. Commands go there and
// replies come back, both unchanged and in order. Commands without data are executed at the follower, once the leader has
// answered all commands before them. Package session decides which commands are forwarded.
//
//   - follower.go is the follower's end: forwarder, a session.Forwarder.
//   - leader.go is the leader's end: remoteClient, which owns a session like those of the leader's own clients.
//   - frame.go is the framing between the two.
//
// When the leader changes, idle clients continue with the next one. A client is disconnected if it has a command without a
// reply, or state at the former leader: the command may have been executed, and is never sent twice.
package forward
