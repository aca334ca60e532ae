package streams

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/atomredis/atomredis/engine/delta"
	"github.com/atomredis/atomredis/internal/testing/testseed"
)

// storage is what a store has of a value in parts.
type storage map[string]string

// write stores the changes up to the start of the checkpoint.
func (s storage) write(l *delta.Log, p delta.Parts) {
	for _, name := range l.Frozen().Sorted() {
		if data, ok := l.AppendFrozen(nil, name, p); ok {
			s[name] = string(data)
		} else {
			delete(s, name)
		}
	}
	l.Done()
}

// load builds the stream from its parts.
func (s storage) load(t require.TestingT, log *delta.Log) *Stream {
	l := NewLoader()
	for _, name := range slices.Sorted(maps.Keys(s)) {
		require.NoError(t, l.Add([]byte(name), []byte(s[name])), "%q", name)
	}
	stream, err := l.Finish(log)
	require.NoError(t, err)
	return stream
}

// dump describes everything in a stream.
func dump(s *Stream) []string {
	out := []string{fmt.Sprint("stream ", s.length, s.lastID, s.maxDeletedID, s.entriesAdded)}
	s.blocks.ascend(MinID, MaxID, func(b *block) bool {
		out = append(out, fmt.Sprintf("block %v %v %d %d %d %q", b.base, b.last, b.slots, b.live, b.dead, b.buf))
		return true
	})
	for _, g := range s.groups {
		out = append(out, fmt.Sprintf("group %q %v %d", g.Name, g.LastID, g.EntriesRead))
		for _, c := range g.consumers {
			out = append(out, fmt.Sprintf("consumer %q %d %d", c.Name, c.SeenTime, c.ActiveTime))
			c.Pending(MinID, MaxID, func(n *NACK) bool {
				out = append(out, fmt.Sprint(n.ID, n.DeliveryTime(), n.DeliveryCount))
				return true
			})
		}
		g.EachReleased(func(n *NACK) { out = append(out, fmt.Sprint("released ", n.ID, n.DeliveryCount)) })
	}
	if p := s.productions; p != nil {
		out = append(out, fmt.Sprint("producers ", p.Idempotence, p.added, p.duplicates, p.bytes))
		s.Productions(func(producer, iid []byte, entry ID) { out = append(out, fmt.Sprintf("%q %q %v", producer, iid, entry)) })
	}
	return out
}

// checkAll checks the invariants of a stream and its groups.
func checkAll(t require.TestingT, s *Stream) {
	check(t, s, collect(s, MinID, MaxID, false))
	require.True(t, slices.IsSortedFunc(s.groups, func(a, b *Group) int { return compareNames(a.Name, b.Name) }))
	for _, g := range s.groups {
		require.Same(t, s, g.stream)
		require.Equal(t, groupPart(g.Name), g.part)
		require.True(t, slices.IsSortedFunc(g.consumers, func(a, b *Consumer) int { return compareNames(a.Name, b.Name) }))
		model := map[ID]pendingModel{}
		for _, c := range g.consumers {
			require.Same(t, g, c.group)
			require.Equal(t, consumerPart(g.Name, c.Name), c.part)
			c.Pending(MinID, MaxID, func(n *NACK) bool {
				require.NotContains(t, model, n.ID)
				model[n.ID] = pendingModel{c.Name, n.DeliveryTime(), n.DeliveryCount}
				return true
			})
		}
		g.EachReleased(func(n *NACK) { model[n.ID] = pendingModel{released, n.time, n.DeliveryCount} })
		checkPending(t, g, model)
	}
	checkProductions(t, s.productions)
}

// checkProductions checks the invariants of a stream's record of its producers.
func checkProductions(t require.TestingT, p *productions) {
	if p == nil {
		return
	}
	n, bytes := 0, 0
	require.Len(t, p.producers, len(p.turns))
	for i, of := range p.turns {
		require.Equal(t, i, of.at)
		require.Same(t, of, p.producers[of.name])
		require.LessOrEqual(t, len(of.queue), p.MaxSize)
		require.True(t, slices.IsSortedFunc(of.queue, func(a, b production) int { return a.entry.Compare(b.entry) }))
		bytes += len(of.name)
		for _, made := range of.queue {
			require.Equal(t, made.entry, p.entries[made.part])
			bytes += len(made.part)
			n++
		}
	}
	require.Len(t, p.entries, n)
	require.Equal(t, bytes, p.bytes)
}

// anyReferences draws an outcome for references to trimmed entries.
func anyReferences(t *rapid.T) References {
	return rapid.SampledFrom([]References{KeepReferences, DeleteReferences, OnlyAcknowledged}).Draw(t, "references")
}

func compareNames(a, b string) int {
	if a < b {
		return -1
	}
	return 1
}

// anyChange returns all kinds of changes of a stream.
func anyChange(s func() *Stream) map[string]func(*rapid.T) {
	names := rapid.SampledFrom([]string{"", "a", "b", "ab", "abc"})
	now := int64(0)
	group := func(t *rapid.T) *Group {
		g, _ := s().CreateGroup([]byte(names.Draw(t, "group")), MinID, UnknownEntriesRead)
		return g
	}
	consumer := func(t *rapid.T, g *Group) *Consumer {
		now++
		c, _ := g.CreateConsumer([]byte(names.Draw(t, "consumer")), now)
		return c
	}
	anyID := func(t *rapid.T) ID {
		return ID{rapid.Uint64Range(0, s().LastID().Ms+1).Draw(t, "id"), rapid.Uint64Range(0, 1).Draw(t, "seq")}
	}
	few := func(t *rapid.T) int { return rapid.IntRange(1, 5).Draw(t, "count") }
	lim := Limits{Entries: 4}
	return map[string]func(*rapid.T){
		"append": func(t *rapid.T) {
			for i := range few(t) {
				fields := rapid.SampledFrom([][]string{{"f", "v"}, {"f", "another"}, {"g", "v", "h", ""}}).Draw(t, "fields")
				_ = s().Append(ID{s().LastID().Ms + uint64(i%2), s().LastID().Seq + 1}, byteSlices(fields), lim)
			}
		},
		"delete":         func(t *rapid.T) { s().Delete(anyID(t)) },
		"delete the end": func(*rapid.T) { e, _ := s().Last(); s().Delete(e.ID) },
		"delete a range": func(t *rapid.T) {
			start, ids := anyID(t), []ID{}
			s().Range(start, MaxID, false, func(e Entry) bool { ids = append(ids, e.ID); return len(ids) < 3 })
			for _, id := range ids {
				s().Delete(id)
			}
		},
		"trim": func(t *rapid.T) {
			s().TrimByLength(max(0, s().Len()-few(t)),
				Trim{Approx: rapid.Bool().Draw(t, "approx"), References: anyReferences(t)})
		},
		"trim by id": func(t *rapid.T) { s().TrimByMinID(anyID(t), Trim{Limit: 3, References: anyReferences(t)}) },
		"set id": func(t *rapid.T) {
			_ = s().SetID(ID{s().LastID().Ms + rapid.Uint64Range(0, 1).Draw(t, "ms"), 0},
				rapid.Int64Range(-1, 100).Draw(t, "added"), anyID(t))
		},
		"create a group":    func(t *rapid.T) { group(t) },
		"destroy a group":   func(t *rapid.T) { s().DestroyGroup([]byte(names.Draw(t, "group"))) },
		"set a group":       func(t *rapid.T) { group(t).SetID(anyID(t), rapid.Int64Range(-1, 5).Draw(t, "read")) },
		"create a consumer": func(t *rapid.T) { consumer(t, group(t)) },
		"delete a consumer": func(t *rapid.T) { group(t).DeleteConsumer([]byte(names.Draw(t, "consumer"))) },
		"see a consumer":    func(t *rapid.T) { consumer(t, group(t)).Seen(now + 1) },
		"read": func(t *rapid.T) {
			g := group(t)
			g.ReadNew(s(), consumer(t, g), few(t), rapid.Bool().Draw(t, "noack"), now, func(Entry) {})
		},
		"read history": func(t *rapid.T) {
			g := group(t)
			g.ReadHistory(s(), consumer(t, g), anyID(t), few(t), now, func(Entry, bool) {})
		},
		"ack": func(t *rapid.T) { group(t).Ack(anyID(t)) },
		"release": func(t *rapid.T) {
			g, id := group(t), anyID(t)
			if n := g.FindPending(id); n != nil {
				g.Release(n, n.DeliveryCount+1)
			} else if s().Has(id) {
				g.AddReleased(id, 0)
			}
		},
		"remember producers": func(t *rapid.T) {
			s().SetIdempotence(Idempotence{rapid.IntRange(1, 2).Draw(t, "duration"), rapid.IntRange(1, 3).Draw(t, "size")})
		},
		"produce": func(t *rapid.T) {
			if s().Idempotence() == (Idempotence{}) {
				return
			}
			producer, iid := []byte(names.Draw(t, "producer")), []byte(names.Draw(t, "iid"))
			if _, ok := s().Produced(producer, iid, now); ok {
				s().Duplicate()
			} else {
				s().Produce(producer, iid, ID{rapid.Uint64Range(0, 5000).Draw(t, "entry"), 0})
			}
		},
		"claim": func(t *rapid.T) {
			g := group(t)
			g.Claim(s(), anyID(t), consumer(t, g), ClaimOptions{
				Now: now, DeliveryTime: now - 3, MinIdle: rapid.Int64Range(0, 9).Draw(t, "idle"), DeliveryCount: -1,
				Force: rapid.Bool().Draw(t, "force"),
			})
		},
		"claim what is idle": func(t *rapid.T) {
			g := group(t)
			g.ClaimIdle(s(), consumer(t, g), rapid.Int64Range(0, 9).Draw(t, "idle"), now, few(t), func(Entry, int64, int64) bool { return true })
		},
		"claim automatically": func(t *rapid.T) {
			g := group(t)
			g.AutoClaim(s(), consumer(t, g), anyID(t), rapid.Int64Range(0, 9).Draw(t, "idle"), now, few(t), false,
				func(*NACK, Entry) {})
		},
	}
}

func TestCheckpointsStoreTheStreamAsItWasWhenTheyBegan(t *testing.T) {
	testseed.Check(t, func(t *rapid.T) {
		epochs, stored := &delta.Epochs{Current: 1}, storage{}
		log, s := delta.NewLog(7, epochs), New()
		actions := anyChange(func() *Stream { return s })
		for i := range uint64(9) {
			add(t, s, Limits{Entries: 4}, ID{i + 1, 0})
		}
		g, _ := s.CreateGroup([]byte("a"), MinID, 0)
		c, _ := g.CreateConsumer([]byte("a"), 0)
		g.ReadNew(s, c, 5, false, 0, func(Entry) {})
		require.True(t, s.Large())
		s.Track(log)
		var frozen *Stream // the stream at the start of the unfinished checkpoint
		actions["change a clone"] = func(t *rapid.T) {
			clone := s.Clone()
			require.Nil(t, clone.Log())
			add(t, clone, DefaultLimits, ID{1000, 0})
			clone.TrimByLength(0, Trim{})
			for len(clone.Groups()) > 0 {
				g := clone.Groups()[0]
				g.SetID(MaxID, 1)
				clone.DestroyGroup([]byte(g.Name))
			}
		}
		actions["begin"] = func(*rapid.T) {
			if frozen == nil {
				epochs.Current++
				frozen = s.Clone()
			}
		}
		actions["fail"] = func(*rapid.T) {
			if frozen != nil {
				log.Abort(log.Frozen())
				frozen = nil
			}
		}
		actions["end"] = func(t *rapid.T) {
			if frozen == nil {
				return
			}
			stored.write(log, s)
			loadedLog := delta.NewLog(7, epochs)
			loaded := stored.load(t, loadedLog)
			checkAll(t, loaded)
			require.Equal(t, dump(frozen), dump(loaded))
			require.Same(t, loadedLog, loaded.Log())
			require.True(t, loadedLog.Clean())
			frozen = nil
			if log.Clean() && rapid.Bool().Draw(t, "go on with what was loaded") {
				s, log = loaded, loadedLog
			}
		}
		actions[""] = func(t *rapid.T) { checkAll(t, s) }
		t.Repeat(actions)
	})
}

func TestStreamIsStoredWholeAsItIs(t *testing.T) {
	testseed.Check(t, func(t *rapid.T) {
		s := New()
		actions := anyChange(func() *Stream { return s })
		actions[""] = func(t *rapid.T) {
			got, err := DecodeBlob(s.AppendBlob([]byte("head"))[4:])
			require.NoError(t, err)
			checkAll(t, got)
			require.Equal(t, dump(s), dump(got))
			require.Equal(t, s.Large(), got.Large())
			if rapid.Bool().Draw(t, "go on with what was decoded") {
				s = got
			}
		}
		t.Repeat(actions)
	})
}

func TestAppendingChangesTwoParts(t *testing.T) {
	s, epochs, fields := New(), &delta.Epochs{Current: 1}, byteSlices([]string{"f", "v"})
	s.Track(delta.NewLog(1, epochs))
	id := ID{1, 0}
	for ; id.Ms <= 50; id.Ms++ {
		require.NoError(t, s.Append(id, fields, DefaultLimits))
	}
	epochs.Current++
	require.ElementsMatch(t, []string{blockPart(ID{1, 0}), metaPart}, s.Log().Frozen().Sorted())
	s.Log().Done()
	require.Less(t, testing.AllocsPerRun(10000, func() {
		_ = s.Append(id, fields, DefaultLimits)
		id.Ms++
	}), 0.5)
}

func TestLargeIsMoreThanAFewOfAnything(t *testing.T) {
	s := New()
	for i := range uint64(smallPending + 1) {
		add(t, s, DefaultLimits, ID{i + 1, 0})
	}
	g, _ := s.CreateGroup([]byte("g"), MinID, 0)
	c, _ := g.CreateConsumer([]byte("c"), 0)
	g.ReadNew(s, c, smallPending, false, 0, func(Entry) {})
	require.False(t, s.Large())
	g.ReadNew(s, c, 1, false, 0, func(Entry) {})
	require.True(t, s.Large())
	require.True(t, g.Ack(ID{1, 0}))
	require.False(t, s.Large())

	for i := range smallConsumers - 1 {
		g, _ := s.CreateGroup(fmt.Append(nil, i), MinID, 0)
		g.CreateConsumer([]byte("c"), 0)
	}
	require.False(t, s.Large())
	g.CreateConsumer([]byte("one more"), 0)
	require.True(t, s.Large())
	g.DeleteConsumer([]byte("one more"))
	require.False(t, s.Large())

	s.CreateGroup([]byte("one more"), MinID, 0)
	require.True(t, s.Large())
	s.DestroyGroup([]byte("one more"))
	require.False(t, s.Large())

	for i := range uint64(100) {
		add(t, s, DefaultLimits, ID{1000 + i, 0})
	}
	require.True(t, s.Large())
}

func TestEntriesAreFoundAfterADeletedOneWithAHigherID(t *testing.T) {
	s := New()
	for _, ms := range []uint64{1, 9} {
		add(t, s, DefaultLimits, ID{ms, 0})
	}
	require.True(t, s.Delete(ID{9, 0}))
	require.NoError(t, s.SetID(ID{1, 0}, -1, ID{}))
	add(t, s, DefaultLimits, ID{2, 0})
	want := []record{{ID{1, 0}, []string{"f", "v"}}, {ID{2, 0}, []string{"f", "v"}}}
	require.Equal(t, want, collect(s, MinID, ID{8, 0}, false))
	slices.Reverse(want)
	require.Equal(t, want, collect(s, MinID, ID{8, 0}, true))

	got, err := DecodeBlob(s.AppendBlob(nil))
	require.NoError(t, err)
	require.Equal(t, dump(s), dump(got))
}

// Parts of a stream with one entry, 5-3, with one field, and a group that has delivered it.
var (
	goodBlock    = storedPart{blockPart(ID{5, 3}), "\x01\x00\x00\x01\x01\x02\x01f" + goodEntry}
	goodEntry    = "\x02\x04\x00\x00\x01v\x06"
	goodConsumer = storedPart{consumerPart("g", "c"), "\x01\x02\x01"}
	goodGroup    = storedPart{groupPart("g"), "\x01\x05\x03\x02"}
	goodMeta     = storedPart{metaPart, "\x01\x05\x03\x00\x00\x02"}
	goodPending  = storedPart{pendingPart("g", ID{5, 3}), "\x01\x01c\x02\x02"}
)

type storedPart struct{ name, data string }

func loadParts(parts []storedPart) (*Stream, error) {
	l := NewLoader()
	for _, p := range parts {
		if err := l.Add([]byte(p.name), []byte(p.data)); err != nil {
			return nil, err
		}
	}
	return l.Finish(nil)
}

func TestLoaderRefusesPartsThatAreNoStream(t *testing.T) {
	block := func(data string) []storedPart {
		return []storedPart{{goodBlock.name, data}, {metaPart, "\x01\x09\x00\x00\x00\x02"}}
	}
	named := func(name string) []storedPart { return []storedPart{{name, "\x01"}} }
	const head = "\x01\x00\x00\x01\x01\x02\x01f" // of a block with at most one entry, whose last is 5-3
	tests := []struct {
		name  string
		parts []storedPart
		want  error
	}{
		{"all good", []storedPart{goodBlock, goodConsumer, goodGroup, goodMeta, goodPending}, nil},
		{"empty", []storedPart{goodMeta}, nil},
		{"nothing", nil, errNoMeta},
		{"no meta", []storedPart{goodBlock}, errNoMeta},
		{"no name", named(""), errOrder},
		{"unknown part", named("x"), errName},
		{"longer meta", named("mm"), errName},
		{"short ID of a block", named(goodBlock.name[:16]), errName},
		{"long ID of a block", named(goodBlock.name + "x"), errName},
		{"short name of a consumer", named("c\x02g"), errName},
		{"long form of a length", named("c\x81\x00gc"), errName},
		{"short ID of a pending entry", named(goodPending.name[:18]), errName},
		{"twice", []storedPart{goodMeta, goodMeta}, errOrder},
		{"descending", []storedPart{goodMeta, goodGroup}, errOrder},
		{"no format", []storedPart{{metaPart, ""}}, errFormat},
		{"unknown format", []storedPart{{metaPart, "\x02\x05\x03\x00\x00\x02"}}, errFormat},
		{"short meta", []storedPart{{metaPart, "\x01\x05\x03\x00\x00"}}, errData},
		{"long meta", []storedPart{{metaPart, "\x01\x05\x03\x00\x00\x02\x00"}}, errData},
		{"short consumer", []storedPart{{goodConsumer.name, "\x01\x02"}}, errData},
		{"short group", []storedPart{{goodGroup.name, "\x01\x05\x03"}}, errData},
		{"consumer without a group", []storedPart{goodConsumer, goodMeta}, errGroup},
		{"pending in no group", []storedPart{goodMeta, goodPending}, errConsumer},
		{"pending for nobody", []storedPart{goodGroup, goodMeta, goodPending}, errConsumer},
		{"long pending", []storedPart{goodConsumer, goodGroup, goodMeta, {goodPending.name, "\x01\x01c\x02\x02\x00"}},
			errData},
		{"last ID before an entry", []storedPart{goodBlock, {metaPart, "\x01\x05\x02\x00\x00\x02"}}, errLastID},
		{"blocks overlap", []storedPart{{blockPart(ID{5, 2}), "\x01\x00\x01\x01\x01\x02\x01f\x02\x04\x00\x01\x01v\x06"},
			goodBlock}, errBlockOrder},

		{"good block", block(head + goodEntry), nil},
		{"no last", block("\x01"), errBlock},
		{"last out of range", block("\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00\x01\x01\x02\x01f" + goodEntry),
			errBlock},
		{"sequence out of range", block("\x01\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x01\x01\x02\x01f" + goodEntry),
			errBlock},
		{"no body", block("\x01\x00\x00\x01\x01"), errBlock},
		{"long body", block("\x01\x00\x00\x01\x01\x7f\x01f"), errBlock},
		{"no names", block("\x01\x00\x00\x01\x00\x00" + "\x00\x06\x00\x00\x01\x01f\x01v\x08"), errBlock},
		{"too few names", block("\x01\x00\x00\x01\x02\x02\x01f" + goodEntry), errBlock},
		{"too many names", block("\x01\x00\x00\x01\x01\x04\x01f\x01g" + goodEntry), errBlock},
		{"no entry", block(head), errBlock},
		{"more entries than slots", block("\x01\x00\x01\x01\x01\x02\x01f" + goodEntry + "\x02\x04\x00\x01\x01v\x06"),
			errBlock},
		{"two entries", block("\x01\x00\x01\x02\x01\x02\x01f" + goodEntry + "\x02\x04\x00\x01\x01v\x06"), nil},
		{"entry twice", block("\x01\x00\x01\x02\x01\x02\x01f" + goodEntry + goodEntry), errBlock},
		{"entry beyond the last", block(head + "\x02\x04\x00\x01\x01v\x06"), errBlock},
		{"unknown flag", block(head + "\x06\x04\x00\x00\x01v\x06"), errBlock},
		{"only a deleted entry", block(head + "\x03\x04\x00\x00\x01v\x06"), errBlock},
		{"mostly deleted", block("\x01\x00\x02\x09\x01\x02\x01f\x03\x04\x00\x00\x01v\x06\x03\x04\x00\x01\x01v\x06\x02\x04\x00\x02\x01v\x06"), errBlock},
		{"no size", block(head + "\x02"), errBlock},
		{"size beyond the end", block(head + "\x02\x7f\x00\x00\x01v\x06"), errBlock},
		{"ID out of range", block(head + "\x02\x0d\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x01v\x0f"), errBlock},
		{"too few values", block(head + "\x02\x02\x00\x00\x04"), errBlock},
		{"too many values", block(head + "\x02\x06\x00\x00\x01v\x01v\x08"), errBlock},
		{"names of its own", block(head + "\x00\x07\x00\x00\x01\x01g\x01v\x09"), nil},
		{"no fields", block(head + "\x00\x03\x00\x00\x00\x05"), errBlock},
		{"very many fields", block(head + "\x00\x0c\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x0e"), errBlock},
		{"other size at the end", block(head + "\x02\x04\x00\x00\x01v\x05"), errBlock},
		{"no size at the end", block(head + "\x02\x04\x00\x00\x01v"), errBlock},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, err := loadParts(tt.parts)
			require.ErrorIs(t, err, tt.want)
			if err == nil {
				checkAll(t, s)
			}
		})
	}
}

func TestDecodeBlobRefusesWhatIsNoStream(t *testing.T) {
	for blob, want := range map[string]error{
		"":                                      errFormat,
		"\x02":                                  errFormat,
		"\x01":                                  errNoMeta,
		"\x01\x02m":                             errCut,
		"\x01\x01m":                             errCut,
		"\x01\x01m\x07\x01":                     errCut,
		"\x01\x01x\x01\x01":                     errName,
		"\x01\x01m\x01\x01":                     errData,
		"\x01\xff\xff\xff\xff\xff":              errCut,
		"\x01\x01m\x06\x01\x05\x03\x00\x00\x02": nil,
	} {
		_, err := DecodeBlob([]byte(blob))
		require.ErrorIs(t, err, want, "%q", blob)
	}
}

func TestNumbersOfAnySizeAreStored(t *testing.T) {
	s := New()
	add(t, s, DefaultLimits, ID{0, 1})
	add(t, s, DefaultLimits, MaxID)
	require.NoError(t, s.SetID(MaxID, math.MaxInt64, MaxID))
	g, _ := s.CreateGroup([]byte("g"), MaxID, math.MinInt64)
	c, _ := g.CreateConsumer(make([]byte, 300), math.MinInt64)
	c.Seen(math.MaxInt64)
	g.AddPending(MaxID, c, endOfRelease, math.MaxInt64)
	got, err := DecodeBlob(s.AppendBlob(nil))
	require.NoError(t, err)
	checkAll(t, got)
	require.Equal(t, dump(s), dump(got))
}

func blobOf(parts ...storedPart) []byte {
	b := []byte{format}
	for _, p := range parts {
		b = appendText(appendText(b, p.name), p.data)
	}
	return b
}

// FuzzDecodeBlob also covers the Loader: a stream stored whole consists of its parts.
func FuzzDecodeBlob(f *testing.F) {
	f.Add(blobOf(goodBlock, goodConsumer, goodGroup, goodMeta, goodPending))
	f.Add(blobOf(storedPart{goodBlock.name, "\x01\x00\x01\x02\x01\x02\x01f" + goodEntry +
		"\x00\x07\x00\x01\x01\x01g\x01v\x09"}, goodMeta))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 1<<12 {
			return // checking a long one takes long
		}
		s, err := DecodeBlob(b)
		if err != nil {
			return
		}
		checkAll(t, s)
		require.LessOrEqual(t, s.MemoryUsage(), 1000+200*len(b))
		require.Equal(t, b, s.AppendBlob(nil))
		for s.Len() > 0 {
			require.True(t, s.Delete(s.FirstID()))
			e, _ := s.Last()
			s.Delete(e.ID)
		}
		checkAll(t, s)
	})
}

func FuzzLoader(f *testing.F) {
	f.Add([]byte(goodBlock.data), []byte(goodConsumer.data), []byte(goodGroup.data), []byte(goodMeta.data),
		[]byte(goodPending.data))
	f.Fuzz(func(t *testing.T, block, consumer, group, meta, pending []byte) {
		s, err := loadParts([]storedPart{
			{goodBlock.name, string(block)}, {goodConsumer.name, string(consumer)}, {goodGroup.name, string(group)},
			{goodMeta.name, string(meta)}, {goodPending.name, string(pending)},
		})
		if err != nil || len(block) > 1<<12 {
			return
		}
		checkAll(t, s)
		for name, data := range map[string][]byte{
			goodBlock.name: block, goodConsumer.name: consumer, goodGroup.name: group, goodMeta.name: meta,
			goodPending.name: pending,
		} {
			again, ok := s.AppendPart(nil, name)
			require.True(t, ok)
			require.Equal(t, data, again)
		}
	})
}

func BenchmarkTrackedAppend(b *testing.B) {
	s, id, fields := New(), ID{1, 0}, byteSlices([]string{"field", "value"})
	s.Track(delta.NewLog(1, &delta.Epochs{Current: 1}))
	b.ReportAllocs()
	for b.Loop() {
		id.Ms++
		_ = s.Append(id, fields, DefaultLimits)
	}
}
