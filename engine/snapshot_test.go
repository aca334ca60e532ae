package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sort"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/engine/hashes"
	"github.com/atomredis/atomredis/internal/testing/samples"
)

// Snapshot implements Source.
func (m *memoryStore) Snapshot() (SourceSnapshot, error) { return memorySnapshot{m.clone()}, nil }

type memorySnapshot struct{ *memoryStore }

func (memorySnapshot) Close() error { return nil }

// begin begins a snapshot that is read in small pieces.
func begin(t *testing.T, ks *Keyspace, pieces pieces) *Snapshot {
	s, err := ks.Snapshot(context.Background(), func(*Guard) error { return nil })
	require.NoError(t, err)
	s.pieces = pieces
	return s
}

// all returns the content of a snapshot in the form of dump.
func (s *Snapshot) all(t *testing.T, between func()) string {
	var lines []string
	require.NoError(t, s.Each(func(db int, e *Entry) error {
		lines = append(lines, line(db, e))
		between()
		return nil
	}))
	sort.Strings(lines)
	return fmt.Sprintf("%d keys\n%s", len(lines), strings.Join(lines, "\n"))
}

func TestASnapshotIsTheKeyspaceAtItsBeginning(t *testing.T) {
	for seed := range histories(t, 60) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		clock := NewManualClock(time.UnixMilli(1e12))
		o := Options{Shards: 1 << (seed % 3), Databases: 3, Slots: testSlots, SlotOf: testSlotOf, Clock: clock}
		store := newMemoryStore()
		if seed%2 == 0 {
			o.Source = store
		}
		ks := New(o)
		if o.Source != nil {
			require.NoError(t, ks.Restore(store.state))
			ks.EndReplay(nil)
		}
		ks.texts = smallTexts
		ks.SetTier(seed%2 == 0)
		c := &churn{ks: ks, clock: clock, rnd: rnd}
		var frozen *Frozen
		for range 12 {
			for range rnd.IntN(80) {
				c.change()
			}
			s := begin(t, ks, pieces{entries: 1 + rnd.IntN(4), parts: 1 + rnd.IntN(4), bytes: 1 + rnd.IntN(100), step: 1})
			want := ""
			if rnd.IntN(3) > 0 {
				want = dump(ks) // also loads values, so it is not done every time
			}
			often := 1 + rnd.IntN(4)
			between := func() {
				if rnd.IntN(often) == 0 {
					c.change()
				}
				if o.Source == nil || rnd.IntN(10) > 0 {
					return
				}
				if frozen == nil { // a checkpoint begins or ends while the snapshot is read
					frozen = ks.Freeze(func() {})
					return
				}
				store.write(t, frozen, func() {})
				frozen.Done()
				frozen = nil
			}
			if rnd.IntN(5) == 0 { // the snapshot is aborted
				n, failed := 0, errors.New("enough")
				err := s.Each(func(int, *Entry) error {
					between()
					if n++; n == 3 {
						return failed
					}
					return nil
				})
				require.True(t, err == nil && n < 3 || errors.Is(err, failed), "%v", err)
				s.Pause = between
				require.NoError(t, s.Close())
				continue
			}
			s.Pause = between
			if got := s.all(t, between); want != "" {
				require.Equal(t, want, got, "seed %d", seed)
			}
			require.NoError(t, s.Close())
			require.Zero(t, s.KeptBytes())
			if frozen == nil {
				checkNothingLent(t, ks)
			}
			checkDeadlines(t, ks)
			checkSlots(t, ks)
			checkMemory(t, ks)
		}
		if frozen != nil {
			store.write(t, frozen, func() {})
			frozen.Done()
		}
		under(ks, func(g *Guard) { // no unneeded tracking is left
			for db := range ks.Databases() {
				g.Each(db, func(e *Entry) bool {
					v := e.value()
					require.True(t, v == nil || o.Source != nil || v.Log() == nil)
					require.True(t, v == nil || v.Log() == nil || !v.Log().Copying())
					return true
				})
			}
		})
		ks.Close()
	}
}

// checkMemory fails if the count of memory is wrong.
func checkMemory(t *testing.T, ks *Keyspace) {
	requireCounted(t, ks)
}

// Writers preserve the sum over all keys, and over all fields of a large hash.
func TestASnapshotIsConsistentWhileOthersWrite(t *testing.T) {
	const accounts, initial = 400, 1000
	for _, shards := range []int{1, 16} {
		t.Run(strconv.Itoa(shards), func(t *testing.T) {
			ks := New(Options{Shards: shards, Databases: 1})
			defer ks.Close()
			key := func(i int) []byte { return []byte("account" + strconv.Itoa(i)) }
			under(ks, func(g *Guard) {
				h := new(hashes.Hash)
				for i := range accounts {
					g.Changed(g.CreateString(0, key(i), []byte(strconv.Itoa(initial))), EventString, "set")
					h.Set(key(i), []byte(strconv.Itoa(initial)), samples.HashLimits)
				}
				g.Changed(g.Create(0, []byte("hash"), h), EventHash, "hset")
			})
			stop := make(chan struct{})
			var writers sync.WaitGroup
			for w := range 4 {
				writers.Add(1)
				go func() {
					defer writers.Done()
					transfer(ks, rand.New(rand.NewPCG(uint64(w), 2)), accounts, key, stop)
				}()
			}
			for range 30 {
				s := begin(t, ks, pieces{entries: 3, parts: 3, bytes: 1 << 10, step: 1})
				keys, sum, inHash := 0, 0, 0
				number := func(b []byte) int {
					n, err := strconv.Atoi(string(b))
					require.NoError(t, err)
					return n
				}
				require.NoError(t, s.Each(func(_ int, e *Entry) error {
					if e.Type() == Hash {
						require.Equal(t, accounts, e.Hash().Len())
						for _, v := range e.Hash().All() {
							inHash += number(v)
						}
						return nil
					}
					keys++
					sum += number(e.Bytes())
					return nil
				}))
				require.NoError(t, s.Close())
				require.Equal(t, accounts, keys)
				require.Equal(t, accounts*initial, sum)
				require.Equal(t, accounts*initial, inHash)
			}
			close(stop)
			writers.Wait()
		})
	}
}

// transfer moves amounts between keys, and between fields, each time under one guard. Sometimes a key is removed and
// created again.
func transfer(ks *Keyspace, rnd *rand.Rand, accounts int, key func(int) []byte, stop chan struct{}) {
	for {
		select {
		case <-stop:
			return
		default:
		}
		from, to, amount := key(rnd.IntN(accounts)), key(rnd.IntN(accounts)), rnd.IntN(5)
		if string(from) == string(to) {
			continue
		}
		var g Guard
		g.Lock(ks, ks.ShardOf(from)|ks.ShardOf(to)|ks.ShardOf([]byte("hash")), ks.Now())
		add := func(k []byte, n int) {
			e := g.Write(0, k)
			was, _ := strconv.Atoi(string(e.Bytes()))
			v := strconv.AppendInt(nil, int64(was+n), 10)
			if rnd.IntN(4) == 0 {
				g.Remove(e, EventGeneric, "del")
				e = g.CreateString(0, k, v)
			} else {
				e.SetBytes(v)
			}
			g.Changed(e, EventString, "set")
		}
		add(from, -amount)
		add(to, amount)
		e := g.Write(0, []byte("hash"))
		field := func(k []byte, n int) {
			v, _ := e.Hash().Get(k)
			was, _ := strconv.Atoi(string(v))
			if rnd.IntN(4) == 0 {
				e.Hash().Delete(k)
			}
			e.Hash().Set(k, strconv.AppendInt(nil, int64(was+n), 10), samples.HashLimits)
		}
		field(from, -amount)
		field(to, amount)
		g.Changed(e, EventHash, "hset")
		g.Unlock()
	}
}

func TestSnapshotsFollowOneAnother(t *testing.T) {
	ks := New(Options{Databases: 1})
	defer ks.Close()
	set(ks, "k", "v", 0)
	first := begin(t, ks, copiedPieces)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := ks.Snapshot(ctx, func(*Guard) error { return nil })
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, first.Close())
	refused := errors.New("not now")
	_, err = ks.Snapshot(context.Background(), func(*Guard) error { return refused })
	require.ErrorIs(t, err, refused)
	second := begin(t, ks, copiedPieces)
	require.Contains(t, second.all(t, func() {}), "1 keys")
	require.NoError(t, second.Close())
}
