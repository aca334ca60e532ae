package perperignite_test

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis"
	"github.com/atomredis/atomredis/internal/cluster"
	objects "github.com/atomredis/atomredis/internal/protocols/perper/binary"
	"github.com/atomredis/atomredis/internal/protocols/perper/keys"
	"github.com/atomredis/atomredis/internal/testing/freeport"
)

// member is a server of a group with the door.
type member struct {
	*atomredis.DB
	t    *testing.T
	addr string // of the group
	port string // of clients
}

// group starts n servers that share a journal. settings are directives and their values in turn.
func group(t *testing.T, n int, settings ...string) (list []*member) {
	t.Helper()
	var peers []string
	for range n {
		peers = append(peers, freeport.Addr(t))
	}
	for _, addr := range peers {
		m := &member{t: t, addr: addr, port: freeport.Port(t)}
		o := atomredis.Options{Dir: t.TempDir(), Addr: "127.0.0.1:" + m.port, Raft: &atomredis.Raft{Addr: addr, Peers: peers},
			Config: map[string]string{"door-perper-ignite": "127.0.0.1:0", "raft-timeout": "2000"}}
		for i := 0; i < len(settings); i += 2 {
			o.Config[settings[i]] = settings[i+1]
		}
		db, err := atomredis.Open(o)
		require.NoError(t, err)
		t.Cleanup(func() { db.Close() })
		m.DB = db
		list = append(list, m)
	}
	return list
}

// must returns the reply to a command that succeeds in time.
func (m *member) must(command string, args ...any) string {
	m.t.Helper()
	var text string
	require.Eventually(m.t, func() bool {
		reply, err := m.Do(context.Background(), append([]any{command}, args...)...)
		text = reply.String()
		return err == nil
	}, deadline, 5*time.Millisecond, "%s %v: %s", command, args, &text)
	return text
}

// settled waits until a server of the group leads and the others follow it; it returns the leader first.
func settled(list []*member) []*member {
	list[0].t.Helper()
	var leader *member
	require.Eventually(list[0].t, func() bool {
		known := 0
		for _, m := range list {
			info := m.must("INFO", "replication")
			if strings.Contains(info, "raft_state:leader") {
				leader = m
			}
			if leader != nil && strings.Contains(info, "raft_leader:"+leader.addr+"\r\n") && strings.Count(info, "online=1") == len(list) {
				known++
			}
		}
		return known == len(list)
	}, deadline, 5*time.Millisecond)
	list = slices.Clone(list)
	i := slices.Index(list, leader)
	list[0], list[i] = list[i], list[0]
	return list
}

// peer connects to the server's door, and returns the server's id for clients too.
func (m *member) peer() (p *peer, node string) {
	m.t.Helper()
	p = dialAt(m.t, m.DoorAddr("perper-ignite"))
	p.write(unhex(m.t, "0e000000 01 0100 0700 0000 02 0c 01000000 04"))
	return p, hex.EncodeToString(p.message()[8:])
}

// name returns a string as an object in hex, and id the id of the cache with that name.
func name(s string) string { return hex.EncodeToString(objects.AppendString(nil, s)) }
func id(s string) string {
	return hex.EncodeToString(binary.LittleEndian.AppendUint32(nil, uint32(objects.Hash(s))))
}

// mapped returns the version of the topology, and the servers that have caches by the names of these.
func (p *peer) mapped(caches ...string) (version uint64, nodes map[string]string) {
	p.t.Helper()
	body := binary.LittleEndian.AppendUint32(nil, uint32(len(caches)))
	for _, c := range caches {
		body = append(body, unhex(p.t, id(c))...)
	}
	b, failed := p.ask(1101, body)
	require.Empty(p.t, failed)
	r := objects.NewReader(b)
	version = uint64(r.Int64())
	r.Int32()
	nodes = map[string]string{}
	for range r.Int32() {
		has := r.Bool()
		var ids []int32
		for range r.Int32() {
			if ids = append(ids, r.Int32()); has {
				r.Take(8 * int(r.Int32()))
			}
		}
		if !has {
			continue
		}
		require.EqualValues(p.t, 1, r.Int32())
		node := hex.EncodeToString(r.Take(17)[1:])
		r.Take(4 * int(r.Int32()))
		for _, c := range caches {
			if slices.Contains(ids, objects.Hash(c)) {
				nodes[c] = node
			}
		}
	}
	require.NoError(p.t, r.Err())
	require.Zero(p.t, r.Len())
	return version, nodes
}

// sql is the body of a statement without arguments, for any schema.
func sql(statement string) string {
	return "00000000 00" + name("PUBLIC") + "00040000 00000000" + name(statement) + "00000000 00 000000000000 0000000000000000 01"
}

// Everything works at a follower: it forwards to the leader what only the leader can do, without a directive.
func TestFollowersServeClientsThroughTheLeader(t *testing.T) {
	list := settled(group(t, 3))
	p, _ := list[1].peer()
	other, _ := list[2].peer()
	_, leader := list[0].peer()
	p.play(
		step{1051, name("a"), ""},
		step{1051, name("a"), "1001 CACHEEXISTS the cache exists already"},
		step{1052, name("b"), ""},
		step{1001, id("a") + "00" + keyA + one, ""},
		step{1000, id("a") + "00" + keyA, one},
		step{1020, id("a") + "00 00000000", "0100000000000000"},
		step{2006, id("a") + "00 01000000 0000000000000000 00" + null, "0100000000000000"},
	)
	other.play(step{1000, id("a") + "00" + keyA, one}, step{1001, id("a") + "00" + keyA + two, ""})
	require.Equal(t, unhex(t, "01000000"+keyA+one+two+"01"), p.told(1), "changes are published at the leader")
	_, nodes := other.mapped("a", "b")
	require.Equal(t, map[string]string{"a": leader, "b": leader}, nodes)
	other.play(step{1056, id("b"), ""}, step{1056, id("b"), "1000 Cache does not exist [cacheId=98]"},
		step{1050, "", "01000000" + name("a")})
	_, failed := other.ask(2004, unhex(t, sql("CREATE TABLE city (id INT PRIMARY KEY, name VARCHAR)")))
	require.Empty(t, failed)
	_, failed = p.ask(2004, unhex(t, sql("INSERT INTO city VALUES (1, 'Oslo')")))
	require.Empty(t, failed)

	big := hex.EncodeToString(objects.AppendString(nil, strings.Repeat("x", 3<<20)))
	p.play(step{0, "0100000000000000", ""}, step{1001, id("a") + "00" + keyB + big, ""}, step{1000, id("a") + "00" + keyB, big})
}

// A client that a directive makes a user is that user at the leader, too.
func TestForwardedClientsKeepTheUserOfTheDoor(t *testing.T) {
	list := settled(group(t, 3))
	for _, m := range list {
		m.must("ACL", "SETUSER", "agent", "on", "resetkeys", "~perper:*", "+@all", "-perper.destroy")
		m.must("CONFIG", "SET", "door-perper-ignite-user", "agent")
	}
	p, _ := list[1].peer()
	p.play(step{1051, name("a"), ""})
	_, failed := p.ask(1056, unhex(t, id("a")))
	require.Contains(t, failed, "NOPERM")
	list[0].must("ACL", "DELUSER", "agent")
	p, _ = list[1].peer()
	_, failed = p.ask(1051, unhex(t, name("b")))
	require.Contains(t, failed, "WRONGPASS")
}

// When the leader changes, a client at a follower goes on at once or connects again, and finds all that it has stored.
func TestForwardedClientsSurviveTheLeader(t *testing.T) {
	list := settled(group(t, 3))
	p, _ := list[1].peer()
	p.play(step{1052, name("a"), ""}, step{1001, id("a") + "00" + keyA + one, ""})
	before, _ := p.mapped("a")
	list[0].must("RAFT.TRANSFER", list[2].addr)
	require.Eventually(t, func() bool {
		p, _ := list[1].peer()
		version, nodes := p.mapped("a")
		_, next := list[2].peer()
		return version > before && nodes["a"] == next
	}, deadline, 10*time.Millisecond)
	p, _ = list[0].peer()
	p.play(step{1000, id("a") + "00" + keyA, one}, step{1001, id("a") + "00" + keyA + two, ""})
}

// sharded starts n shards of one server each, and returns a name of a cache for each.
func sharded(t *testing.T, n int) (list []*member, caches []string) {
	for i := range n {
		slots := strconv.Itoa(i*cluster.Slots/n) + "-" + strconv.Itoa((i+1)*cluster.Slots/n-1)
		list = append(list, settled(group(t, 1, "cluster-enabled", "yes", "cluster-slots", slots))...)
		for j := 0; len(caches) == i; j++ {
			c := "cache" + strconv.Itoa(j)
			if cluster.SlotOf([]byte(keys.Of(c, "")))*n/cluster.Slots == i {
				caches = append(caches, c)
			}
		}
	}
	for _, m := range list[1:] {
		_, bus, _ := net.SplitHostPort(m.addr)
		list[0].must("CLUSTER", "MEET", "127.0.0.1", m.port, bus)
	}
	for _, m := range list {
		require.Eventually(t, func() bool {
			info := m.must("CLUSTER", "INFO")
			return strings.Contains(info, "cluster_state:ok") && strings.Contains(info, "cluster_known_nodes:"+strconv.Itoa(n)+"\r\n")
		}, deadline, 5*time.Millisecond)
	}
	return list, caches
}

// Caches are created, used and destroyed from a client at any server of any shard.
func TestShardsServeClientsOfAllCaches(t *testing.T) {
	list, caches := sharded(t, 3)
	var peers []*peer
	var nodes []string
	for _, m := range list {
		p, node := m.peer()
		peers, nodes = append(peers, p), append(nodes, node)
	}
	for i, c := range caches {
		p, other := peers[(i+1)%3], peers[(i+2)%3]
		p.play(
			step{1051, name(c), ""},
			step{1051, name(c), "1001 CACHEEXISTS the cache exists already"},
			step{1052, name(c), ""},
			step{1001, id(c) + "00" + keyA + one, ""},
			step{2006, id(c) + "00 01000000 0000000000000000 00" + null, "0100000000000000"},
		)
		other.play(step{1000, id(c) + "00" + keyA, one}, step{1001, id(c) + "00" + keyA + two, ""})
		require.Equal(t, unhex(t, "01000000"+keyA+one+two+"01"), p.told(1))
		p.play(step{0, "0100000000000000", ""})
	}
	sorted := slices.Sorted(slices.Values(caches))
	for _, p := range peers {
		p.play(step{1050, "", "03000000" + name(sorted[0]) + name(sorted[1]) + name(sorted[2])})
		_, where := p.mapped(caches...)
		require.Equal(t, map[string]string{caches[0]: nodes[0], caches[1]: nodes[1], caches[2]: nodes[2]}, where)
	}
	for i, c := range caches { // only the server that has the cache peeks
		for j, p := range peers {
			want := null
			if i == j {
				want = two
			}
			p.play(step{1021, id(c) + "00" + keyA + "00000000", want})
		}
	}
	peers[0].play(step{5001, "02", ""})
	peers[1].play(step{1001, id(caches[0]) + "00" + keyA + one, "1 Failed to perform cache operation (cluster is in read-only mode)"})
	peers[0].play(step{5001, "01", ""})

	peers[0].play(step{1056, id(caches[1]), ""}, step{1056, id(caches[1]), "1000 Cache does not exist [cacheId=" +
		strconv.Itoa(int(objects.Hash(caches[1]))) + "]"})
	peers[2].play(step{1000, id(caches[1]) + "00" + keyA, "1000 Cache does not exist [cacheId=" +
		strconv.Itoa(int(objects.Hash(caches[1]))) + "]"})
}

// A cache moves with its slot. Clients at all servers go on, and learn of the new place.
func TestCachesMoveWithTheirSlots(t *testing.T) {
	list, caches := sharded(t, 2)
	p, _ := list[0].peer()
	_, target := list[1].peer()
	c := caches[0]
	p.play(step{1051, name(c), ""}, step{1001, id(c) + "00" + keyA + one, ""})
	before, _ := p.mapped(c)
	asking, _ := list[0].peer()
	asking.play(step{2006, id(c) + "00 01000000 0000000000000000 00" + null, "0100000000000000"})
	for _, key := range []string{keys.Of(c, ""), keys.Caches} {
		if slot := cluster.SlotOf([]byte(key)); slot < cluster.Slots/2 {
			list[1].must("CLUSTER", "MIGRATION", "IMPORT", slot, slot)
			require.Eventually(t, func() bool {
				return strings.Contains(list[1].must("CLUSTER", "MIGRATION", "STATUS", "ALL"), "completed") &&
					!strings.Contains(list[1].must("CLUSTER", "MIGRATION", "STATUS", "ALL"), "running")
			}, deadline, 5*time.Millisecond)
		}
		p.play(step{1000, id(c) + "00" + keyA, one}, step{1001, id(c) + "00" + keyA + one, ""})
	}
	require.Eventually(t, func() bool {
		p, _ := list[0].peer()
		version, nodes := p.mapped(c)
		return version > before && nodes[c] == target
	}, deadline, 5*time.Millisecond)
	_, err := io.Copy(io.Discard, asking.conn) // the changes that were published here
	require.NoError(t, err, "a continuous query must be opened again, at the new place")
	p.play(step{1050, "", "01000000" + name(c)}, step{1056, id(c), ""}, step{1050, "", "00000000"})
}
