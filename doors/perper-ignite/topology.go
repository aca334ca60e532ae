package perperignite

import (
	"encoding/hex"
	"slices"
	"strconv"
	"time"

	"github.com/atomredis/atomredis/internal/protocols/perper/binary"
	"github.com/atomredis/atomredis/internal/protocols/perper/keys"
	"github.com/atomredis/atomredis/internal/wire/ignite"
)

// This file answers where keys are, and how many copies of them there are.

// partitions is how many partitions clients divide the keys of a cache among. All of them are on one server, the leader of the
// shard that has the cache.
const partitions = 1024

// maxMapped is how many caches a client may ask about at once.
const maxMapped = 1 << 16

// topology is what clients need to know of the servers.
type topology struct {
	version int64  // grows with every change of the leader, and with several shards of any leader, and when slots move
	leader  nodeID // the server that executes writes; with several shards those of this server's shard
	known   bool   // leader is valid
	copies  int    // servers with the data that are online
}

// nodeID identifies a server for clients.
type nodeID [16]byte

// idOf returns the node id of a member; ok is false if its own id is not known.
func idOf(member string) (id nodeID, ok bool) {
	if len(member) < 2*len(id) {
		return id, false
	}
	_, err := hex.Decode(id[:], []byte(member[:2*len(id)]))
	return id, err == nil
}

// topology returns the servers as they are now.
func (d *igniteDoor) topology() topology {
	servers := d.Host.Topology()
	t := topology{version: 2 * max(int64(servers.Epoch), 1)}
	for i, m := range servers.Members {
		if (m.Online || i == 0) && !m.Witness {
			t.copies++
		}
		if m.Master && !t.known {
			t.leader, t.known = idOf(m.ID)
		}
	}
	if t.known {
		t.version++
	}
	t.version += int64(servers.Shards)
	return t
}

// owner returns the server that executes commands on a cache; ok is false if it is not known.
func (d *igniteDoor) owner(cache string) (id nodeID, ok bool) {
	return idOf(d.Host.Owner(keys.Of(cache, "")))
}

// self returns the id of this server.
func (d *igniteDoor) self() nodeID {
	if members := d.Host.Topology().Members; len(members) > 0 {
		if id, ok := idOf(members[0].ID); ok {
			return id
		}
	}
	return d.node
}

// topologyAge is how old the version of the topology may be that a client is informed of.
const topologyAge = time.Second

// news returns the version of the topology if the client has asked for an earlier one, else 0.
func (p *peer) news() int64 {
	if p.topology == 0 || time.Since(p.topologyRead) < topologyAge {
		return 0
	}
	p.topologyRead = time.Now()
	if v := p.door.topology().version; v != p.topology {
		p.topology = v
		return v
	}
	return 0
}

// mapping is a server with caches whose partitions it has.
type mapping struct {
	node   nodeID
	caches []int32
}

// partitions answers with the servers that have the partitions of caches.
func (r *request) partitions() error {
	ids := make([]int32, r.Count(4))
	for i := range ids {
		ids[i] = r.Int32()
	}
	if err := r.end(); err != nil {
		return err
	}
	if len(ids) > maxMapped {
		return failed("Too many caches in a request: " + strconv.Itoa(len(ids)))
	}
	t := r.p.door.topology()
	r.p.topology, r.p.topologyRead = t.version, time.Now()
	var all []mapping
	var nowhere []int32
	affinity := map[int32][]binary.AffinityKey{}
	for _, id := range ids {
		config, name, err := r.p.configOf(id)
		switch owner, known := r.p.door.owner(name); {
		case err != nil && failureStatus(err) != ignite.StatusNoCache:
			return err
		case err != nil || !known || config.Replicated():
			nowhere = append(nowhere, id)
		default:
			affinity[id] = config.AffinityKeys()
			i := slices.IndexFunc(all, func(m mapping) bool { return m.node == owner })
			if i < 0 {
				i, all = len(all), append(all, mapping{node: owner})
			}
			all[i].caches = append(all[i].caches, id)
		}
	}
	r.appendInt64(t.version)
	r.appendInt32(0)
	groups := len(all)
	if len(nowhere) > 0 {
		groups++
	}
	r.appendInt32(groups)
	for _, m := range all {
		r.appendMapping(m.caches, affinity, m.node)
	}
	if len(nowhere) > 0 {
		r.appendBool(false)
		r.appendInt32(len(nowhere))
		for _, id := range nowhere {
			r.appendInt32(int(id))
		}
	}
	return nil
}

// appendMapping appends that a server has all partitions of caches.
func (r *request) appendMapping(ids []int32, affinity map[int32][]binary.AffinityKey, node nodeID) {
	r.appendBool(true)
	r.appendInt32(len(ids))
	for _, id := range ids {
		r.appendInt32(int(id))
		r.appendInt32(len(affinity[id]))
		for _, k := range affinity[id] {
			r.appendInt32(int(k.TypeID))
			r.appendInt32(int(k.FieldID))
		}
	}
	r.appendInt32(1)
	r.out = append(append(r.out, byte(binary.UUID)), node[:]...)
	r.appendInt32(partitions)
	for i := range partitions {
		r.appendInt32(i)
	}
}

// The kinds of copies that a client asks for.
const (
	peekAll byte = iota
	peekNear
	peekPrimary
	peekBackup
	peekOnHeap
	peekOffHeap
	peekKinds
)

// peekModes reads the kinds of copies.
func (r *request) peekModes() (modes []byte, err error) {
	modes = r.Take(r.Count(1))
	if err := r.end(); err != nil {
		return nil, err
	}
	if slices.ContainsFunc(modes, func(m byte) bool { return m >= peekKinds }) {
		return nil, failed("Unknown peek mode")
	}
	return modes, nil
}

// counted reports which copies have the kinds: the first ones on the leader, and those on other servers. Without kinds
// only the first copies are counted.
func counted(modes []byte) (primary, backup bool) {
	has := func(m byte) bool { return slices.Contains(modes, m) }
	backup = has(peekAll) || has(peekBackup)
	primary = len(modes) == 0 || has(peekAll) || has(peekPrimary) || !backup && (has(peekOnHeap) || has(peekOffHeap))
	return primary, backup
}

// size answers with the number of entries, and of copies that the cache asks for and that exist.
func (r *request) size() error {
	modes, err := r.peekModes()
	if err != nil {
		return err
	}
	reply, err := r.onCache("PERPER.LEN")
	if err != nil {
		return err
	}
	n, err := reply.Int()
	if err != nil {
		return err
	}
	primary, backup := counted(modes)
	total := int64(0)
	if primary {
		total = n
	}
	if backup {
		config, _, err := r.p.configOf(r.cache)
		if err != nil {
			return err
		}
		others := r.p.door.topology().copies - 1
		if !config.Replicated() {
			others = min(others, config.Backups())
		}
		total += n * int64(others)
	}
	r.appendInt64(total)
	return nil
}

// peek answers with the value of a key if this server is the one that has it.
func (r *request) peek() error {
	key := r.Object()
	modes, err := r.peekModes()
	if err != nil {
		return err
	}
	if _, err := r.onCache("PERPER.LEN"); err != nil {
		return err
	}
	known, _ := r.p.door.caches.Load(r.cache)
	name, _ := known.(string)
	owner, _ := r.p.door.owner(name)
	if primary, _ := counted(modes); !primary || owner != r.p.door.self() {
		r.out = binary.AppendNull(r.out)
		return nil
	}
	reply, err := r.onCache("PERPER.GET", key, "EXPIRY", binary.AsBefore, binary.AsBefore, binary.AsBefore, raw)
	if err != nil {
		return err
	}
	return r.object(reply)
}
