package engine

// Blessed keys are never evicted, whatever the policy; their values may still leave memory. An entry is blessed until
// Bless ends it or it leaves its database; another value, of whatever type, does not change that. Commands that remove the
// entry and create another (HIMPORT SET, FT.ADD with REPLACE, RESTORE) bless the new one.

// Blessed reports whether the entry is blessed.
func (e *Entry) Blessed() bool { return e.flags&flagBlessed != 0 }

// Bless makes an entry blessed, or no longer so. The caller reports the change with Changed.
func (g *Guard) Bless(e *Entry, on bool) {
	if e.Blessed() == on {
		return
	}
	if e.inHead() {
		e.load() // as in SetDeadline
	}
	g.setBlessed(e, on)
}

func (g *Guard) setBlessed(e *Entry, on bool) {
	if e.Blessed() == on {
		return
	}
	g.preserve(e)
	e.flags ^= flagBlessed
	d := &g.shard(e.shard).dbs[g.DB(e)]
	n := 1
	if !on {
		n = -1
	}
	d.blessed += n
	if e.deadline != 0 {
		d.blessedExpires += n
	}
}
