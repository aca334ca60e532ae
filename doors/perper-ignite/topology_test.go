package perperignite

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/doors/door"
)

// servers is a Host that only knows the servers.
type servers struct {
	door.Host
	topology door.Topology
}

// Topology implements door.Host.
func (s *servers) Topology() door.Topology { return s.topology }

func TestTopologyNamesTheLeader(t *testing.T) {
	a, b := strings.Repeat("a1", 20), strings.Repeat("b2", 20)
	member := func(id string, master bool) door.Member { return door.Member{ID: id, Master: master, Online: true} }
	for name, test := range map[string]struct {
		servers door.Topology
		want    topology
	}{
		"alone": {door.Topology{Members: []door.Member{member(a, true)}}, topology{version: 3, known: true, copies: 1}},
		"leads": {door.Topology{Epoch: 7, Members: []door.Member{member(a, true), member(b, false)}},
			topology{version: 15, known: true, copies: 2}},
		"follows": {door.Topology{Epoch: 8, Members: []door.Member{member(a, false), member(b, true)}},
			topology{version: 17, known: true, copies: 2}},
		"no leader": {door.Topology{Epoch: 9, Members: []door.Member{member(a, false), {ID: b}}}, topology{version: 18, copies: 1}},
		"a replica": {door.Topology{Members: []door.Member{member(a, false), member("", true)}}, topology{version: 2, copies: 2}},
	} {
		d := &igniteDoor{Peers: door.Peers{Host: &servers{topology: test.servers}}}
		if test.want.known {
			for _, m := range test.servers.Members {
				if m.Master {
					test.want.leader, _ = idOf(m.ID)
				}
			}
		}
		require.Equal(t, test.want, d.topology(), name)
	}
}

func TestClientsAreInformedOfANewLeader(t *testing.T) {
	s := &servers{topology: door.Topology{Epoch: 1, Members: []door.Member{{ID: strings.Repeat("a1", 20), Master: true}}}}
	p := &peer{door: &igniteDoor{Peers: door.Peers{Host: s}}}
	require.Zero(t, p.news(), "the client has not asked")
	p.topology = p.door.topology().version
	require.Zero(t, p.news())
	s.topology.Epoch++
	require.Zero(t, p.news(), "the servers were asked a moment ago")
	p.topologyRead = p.topologyRead.Add(-topologyAge)
	require.Equal(t, int64(5), p.news())
	p.topologyRead = p.topologyRead.Add(-topologyAge)
	require.Zero(t, p.news())
}

func TestKindsOfCopies(t *testing.T) {
	for modes, want := range map[string][2]bool{
		"": {true, false}, "\x00": {true, true}, "\x01": {false, false}, "\x02": {true, false}, "\x03": {false, true},
		"\x02\x03": {true, true}, "\x04": {true, false}, "\x05": {true, false}, "\x04\x03": {false, true},
	} {
		primary, backup := counted([]byte(modes))
		require.Equal(t, want, [2]bool{primary, backup}, "%q", modes)
	}
}
