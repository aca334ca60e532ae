package cluster

import (
	"errors"
	"slices"
)

// Claim says that a shard has had slots since an epoch. Of several claims of a slot the one of the latest epoch counts,
// and of these that of the shard with the smallest ID.
type Claim struct {
	Range
	Epoch uint64
}

// Gift is slots that a shard has handed over to another one, which may not have said so itself yet.
type Gift struct {
	Slots []Range
	Epoch uint64
	To    string // the shard
	Task  string // the import that asked for them
}

// Other is a shard as others know it.
type Other struct {
	ID string
	// Version counts what the shard has agreed on of itself.
	Version uint64
	Addrs   []string // of its servers, for other servers
	Claims  []Claim
	Given   []Gift `json:",omitempty"`
}

// Import is slots whose keys are being copied from another shard.
type Import struct {
	Task, From string
	Slots      []Range
}

// Record is what the servers of a shard agree on about the cluster. It is part of their journal. Its zero value is that
// of a shard that has no name yet.
type Record struct {
	ID      string
	Version uint64
	Claims  []Claim
	Given   []Gift  `json:",omitempty"`
	Import  *Import `json:",omitempty"`
	// Trim is slots whose keys are to be removed: they were handed over, or an import of them has failed.
	Trim   []Range `json:",omitempty"`
	Others []Other `json:",omitempty"`
}

// ErrTaken is returned for a slot that another shard has.
var ErrTaken = errors.New("a slot has an owner already")

// Clone returns a copy that shares nothing which is changed in place.
func (r *Record) Clone() *Record {
	c := *r
	c.Claims, c.Given, c.Trim, c.Others = slices.Clone(r.Claims), slices.Clone(r.Given), slices.Clone(r.Trim), slices.Clone(r.Others)
	return &c
}

// Public is what other shards are told of this one.
func (r *Record) Public() Other {
	return Other{ID: r.ID, Version: r.Version, Claims: r.Claims, Given: r.Given}
}

// Other returns what is known of a shard, nil if nothing is.
func (r *Record) Other(id string) *Other {
	for i := range r.Others {
		if r.Others[i].ID == id {
			return &r.Others[i]
		}
	}
	return nil
}

// Owners says who has which slot.
type Owners struct {
	ids   []string // ids[0] is nobody
	of    [Slots]uint16
	epoch [Slots]uint64
}

// Of returns the ID of the shard that has a slot, "" if none has, and since which epoch.
func (o *Owners) Of(slot int) (id string, epoch uint64) { return o.ids[o.of[slot]], o.epoch[slot] }

// SlotsOf returns the slots of a shard; "" are those of nobody.
func (o *Owners) SlotsOf(id string) (s SlotSet) {
	n := slices.Index(o.ids, id)
	for slot, i := range o.of {
		if int(i) == n {
			s.Add(slot)
		}
	}
	return s
}

// claim lets a shard claim slots. Ranges that are not of slots are passed over.
func (o *Owners) claim(id string, r Range, epoch uint64) {
	i := slices.Index(o.ids, id)
	if i < 0 {
		i = len(o.ids)
		o.ids = append(o.ids, id)
	}
	for slot := max(r.First, 0); slot <= min(r.Last, Slots-1); slot++ {
		if o.of[slot] == 0 || epoch > o.epoch[slot] || epoch == o.epoch[slot] && id < o.ids[o.of[slot]] {
			o.of[slot], o.epoch[slot] = uint16(i), epoch
		}
	}
}

func (o *Owners) take(id string, claims []Claim, given []Gift) {
	for _, c := range claims {
		o.claim(id, c.Range, c.Epoch)
	}
	for _, g := range given {
		for _, r := range g.Slots {
			o.claim(g.To, r, g.Epoch)
		}
	}
}

// Owners returns who has which slot, as far as the shard knows.
func (r *Record) Owners() *Owners {
	o := &Owners{ids: []string{""}}
	o.take(r.ID, r.Claims, r.Given)
	for i := range r.Others {
		o.take(r.Others[i].ID, r.Others[i].Claims, r.Others[i].Given)
	}
	return o
}

// NextEpoch returns an epoch later than all that the shard knows.
func (r *Record) NextEpoch() uint64 {
	e := uint64(0)
	see := func(claims []Claim, given []Gift) {
		for _, c := range claims {
			e = max(e, c.Epoch)
		}
		for _, g := range given {
			e = max(e, g.Epoch)
		}
	}
	see(r.Claims, r.Given)
	for i := range r.Others {
		see(r.Others[i].Claims, r.Others[i].Given)
	}
	return e + 1
}

// Claim has the shard claim slots, since an epoch.
func (r *Record) Claim(slots *SlotSet, epoch uint64) {
	r.Disclaim(slots)
	for _, x := range slots.Ranges() {
		r.Claims = append(r.Claims, Claim{x, epoch})
	}
	slices.SortFunc(r.Claims, func(a, b Claim) int { return a.First - b.First })
}

// Disclaim ends claims of slots.
func (r *Record) Disclaim(slots *SlotSet) {
	var kept []Claim
	for _, c := range r.Claims {
		have := SetOf(c.Range)
		have = have.Without(slots)
		for _, x := range have.Ranges() {
			kept = append(kept, Claim{x, c.Epoch})
		}
	}
	r.Claims = kept
}

// Give hands slots over to another shard, whose import task has asked for them. Their keys are to be removed.
func (r *Record) Give(slots *SlotSet, to, task string) {
	g := Gift{Slots: slots.Ranges(), Epoch: r.NextEpoch(), To: to, Task: task}
	r.Disclaim(slots)
	r.Given = append(r.Given, g)
	r.AddTrim(slots)
}

// AddTrim adds slots to those whose keys are to be removed.
func (r *Record) AddTrim(slots *SlotSet) {
	all := SetOf(r.Trim...)
	all = all.Union(slots)
	r.Trim = all.Ranges()
}

// DropTrim takes slots out of those whose keys are to be removed.
func (r *Record) DropTrim(slots *SlotSet) {
	all := SetOf(r.Trim...)
	all = all.Without(slots)
	r.Trim = all.Ranges()
}

// GiftOf returns what an import has been given, nil if it has not been given anything, or has been so for long.
func (r *Record) GiftOf(task string) *Gift {
	for i := range r.Given {
		if r.Given[i].Task == task {
			return &r.Given[i]
		}
	}
	return nil
}

// Learn takes over what is news about another shard, and reports whether there was any. direct says that a server of
// that shard has told it, which alone knows its addresses.
func (r *Record) Learn(o Other, direct bool) bool {
	if o.ID == "" || o.ID == r.ID {
		return false
	}
	have := r.Other(o.ID)
	if have == nil {
		r.Others = append(r.Others, o)
		slices.SortFunc(r.Others, func(a, b Other) int {
			if a.ID < b.ID {
				return -1
			}
			return 1
		})
		r.settle()
		return true
	}
	news := o.Version > have.Version
	if news {
		have.Version, have.Claims, have.Given = o.Version, o.Claims, o.Given
	}
	if direct && len(o.Addrs) > 0 && !slices.Equal(o.Addrs, have.Addrs) {
		have.Addrs, news = slices.Clone(o.Addrs), true
	}
	if news {
		r.settle()
	}
	return news
}

// settle forgets gifts of which their new owners, or later ones, have told.
func (r *Record) settle() {
	o := &Owners{ids: []string{""}}
	o.take(r.ID, r.Claims, nil)
	for i := range r.Others {
		o.take(r.Others[i].ID, r.Others[i].Claims, nil)
	}
	r.Given = slices.DeleteFunc(r.Given, func(g Gift) bool {
		for _, x := range g.Slots {
			for slot := x.First; slot <= x.Last; slot++ {
				if o.of[slot] == 0 || o.epoch[slot] < g.Epoch {
					return false
				}
			}
		}
		return true
	})
}
