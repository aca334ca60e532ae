package atom_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/atom"
)

// specification has a test for each section of the specification, with the keys and fields that other languages use.
// The other tests of this package cover the details.
var specification = []struct {
	section string
	test    func(t *testing.T, s *specSystem)
}{
	{"Element Initialization", func(t *testing.T, s *specSystem) {
		require.EqualValues(t, 2, s.r.Exists(s.ctx, "response:e", "command:e").Val())
	}},
	{"Element Cleanup", func(t *testing.T, s *specSystem) {
		gone, err := atom.New(s.ctx, s.r, "gone", atom.Options{})
		require.NoError(t, err)
		write(t, gone, "s", map[string]any{"x": 1})
		require.NoError(t, gone.Close(s.ctx))
		require.Zero(t, s.r.Exists(s.ctx, "response:gone", "command:gone", "stream:gone:s").Val())
	}},
	{"Write Entry", func(t *testing.T, s *specSystem) {
		id := write(t, s.e, "s", map[string]any{"x": "1"})
		written := s.r.XRange(s.ctx, "stream:e:s", id, id).Val()
		require.Equal(t, map[string]any{"x": "1", "ser": "none"}, written[0].Values)
	}},
	{"Read N most recent entries", func(t *testing.T, s *specSystem) {
		s.writeThree(t)
		found, err := s.other.EntryReadN(s.ctx, "e", "s", 2, atom.Decoding{})
		require.NoError(t, err)
		require.Equal(t, []string{"3", "2"}, values(found))
	}},
	{"Read up to the next N entries", func(t *testing.T, s *specSystem) {
		first := s.writeThree(t)
		found, err := s.other.EntryReadSince(s.ctx, "e", "s", atom.ReadOptions{After: first, Count: 5})
		require.NoError(t, err)
		require.Equal(t, []string{"2", "3"}, values(found))
	}},
	{"Read entries with callbacks", func(t *testing.T, s *specSystem) {
		s.writeThree(t)
		var seen []atom.Entry
		require.NoError(t, s.other.EntryReadLoop(s.ctx, []atom.StreamHandler{{Element: "e", Stream: "s", After: "0",
			Handle: func(_ context.Context, entry atom.Entry) error { seen = append(seen, entry); return nil }}},
			atom.ReadLoopOptions{Loops: 1}))
		require.Equal(t, []string{"1", "2", "3"}, values(seen))
	}},
	{"Add Command", func(t *testing.T, s *specSystem) {
		require.NoError(t, s.e.CommandAdd("echo", echo, atom.CommandOptions{Timeout: 50 * time.Millisecond}))
		require.Error(t, s.e.CommandAdd("version", echo, atom.CommandOptions{}), "it is reserved")
	}},
	{"Handle Commands", func(t *testing.T, s *specSystem) {
		require.NoError(t, s.e.CommandAdd("echo", echo, atom.CommandOptions{Timeout: 50 * time.Millisecond}))
		serve(t, s.e, 1)
		caller := pythonPeer(t, s.r, "python")
		ack, response := caller.call("e", "echo", "x")
		require.Equal(t, "50", ack["timeout"])
		require.Equal(t, []any{"x", "0", "echo"}, []any{response["data"], response["err_code"], response["cmd"]})
	}},
	{"Send Command", func(t *testing.T, s *specSystem) {
		peer := pythonPeer(t, s.r, "python")
		go func() {
			cmd := peer.next()
			peer.ack(cmd, 5000)
			peer.respond(cmd, cmd.Values["data"].(string), "none", 0, "")
		}()
		response, err := s.e.CommandSend(s.ctx, "python", "echo", "x", atom.SendOptions{AckTimeout: long})
		require.NoError(t, err)
		require.Equal(t, "x", response.Data.String())
	}},
	{"Log", func(t *testing.T, s *specSystem) {
		require.NoError(t, s.e.Log(s.ctx, atom.LogDebug, "m"))
		logged := s.r.XRange(s.ctx, "log", "-", "+").Val()[0].Values
		require.Equal(t, []any{"e", "7", "m"}, []any{logged["element"], logged["level"], logged["msg"]})
		require.NotEmpty(t, logged["host"])
	}},
	{"Element Discovery", func(t *testing.T, s *specSystem) {
		names, err := s.e.Elements(s.ctx)
		require.NoError(t, err)
		require.Equal(t, []string{"e", "other"}, names)
	}},
	{"Stream Discovery", func(t *testing.T, s *specSystem) {
		write(t, s.e, "s", map[string]any{"x": 1})
		write(t, s.other, "t", map[string]any{"x": 1})
		names, err := s.e.Streams(s.ctx, "")
		require.NoError(t, err)
		require.Equal(t, []atom.StreamName{{Element: "e", Stream: "s"}, {Element: "other", Stream: "t"}}, names)
		names, err = s.e.Streams(s.ctx, "other")
		require.NoError(t, err)
		require.Equal(t, []atom.StreamName{{Element: "other", Stream: "t"}}, names)
	}},
	{"Get Element Version", func(t *testing.T, s *specSystem) {
		serve(t, s.e, 1)
		version, err := s.other.ElementVersion(s.ctx, "e")
		require.NoError(t, err)
		require.Equal(t, atom.VersionInfo{Language: "Go", Version: 1}, version)
	}},
	{"Set Healthcheck", func(t *testing.T, s *specSystem) {
		s.e.HealthcheckSet(func(context.Context) error { return errors.New("too hot") })
		serve(t, s.e, 1)
		require.ErrorContains(t, s.other.Healthcheck(s.ctx, "e"), "too hot")
	}},
	{"Wait for Elements Healthy", func(t *testing.T, s *specSystem) {
		serve(t, s.e, 1)
		require.NoError(t, s.other.WaitForElementsHealthy(s.ctx, []string{"e"}, time.Millisecond))
	}},
	{"Create Reference", func(t *testing.T, s *specSystem) {
		require.Equal(t, "reference:e:k:ser:none", s.reference(t))
		require.Equal(t, "v", s.r.Get(s.ctx, "reference:e:k:ser:none").Val())
	}},
	{"Get Reference", func(t *testing.T, s *specSystem) {
		found, err := s.other.ReferenceGet(s.ctx, []string{s.reference(t), "reference:e:none"}, atom.Decoding{})
		require.NoError(t, err)
		require.Equal(t, "v", found[0].String())
		require.False(t, found[1].Exists())
	}},
	{"Delete Reference", func(t *testing.T, s *specSystem) {
		ref := s.reference(t)
		require.NoError(t, s.other.ReferenceDelete(s.ctx, ref))
		require.NoError(t, s.other.ReferenceDelete(s.ctx, ref), "it is gone already")
		require.Zero(t, s.r.Exists(s.ctx, ref).Val())
	}},
	{"Create Reference From Stream", func(t *testing.T, s *specSystem) {
		first := s.writeThree(t)
		for id, want := range map[string]string{"": "3", first: "1"} {
			refs, err := s.other.ReferenceCreateFromStream(s.ctx, "e", "s", id, atom.NoTimeout)
			require.NoError(t, err)
			require.Equal(t, want, s.r.Get(s.ctx, refs["x"]).Val())
		}
	}},
	{"Get Reference Time Remaining", func(t *testing.T, s *specSystem) {
		left, err := s.e.ReferenceTimeout(s.ctx, s.reference(t))
		require.NoError(t, err)
		require.Equal(t, atom.NoTimeout, left)
	}},
	{"Update reference timeout", func(t *testing.T, s *specSystem) {
		ref := s.reference(t)
		require.NoError(t, s.e.ReferenceSetTimeout(s.ctx, ref, time.Hour))
		require.Greater(t, s.r.PTTL(s.ctx, ref).Val(), 59*time.Minute)
		require.NoError(t, s.e.ReferenceSetTimeout(s.ctx, ref, 0))
		require.EqualValues(t, -1, s.r.PTTL(s.ctx, ref).Val())
	}},
	{"Write Parameter", func(t *testing.T, s *specSystem) {
		s.parameter(t, "p")
		require.Equal(t, map[string]string{"x": "1", "ser": "none", "override": "true"},
			s.r.HGetAll(s.ctx, "parameter:p").Val())
	}},
	{"Read Parameter", func(t *testing.T, s *specSystem) {
		s.parameter(t, "p")
		fields, err := s.other.ParameterRead(s.ctx, "p", atom.Decoding{})
		require.NoError(t, err)
		require.Len(t, fields, 1)
		require.Equal(t, "1", fields["x"].String())
	}},
	{"Delete Parameter", func(t *testing.T, s *specSystem) {
		s.parameter(t, "p")
		require.NoError(t, s.e.ParameterDelete(s.ctx, "p"))
		require.ErrorIs(t, s.e.ParameterDelete(s.ctx, "p"), atom.ErrNotFound)
	}},
	{"Get Parameter Time Remaining", func(t *testing.T, s *specSystem) {
		s.parameter(t, "p")
		left, err := s.e.ParameterTimeout(s.ctx, "p")
		require.NoError(t, err)
		require.Equal(t, atom.NoTimeout, left)
	}},
	{"Update parameter timeout", func(t *testing.T, s *specSystem) {
		s.parameter(t, "p")
		require.NoError(t, s.e.ParameterSetTimeout(s.ctx, "p", time.Hour))
		require.Greater(t, s.r.PTTL(s.ctx, "parameter:p").Val(), 59*time.Minute)
		require.NoError(t, s.e.ParameterSetTimeout(s.ctx, "p", 0))
		require.EqualValues(t, -1, s.r.PTTL(s.ctx, "parameter:p").Val())
	}},
	{"List Parameters", func(t *testing.T, s *specSystem) {
		for _, key := range []string{"str11", "str2", "spr2"} {
			s.parameter(t, key)
		}
		for pattern, want := range map[string][]string{"": {"spr2", "str11", "str2"}, "str*": {"str11", "str2"},
			"s?r2": {"spr2", "str2"}} {
			keys, err := s.e.ParameterList(s.ctx, pattern)
			require.NoError(t, err)
			require.Equal(t, want, keys)
		}
	}},
	{"Set Counter", func(t *testing.T, s *specSystem) {
		s.counted(t, 10)(s.e.CounterSet(s.ctx, "k", 10))
	}},
	{"Get Counter", func(t *testing.T, s *specSystem) {
		s.counted(t, 10)(s.e.CounterSet(s.ctx, "k", 10))
		s.counted(t, 10)(s.other.CounterGet(s.ctx, "k"))
	}},
	{"Update Counter", func(t *testing.T, s *specSystem) {
		s.counted(t, 3)(s.e.CounterUpdate(s.ctx, "k", 3))
		s.counted(t, -2)(s.e.CounterUpdate(s.ctx, "k", -5))
	}},
	{"Delete Counter", func(t *testing.T, s *specSystem) {
		s.counted(t, 1)(s.e.CounterSet(s.ctx, "k", 1))
		require.NoError(t, s.e.CounterDelete(s.ctx, "k"))
		require.Zero(t, s.r.Exists(s.ctx, "counter:k").Val())
	}},
	{"Add to / Create sorted set", func(t *testing.T, s *specSystem) {
		s.sortedSet(t)
		require.EqualValues(t, 1.5, s.r.ZScore(s.ctx, "sorted_set:z", "low").Val())
	}},
	{"Pop from a sorted set", func(t *testing.T, s *specSystem) {
		s.sortedSet(t)
		for _, maximum := range []bool{false, true} {
			popped, err := s.e.SortedSetPop(s.ctx, "z", maximum)
			require.NoError(t, err)
			require.Equal(t, map[bool]atom.Member{false: {Name: "low", Value: 1.5}, true: {Name: "top", Value: 3}}[maximum],
				popped)
		}
	}},
	{"Read a member of sorted set", func(t *testing.T, s *specSystem) {
		s.sortedSet(t)
		value, err := s.e.SortedSetRead(s.ctx, "z", "low")
		require.NoError(t, err)
		require.Equal(t, 1.5, value)
	}},
	{"Remove a member of sorted set", func(t *testing.T, s *specSystem) {
		s.sortedSet(t)
		require.NoError(t, s.e.SortedSetRemove(s.ctx, "z", "low"))
		require.Equal(t, []string{"mid", "top"}, s.r.ZRange(s.ctx, "sorted_set:z", 0, -1).Val())
	}},
	{"Read a range of a sorted set", func(t *testing.T, s *specSystem) {
		s.sortedSet(t)
		members, err := s.e.SortedSetRange(s.ctx, "z", 0, 1, true)
		require.NoError(t, err)
		require.Equal(t, []atom.Member{{Name: "top", Value: 3}, {Name: "mid", Value: 2}}, members)
		names, err := s.e.SortedSetNames(s.ctx, "z", 0, -1, false)
		require.NoError(t, err)
		require.Equal(t, []string{"low", "mid", "top"}, names)
	}},
	{"Error Codes", func(t *testing.T, s *specSystem) {
		serve(t, s.e, 1)
		_, err := s.other.CommandSend(s.ctx, "e", "missing", nil, atom.SendOptions{AckTimeout: long})
		require.ErrorIs(t, err, atom.UnsupportedCommand)
		_, err = s.other.CommandSend(s.ctx, "nobody", "x", nil, atom.SendOptions{AckTimeout: time.Millisecond})
		require.ErrorIs(t, err, atom.NoAck)
	}},
}

func TestSpecification(t *testing.T) {
	onEachServer(t, func(t *testing.T, r *redis.Client) {
		for _, s := range specification {
			t.Run(s.section, func(t *testing.T) {
				require.NoError(t, r.FlushAll(t.Context()).Err())
				s.test(t, &specSystem{t.Context(), r, element(t, r, "e"), element(t, r, "other")})
			})
		}
	})
}

// specSystem has two elements, e and other.
type specSystem struct {
	ctx      context.Context
	r        *redis.Client
	e, other *atom.Element
}

// writeThree writes entries whose field x is 1, 2 and 3 to the stream s of e, and returns the ID of the first.
func (s *specSystem) writeThree(t *testing.T) (first string) {
	first = write(t, s.e, "s", map[string]any{"x": "1"})
	write(t, s.e, "s", map[string]any{"x": "2"})
	write(t, s.e, "s", map[string]any{"x": "3"})
	return first
}

func values(entries []atom.Entry) (x []string) {
	for _, e := range entries {
		x = append(x, e.Fields["x"].String())
	}
	return x
}

// reference makes a reference to "v".
func (s *specSystem) reference(t *testing.T) string {
	refs, err := s.e.ReferenceCreate(s.ctx, []any{"v"},
		atom.ReferenceOptions{Keys: []string{"k"}, Timeout: atom.NoTimeout})
	require.NoError(t, err)
	return refs[0]
}

// parameter writes a parameter whose field x is 1.
func (s *specSystem) parameter(t *testing.T, key string) {
	_, err := s.e.ParameterWrite(s.ctx, key, map[string]any{"x": "1"}, atom.ParameterOptions{})
	require.NoError(t, err)
}

// counted checks the result of an operation on the counter k, and that the server has stored it.
func (s *specSystem) counted(t *testing.T, want int64) func(got int64, err error) {
	return func(got int64, err error) {
		require.NoError(t, err)
		require.Equal(t, want, got)
		stored, err := s.r.Get(s.ctx, "counter:k").Int64()
		require.NoError(t, err)
		require.Equal(t, want, stored)
	}
}

// sortedSet makes a sorted set of three members.
func (s *specSystem) sortedSet(t *testing.T) {
	for name, value := range map[string]float64{"low": 1.5, "mid": 2, "top": 3} {
		_, err := s.e.SortedSetAdd(s.ctx, "z", name, value)
		require.NoError(t, err)
	}
}
