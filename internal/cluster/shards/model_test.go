package shards

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/cluster"
	"github.com/atomredis/atomredis/internal/cluster/peers"
	"github.com/atomredis/atomredis/internal/config"
	"github.com/atomredis/atomredis/internal/memconn"
	"github.com/atomredis/atomredis/internal/replication/quorum"
	"github.com/atomredis/atomredis/internal/testing/testseed"
	"github.com/atomredis/atomredis/internal/wire/peer"
)

// A model of a cluster: the records of some shards. Administrators change them, slots migrate, and leaders fail.
// Connections are in memory, and each step ends before the next one begins.

// model is the cluster. It knows the successful changes of administrators.
type model struct {
	t        *testing.T
	r        *rand.Rand
	trace    []string // the steps
	list     []*member
	assigned cluster.SlotSet // slots that some shard must serve
	tasks    int
	exported int // counts exports that were committed at once
	migrated int // counts slots that changed their owner

	// The values at the last call of check.
	before cluster.SlotSet // assigned
	states []any           // committed and present
	owners *cluster.Owners // by the committed claims
}

// member is a shard. It implements Host and Node.
type member struct {
	m     *model
	s     *Shards
	ks    *engine.Keyspace
	addr  string
	leads atomic.Bool
	down  bool // it has no connections
	fails bool // the next change loses the lead: it may or may not be committed
	slow  bool // changes are not committed in time
	epoch uint64
	// unsure updates the model if the change that has lost the lead is committed; nil without such a change.
	unsure func()

	// State of the leader only: tasks whose keys it sends, and whether the target has them; tasks that it has begun.
	exports map[string]bool
	imports map[string]bool

	version uint64          // of the committed record, at the last call of check
	own     cluster.SlotSet // slots that were served then
	lost    cluster.SlotSet // slots that SlotsLost was called with since
}

func (x *member) Leads() bool { return x.leads.Load() }

func (x *member) Status() *quorum.Status {
	st := &quorum.Status{Addr: x.addr, Members: []quorum.Member{{Addr: x.addr, Client: x.addr, Online: true}}}
	if x.Leads() {
		st.Leader = x.addr
	}
	return st
}

func (x *member) Definitions() string              { return "" }
func (x *member) Defined(_, _ string)              {}
func (x *member) SlotsLost(slots *cluster.SlotSet) { x.lost = x.lost.Union(slots) }
func (x *member) SlotsGained()                     {}

func (x *member) Tick() {}

func (x *member) Dial(addr string, purpose peer.Purpose, _ time.Duration) (*peer.Conn, error) {
	to := x.m.at(addr)
	if x.down || to.down {
		return nil, errors.New("not reachable")
	}
	here, there := memconn.Pipe(1 << 20)
	go func() {
		defer there.Close()
		c := peer.NewConn(there, purpose, 1, nil, nil)
		var q peers.Question
		if c.ReadRequest(&q) != nil {
			return
		}
		if a, err := to.s.Answer(&q); err != nil {
			_ = c.Fail(err)
		} else {
			_ = c.Reply(a)
		}
	}()
	return peer.NewConn(here, purpose, 1, nil, nil), nil
}

func (x *member) Sync(context.Context) error {
	if x.fails {
		x.fails = false
		x.loseLead()
		return errors.New("the lead is lost")
	}
	if x.slow {
		return context.DeadlineExceeded
	}
	return nil
}

func (x *member) Epoch() uint64 { return x.epoch }

func (x *member) WaitPosition() uint64 {
	if x.Leads() {
		return 1
	}
	return 0
}

func (x *member) loseLead() {
	x.leads.Store(false)
	x.epoch++
	x.exports, x.imports = map[string]bool{}, map[string]bool{}
}

// start makes x.s from a record.
func (x *member) start(text []byte) {
	conf := config.NewConfig()
	require.NoError(x.m.t, conf.Set("cluster-slots", "none", false))
	x.s = New(Options{ID: "shard-" + x.addr, Clustered: true, Config: conf, Keyspace: x.ks, Host: x})
	x.s.Join(context.Background(), x)
	require.NoError(x.m.t, x.s.Apply(text))
}

// elect makes the shard's server lead again. committed says that the last leader's pending change is committed;
// restarts says that the server has restarted.
func (x *member) elect(committed, restarts bool) {
	r := x.s.Committed()
	if committed {
		r = x.s.Record()
		if x.unsure != nil {
			x.unsure()
		}
	}
	x.unsure = nil
	text, err := json.Marshal(r)
	require.NoError(x.m.t, err)
	if restarts {
		x.start(text)
		x.own = cluster.SlotSet{} // it has no clients yet
	} else {
		require.NoError(x.m.t, x.s.Apply(text))
	}
	x.leads.Store(true)
	x.s.Led()
}

// done records the result of a change. means updates the model for a committed change.
func (x *member) done(err error, means func()) {
	x.fails = false
	switch {
	case err == nil:
		means()
	case errors.Is(err, ErrTakenBack):
		x.unsure = means
	}
}

// change tries to change the record; it may fail.
func (x *member) change(fn func(r *cluster.Record) error) error {
	err := x.s.Change(func(_ *engine.Guard, r *cluster.Record) error { return fn(r) })
	x.done(err, func() {})
	return err
}

// newModel returns a cluster of shards. The first one has all slots.
func newModel(t *testing.T, r *rand.Rand, shards int) *model {
	m := &model{t: t, r: r}
	t.Cleanup(func() {
		if m.trace != nil {
			t.Log("steps:", strings.Join(m.trace, ", "))
		}
	})
	for i := range shards {
		x := &member{m: m, addr: fmt.Sprintf("host%d:1", i), exports: map[string]bool{}, imports: map[string]bool{}}
		x.ks = engine.New(engine.Options{Databases: 1, Slots: cluster.Slots, SlotOf: cluster.SlotOf})
		x.start(nil)
		x.leads.Store(true)
		require.NoError(t, x.change(func(r *cluster.Record) error {
			*r = *x.s.first()
			return nil
		}))
		m.list = append(m.list, x)
	}
	m.assigned = cluster.AllSlots
	require.NoError(t, m.list[0].s.AddSlots(cluster.AllSlots))
	m.meet()
	m.check()
	return m
}

// close ends a run that has not failed.
func (m *model) close() {
	for _, x := range m.list {
		x.ks.Close()
	}
	m.trace = nil
}

func (m *model) at(addr string) *member {
	return m.list[slices.IndexFunc(m.list, func(x *member) bool { return x.addr == addr })]
}

func (m *model) of(id string) *member {
	return m.list[slices.IndexFunc(m.list, func(x *member) bool { return x.s.o.ID == id })]
}

// meet makes all shards known to all others.
func (m *model) meet() {
	for _, x := range m.list {
		for _, y := range m.list {
			if x != y {
				require.NoError(m.t, x.s.Meet("host"+y.addr[4:5], 1))
			}
		}
	}
}

// part draws a part of slots: one slot, or a run of them.
func (m *model) part(slots cluster.SlotSet) (part cluster.SlotSet) {
	ranges := slots.Ranges()
	if len(ranges) == 0 {
		return part
	}
	x := ranges[m.r.IntN(len(ranges))]
	x.First += m.r.IntN(x.Last - x.First + 1)
	x.Last = min(x.Last, x.First+[]int{0, 10, 3000}[m.r.IntN(3)])
	return cluster.SetOf(x)
}

func (m *model) member() *member { return m.list[m.r.IntN(len(m.list))] }

// migration is an import that the leader of the target works on.
type migration struct {
	cluster.Import
	from, to *member
	sent     bool // the leader of the source works on it too
}

// migration draws a migration for which ok holds, or returns nil.
func (m *model) migration(ok func(*migration) bool) *migration {
	var list []*migration
	for _, to := range m.list {
		for _, i := range to.s.Committed().Imports {
			t := &migration{Import: i, from: m.of(i.From), to: to}
			if _, t.sent = t.from.exports[i.Task]; to.imports[i.Task] && ok(t) {
				list = append(list, t)
			}
		}
	}
	if len(list) == 0 {
		return nil
	}
	return list[m.r.IntN(len(list))]
}

// steps are the possible steps, with their frequencies.
var steps = []struct {
	name  string
	often int
	do    func(m *model, x *member)
}{
	{"learn", 40, func(m *model, x *member) { x.s.askAll(); x.done(nil, func() {}) }},
	{"import", 40, func(m *model, x *member) { // SETSLOT IMPORTING and MIGRATION IMPORT
		from := m.member()
		if from == x {
			return
		}
		slots := m.part(x.s.Now().Owners.SlotsOf(from.s.Now().ID))
		m.tasks++
		task := fmt.Sprint("task", m.tasks)
		if x.change(func(r *cluster.Record) error { return r.BeginImport(task, from.s.o.ID, &slots) }) == nil {
			x.imports[task] = true
		}
	}},
	{"send", 30, func(m *model, _ *member) { // the leader of a source is asked for the slots
		if t := m.migration(func(t *migration) bool { return !t.sent }); t != nil && t.from.Leads() {
			t.from.exports[t.Task] = false
		}
	}},
	{"promise", 30, func(m *model, _ *member) { // the leader of a target has all keys
		if t := m.migration(func(t *migration) bool { return t.sent && !t.from.exports[t.Task] }); t != nil {
			t.from.exports[t.Task] = true
		}
	}},
	{"export", 30, func(m *model, _ *member) {
		t := m.migration(func(t *migration) bool { return t.from.exports[t.Task] })
		if t == nil {
			return
		}
		delete(t.from.exports, t.Task)
		delete(t.to.imports, t.Task)
		slots := cluster.SetOf(t.Slots...)
		if t.from.change(func(r *cluster.Record) error { return r.AddExport(t.Task, t.to.s.o.ID, &slots) }) == nil {
			m.exported++
		}
	}},
	{"end", 3, func(m *model, x *member) { // a user cancels it, or a new leader asks
		if list := x.s.Committed().Imports; len(list) > 0 {
			m.end(x, list[m.r.IntN(len(list))].Task)
		}
	}},
	{"add", 20, func(m *model, x *member) {
		if !m.knowEachOther() { // otherwise two could add the same slots
			return
		}
		m.electAll()
		m.check()
		x.s.askAll()
		slots := m.part(x.s.Now().Owners.SlotsOf(""))
		x.done(x.s.AddSlots(slots), func() { m.assigned = m.assigned.Union(&slots) })
	}},
	{"drop", 3, func(m *model, x *member) {
		slots := m.part(x.s.Now().Owners.SlotsOf(x.s.Now().ID))
		x.done(x.s.DropSlots(slots), func() { m.assigned = m.assigned.Without(&slots) })
	}},
	{"flush", 1, func(m *model, x *member) {
		slots := x.s.Now().Owners.SlotsOf(x.s.Now().ID)
		x.done(x.s.FlushSlots(), func() { m.assigned = m.assigned.Without(&slots) })
	}},
	{"trimmed", 15, (*model).trimmed},
	{"forget", 2, func(m *model, x *member) {
		x.done(x.s.Forget(m.member().s.o.ID), func() {})
	}},
	{"meet", 10, func(m *model, x *member) {
		if y := m.member(); x != y {
			x.done(x.s.Meet("host"+y.addr[4:5], 1), func() {})
		}
	}},
	{"lose the lead", 3, func(m *model, x *member) { x.loseLead() }},
	{"elect", 60, func(m *model, x *member) {
		if !x.Leads() {
			x.elect(m.r.IntN(2) == 0, m.r.IntN(2) == 0)
		}
	}},
	{"down", 2, func(m *model, x *member) { x.down = true }},
	{"up", 30, func(m *model, x *member) { x.down = false }},
}

// trimmed records that the keys of trimmed slots are removed.
func (m *model) trimmed(x *member) {
	slots := cluster.SetOf(x.s.Record().Trims...)
	_ = x.change(func(r *cluster.Record) error { r.Trimmed(&slots); return nil })
}

// end makes the target of a task ask the source to end it, and settles the answer.
func (m *model) end(x *member, task string) {
	from := m.of(x.s.Committed().Import(task).From)
	if x.down || from.down || !from.Leads() {
		return
	}
	delete(x.imports, task)
	delete(from.exports, task)
	text, err := json.Marshal(from.s.News().Shard) // so that nothing is shared
	require.NoError(m.t, err)
	var o cluster.Other
	require.NoError(m.t, json.Unmarshal(text, &o))
	_ = x.change(func(r *cluster.Record) error {
		news := r.Learn(o, true)
		news = r.Settle() || news
		if r.EndImport(task) != nil && !news {
			return ErrUnchanged
		}
		return nil
	})
}

func (m *model) electAll() {
	for _, x := range m.list {
		if !x.Leads() {
			x.elect(true, false)
		}
	}
}

func (m *model) knowEachOther() bool {
	for _, x := range m.list {
		if x.down || len(x.s.Record().Others) != len(m.list)-1 || len(x.s.Committed().Others) != len(m.list)-1 {
			return false
		}
	}
	return true
}

// check checks the invariants.
func (m *model) check() {
	var states []any
	for _, x := range m.list {
		states = append(states, x.s.Committed(), x.s.Now())
	}
	if slices.Equal(states, m.states) && m.before == m.assigned {
		return
	}
	m.states = states
	var served, present cluster.SlotSet
	for _, x := range m.list {
		committed, now := x.s.Committed(), x.s.Now()
		require.GreaterOrEqual(m.t, committed.Version, x.version, "%s: the record is an older one", x.addr)
		x.version = committed.Version

		gone := x.own.Without(&now.Own)
		gone = gone.Without(&x.lost)
		require.True(m.t, gone.Empty(), "%s: SlotsLost was not called for %v", x.addr, gone.Ranges())
		x.own, x.lost = now.Own, cluster.SlotSet{}

		busy, trims := now.Record.Busy(), cluster.SetOf(now.Record.Trims...)
		both := trims.Both(&now.Own)
		require.True(m.t, both.Empty(), "%s: keys of own slots %v are removed", x.addr, both.Ranges())
		both = trims.Both(&busy)
		require.True(m.t, both.Empty(), "%s: keys that migrate, of slots %v, are removed", x.addr, both.Ranges())
		foreign := busy.Union(&trims)
		if foreign = foreign.Without(&now.Own); foreign.Empty() {
			require.Nil(m.t, now.Foreign)
		} else {
			require.Equal(m.t, &foreign, now.Foreign)
		}

		serves := now.Own
		if committed != now.Record {
			serves = committed.Serves(committed.Owners())
		}
		both = served.Both(&serves)
		require.True(m.t, both.Empty(), "%s and another shard serve %v", x.addr, both.Ranges())
		served = served.Union(&serves)
		both = present.Both(&now.Own)
		require.True(m.t, both.Empty(), "%s and another shard serve %v, of which not all is agreed on", x.addr, both.Ranges())
		present = present.Union(&now.Own)
	}
	wrong := served.Without(&m.assigned)
	require.True(m.t, wrong.Empty(), "slots that nobody has are served: %v", wrong.Ranges())
	missing := m.assigned.Without(&served)
	var exported cluster.SlotSet
	for _, x := range m.list {
		for _, e := range x.s.Committed().Exports {
			slots := cluster.SetOf(e.Slots...)
			both := exported.Both(&slots)
			require.True(m.t, both.Empty(), "slots are exported twice: %v", both.Ranges())
			exported = exported.Union(&slots)
		}
	}
	missing = missing.Without(&exported)
	require.True(m.t, missing.Empty(), "slots are lost: %v", missing.Ranges())
	m.checkEpochs()
}

// checkEpochs checks that a slot that stays assigned has the same owner and epoch, or another owner and a later epoch.
func (m *model) checkEpochs() {
	all := &cluster.Record{}
	for _, x := range m.list {
		r := x.s.Committed()
		all.Others = append(all.Others, cluster.Other{ID: r.ID, Claims: r.Claims})
	}
	owners := all.Owners()
	stayed := m.before.Both(&m.assigned)
	for slot := range cluster.Slots {
		if m.owners == nil || !stayed.Has(slot) {
			continue
		}
		id, epoch := owners.Of(slot)
		was, old := m.owners.Of(slot)
		switch {
		case id == was && epoch == old:
		case id == was || epoch <= old:
			require.Fail(m.t, "an epoch", "slot %d was %s's since %d, and is %s's since %d", slot, was, old, id, epoch)
		default:
			m.migrated++
		}
	}
	m.owners, m.before = owners, m.assigned
}

// settle restores all connections, and waits until all migrations have ended.
func (m *model) settle() {
	for _, x := range m.list {
		x.down = false
	}
	m.electAll()
	m.check()
	m.meet()
	for range 5 {
		for _, x := range m.list {
			for _, i := range x.s.Committed().Imports {
				if x.s.Committed().Import(i.Task) != nil {
					m.end(x, i.Task)
				}
			}
			x.s.askAll()
			m.trimmed(x)
			m.check()
		}
	}
	var served cluster.SlotSet
	for _, x := range m.list {
		st := x.s.Now()
		require.Empty(m.t, st.Record.Imports)
		require.Empty(m.t, st.Record.Exports)
		require.Empty(m.t, st.Record.Trims)
		require.Nil(m.t, st.Foreign)
		served = served.Union(&st.Own)
		for _, y := range m.list {
			require.Equal(m.t, m.list[0].s.Now().Owners.SlotsOf(y.s.o.ID), st.Owners.SlotsOf(y.s.o.ID), "the shards disagree")
		}
	}
	require.Equal(m.t, m.assigned, served)
}

// Whatever administrators do and whichever leaders fail, each assigned slot is served by one shard or migrates to
// one. Its epoch grows with each new owner. Ended migrations leave nothing behind.
func TestShardsAgreeWhateverHappens(t *testing.T) {
	var names []int // indices of steps
	for i, step := range steps {
		names = append(names, slices.Repeat([]int{i}, step.often)...)
	}
	r, exported, migrated := testseed.Rand(t), 0, 0
	for range 12 {
		m := newModel(t, r, 3)
		for range 250 {
			x, step := m.member(), &steps[names[r.IntN(len(names))]]
			m.trace = append(m.trace, step.name+" "+x.addr)
			x.fails = r.IntN(16) == 0
			step.do(m, x)
			x.fails = false
			m.check()
		}
		m.settle()
		m.close()
		exported, migrated = exported+m.exported, migrated+m.migrated
	}
	t.Log(exported, "exports,", migrated, "slots have another owner")
	require.Greater(t, exported, 20)
}
