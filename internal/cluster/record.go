package cluster

import "slices"

// Claim says that a shard owns slots since an epoch. Of several claims of a slot, the one with the latest epoch counts, and
// of these the one of the shard with the smallest ID.
type Claim struct {
	Range
	Epoch uint64
}

// Other is a shard as other shards know it.
type Other struct {
	ID string
	// Version counts the changes of the shard's record.
	Version uint64
	Addrs   []string // of its servers, for other servers
	Claims  []Claim
	Exports []Export `json:"Gifts,omitempty"` // the name that all versions have on the wire and in journals
}

// Record is the state of the cluster on which the servers of a shard agree. It is part of their journal. The zero
// value is the record of a shard without a name.
type Record struct {
	ID      string
	Version uint64
	Claims  []Claim
	Others  []Other `json:",omitempty"`
	// Slots that migrate; see migrations.go.
	Exports []Export `json:"Gifts,omitempty"` // as in Other
	Imports []Import `json:",omitempty"`
	Trims   []Range  `json:",omitempty"` // slots of other shards; their keys here must be removed
}

// Clone returns a copy that can be changed without changing r.
func (r *Record) Clone() *Record {
	c := *r
	c.Claims, c.Others = slices.Clone(r.Claims), slices.Clone(r.Others)
	c.Exports, c.Imports, c.Trims = slices.Clone(r.Exports), slices.Clone(r.Imports), slices.Clone(r.Trims)
	return &c
}

// Public returns what other shards learn of this one.
func (r *Record) Public() Other {
	return Other{ID: r.ID, Version: r.Version, Claims: r.Claims, Exports: r.Exports}
}

// Other returns another shard, nil if it is not known.
func (r *Record) Other(id string) *Other {
	for i := range r.Others {
		if r.Others[i].ID == id {
			return &r.Others[i]
		}
	}
	return nil
}

// Owners has the owner of each slot.
type Owners struct {
	ids   []string // ids[0] is nobody
	of    [Slots]uint16
	epoch [Slots]uint64
}

// Of returns the ID of the shard that owns a slot, "" if none does, and the epoch of its claim.
func (o *Owners) Of(slot int) (id string, epoch uint64) { return o.ids[o.of[slot]], o.epoch[slot] }

// SlotsOf returns the slots of a shard; for "" it returns those without an owner.
func (o *Owners) SlotsOf(id string) (s SlotSet) {
	n := slices.Index(o.ids, id)
	for slot, i := range o.of {
		if int(i) == n {
			s.Add(slot)
		}
	}
	return s
}

// claim applies a claim. It skips numbers that are not slots.
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

func (o *Owners) take(id string, claims []Claim) {
	for _, c := range claims {
		o.claim(id, c.Range, c.Epoch)
	}
}

// Owners returns the owners of all slots, as far as the shard knows.
func (r *Record) Owners() *Owners {
	o := &Owners{ids: []string{""}}
	o.take(r.ID, r.Claims)
	for i := range r.Others {
		o.take(r.Others[i].ID, r.Others[i].Claims)
	}
	return o
}

// NextEpoch returns an epoch later than all that the shard knows.
func (r *Record) NextEpoch() uint64 {
	e := uint64(0)
	see := func(claims []Claim) {
		for _, c := range claims {
			e = max(e, c.Epoch)
		}
	}
	exported := func(exports []Export) {
		for _, x := range exports {
			e = max(e, x.Epoch)
		}
	}
	see(r.Claims)
	exported(r.Exports)
	for i := range r.Others {
		see(r.Others[i].Claims)
		exported(r.Others[i].Exports)
	}
	return e + 1
}

// Claim makes the shard claim slots since an epoch.
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

// Learn updates what is known of another shard, and reports whether that changed anything. direct says that o comes from a
// server of that shard; only such a server knows the addresses.
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
		return true
	}
	news := o.Version > have.Version
	if news {
		have.Version, have.Claims, have.Exports = o.Version, o.Claims, o.Exports
	}
	if direct && len(o.Addrs) > 0 && !slices.Equal(o.Addrs, have.Addrs) {
		have.Addrs, news = slices.Clone(o.Addrs), true
	}
	return news
}
