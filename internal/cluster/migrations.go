package cluster

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// The records of two shards while slots with keys migrate from one to the other. The target records an import. When it has
// all keys, the source records an export and stops serving the slots. When the target has learned of the export, it claims
// the slots and serves them. When the source has learned of the claim, it drops the export and its own claim, and when the
// target has learned of that, it drops the import. Each step follows from what the other shard has committed. So it does
// not matter which servers lead meanwhile, or how often a message is repeated.
//
// The source keeps its claim until it knows the target's, which has a later epoch. So other shards always know an owner.

// Export is slots that a shard has handed over to another one and no longer serves.
type Export struct {
	Task  string // unique
	To    string
	Slots []Range
	Epoch uint64 // of the claim that the other shard will make
}

// Import is slots that a shard takes over from another one.
type Import struct {
	Task  string
	From  string
	Slots []Range
	// Claimed says that the shard has claimed the slots, and waits until the other shard has dropped its export.
	Claimed bool
}

// MigrationTask is a migration as CLUSTER MIGRATION STATUS shows it.
type MigrationTask struct {
	ID           string
	Slots        []Range
	Source, Dest string // IDs of servers
	Operation    string // import or migrate
	State        string
	LastError    string
	// Created, Started and Ended are the times of these events; Ended is zero before the end.
	Created, Started, Ended time.Time
	Paused                  time.Duration // for how long commands waited
	// Keys is how often a key was copied: one that changes meanwhile is copied again.
	Keys int64
}

// Errors of changes of slots.
var (
	ErrKeys      = errors.New("DB must be empty to perform CLUSTER FLUSHSLOTS.")
	ErrBusy      = errors.New("slots are on their way from one shard to another")
	ErrNoTask    = errors.New("there is no such task")
	ErrSlotOwner = errors.New("the slots are another shard's")
)

// Busy returns the slots that migrate to or from the shard.
func (r *Record) Busy() (s SlotSet) {
	for _, e := range r.Exports {
		of := SetOf(e.Slots...)
		s = s.Union(&of)
	}
	for _, i := range r.Imports {
		of := SetOf(i.Slots...)
		s = s.Union(&of)
	}
	return s
}

// MigratesWith reports whether slots migrate between the shard and another one.
func (r *Record) MigratesWith(id string) bool {
	return slices.ContainsFunc(r.Exports, func(e Export) bool { return e.To == id }) ||
		slices.ContainsFunc(r.Imports, func(i Import) bool { return i.From == id })
}

// Serves returns the slots that the shard owns and has not exported. owners is the result of Owners.
func (r *Record) Serves(owners *Owners) SlotSet {
	own := owners.SlotsOf(r.ID)
	for _, e := range r.Exports {
		exported := SetOf(e.Slots...)
		own = own.Without(&exported)
	}
	return own
}

// Foreign returns slots that the shard does not serve although it may have keys of them. serves is what Serves has
// returned.
func (r *Record) Foreign(serves *SlotSet) SlotSet {
	some, trims := r.Busy(), SetOf(r.Trims...)
	some = some.Union(&trims)
	return some.Without(serves)
}

// Import returns the import of a task, or nil.
func (r *Record) Import(task string) *Import {
	for i := range r.Imports {
		if r.Imports[i].Task == task {
			return &r.Imports[i]
		}
	}
	return nil
}

// exportOf returns the export of a task, or nil.
func exportOf(exports []Export, task string) *Export {
	for i := range exports {
		if exports[i].Task == task {
			return &exports[i]
		}
	}
	return nil
}

// BeginImport records an import. The shard from must own all slots. Their keys are no longer to be trimmed, because the
// import removes them first.
func (r *Record) BeginImport(task, from string, slots *SlotSet) error {
	busy, theirs := r.Busy(), r.Owners().SlotsOf(from)
	if both := busy.Both(slots); !both.Empty() {
		return ErrBusy
	}
	if o := r.Other(from); o == nil || o.ID == r.ID {
		return ErrSlotOwner
	}
	if rest := slots.Without(&theirs); slots.Empty() || !rest.Empty() {
		return ErrSlotOwner
	}
	r.Imports = append(r.Imports, Import{Task: task, From: from, Slots: slots.Ranges()})
	r.untrim(slots)
	return nil
}

// AddExport records an export. The shard must serve all slots.
func (r *Record) AddExport(task, to string, slots *SlotSet) error {
	serves, busy := r.Serves(r.Owners()), r.Busy()
	if both := busy.Both(slots); !both.Empty() {
		return ErrBusy
	}
	if rest := slots.Without(&serves); slots.Empty() || !rest.Empty() {
		return ErrSlotOwner
	}
	if r.Other(to) == nil {
		return fmt.Errorf("shard %q is not known", to)
	}
	r.Exports = append(r.Exports, Export{Task: task, To: to, Slots: slots.Ranges(), Epoch: r.NextEpoch()})
	return nil
}

// EndImport drops an import whose slots the other shard will never export. The keys that have arrived are to be trimmed.
func (r *Record) EndImport(task string) error {
	i := r.Import(task)
	if i == nil || i.Claimed {
		return ErrNoTask
	}
	slots := SetOf(i.Slots...)
	r.Imports = slices.DeleteFunc(r.Imports, func(i Import) bool { return i.Task == task })
	r.trim(&slots)
	return nil
}

// Settle applies what the shard has learned of others to its imports and exports. It reports whether anything changed.
func (r *Record) Settle() (news bool) {
	for i := range r.Imports {
		if im := &r.Imports[i]; !im.Claimed {
			if e := r.exported(im); e != nil {
				slots := SetOf(e.Slots...)
				r.Claim(&slots, e.Epoch)
				im.Claimed, news = true, true
			}
		}
	}
	n := len(r.Imports) + len(r.Exports)
	r.Imports = slices.DeleteFunc(r.Imports, func(i Import) bool { return i.Claimed && r.exported(&i) == nil })
	r.Exports = slices.DeleteFunc(r.Exports, func(e Export) bool {
		if !r.taken(&e) {
			return false
		}
		slots := SetOf(e.Slots...)
		r.Disclaim(&slots)
		r.trim(&slots)
		return true
	})
	return news || n != len(r.Imports)+len(r.Exports)
}

// exported returns the other shard's export for an import, nil if none is known.
func (r *Record) exported(i *Import) *Export {
	o := r.Other(i.From)
	if o == nil {
		return nil
	}
	if e := exportOf(o.Exports, i.Task); e != nil && e.To == r.ID {
		return e
	}
	return nil
}

// taken reports whether the other shard has claimed the slots of an export.
func (r *Record) taken(e *Export) bool {
	o := r.Other(e.To)
	if o == nil {
		return false
	}
	var have SlotSet
	for _, c := range o.Claims {
		if c.Epoch >= e.Epoch {
			of := SetOf(c.Range)
			have = have.Union(&of)
		}
	}
	slots := SetOf(e.Slots...)
	rest := slots.Without(&have)
	return rest.Empty()
}

func (r *Record) trim(slots *SlotSet) {
	have := SetOf(r.Trims...)
	have = have.Union(slots)
	r.Trims = have.Ranges()
}

func (r *Record) untrim(slots *SlotSet) {
	have := SetOf(r.Trims...)
	have = have.Without(slots)
	r.Trims = have.Ranges()
}

// Trimmed records that the keys of slots that were to be trimmed are gone.
func (r *Record) Trimmed(slots *SlotSet) { r.untrim(slots) }
