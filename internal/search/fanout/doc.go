// Package fanout asks all shards of a cluster the same question, and checks that their answers together cover each
// slot once. It knows neither indexes nor commands.
//
// The server that a client has asked is the coordinator. [Caller] sends its [Question] to the leader of each other
// shard, and asks its own shard in place. An [Answer] begins with a [View]: the slots that the shard served at that
// time. Parts follow when the coordinator requests them, so a cursor pauses by not requesting any. A shard's state
// of an answer ends with the connection. [Serve] is the other end.
//
// While slots move, a shard leaves out documents of slots that it does not serve. So if the views have each slot once, each
// document was seen once. If they do not, all shards are asked again.
package fanout
