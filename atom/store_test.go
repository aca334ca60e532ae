package atom_test

import (
	"context"
	"encoding/hex"
	"fmt"
	"math"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/atom"
)

func TestReferences(t *testing.T) {
	onEachServer(t, func(t *testing.T, r *redis.Client) {
		ctx := t.Context()
		e := element(t, r, "robot")
		rec := record(r)
		t.Run("SET NX PX on reference:<element>:<uuid>:ser:<ser>", func(t *testing.T) {
			refs, err := e.ReferenceCreate(ctx, []any{"hello", []byte("\x00")}, atom.ReferenceOptions{})
			require.NoError(t, err)
			sent := rec.take()
			for i, ref := range refs {
				require.Regexp(t, `^reference:robot:[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}:ser:none$`, ref)
				require.Equal(t, fmt.Sprintf("SET %s %s nx px 10000", ref, []string{"hello", "\x00"}[i]), sent[i])
				left, err := e.ReferenceTimeout(ctx, ref)
				require.NoError(t, err)
				require.Greater(t, left, 5*time.Second, "the default is 10000")
				require.LessOrEqual(t, left, 10*time.Second)
			}
			values, err := e.ReferenceGet(ctx, refs, atom.Decoding{})
			require.NoError(t, err)
			require.Equal(t, "hello", values[0].String())
			require.Equal(t, "\x00", values[1].String())
			require.NoError(t, e.ReferenceDelete(ctx, refs...))
			require.NoError(t, e.ReferenceDelete(ctx, refs...), "gone already")
			values, err = e.ReferenceGet(ctx, refs, atom.Decoding{})
			require.NoError(t, err)
			require.False(t, values[0].Exists())
			require.False(t, values[1].Exists())
		})
		t.Run("keys", func(t *testing.T) {
			rec.take()
			refs, err := e.ReferenceCreate(ctx, []any{"a", ""},
				atom.ReferenceOptions{Keys: []string{"k1", "k2"}, Timeout: atom.NoTimeout})
			require.NoError(t, err)
			require.Equal(t, []string{"reference:robot:k1:ser:none", "reference:robot:k2:ser:none"}, refs)
			require.Equal(t, []string{"SET reference:robot:k1:ser:none a nx", "SET reference:robot:k2:ser:none  nx"}, rec.take())
			left, err := e.ReferenceTimeout(ctx, refs[0])
			require.NoError(t, err)
			require.Equal(t, atom.NoTimeout, left)
			values, err := e.ReferenceGet(ctx, refs, atom.Decoding{})
			require.NoError(t, err)
			require.True(t, values[1].Exists(), "empty is not missing")
			_, err = e.ReferenceCreate(ctx, []any{"new", "x"}, atom.ReferenceOptions{Keys: []string{"k3", "k1"}})
			require.ErrorIs(t, err, atom.ErrExists)
			require.ErrorContains(t, err, "reference:robot:k1:ser:none")
			require.Zero(t, r.Exists(ctx, "reference:robot:k3:ser:none").Val(), "all or none")
			require.Equal(t, "a", r.Get(ctx, refs[0]).Val())
			for _, keys := range [][]string{{"one"}, {"", "x"}} {
				_, err = e.ReferenceCreate(ctx, []any{"a", "b"}, atom.ReferenceOptions{Keys: keys})
				require.ErrorIs(t, err, atom.InternalError)
			}
			_, err = e.ReferenceCreate(ctx, nil, atom.ReferenceOptions{})
			require.ErrorIs(t, err, atom.InternalError)
		})
		t.Run("serialization", func(t *testing.T) {
			refs, err := e.ReferenceCreate(ctx, []any{map[string]any{"hello": "world"}},
				atom.ReferenceOptions{Serialization: atom.Msgpack})
			require.NoError(t, err)
			require.True(t, strings.HasSuffix(refs[0], ":ser:msgpack"))
			values, err := e.ReferenceGet(ctx, refs, atom.Decoding{})
			require.NoError(t, err)
			value, err := values[0].Any()
			require.NoError(t, err)
			require.Equal(t, map[string]any{"hello": "world"}, value)
			values, err = e.ReferenceGet(ctx, refs, atom.Decoding{Force: true})
			require.NoError(t, err)
			value, err = values[0].Any()
			require.NoError(t, err)
			require.Equal(t, []byte("\x81\xa5hello\xa5world"), value)
			require.NoError(t, r.Set(ctx, "reference:python:u:ser:arrow", "x", 0).Err())
			values, err = e.ReferenceGet(ctx, []string{"reference:python:u:ser:arrow"}, atom.Decoding{})
			require.NoError(t, err)
			require.ErrorIs(t, values[0].Decode(&value), atom.DeserializationError)
			require.NoError(t, r.Set(ctx, "reference:c:plain", "\x05", 0).Err())
			values, err = e.ReferenceGet(ctx, []string{"reference:c:plain"}, atom.Decoding{Serialization: atom.Msgpack})
			require.NoError(t, err)
			require.NoError(t, values[0].Decode(&value), "without ser in the reference the reader's choice counts")
			require.Equal(t, int64(5), value)
		})
		t.Run("timeouts", func(t *testing.T) {
			refs, err := e.ReferenceCreate(ctx, []any{"x", "y"}, atom.ReferenceOptions{Timeout: time.Microsecond})
			require.NoError(t, err)
			waitFor(t, "expiry", func() bool { return r.Exists(ctx, refs...).Val() == 0 })
			_, err = e.ReferenceTimeout(ctx, refs[0])
			require.ErrorIs(t, err, atom.ErrNotFound)
			for _, timeout := range []time.Duration{0, time.Second} {
				require.ErrorIs(t, e.ReferenceSetTimeout(ctx, refs[0], timeout), atom.ErrNotFound)
			}
			refs, err = e.ReferenceCreate(ctx, []any{"x"}, atom.ReferenceOptions{})
			require.NoError(t, err)
			for _, none := range []time.Duration{0, atom.NoTimeout, 0} {
				require.NoError(t, e.ReferenceSetTimeout(ctx, refs[0], none))
				require.EqualValues(t, -1, r.PTTL(ctx, refs[0]).Val())
			}
			require.NoError(t, e.ReferenceSetTimeout(ctx, refs[0], time.Hour))
			left, err := e.ReferenceTimeout(ctx, refs[0])
			require.NoError(t, err)
			require.InDelta(t, time.Hour, left, float64(time.Minute))
		})
		t.Run("what is no reference is left alone", func(t *testing.T) {
			require.ErrorIs(t, e.ReferenceDelete(ctx, "command:robot"), atom.InternalError)
			_, err := e.ReferenceGet(ctx, []string{"command:robot"}, atom.Decoding{})
			require.ErrorIs(t, err, atom.InternalError)
		})
	})
}

// The keys are reference:<element>:<uuid>:ser:<ser>:<field>, one for each field except ser.
func TestReferenceCreateFromStream(t *testing.T) {
	onEachServer(t, func(t *testing.T, r *redis.Client) {
		ctx := t.Context()
		for _, name := range append(strange, "robot") {
			e := element(t, r, name)
			data := map[string]any{"b": []byte("\x00two"), name: "named", "a:ser:x": "", "": "unnamed"}
			first := write(t, e, name, data)
			_, err := e.EntryWrite(ctx, name, map[string]any{"v": []int{3}}, atom.WriteOptions{Serialization: atom.Msgpack})
			require.NoError(t, err)

			refs, err := e.ReferenceCreateFromStream(ctx, name, name, first, atom.NoTimeout)
			require.NoError(t, err)
			require.Len(t, refs, 4)
			for field, ref := range refs {
				require.Regexp(t, `:ser:none:`, ref)
				require.EqualValues(t, -1, r.PTTL(ctx, ref).Val())
				values, err := e.ReferenceGet(ctx, []string{ref}, atom.Decoding{})
				require.NoError(t, err)
				require.Equal(t, fmt.Sprintf("%s", data[field]), values[0].String())
				require.NoError(t, values[0].Decode(new(string)))
			}
			refs, err = e.ReferenceCreateFromStream(ctx, name, name, "", 0)
			require.NoError(t, err)
			values, err := e.ReferenceGet(ctx, []string{refs["v"]}, atom.Decoding{})
			require.NoError(t, err)
			var got []int
			require.NoError(t, values[0].Decode(&got))
			require.Equal(t, []int{3}, got)
			left, err := e.ReferenceTimeout(ctx, refs["v"])
			require.NoError(t, err)
			require.LessOrEqual(t, left, 10*time.Second)

			for _, missing := range [][2]string{{"none", ""}, {name, "1-1"}} {
				_, err = e.ReferenceCreateFromStream(ctx, name, missing[0], missing[1], 0)
				require.ErrorIs(t, err, atom.ErrNotFound)
			}
			_, err = e.ReferenceCreateFromStream(ctx, name, name, "nonsense", 0)
			require.ErrorIs(t, err, atom.RedisError)
		}
		// A server that has forgotten the script gets it again.
		require.NoError(t, r.ScriptFlush(ctx).Err())
		e := element(t, r, "again")
		write(t, e, "s", map[string]any{"x": 1})
		_, err := e.ReferenceCreateFromStream(ctx, "again", "s", "", 0)
		require.NoError(t, err)
	})
}

// A parameter is a hash parameter:<key> of the fields, with ser and override.
func TestParameters(t *testing.T) {
	onEachServer(t, func(t *testing.T, r *redis.Client) {
		ctx := t.Context()
		e := element(t, r, "robot")
		text := func(fields map[string]atom.Value) map[string]string {
			all := map[string]string{}
			for name, v := range fields {
				all[name] = v.String()
			}
			return all
		}
		t.Run("write and read", func(t *testing.T) {
			names, err := e.ParameterWrite(ctx, "gains", map[string]any{"p": 0.5, "i": 2, "\x00": "\xff"},
				atom.ParameterOptions{})
			require.NoError(t, err)
			require.Equal(t, []string{"\x00", "i", "p"}, names)
			require.Equal(t, map[string]string{"p": "0.5", "i": "2", "\x00": "\xff", "ser": "none", "override": "true"},
				r.HGetAll(ctx, "parameter:gains").Val())
			require.EqualValues(t, -1, r.PTTL(ctx, "parameter:gains").Val())
			all, err := e.ParameterRead(ctx, "gains", atom.Decoding{})
			require.NoError(t, err)
			require.Equal(t, map[string]string{"p": "0.5", "i": "2", "\x00": "\xff"}, text(all))
			some, err := e.ParameterRead(ctx, "gains", atom.Decoding{}, "p", "missing")
			require.NoError(t, err)
			require.Equal(t, map[string]string{"p": "0.5"}, text(some))
			_, err = e.ParameterWrite(ctx, "gains", map[string]any{"p": 1, "d": 3}, atom.ParameterOptions{})
			require.NoError(t, err)
			all, err = e.ParameterRead(ctx, "gains", atom.Decoding{})
			require.NoError(t, err)
			require.Equal(t, map[string]string{"p": "1", "i": "2", "d": "3", "\x00": "\xff"}, text(all))
			_, err = e.ParameterRead(ctx, "none", atom.Decoding{})
			require.ErrorIs(t, err, atom.ErrNotFound)
			for _, bad := range []map[string]any{nil, {"ser": 1}, {"override": 1}} {
				_, err = e.ParameterWrite(ctx, "gains", bad, atom.ParameterOptions{})
				require.ErrorIs(t, err, atom.InternalError)
			}
		})
		t.Run("the serialization stays", func(t *testing.T) {
			_, err := e.ParameterWrite(ctx, "packed", map[string]any{"v": []int{1}},
				atom.ParameterOptions{Serialization: atom.Msgpack})
			require.NoError(t, err)
			_, err = e.ParameterWrite(ctx, "packed", map[string]any{"w": "x"}, atom.ParameterOptions{})
			require.ErrorContains(t, err, `its serialization is "msgpack", not "none"`)
			_, err = e.ParameterWrite(ctx, "packed", map[string]any{"w": true},
				atom.ParameterOptions{Serialization: atom.Msgpack})
			require.NoError(t, err)
			all, err := e.ParameterRead(ctx, "packed", atom.Decoding{})
			require.NoError(t, err)
			v, err := all["v"].Any()
			require.NoError(t, err)
			require.Equal(t, []any{int64(1)}, v)
			require.Len(t, all, 2)
		})
		t.Run("override false", func(t *testing.T) {
			_, err := e.ParameterWrite(ctx, "fixed", map[string]any{"a": 1}, atom.ParameterOptions{NoOverride: true})
			require.NoError(t, err)
			require.Equal(t, "false", r.HGet(ctx, "parameter:fixed", "override").Val())
			_, err = e.ParameterWrite(ctx, "fixed", map[string]any{"b": 1, "a": 2}, atom.ParameterOptions{})
			require.ErrorIs(t, err, atom.ErrNoOverride)
			require.Equal(t, map[string]string{"a": "1", "ser": "none", "override": "false"},
				r.HGetAll(ctx, "parameter:fixed").Val(), "all or none")
			_, err = e.ParameterWrite(ctx, "fixed", map[string]any{"b": 1}, atom.ParameterOptions{})
			require.NoError(t, err, "new fields are allowed")
			require.Equal(t, "false", r.HGet(ctx, "parameter:fixed", "override").Val(), "and false stays false")
			_, err = e.ParameterWrite(ctx, "free", map[string]any{"a": 1}, atom.ParameterOptions{})
			require.NoError(t, err)
			_, err = e.ParameterWrite(ctx, "free", map[string]any{"a": 2}, atom.ParameterOptions{NoOverride: true})
			require.NoError(t, err, "true can become false")
			require.Equal(t, "false", r.HGet(ctx, "parameter:free", "override").Val())
		})
		t.Run("a parameter of Python", func(t *testing.T) {
			for _, set := range [][2]string{{"str1", "\xa2hi"}, {"ser", "msgpack"}, {"override", "true"}} {
				require.NoError(t, r.HSet(ctx, "parameter:python", set[0], set[1]).Err())
			}
			all, err := e.ParameterRead(ctx, "python", atom.Decoding{})
			require.NoError(t, err)
			v, err := all["str1"].Any()
			require.NoError(t, err)
			require.Equal(t, "hi", v)
		})
		t.Run("timeouts and deletion", func(t *testing.T) {
			_, err := e.ParameterWrite(ctx, "gains", map[string]any{"p": 1}, atom.ParameterOptions{Timeout: time.Hour})
			require.NoError(t, err)
			left, err := e.ParameterTimeout(ctx, "gains")
			require.NoError(t, err)
			require.InDelta(t, time.Hour, left, float64(time.Minute))
			require.NoError(t, e.ParameterSetTimeout(ctx, "gains", 0))
			left, err = e.ParameterTimeout(ctx, "gains")
			require.NoError(t, err)
			require.Equal(t, atom.NoTimeout, left)
			require.NoError(t, e.ParameterSetTimeout(ctx, "gains", time.Minute))
			require.NoError(t, e.ParameterDelete(ctx, "gains"))
			require.ErrorIs(t, e.ParameterDelete(ctx, "gains"), atom.ErrNotFound)
			require.ErrorIs(t, e.ParameterSetTimeout(ctx, "gains", time.Minute), atom.ErrNotFound)
			_, err = e.ParameterTimeout(ctx, "gains")
			require.ErrorIs(t, err, atom.ErrNotFound)
		})
		t.Run("list", func(t *testing.T) {
			for _, key := range []string{"str11", "str2", "spr2", "[x]"} {
				_, err := e.ParameterWrite(ctx, key, map[string]any{"k": 1}, atom.ParameterOptions{})
				require.NoError(t, err)
			}
			for pattern, want := range map[string][]string{
				"str*": {"str11", "str2"}, "s?r2": {"spr2", "str2"}, `\[x\]`: {"[x]"}, "none*": nil,
				"": {"[x]", "fixed", "free", "packed", "python", "spr2", "str11", "str2"},
			} {
				keys, err := e.ParameterList(ctx, pattern)
				require.NoError(t, err)
				require.Equal(t, want, keys, pattern)
			}
		})
	})
}

func TestCounters(t *testing.T) {
	onEachServer(t, func(t *testing.T, r *redis.Client) {
		ctx := t.Context()
		e := element(t, r, "robot")
		value, err := e.CounterSet(ctx, "c", 10)
		require.NoError(t, err)
		require.EqualValues(t, 10, value)
		for _, step := range []struct{ change, want int64 }{{2, 12}, {-5, 7}} {
			value, err = e.CounterUpdate(ctx, "c", step.change)
			require.NoError(t, err)
			require.Equal(t, step.want, value)
		}
		require.Equal(t, "7", r.Get(ctx, "counter:c").Val())
		value, err = e.CounterUpdate(ctx, "new\x00 one", 3)
		require.NoError(t, err)
		require.EqualValues(t, 3, value)
		value, err = e.CounterGet(ctx, "new\x00 one")
		require.NoError(t, err)
		require.EqualValues(t, 3, value)
		require.NoError(t, e.CounterDelete(ctx, "c"))
		require.NoError(t, e.CounterDelete(ctx, "c"))
		_, err = e.CounterGet(ctx, "c")
		require.ErrorIs(t, err, atom.ErrNotFound)
		_, err = e.CounterSet(ctx, "max", math.MaxInt64)
		require.NoError(t, err)
		_, err = e.CounterUpdate(ctx, "max", 1)
		require.ErrorIs(t, err, atom.RedisError)
	})
}

func TestSortedSets(t *testing.T) {
	onEachServer(t, func(t *testing.T, r *redis.Client) {
		ctx := t.Context()
		e := element(t, r, "robot")
		for i, m := range []atom.Member{{"thousand", 1000}, {"half", 0.5}, {"\x00", 1234567.123456789}, {"", -3.25}} {
			size, err := e.SortedSetAdd(ctx, "z", m.Name, m.Value)
			require.NoError(t, err)
			require.EqualValues(t, i+1, size)
		}
		up := []atom.Member{{"", -3.25}, {"half", 0.5}, {"thousand", 1000}, {"\x00", 1234567.123456789}}
		all, err := e.SortedSetRange(ctx, "z", 0, -1, false)
		require.NoError(t, err)
		require.Equal(t, up, all)
		all, err = e.SortedSetRange(ctx, "z", 1, 2, true)
		require.NoError(t, err)
		require.Equal(t, []atom.Member{up[2], up[1]}, all)
		names, err := e.SortedSetNames(ctx, "z", 0, 1, false)
		require.NoError(t, err)
		require.Equal(t, []string{"", "half"}, names)
		names, err = e.SortedSetNames(ctx, "z", 0, 0, true)
		require.NoError(t, err)
		require.Equal(t, []string{"\x00"}, names)
		value, err := e.SortedSetRead(ctx, "z", "half")
		require.NoError(t, err)
		require.Equal(t, 0.5, value)
		_, err = e.SortedSetRead(ctx, "z", "none")
		require.ErrorIs(t, err, atom.ErrNotFound)
		require.NoError(t, e.SortedSetRemove(ctx, "z", "half"))
		require.NoError(t, e.SortedSetRemove(ctx, "z", "half"))
		least, err := e.SortedSetPop(ctx, "z", false)
		require.NoError(t, err)
		require.Equal(t, up[0], least)
		most, err := e.SortedSetPop(ctx, "z", true)
		require.NoError(t, err)
		require.Equal(t, up[3], most)
		last, err := e.SortedSetPopWait(ctx, "z", true, long)
		require.NoError(t, err)
		require.Equal(t, up[2], last)
		_, err = e.SortedSetPop(ctx, "z", true)
		require.ErrorIs(t, err, atom.ErrNotFound)
		for _, limit := range []time.Duration{0, time.Millisecond} {
			_, err = e.SortedSetPopWait(ctx, "z", false, limit)
			require.ErrorIs(t, err, atom.ErrNotFound)
		}
		_, err = e.SortedSetAdd(ctx, "z", "m", 1)
		require.NoError(t, err)
		require.NoError(t, e.SortedSetDelete(ctx, "z"))
		size, err := e.SortedSetSize(ctx, "z")
		require.NoError(t, err)
		require.Zero(t, size)
	})
}

func names(t *testing.T, items []atom.Item) []string {
	all := []string{}
	for _, item := range items {
		v, err := item.Value.Any()
		require.NoError(t, err)
		all = append(all, fmt.Sprint(v))
	}
	return all
}

func TestPriorityQueue(t *testing.T) {
	onEachServer(t, func(t *testing.T, r *redis.Client) {
		ctx := t.Context()
		e := element(t, r, "robot")
		for _, test := range []struct {
			maximum     bool
			order, over []string
		}{{false, []string{"a", "b", "c"}, []string{"z"}}, {true, []string{"c", "b", "a"}, []string{"z"}}} {
			q := e.PriorityQueue("p", atom.QueueOptions{MaxLen: 3, Maximum: test.maximum})
			for name, priority := range map[string]float64{"c": 3, "a": 1, "b": 2.5} {
				_, dropped, err := q.Put(ctx, name, priority)
				require.NoError(t, err)
				require.Empty(t, dropped)
			}
			require.EqualValues(t, 3, r.ZCard(ctx, "sorted_set:atom-prio-queue-p").Val())
			least := 9.0
			if test.maximum {
				least = -9
			}
			size, dropped, err := q.Put(ctx, "z", least)
			require.NoError(t, err)
			require.EqualValues(t, 3, size)
			require.Equal(t, test.over, names(t, dropped), "what has least priority goes")
			items, err := q.PeekN(ctx, 2)
			require.NoError(t, err)
			require.Equal(t, test.order[:2], names(t, items))
			items, err = q.PeekN(ctx, 0)
			require.NoError(t, err)
			require.Empty(t, items)
			item, err := q.Get(ctx, 0)
			require.NoError(t, err)
			require.Equal(t, test.order[:1], names(t, []atom.Item{item}))
			items, err = q.GetN(ctx, 10)
			require.NoError(t, err)
			require.Equal(t, test.order[1:], names(t, items))
			size, err = q.Size(ctx)
			require.NoError(t, err)
			require.Zero(t, size)
			_, err = q.Get(ctx, 0)
			require.ErrorIs(t, err, atom.ErrNotFound)
			_, err = q.Get(ctx, time.Millisecond)
			require.ErrorIs(t, err, atom.ErrNotFound)
			_, _, err = q.Put(ctx, "x", math.NaN())
			require.ErrorIs(t, err, atom.InternalError)
			_, _, err = q.Put(ctx, "x", 1)
			require.NoError(t, err)
			require.NoError(t, q.Delete(ctx))
		}
		packed := e.PriorityQueue("m", atom.QueueOptions{Serialization: atom.Msgpack})
		_, _, err := packed.Put(ctx, []string{"x"}, 1)
		require.NoError(t, err)
		require.Equal(t, []string{"\x91\xa1x"}, r.ZRange(ctx, "sorted_set:atom-prio-queue-m", 0, -1).Val())
	})
}

// Put sends ZADD and ZCARD in one pipeline, Get sends BZPOPMIN.
func TestQueueCommands(t *testing.T) {
	onEachServer(t, func(t *testing.T, r *redis.Client) {
		ctx := t.Context()
		e := element(t, r, "robot")
		rec := record(r)
		q := e.PriorityQueue("p", atom.QueueOptions{MaxLen: 1, Serialization: atom.None})
		for i := range 2 {
			_, _, err := q.Put(ctx, fmt.Sprint(i), float64(i)+0.5)
			require.NoError(t, err)
		}
		_, err := q.Get(ctx, -1)
		require.NoError(t, err)
		key := "sorted_set:atom-prio-queue-p"
		require.Equal(t, []string{"ZADD " + key + " 0.5 0", "ZCARD " + key, "ZADD " + key + " 1.5 1", "ZCARD " + key,
			"ZPOPMAX " + key, "ZCARD " + key, "BZPOPMIN " + key + " 0.1"}, rec.take())
	})
}

func TestFIFOQueueKeepsOrderAndDropsTheOldest(t *testing.T) {
	onEachServer(t, func(t *testing.T, r *redis.Client) {
		ctx := t.Context()
		e := element(t, r, "robot")
		q := e.FIFOQueue("f", atom.QueueOptions{MaxLen: 100})
		var over []string
		for i := range 150 {
			_, dropped, err := q.Put(ctx, i)
			require.NoError(t, err)
			over = append(over, names(t, dropped)...)
		}
		require.Len(t, over, 50)
		require.Equal(t, "0", over[0])
		for i := 50; i < 150; i++ {
			item, err := q.Get(ctx, long)
			require.NoError(t, err)
			var n int
			require.NoError(t, item.Value.Decode(&n))
			require.Equal(t, i, n)
		}
		for i, at := range []float64{3, 1, 2} {
			_, _, err := q.PutAt(ctx, i, at)
			require.NoError(t, err)
		}
		items, err := q.PeekN(ctx, 5)
		require.NoError(t, err)
		require.Equal(t, []string{"1", "2", "0"}, names(t, items))
	})
}

func TestQueueLosesAndDoublesNothing(t *testing.T) {
	onEachServer(t, func(t *testing.T, r *redis.Client) {
		e := element(t, r, "robot")
		q := e.FIFOQueue("f", atom.QueueOptions{MaxLen: 10000})
		const producers, each, consumers = 4, 100, 4
		ctx, cancel := context.WithTimeout(t.Context(), long)
		defer cancel()
		got := make(chan string, producers*each)
		errs := make(chan error, producers*each)
		var working sync.WaitGroup
		for p := range producers {
			working.Go(func() {
				for i := range each {
					if _, _, err := q.Put(ctx, fmt.Sprintf("%d-%d", p, i)); err != nil {
						errs <- err
					}
				}
			})
		}
		for range consumers {
			working.Go(func() {
				for len(got) < cap(got) {
					// A context that ends while an item comes must not lose the item.
					once, cancel := context.WithTimeout(ctx, 5*time.Millisecond)
					item, err := q.Get(once, -1)
					cancel()
					if err == nil {
						v, _ := item.Value.Any()
						got <- v.(string)
					} else if ctx.Err() != nil {
						errs <- err
						return
					}
				}
			})
		}
		working.Wait()
		close(got)
		require.Empty(t, errs)
		seen := map[string]bool{}
		for name := range got {
			require.False(t, seen[name], name)
			seen[name] = true
		}
		require.Len(t, seen, producers*each)
	})
}

// pythonPickles runs Python's own pickle module.
type pythonPickles struct{ t *testing.T }

func (p pythonPickles) run(program, stdin string) []string {
	python, err := exec.LookPath("python3")
	if err != nil {
		p.t.Skip("python3 is not installed, so its pickles were not tested")
	}
	cmd := exec.CommandContext(p.t.Context(), python, "-c", program)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	require.NoError(p.t, err, "%s", out)
	return strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
}

// dumps returns the pickles of the expressions, for one protocol after the other.
func (p pythonPickles) dumps(expressions []string, protocols string) []string {
	var pickles []string
	for _, line := range p.run("import pickle, sys, os\nfor line in open(0, encoding='utf-8').read().split('\\n'):\n for n in "+protocols+
		": print(pickle.dumps(eval(line), n).hex())", strings.Join(expressions, "\n")) {
		data, err := hex.DecodeString(line)
		require.NoError(p.t, err)
		pickles = append(pickles, string(data))
	}
	return pickles
}

// loads returns Python's text form of the values of pickles.
func (p pythonPickles) loads(pickles []string) []string {
	var lines []string
	for _, data := range pickles {
		lines = append(lines, hex.EncodeToString([]byte(data)))
	}
	return p.run("import pickle, sys\nfor line in sys.stdin: print(ascii(pickle.loads(bytes.fromhex(line))))",
		strings.Join(lines, "\n"))
}

// Items of queues are pickles: Go reads the items of Python, and Python those of Go.
func TestQueueItemsOfPython(t *testing.T) {
	onEachServer(t, func(t *testing.T, r *redis.Client) {
		ctx, python := t.Context(), pythonPickles{t}
		const key = "sorted_set:atom-prio-queue-q"
		q := element(t, r, "robot").PriorityQueue("q", atom.QueueOptions{})
		get := func(pickle string) atom.Value {
			require.NoError(t, r.ZAdd(ctx, key, redis.Z{Score: 1, Member: pickle}).Err())
			item, err := q.Get(ctx, long)
			require.NoError(t, err)
			return item.Value
		}
		values := map[string]any{
			"None": nil, "True": true, "False": false, "0": int64(0), "255": int64(255), "65535": int64(65535), "-1": int64(-1),
			"2**62": int64(1 << 62), "-2**63": int64(math.MinInt64), "2**64-1": uint64(math.MaxUint64), "1.5": 1.5,
			"'h\u00e9'": "h\u00e9",
			"'x'*300":   strings.Repeat("x", 300), "[]": []any{}, "()": []any{}, "(1,)": []any{int64(1)},
			"(1,2,3,4)":               []any{int64(1), int64(2), int64(3), int64(4)},
			"[1,['a','a'],(2,3)]":     []any{int64(1), []any{"a", "a"}, []any{int64(2), int64(3)}},
			"{'a':1,'b':[True,None]}": map[string]any{"a": int64(1), "b": []any{true, nil}},
			"{1:2,'x':3}":             map[any]any{int64(1): int64(2), "x": int64(3)},
			"(lambda x: [x,x])([1])":  []any{[]any{int64(1)}, []any{int64(1)}},
		}
		var expressions []string
		for expression := range values {
			expressions = append(expressions, expression)
		}
		for i, pickle := range python.dumps(expressions, "range(2, 6)") {
			got, err := get(pickle).Any()
			require.NoError(t, err, expressions[i/4])
			require.Equal(t, values[expressions[i/4]], got, expressions[i/4])
		}
		for _, pickle := range python.dumps([]string{`[b'\0\xff', b'y'*300]`}, "range(3, 6)") { // protocol 2 has no bytes
			got, err := get(pickle).Any()
			require.NoError(t, err)
			require.Equal(t, []any{[]byte("\x00\xff"), []byte(strings.Repeat("y", 300))}, got)
		}
		got, err := get(python.dumps([]string{"bytearray(b'x')"}, "[5]")[0]).Any()
		require.NoError(t, err)
		require.Equal(t, []byte("x"), got)
		_, err = get(python.dumps([]string{"os.system"}, "[4]")[0]).Any()
		require.ErrorContains(t, err, "Python objects")

		type point struct {
			X int `msgpack:"x"`
		}
		var pickles, want []string
		for _, test := range []struct {
			value any
			repr  string
		}{
			{nil, "None"}, {true, "True"}, {0, "0"}, {-1, "-1"}, {int64(math.MinInt64), "-9223372036854775808"},
			{int64(1 << 40), "1099511627776"},
			{uint64(math.MaxUint64), "18446744073709551615"}, {0.1, "0.1"}, {"h\u00e9\x00", `'h\xe9\x00'`},
			{[]byte("\x00\xff"), `b'\x00\xff'`},
			{strings.Repeat("x", 300), "'" + strings.Repeat("x", 300) + "'"}, {[]int{}, "[]"},
			{[]any{1, "a", []any{}}, "[1, 'a', []]"},
			{map[string]any{"b": 1, "a": nil}, "{'a': None, 'b': 1}"}, {map[any]any{5: "x"}, "{5: 'x'}"}, {point{7}, "{'x': 7}"},
			{[]point{{1}}, "[{'x': 1}]"},
		} {
			_, _, err := q.Put(ctx, test.value, 1)
			require.NoError(t, err)
			pickles = append(pickles, r.ZPopMin(ctx, key).Val()[0].Member.(string))
			want = append(want, test.repr)
		}
		require.Equal(t, want, python.loads(pickles))

		for _, bad := range []any{"\xff", time.Now(), make(chan int)} {
			_, _, err = q.Put(ctx, bad, 1)
			require.ErrorIs(t, err, atom.SerializationError)
		}
		_, _, err = q.Put(ctx, point{9}, 1)
		require.NoError(t, err)
		item, err := q.Get(ctx, 0)
		require.NoError(t, err)
		var p point
		require.NoError(t, item.Value.Decode(&p))
		require.Equal(t, point{9}, p)
	})
}
