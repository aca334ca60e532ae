package streams

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/atomredis/atomredis/internal/testing/testseed"
)

// produced is an entry remembered by the model.
type produced struct {
	producer, iid string
	entry         ID
}

func TestProducersAreRememberedForTheDurationAndUpToTheSize(t *testing.T) {
	testseed.Check(t, func(t *rapid.T) {
		s := New()
		how := Idempotence{rapid.IntRange(1, 3).Draw(t, "duration"), rapid.IntRange(1, 4).Draw(t, "size")}
		s.SetIdempotence(how)
		var model []produced // in the order of addition
		now, added, duplicates := int64(1000), int64(0), int64(0)
		remembered := func() (all []produced) {
			of := map[string]int{}
			for i := len(model) - 1; i >= 0; i-- {
				m := model[i]
				if of[m.producer]++; of[m.producer] <= how.MaxSize && now-int64(m.entry.Ms) < int64(how.Duration)*1000 {
					all = append(all, m)
				}
			}
			return all
		}
		t.Repeat(map[string]func(*rapid.T){
			"time goes": func(t *rapid.T) { now += rapid.Int64Range(0, 1500).Draw(t, "ms") },
			"add": func(t *rapid.T) {
				m := produced{rapid.StringMatching("[ab]?c?").Draw(t, "producer"), rapid.StringMatching("[1-6]").Draw(t, "iid"), ID{}}
				want, known := ID{}, false
				for _, r := range remembered() {
					if r.producer == m.producer && r.iid == m.iid {
						want, known = r.entry, true
					}
				}
				got, ok := s.Produced([]byte(m.producer), []byte(m.iid), now)
				require.Equal(t, known, ok)
				if ok {
					require.Equal(t, want, got)
					s.Duplicate()
					duplicates++
					return
				}
				m.entry, _ = s.NextID(uint64(now))
				s.lastID = m.entry
				s.Produce([]byte(m.producer), []byte(m.iid), m.entry)
				model = append(model, m)
				added++
			},
			"copy": func(*rapid.T) { s = s.Clone() },
			"store": func(t *rapid.T) {
				var err error
				s, err = DecodeBlob(s.AppendBlob(nil))
				require.NoError(t, err)
			},
			"": func(t *rapid.T) {
				checkProductions(t, s.productions)
				all, of := remembered(), map[string]bool{}
				for _, m := range all {
					of[m.producer] = true
				}
				require.Equal(t, ProducerCounts{len(of), len(all), added, duplicates}, s.ProducerCounts(now))
				require.LessOrEqual(t, len(s.productions.entries), len(model))
			},
		})
	})
}

func TestProducersThatAddNothingAnyMoreAreForgotten(t *testing.T) {
	s := New()
	s.SetIdempotence(Idempotence{Duration: 1, MaxSize: 5})
	for i := range 1000 {
		s.Produce(fmt.Appendf(nil, "producer %d", i), []byte("1"), ID{uint64(1000 + i), 0})
	}
	require.Len(t, s.productions.producers, 1000)
	before := s.MemoryUsage()
	for i := range 1100 {
		s.Produce([]byte("producer"), fmt.Append(nil, i), ID{uint64(5000 + i), 0})
	}
	require.Len(t, s.productions.producers, 1)
	require.Len(t, s.productions.entries, 5)
	require.Less(t, s.MemoryUsage(), before/50)
	checkProductions(t, s.productions)
}

func TestAnotherSettingForgetsWhatProducersHaveAdded(t *testing.T) {
	s := New()
	require.Equal(t, Idempotence{}, s.Idempotence())
	s.SetIdempotence(DefaultIdempotence)
	s.Produce([]byte("p"), []byte("i"), ID{5, 1})
	s.SetIdempotence(DefaultIdempotence)
	require.NoError(t, s.Record([]byte("p"), []byte("i"), ID{5, 1}))
	require.Equal(t, ErrOtherEntry, s.Record([]byte("p"), []byte("i"), ID{6, 1}))
	s.SetIdempotence(Idempotence{Duration: 7, MaxSize: 100})
	_, ok := s.Produced([]byte("p"), []byte("i"), Always)
	require.False(t, ok)
	require.Equal(t, ProducerCounts{Added: 1}, s.ProducerCounts(5))
	// Additions known from elsewhere may come in any order.
	for _, i := range []uint64{4, 2, 3, 2} {
		require.NoError(t, s.Record([]byte("p"), fmt.Append(nil, s.productions.added), ID{i, 0}))
	}
	checkProductions(t, s.productions)
	_, ok = s.Produced([]byte("p"), []byte("3"), Always)
	require.True(t, ok)
}

func BenchmarkProduce(b *testing.B) {
	s, iid := New(), []byte("00000000")
	s.SetIdempotence(DefaultIdempotence)
	b.ReportAllocs()
	for i := range b.N {
		iid[i%8]++
		if _, ok := s.Produced([]byte("producer"), iid, int64(i)); ok {
			continue
		}
		s.Produce([]byte("producer"), iid, ID{uint64(i), 1})
	}
}
