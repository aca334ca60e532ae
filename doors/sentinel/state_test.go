package sentinel

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/doors/door"
)

// group returns a group of three servers: online has the letters of reachable servers, leader that of the leader.
func group(epoch uint64, leader, online string) door.Topology {
	t := door.Topology{InGroup: true, Epoch: epoch, Timeout: time.Second}
	for _, id := range []string{"a", "b", "c"} {
		t.Members = append(t.Members, door.Member{ID: id, Addr: id + ":1", Sentinel: id + ":2", Voter: true,
			Online: strings.Contains(online, id), Master: id == leader})
	}
	return t
}

func TestWhatHappensIsPublished(t *testing.T) {
	s, now := &state{}, time.Unix(1000, 0)
	for _, step := range []struct {
		what string
		is   door.Topology
		want []string
	}{
		{"no leader yet", group(0, "", "a"), nil},
		{"a leads", group(1, "a", "abc"), []string{
			"+monitor master m a 1 quorum 2",
			"+slave slave b:1 b 1 @ m a 1", "+slave slave c:1 c 1 @ m a 1",
			"+sentinel sentinel b b 2 @ m a 1", "+sentinel sentinel c c 2 @ m a 1"}},
		{"nothing", group(1, "a", "abc"), nil},
		{"c is down", group(1, "a", "ab"), []string{
			"+sdown slave c:1 c 1 @ m a 1", "+sdown sentinel c c 2 @ m a 1"}},
		{"c is back", group(1, "a", "abc"), []string{
			"-sdown slave c:1 c 1 @ m a 1", "-sdown sentinel c c 2 @ m a 1"}},
		{"nobody leads", group(1, "", "abc"), []string{
			"+sdown master m a 1", "+odown master m a 1 #quorum 2/2"}},
		{"a leads again", group(2, "a", "abc"), []string{
			"+new-epoch 2", "-sdown master m a 1", "-odown master m a 1"}},
		{"nobody leads", group(2, "", "abc"), []string{
			"+sdown master m a 1", "+odown master m a 1 #quorum 2/2"}},
		{"b leads", group(3, "b", "abc"), []string{
			"+new-epoch 3", "+switch-master m a 1 b 1",
			"+slave slave a:1 a 1 @ m b 1", "+slave slave c:1 c 1 @ m b 1"}},
		{"a is down", group(3, "b", "bc"), []string{"+sdown slave a:1 a 1 @ m b 1"}},
		{"a is back", group(3, "b", "abc"), []string{
			"-sdown slave a:1 a 1 @ m b 1", "+convert-to-slave slave a:1 a 1 @ m b 1"}},
		{"c has it from b, who is there", group(4, "c", "abc"), []string{
			"+new-epoch 4", "+switch-master m b 1 c 1",
			"+slave slave b:1 b 1 @ m c 1", "+slave slave a:1 a 1 @ m c 1"}},
		{"after a while", group(4, "c", "abc"), []string{"+convert-to-slave slave b:1 b 1 @ m c 1"}},
	} {
		if step.what == "after a while" {
			now = now.Add(settled)
		}
		next := s.next(step.is, now)
		var got []string
		for _, e := range next.events(s, "m", "host") {
			got = append(got, e.channel+" "+e.payload)
		}
		require.ElementsMatch(t, step.want, got, step.what)
		s = next
	}
	require.Equal(t, "host", first(split(":1", "host")))
}

func first(a, _ string) string { return a }

func TestAServerThatReachesNobodyDoesNotSpeakForOthers(t *testing.T) {
	s := (&state{}).next(group(1, "b", "abc"), time.Now())
	s = s.next(group(1, "", "a"), time.Now())
	require.True(t, s.sdown)
	require.False(t, s.odown)
	require.Equal(t, "b:1", s.master.Addr, "who led last is told as long as nobody else leads")
	require.Equal(t, 1, s.usable)
}
