package cluster_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/cluster"
)

// modelShard is a shard in a model of slot migration: the record that its servers have agreed on, and the leader's
// pending changes, of which the next leader may know only the first.
type modelShard struct {
	committed *cluster.Record
	pending   []*cluster.Record
	// tasks for which the leader sends keys, and whether the other shard's leader has acknowledged all keys
	exports map[string]bool
	// tasks that the leader has begun itself, and whether it has acknowledged all keys
	imports map[string]bool
}

// message is a leader's message, which may arrive at any time.
type message struct {
	to    string
	shard []byte
	ended string // a task that can never be exported
}

type migrationModel struct {
	t        *testing.T
	r        *rand.Rand
	ids      []string
	shards   map[string]*modelShard
	messages []message
	tasks    int
	checked  [3]*cluster.Record
}

// now returns the leader's record, with pending changes.
func (s *modelShard) now() *cluster.Record {
	if n := len(s.pending); n > 0 {
		return s.pending[n-1]
	}
	return s.committed
}

func (s *modelShard) change(fn func(r *cluster.Record) bool) {
	r := s.now().Clone()
	if fn(r) {
		r.Version++
		s.pending = append(s.pending, r)
	}
}

// commit commits the first n pending changes.
func (s *modelShard) commit(n int) {
	if n > 0 {
		s.committed, s.pending = s.pending[n-1], s.pending[n:]
	}
}

func (s *modelShard) loseLead(r *rand.Rand) {
	s.commit(r.IntN(len(s.pending) + 1))
	s.pending, s.exports, s.imports = nil, map[string]bool{}, map[string]bool{}
}

func (m *migrationModel) tell(from, to, ended string) {
	text, err := json.Marshal(m.shards[from].committed.Public())
	require.NoError(m.t, err)
	m.messages = append(m.messages, message{to: to, shard: text, ended: ended})
}

func (m *migrationModel) deliver(msg message) {
	var o cluster.Other
	require.NoError(m.t, json.Unmarshal(msg.shard, &o))
	m.shards[msg.to].change(func(r *cluster.Record) bool {
		news := r.Learn(o, true)
		news = r.Settle() || news
		if msg.ended != "" && r.EndImport(msg.ended) == nil {
			news = true
		}
		return news
	})
}

// ask makes the source of a task end it unless it is exported, and answer.
func (m *migrationModel) ask(task, from, to string) {
	s := m.shards[from]
	delete(m.shards[to].imports, task)
	delete(s.exports, task)
	s.commit(len(s.pending))
	m.tell(from, to, task)
}

func (m *migrationModel) begin(id string) {
	s, from := m.shards[id], m.ids[m.r.IntN(len(m.ids))]
	owned := s.now().Owners().SlotsOf(from)
	ranges := owned.Ranges()
	if len(ranges) == 0 {
		return
	}
	x := ranges[m.r.IntN(len(ranges))]
	x.Last = min(x.Last, x.First+m.r.IntN(3000))
	slots := cluster.SetOf(x)
	m.tasks++
	task := fmt.Sprint("task", m.tasks)
	s.change(func(r *cluster.Record) bool {
		s.imports[task] = r.BeginImport(task, from, &slots) == nil
		return s.imports[task]
	})
}

type importTo struct {
	cluster.Import
	to string
}

func (m *migrationModel) importsFrom(from string) (list []importTo) {
	for _, to := range m.ids {
		for _, i := range m.shards[to].committed.Imports {
			if i.From == from {
				list = append(list, importTo{i, to})
			}
		}
	}
	return list
}

func (m *migrationModel) step() {
	id := m.ids[m.r.IntN(len(m.ids))]
	s := m.shards[id]
	switch m.r.IntN(60) {
	case 0:
		s.loseLead(m.r)
	case 1:
		for _, i := range s.committed.Imports { // a user cancels, or the next leader asks
			m.ask(i.Task, i.From, id)
		}
	}
	switch m.r.IntN(8) {
	case 0:
		if len(s.now().Imports) < 3 {
			m.begin(id)
		}
	case 1: // the source gets the request and begins to send, perhaps long after it was made
		for _, i := range s.committed.Imports {
			m.shards[i.From].exports[i.Task] = false
		}
	case 2:
		for _, i := range s.committed.Imports {
			from := m.shards[i.From]
			if _, ok := from.exports[i.Task]; ok && s.imports[i.Task] && m.r.IntN(2) == 0 {
				from.exports[i.Task] = true
			}
		}
		for _, i := range m.importsFrom(id) {
			if s.exports[i.Task] {
				delete(s.exports, i.Task)
				slots := cluster.SetOf(i.Slots...)
				s.change(func(r *cluster.Record) bool { return r.AddExport(i.Task, i.to, &slots) == nil })
			}
		}
	case 3, 4:
		s.commit(m.r.IntN(len(s.pending) + 1))
	case 5:
		m.tell(id, m.ids[m.r.IntN(len(m.ids))], "")
	default:
		if n := len(m.messages); n > 0 {
			i := m.r.IntN(n)
			m.deliver(m.messages[i])
			if m.r.IntN(4) > 0 { // otherwise the message arrives again
				m.messages = append(m.messages[:i], m.messages[i+1:]...)
			}
		}
	}
}

// check checks that no slot is served by two shards.
func (m *migrationModel) check(seed uint64) {
	if now := [3]*cluster.Record{m.shards["a"].committed, m.shards["b"].committed, m.shards["c"].committed}; now == m.checked {
		return
	} else {
		m.checked = now
	}
	var served cluster.SlotSet
	for _, id := range m.ids {
		r := m.shards[id].committed
		own := r.Serves(r.Owners())
		both := served.Both(&own)
		require.True(m.t, both.Empty(), "seed %d: %s and another shard serve %v", seed, id, both.Ranges())
		served = served.Union(&own)
	}
}

// In any order of commits, lost leaders, cancellations and messages, no slot is ever served by two shards, and none
// is lost once all messages have arrived.
func TestMigratingSlotsHaveOneOwner(t *testing.T) {
	moved := 0
	for seed := range uint64(25) {
		m := &migrationModel{t: t, r: rand.New(rand.NewPCG(seed, 7)), ids: []string{"a", "b", "c"}, shards: map[string]*modelShard{}}
		for _, id := range m.ids {
			m.shards[id] = &modelShard{committed: &cluster.Record{ID: id, Version: 1}, exports: map[string]bool{}, imports: map[string]bool{}}
		}
		all := cluster.AllSlots
		m.shards["a"].committed.Claim(&all, 1)
		for range 400 {
			m.step()
			m.check(seed)
		}
		for _, id := range m.ids {
			m.shards[id].loseLead(m.r)
		}
		m.check(seed)
		for range 12 { // now everything arrives
			for _, to := range m.ids {
				for _, i := range m.shards[to].committed.Imports {
					m.ask(i.Task, i.From, to)
				}
				for _, from := range m.ids {
					m.tell(from, to, "")
				}
			}
			for _, msg := range m.messages {
				m.deliver(msg)
				m.check(seed)
			}
			m.messages = nil
			for _, id := range m.ids {
				m.shards[id].commit(len(m.shards[id].pending))
				m.check(seed)
			}
		}
		var served cluster.SlotSet
		for _, id := range m.ids {
			r := m.shards[id].committed
			require.Empty(t, r.Exports, "seed %d", seed)
			require.Empty(t, r.Imports, "seed %d", seed)
			own := r.Serves(r.Owners())
			served = served.Union(&own)
			trims := cluster.SetOf(r.Trims...)
			both := own.Both(&trims)
			require.True(t, both.Empty(), "seed %d: keys of own slots are removed", seed)
			if id != "a" && !own.Empty() {
				moved++
			}
		}
		require.Equal(t, cluster.AllSlots, served, "seed %d", seed)
	}
	require.Greater(t, moved, 10)
}

// Servers of all versions read each other's records.
func TestARecordKeepsItsNamesInJSON(t *testing.T) {
	slots := []cluster.Range{{First: 5, Last: 9}}
	r := cluster.Record{ID: "a", Version: 2, Claims: []cluster.Claim{{Range: slots[0], Epoch: 3}},
		Others:  []cluster.Other{{ID: "b", Version: 1, Addrs: []string{"x:1"}, Exports: []cluster.Export{{Task: "t", To: "a", Slots: slots, Epoch: 4}}}},
		Exports: []cluster.Export{{Task: "u", To: "b", Slots: slots, Epoch: 5}},
		Imports: []cluster.Import{{Task: "t", From: "b", Slots: slots, Claimed: true}}, Trims: slots}
	text, err := json.Marshal(r)
	require.NoError(t, err)
	require.JSONEq(t, `{"ID":"a","Version":2,"Claims":[{"First":5,"Last":9,"Epoch":3}],
		"Others":[{"ID":"b","Version":1,"Addrs":["x:1"],"Claims":null,
			"Gifts":[{"Task":"t","To":"a","Slots":[{"First":5,"Last":9}],"Epoch":4}]}],
		"Gifts":[{"Task":"u","To":"b","Slots":[{"First":5,"Last":9}],"Epoch":5}],
		"Imports":[{"Task":"t","From":"b","Slots":[{"First":5,"Last":9}],"Claimed":true}],
		"Trims":[{"First":5,"Last":9}]}`, string(text))
}

func TestImportsAndExportsAreRefused(t *testing.T) {
	a, b := &cluster.Record{ID: "a", Version: 1}, &cluster.Record{ID: "b", Version: 1}
	all, some := cluster.AllSlots, cluster.SetOf(cluster.Range{First: 5, Last: 9})
	a.Claim(&all, 1)
	require.Error(t, a.AddExport("t", "b", &some), "it is not known")
	require.ErrorIs(t, b.BeginImport("t", "a", &some), cluster.ErrSlotOwner)
	a.Learn(b.Public(), true)
	b.Learn(a.Public(), true)
	require.NoError(t, b.BeginImport("t", "a", &some))
	require.ErrorIs(t, b.BeginImport("u", "a", &some), cluster.ErrBusy)
	require.ErrorIs(t, b.AddExport("u", "a", &some), cluster.ErrBusy)
	require.NoError(t, a.AddExport("t", "b", &some))
	require.ErrorIs(t, a.AddExport("t", "b", &some), cluster.ErrBusy)
	serves := a.Serves(a.Owners())
	require.Equal(t, all.Without(&some), serves)
	require.Equal(t, some, a.Foreign(&serves))
	require.Equal(t, all, a.Owners().SlotsOf("a"), "until the other one has claimed them")

	require.True(t, a.Version == 1)
	a.Version++
	b.Learn(a.Public(), true)
	require.True(t, b.Settle())
	require.ErrorIs(t, b.EndImport("t"), cluster.ErrNoTask)
	require.Equal(t, some, b.Owners().SlotsOf("b"))
	b.Version++
	a.Learn(b.Public(), true)
	require.True(t, a.Settle())
	require.Empty(t, a.Exports)
	require.Equal(t, some.Ranges(), a.Trims)
	a.Trimmed(&some)
	require.Empty(t, a.Trims)
	a.Version++
	b.Learn(a.Public(), true)
	require.True(t, b.Settle())
	require.Empty(t, b.Imports)
	require.False(t, b.Settle())
}
