package cluster

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// How slots that may have keys go from one shard to another, as far as the records of the two are concerned. The target
// notes an import. When it has all keys the source notes an export, and serves the slots no longer. When the target has
// learned of the export it claims the slots, and serves them. When the source has learned of the claim it forgets export and
// slots, and when the target has learned of that it forgets the import. Each step follows from what the other shard has
// agreed on, so that it does not matter who leads meanwhile, and how often something is told.
//
// The source never loses its claim before the target's, which is of a later epoch, is known to it. So there is always
// one shard that others take for the owner.

// Export is slots that a shard has handed over to another one, and does not serve any more.
type Export struct {
	Task  string // its name, which no other has
	To    string
	Slots []Range
	Epoch uint64 // of the claim that the other one is to make
}

// Import is slots that a shard takes over from another one.
type Import struct {
	Task  string
	From  string
	Slots []Range
	// Claimed says that it has them, and waits for the other shard to know.
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
	// Created, Started and Ended are when it did; Ended is zero before.
	Created, Started, Ended time.Time
	Paused                  time.Duration // for how long commands waited
}

// Errors of migrations.
var (
	ErrBusy      = errors.New("slots are on their way from one shard to another")
	ErrNoTask    = errors.New("there is no such task")
	ErrSlotOwner = errors.New("the slots are another shard's")
)

// Busy returns the slots that are on their way to or from the shard.
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

// MigratesWith reports whether slots are on their way to or from another shard.
func (r *Record) MigratesWith(id string) bool {
	return slices.ContainsFunc(r.Exports, func(e Export) bool { return e.To == id }) ||
		slices.ContainsFunc(r.Imports, func(i Import) bool { return i.From == id })
}

// Serves returns the slots that the shard has, and has not exported. owners is what Owners has returned.
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

// Import returns the import of a task, nil if there is none.
func (r *Record) Import(task string) *Import {
	for i := range r.Imports {
		if r.Imports[i].Task == task {
			return &r.Imports[i]
		}
	}
	return nil
}

// exportOf returns the export of a task, nil if there is none.
func exportOf(exports []Export, task string) *Export {
	for i := range exports {
		if exports[i].Task == task {
			return &exports[i]
		}
	}
	return nil
}

// BeginImport notes an import. All slots must be those of the shard from. Their keys are no longer to be trimmed: who
// imports removes them first.
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

// AddExport notes an export. The shard must serve all slots.
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

// EndImport forgets an import that the other shard has ended, so that it can never export the slots. The keys that have
// come are to be trimmed.
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

// Settle does what follows from what the shard has learned of others, and reports whether that was anything.
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

// exported returns the other shard's export for an import, nil if nothing is known of one.
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

// taken reports whether the other shard has claimed an export.
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

// Trimmed notes that there are no keys of slots any more that were to be trimmed.
func (r *Record) Trimmed(slots *SlotSet) { r.untrim(slots) }
