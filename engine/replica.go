package engine

// A keyspace may be a replica of another server's. Then keys are removed only when that server, the master, says so:
// both must have the same keys whenever they execute a command, and their clocks differ. Readers do not see expired
// keys; the master's commands do.

// SetReplica makes the keyspace a replica, or ends that: then keys that expired meanwhile are removed. The guard must
// hold all shards.
func (g *Guard) SetReplica(on bool) {
	if !g.Holds(AllShards) {
		panic("engine: SetReplica without all shards")
	}
	g.ks.replica = on
	for i := range g.ks.shards {
		g.ks.disarm(&g.ks.shards[i]) // the guard's end arms it again if keys expire
	}
}

// inReplica returns the view of a due entry in a replica for this guard: nil if the key has expired, and then a guard
// that writes removes it. A hash with only expired fields stays.
func (g *Guard) inReplica(e *Entry) *Entry {
	if g.gone(e) {
		if g.Writes { // another value may replace it
			g.expire(e)
		}
		return nil
	}
	return e // as for keys, expired fields stay until the master deletes them
}
