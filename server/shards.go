package server

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/atomredis/atomredis/cluster"
	"github.com/atomredis/atomredis/cluster/peers"
	"github.com/atomredis/atomredis/command"
	"github.com/atomredis/atomredis/engine"
)

// A group of servers is a shard of a cluster, which may have others. What the servers of a shard agree on about the
// cluster is a cluster.Record in their journal: their own slots, and what they have learned of other shards. Who serves
// a slot follows from it alone. The leader changes the record, and every server asks the other shards twice a second
// where they are. They tell only what is committed.

// shards is the server's part in a cluster of several shards.
type shards struct {
	srv      *Server
	now      atomic.Pointer[shardState]     // changes under a guard over everything
	told     atomic.Pointer[cluster.Record] // the last one that is committed
	changing sync.Mutex                     // held by who changes the record
	wake     chan struct{}
	running  sync.WaitGroup

	moves    moves
	gives    []*give // changes under a guard over everything; whoever has one may read it
	holds    slotHolds
	trimming atomic.Bool

	mu        sync.Mutex
	seen      map[string]sighted   // the other shards, by ID
	forgotten map[string]time.Time // shards that are not to be learned of from others, until then
	working   map[string]*getting  // imports that something works on, by task; nil before keys come and afterwards
}

// shardState is a record, and what follows from it.
type shardState struct {
	record *cluster.Record // is not changed
	id     string
	owners *cluster.Owners
	own    cluster.SlotSet // what it serves
	// foreign are slots that it does not serve although it may have keys of them; nil if there are none.
	foreign  *cluster.SlotSet
	replaced chan struct{} // is closed when there is another one
}

// sighted is what a server of another shard has told, and when.
type sighted struct {
	shardNews
	at time.Time
}

// shardNews answers questions.
type shardNews struct {
	Shard   cluster.Other
	Known   []cluster.Other
	Members []shardMember
	Leader  string // the address of the leader for servers, "" if there is none
	Leads   bool   // this server leads
	Error   string `json:",omitempty"`
}

// shardMember is a server of another shard.
type shardMember struct {
	Addr, Client  string
	Leads, Online bool
	Index         uint64
}

const (
	shardAskEvery = 500 * time.Millisecond
	shardFresh    = 3 * time.Second // for how long an answer counts
	forgetFor     = time.Minute
)

var (
	errNotLeading = errors.New("this server does not lead its shard")
	errTakenBack  = errors.New("the lead was lost before the change was agreed on; it may be or not")
	errNoShardID  = errors.New("the shard has no leader yet")
)

func newShards(srv *Server) *shards {
	h := &shards{srv: srv, wake: make(chan struct{}, 1), seen: map[string]sighted{}, forgotten: map[string]time.Time{},
		working: map[string]*getting{}}
	h.put(&cluster.Record{})
	h.told.Store(h.record())
	return h
}

func (h *shards) record() *cluster.Record { return h.now.Load().record }

// put makes a record the present one. A guard over everything is held, or nobody is served yet.
func (h *shards) put(r *cluster.Record) {
	shown := r
	if r.ID == "" { // nothing is agreed on yet
		shown = h.first()
	}
	st := &shardState{record: r, id: shown.ID, owners: shown.Owners(), replaced: make(chan struct{})}
	st.own = shown.Serves(st.owners)
	if foreign := shown.Foreign(&st.own); !foreign.Empty() {
		st.foreign = &foreign
	}
	old := h.now.Swap(st)
	if old == nil {
		return
	}
	close(old.replaced)
	if lost := old.own.Without(&st.own); !lost.Empty() {
		h.srv.redirectBlocked(&lost)
		h.srv.redirectSubscribers(&lost)
	}
}

// first is the record of a new shard.
func (h *shards) first() *cluster.Record {
	r := &cluster.Record{ID: h.srv.clusterShard}
	var slots cluster.SlotSet
	for _, x := range h.srv.config.Get().Cluster.Slots {
		slots.AddRange(cluster.Range{First: x[0], Last: x[1]})
	}
	r.Claim(&slots, 1)
	return r
}

// apply takes a record from the journal, or from a copy. The guard over everything is held.
func (h *shards) apply(text []byte) error {
	r := new(cluster.Record)
	if len(text) > 0 {
		if err := json.Unmarshal(text, r); err != nil {
			return fmt.Errorf("the shard's record: %w", err)
		}
	}
	h.put(r)
	h.told.Store(r)
	h.kick()
	return nil
}

// ApplyShardRecord implements cluster.Host.
func (srv *Server) ApplyShardRecord(text []byte) error {
	if srv.shards == nil {
		return nil
	}
	return srv.shards.apply(text)
}

// stored is what a checkpoint keeps of the record; the guard over everything is held.
func (h *shards) stored() []byte {
	if h == nil || h.record().ID == "" {
		return nil
	}
	text, _ := json.Marshal(h.record())
	return text
}

// change changes the record, unless fn does not, and waits until that is committed. fn is called under a guard over
// everything, on a copy of its own.
func (h *shards) change(fn func(g *engine.Guard, r *cluster.Record) error) error {
	h.changing.Lock()
	defer h.changing.Unlock()
	node := h.srv.group.node
	r, epoch, err := h.changeUnder(fn)
	if err != nil || r == nil {
		return err
	}
	ctx, cancel := context.WithTimeout(h.srv.group.ctx, 5*time.Second)
	defer cancel()
	if err := node.Sync(ctx); err != nil || node.Epoch() != epoch {
		return errTakenBack
	}
	h.told.Store(r)
	h.kick()
	return nil
}

// changeUnder is the part of change under the guard; it returns the new record, nil if nothing has changed.
func (h *shards) changeUnder(fn func(g *engine.Guard, r *cluster.Record) error) (r *cluster.Record, epoch uint64, err error) {
	var g engine.Guard
	g.Lock(h.srv.ks, engine.AllShards, h.srv.ks.Now())
	defer g.Unlock()
	if h.srv.group.following.Load() {
		return nil, 0, errNotLeading
	}
	r = h.record().Clone()
	if err := fn(&g, r); err != nil {
		return nil, 0, err
	}
	r.Version++
	text, err := json.Marshal(r)
	if err != nil {
		return nil, 0, err
	}
	h.put(r)
	g.Log(0, [][]byte{[]byte("CLUSTER"), []byte("SYNCSLOTS"), []byte("RECORD"), text})
	return r, h.srv.group.node.Epoch(), nil
}

var errUnchanged = errors.New("nothing changes")

func (h *shards) kick() {
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// start has the server take part.
func (h *shards) start() {
	h.running.Go(h.watch)
}

// watch asks the other shards where they are, and has the leader do what the record wants.
func (h *shards) watch() {
	ctx := h.srv.group.ctx
	for ctx.Err() == nil {
		if h.leads() && h.record().ID == "" && h.srv.cluster != nil {
			_ = h.change(func(_ *engine.Guard, r *cluster.Record) error {
				if r.ID != "" {
					return errUnchanged
				}
				*r = *h.first()
				return nil
			})
		}
		h.askAll()
		h.resolve()
		h.trim()
		select {
		case <-h.wake:
		case <-time.After(shardAskEvery):
		case <-ctx.Done():
		}
	}
}

func (h *shards) leads() bool { return !h.srv.group.following.Load() }

// askAll asks all other shards, and has the leader note what they have agreed on.
func (h *shards) askAll() {
	var asking sync.WaitGroup
	for _, o := range h.record().Others {
		asking.Go(func() { _, _ = h.askShard(&o, peers.Question{Ask: peers.AskNews}) })
	}
	asking.Wait()
	if !h.leads() {
		return
	}
	if h.learn(h.record().Clone()) {
		_ = h.change(func(_ *engine.Guard, r *cluster.Record) error {
			if !h.learn(r) {
				return errUnchanged
			}
			return nil
		})
	}
}

// learn has a record learn what other shards have told, and do what follows from it. It reports whether it has changed.
func (h *shards) learn(r *cluster.Record) (news bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, o := range r.Others {
		seen, ok := h.seen[o.ID]
		if !ok {
			continue
		}
		news = r.Learn(seen.Shard, true) || news
		for _, k := range seen.Known {
			if time.Now().After(h.forgotten[k.ID]) && len(k.Addrs) > 0 {
				news = r.Learn(k, false) || news
			}
		}
	}
	return r.Settle() || news
}

// askShard asks a server of a shard: the leader if it is known.
func (h *shards) askShard(o *cluster.Other, q peers.Question) (a shardNews, err error) {
	h.mu.Lock()
	leader := h.seen[o.ID].Leader
	h.mu.Unlock()
	addrs := slices.Clone(o.Addrs)
	slices.SortStableFunc(addrs, func(x, y string) int {
		switch {
		case x == leader && y != leader:
			return -1
		case y == leader && x != leader:
			return 1
		}
		return 0
	})
	err = errNoShardID
	for _, addr := range addrs {
		if a, err = h.ask(addr, q); err == nil && a.Shard.ID == o.ID {
			return a, nil
		}
	}
	return a, err
}

// ask asks a server, and notes what it tells.
func (h *shards) ask(addr string, q peers.Question) (a shardNews, err error) {
	c, err := h.srv.group.node.Dial(addr, peers.Timeout)
	if err != nil {
		return a, err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(peers.Timeout))
	if q.Ask != peers.AskNews {
		c.SetDeadline(time.Now().Add(peers.TaskTimeout))
	}
	if err := json.NewEncoder(c).Encode(q); err != nil {
		return a, err
	}
	if err := json.NewDecoder(io.LimitReader(c, peers.MaxAnswer)).Decode(&a); err != nil {
		return a, err
	}
	if a.Error != "" {
		return a, errors.New(a.Error)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if old, ok := h.seen[a.Shard.ID]; !ok || a.Shard.Version >= old.Shard.Version {
		h.seen[a.Shard.ID] = sighted{a, time.Now()}
	}
	return a, nil
}

// serve answers another server, which need not be of this shard.
func (h *shards) serve(c net.Conn) {
	q, in, err := peers.ReadQuestion(c)
	if err != nil {
		return
	}
	switch q.Ask {
	case peers.AskForward:
		h.srv.serveProxied(c, in.Buffered())
		return
	case peers.AskStream:
		h.srv.followed.WantedElsewhere()
		return
	case peers.AskPublish, peers.AskPublishShard:
		_ = h.srv.broadcast.Receive(c, in.Buffered(), q.Ask == peers.AskPublishShard) // the sender sees it when it writes
		return
	}
	switch {
	case h.srv.cluster == nil:
		err = errors.New("cluster-enabled is not set")
	case q.Ask == peers.AskMeet && q.Shard != nil:
		err = h.met(*q.Shard)
	case q.Ask == peers.AskGive && q.Shard != nil:
		h.give(c, in, &q)
		return
	}
	a := h.news()
	if q.Ask == peers.AskEnd && err == nil {
		a.Shard, err = h.endTask(q.Task)
	}
	if err != nil {
		a.Error = err.Error()
	}
	_ = json.NewEncoder(c).Encode(a)
}

// news is what other shards are told.
func (h *shards) news() shardNews {
	r := h.told.Load()
	st := h.srv.group.status.Load()
	a := shardNews{Shard: r.Public(), Known: r.Others, Leader: st.Leader, Leads: h.leads()}
	for _, m := range st.Members {
		a.Shard.Addrs = append(a.Shard.Addrs, m.Addr)
		a.Members = append(a.Members, shardMember{Addr: m.Addr, Client: m.Client, Leads: m.Addr == st.Leader,
			Online: m.Online, Index: m.Index})
	}
	return a
}

// conflict returns why two shards cannot be of one cluster.
func conflict(a *cluster.Record, b *cluster.Other) error {
	if a.Other(b.ID) != nil {
		return nil
	}
	of := cluster.Record{ID: b.ID, Claims: b.Claims}
	theirs, ours := of.Owners().SlotsOf(b.ID), a.Owners().SlotsOf(a.ID)
	if both := ours.Both(&theirs); !both.Empty() {
		return fmt.Errorf("both shards have slot %d: CLUSTER FLUSHSLOTS has one without keys give its slots up",
			both.Ranges()[0].First)
	}
	return nil
}

// met notes that another shard wants to be known.
func (h *shards) met(o cluster.Other) error {
	return unlessUnchanged(h.change(func(_ *engine.Guard, r *cluster.Record) error {
		if r.ID == "" {
			return errNoShardID
		}
		if err := conflict(r, &o); err != nil {
			return err
		}
		if !r.Learn(o, true) {
			return errUnchanged
		}
		return nil
	}))
}

func unlessUnchanged(err error) error {
	if errors.Is(err, errUnchanged) {
		return nil
	}
	return err
}

// Meet makes the shard of a server known to this one, and this one to it. bus is the port that its raft-addr has.
func (h *shards) Meet(host string, bus int) error {
	if !h.leads() {
		return errNotLeading
	}
	a, err := h.ask(net.JoinHostPort(host, fmt.Sprint(bus)), peers.Question{Ask: peers.AskNews})
	if err != nil {
		return err
	}
	if a.Shard.ID == h.record().ID {
		return nil
	}
	if a.Shard.ID == "" || a.Leader == "" {
		return errNoShardID
	}
	if err := h.met(a.Shard); err != nil {
		return err
	}
	h.mu.Lock()
	delete(h.forgotten, a.Shard.ID)
	h.mu.Unlock()
	own := h.news().Shard
	_, err = h.ask(a.Leader, peers.Question{Ask: peers.AskMeet, Shard: &own})
	return err
}

// Forget forgets a shard without slots.
func (h *shards) Forget(id string) error {
	return unlessUnchanged(h.change(func(_ *engine.Guard, r *cluster.Record) error {
		if slots := r.Owners().SlotsOf(id); !slots.Empty() {
			return errors.New("the shard has slots")
		}
		if r.MovesWith(id) {
			return cluster.ErrBusy
		}
		if r.Other(id) == nil {
			return errUnchanged
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		h.forgotten[id] = time.Now().Add(forgetFor)
		delete(h.seen, id)
		r.Others = slices.DeleteFunc(r.Others, func(o cluster.Other) bool { return o.ID == id })
		return nil
	}))
}

// AddSlots gives the shard slots that nobody has.
func (h *shards) AddSlots(slots cluster.SlotSet) error {
	return h.change(func(_ *engine.Guard, r *cluster.Record) error {
		o := r.Owners()
		for _, x := range slots.Ranges() {
			for slot := x.First; slot <= x.Last; slot++ {
				if id, _ := o.Of(slot); id != "" {
					return fmt.Errorf("Slot %d is already busy", slot)
				}
			}
		}
		foreign := r.Foreign(&cluster.SlotSet{})
		if both := foreign.Both(&slots); !both.Empty() {
			return fmt.Errorf("Slot %d has keys of another shard that are still to be removed", both.Ranges()[0].First)
		}
		r.Claim(&slots, r.NextEpoch())
		return nil
	})
}

// DropSlots takes slots from the shard, which nobody has then. Their keys stay.
func (h *shards) DropSlots(slots cluster.SlotSet) error {
	return h.change(func(_ *engine.Guard, r *cluster.Record) error {
		own := r.Owners().SlotsOf(r.ID)
		if others := slots.Without(&own); !others.Empty() {
			return fmt.Errorf("Slot %d is already unassigned", others.Ranges()[0].First)
		}
		busy := r.Busy()
		if both := busy.Both(&slots); !both.Empty() {
			return cluster.ErrBusy
		}
		r.Disclaim(&slots)
		return nil
	})
}

// FlushSlots takes all slots from a shard without keys.
func (h *shards) FlushSlots() error {
	return h.change(func(g *engine.Guard, r *cluster.Record) error {
		if !g.Complete() {
			return errors.New("the keys are still being loaded")
		}
		for db := range h.srv.ks.Databases() {
			if g.Len(db) > 0 {
				return errors.New("DB must be empty to perform CLUSTER FLUSHSLOTS.")
			}
		}
		if busy := r.Busy(); !busy.Empty() {
			return cluster.ErrBusy
		}
		r.Claims = nil
		return nil
	})
}

// view returns the other shards as clients are told of them.
func (h *shards) view(st *shardState) (list []cluster.ShardView) {
	preferred := h.srv.config.Get().Cluster.PreferredEndpoint
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, o := range st.record.Others {
		v := cluster.ShardView{ID: o.ID, Slots: st.owners.SlotsOf(o.ID)}
		for _, c := range o.Claims {
			v.Epoch = max(v.Epoch, c.Epoch)
		}
		seen := h.seen[o.ID]
		old := time.Since(seen.at) > shardFresh
		for _, m := range seen.Members {
			w := cluster.Member{ID: nameOf("node", m.Addr), Announcement: announcementOf(m.Client, m.Addr), Leads: m.Leads,
				Online: m.Online && !old, Offset: int64(m.Index)}
			w.Preferred = preferred
			v.Members = append(v.Members, w)
		}
		for _, addr := range o.Addrs {
			if len(seen.Members) == 0 { // only where servers reach it is known
				v.Members = append(v.Members, cluster.Member{ID: nameOf("node", addr), Announcement: announcementOf("", addr)})
			}
		}
		if len(v.Members) == 0 {
			continue
		}
		leaderFirst(v.Members)
		list = append(list, v)
	}
	return list
}

// leaderOf returns where clients reach the leader of another shard, "" if that is not known.
func (h *shards) leaderOf(id string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, m := range h.seen[id].Members {
		if m.Leads {
			return m.Client
		}
	}
	return ""
}

// In a group a checkpoint keeps beside the keys: a mark, the length of the result of psync.Followers.StoredBefore, that result,
// and the record of the shard.
const extraMark = "shard\x01"

// extra is persist.Options.Extra.
func (srv *Server) extra() []byte {
	beside, record := srv.followed.StoredBefore(srv.scripts.Stored()), srv.shards.stored()
	if record == nil {
		return beside
	}
	b := binary.AppendUvarint([]byte(extraMark), uint64(len(beside)))
	return append(append(b, beside...), record...)
}

// restoreExtra is persist.Options.Restore.
func (srv *Server) restoreExtra(extra []byte) error {
	beside, record, err := splitExtra(extra)
	if err == nil && srv.shards != nil {
		err = srv.shards.apply(record)
	}
	if err != nil {
		return err
	}
	functions, err := srv.followed.RestoreBefore(beside)
	if err != nil {
		return err
	}
	return srv.restoreFunctions(functions)
}

// splitExtra returns the parts of what extra has returned.
func splitExtra(b []byte) (beside, record []byte, err error) {
	if len(b) < len(extraMark) || string(b[:len(extraMark)]) != extraMark {
		return b, nil, nil
	}
	b = b[len(extraMark):]
	n, size := binary.Uvarint(b)
	if size <= 0 || n > uint64(len(b)-size) {
		return nil, nil, errors.New("the shard's record: what is stored is damaged")
	}
	b = b[size:]
	return b[:n:n], b[n:], nil
}

// elsewhere returns the error that names who serves a slot, "" if this server does. reads says that what follows only
// reads, and that the client is content with a follower.
func (srv *Server) elsewhere(slot int, reads bool) command.Error {
	h, g := srv.shards, &srv.group
	if slot == cluster.NoSlot || h == nil {
		return ""
	}
	now := h.now.Load()
	if !now.own.Has(slot) {
		return h.owner(now, slot)
	}
	if !g.following.Load() || reads {
		return ""
	}
	switch st := g.status.Load(); {
	case st.Leader == "" || st.Leader != st.Addr && st.LeaderAt == "":
		return errClusterDown
	case st.Leader == st.Addr:
		return errTryAgain
	default:
		return movedTo(slot, st.LeaderAt)
	}
}

// owner returns the error that names the other shard that has a slot.
func (h *shards) owner(now *shardState, slot int) command.Error {
	id, _ := now.owners.Of(slot)
	switch id {
	case "":
		return errNotServed
	case now.id: // it is given, and not yet taken
		return errTryAgain
	}
	addr := h.leaderOf(id)
	if addr == "" {
		return errClusterDown
	}
	return movedTo(slot, addr)
}
