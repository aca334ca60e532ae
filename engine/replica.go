package engine

// A keyspace may be a replica of another server's. Then keys go only when that server, the master, says so: both must
// have the same keys whenever they execute a command, and their clocks differ. Readers do not find keys whose time
// has come; the master's commands do.

// SetReplica makes the keyspace a replica, or ends that: keys whose time came meanwhile expire then. The guard must
// hold all shards.
func (g *Guard) SetReplica(on bool) {
	if !g.Holds(AllShards) {
		panic("engine: SetReplica without all shards")
	}
	g.ks.replica = on
	for i := range g.ks.shards {
		g.ks.disarm(&g.ks.shards[i]) // which the end of the guard takes back, if keys expire
	}
}

// inReplica returns a due entry of a replica as this guard may see it: nil if the key has expired, and then a guard that
// writes removes it. A hash of which only fields have expired stays.
func (g *Guard) inReplica(e *Entry) *Entry {
	if g.gone(e) {
		if g.Writes { // another value may take its place
			g.expire(e)
		}
		return nil
	}
	return e // expired fields stay, like keys, until the master deletes them
}
