package crash

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"time"
)

// membersOwner is the worker whose sets have deadlines of members that are read.
const membersOwner = "members"

// memberDeadlines gives members of sets short and long times to live. As with fieldDeadlines, a member with a short one
// is never added again, and its set has a permanent member.
type memberDeadlines struct {
	noObserver
	label string
	n     int
}

func (g *memberDeadlines) restart(model) {}

func (g *memberDeadlines) next(r *rand.Rand) *op {
	g.n++
	number := strconv.Itoa(g.n)
	// Small sets, one of them of integers, and one that is large.
	at := r.IntN(4)
	set, size, prefix := g.label+":set"+strconv.Itoa(at), 20, "m"
	switch at {
	case 2:
		prefix = ""
	case 3:
		size = 1000
	}
	first := r.IntN(size)
	m1, m2 := prefix+strconv.Itoa(first), prefix+strconv.Itoa((first+1+r.IntN(size-1))%size)
	seconds := strconv.Itoa(1000 + r.IntN(1_000_000))
	far := strconv.FormatInt(time.Now().UnixMilli()+1_000_000+r.Int64N(1_000_000_000), 10)
	condition := []string{"MNX", "MXX"}[r.IntN(2)]
	switch r.IntN(22) {
	case 20, 21:
		return transaction(command{args: []string{"SADD", set, m1}},
			command{args: []string{"BLESS", []string{"SET", "SET", "CLEAR"}[r.IntN(3)], set, "NO-EVICT"}})
	case 0, 1, 2:
		return plain("SADD", set, m1, m2)
	case 3:
		return plain("SADDEX", set, "EX", seconds, "MEMBERS", "2", m1, m2)
	case 4:
		return plain("SADDEX", set, "PXAT", far, "MEMBERS", "1", m1)
	case 5:
		return plain("SADDEX", set, condition, "KEEPTTL", "MEMBERS", "1", m1)
	case 6:
		return plain("SADDEX", set, condition, "EX", seconds, "MEMBERS", "2", m1, m2)
	case 7:
		return plain("SADDEX", set, "EX", "0", "MEMBERS", "1", m1)
	case 8, 9:
		return plain("SEXPIRE", set, seconds, "MEMBERS", "2", m1, m2)
	case 10:
		return plain("SPEXPIRE", set, seconds+"000", "MEMBERS", "1", m1)
	case 11:
		return plain("SPEXPIREAT", set, far, "MEMBERS", "2", m1, m2)
	case 12:
		return plain("SEXPIRE", set, "0", "MEMBERS", "1", m1)
	case 13, 14:
		return plain("SPERSIST", set, "MEMBERS", "2", m1, m2)
	case 15, 16:
		return plain("SREM", set, m1, m2)
	case 17:
		if r.IntN(4) == 0 {
			return plain("DEL", set)
		}
		return plain("COPY", set, g.label+":set"+strconv.Itoa((at+1+r.IntN(3))%4), "REPLACE")
	case 18:
		short := strconv.Itoa(30 + r.IntN(2970))
		return transaction(command{args: []string{"SADD", set, "stays"}},
			command{args: []string{"SADDEX", set, "PX", short, "MEMBERS", "2", "short" + number, "also" + number}})
	default:
		short := strconv.FormatInt(time.Now().UnixMilli()+30+r.Int64N(2970), 10)
		return transaction(command{args: []string{"SADD", set, "stays", "short" + number}},
			command{args: []string{"SPEXPIREAT", set, short, "MEMBERS", "1", "short" + number}})
	}
}

// bless models BLESS SET|CLEAR key NO-EVICT.
func bless(m model, c *call) { m.peek(c.place(2), "set").blessed = c.args[1] == "SET" }

// sexpire models the commands SEXPIRE, SPEXPIRE and SPEXPIREAT key n MEMBERS nummembers member ….
func sexpire(m model, c *call) {
	v := m.peek(c.place(1), "set")
	for _, member := range c.args[5:] {
		c.expireField(v, member, c.args[0][1:], int64(c.int(2)))
	}
}

// spersist models SPERSIST key MEMBERS nummembers member ….
func spersist(m model, c *call) {
	v := m.peek(c.place(1), "set")
	for _, member := range c.args[4:] {
		delete(v.fields, member)
	}
}

// saddex models SADDEX key [MNX|MXX] KEEPTTL|(unit n) MEMBERS nummembers member ….
func saddex(m model, c *call) {
	p := c.place(1)
	at := slices.Index(c.args, "MEMBERS")
	members := c.args[at+2:]
	old := m.peek(p, "set").elems
	for _, member := range members {
		if _, ok := old[member]; ok && c.args[2] == "MNX" || !ok && c.args[2] == "MXX" {
			return
		}
	}
	v := m.open(p, "set")
	for _, member := range members {
		v.elems[member] = ""
		if c.args[at-1] != "KEEPTTL" {
			c.expireField(v, member, c.args[at-2], int64(c.int(at-1)))
		}
	}
}
