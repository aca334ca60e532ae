// Package elements has the handlers of the commands on deadlines of elements: fields of hashes, and members of sets.
// Expired elements are removed before a command sees the value: see engine/expire.go.
package elements

import (
	"iter"
	"math"
	"strconv"
	"strings"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/command"
)

// Kind describes a type whose values have elements with deadlines. Make one with New.
type Kind struct {
	Type   engine.Type
	Word   string // what an element is called: field, member
	Prefix string // of the names of the commands, and of the events: h, s
	Remove string // the command that removes elements, and its event: hdel, srem
	// Of returns the value of an entry that has at least the named elements, at the beginning of each step of list.
	Of func(c *command.Ctx, e *engine.Entry, list [][]byte, step int) Value

	words words
}

// words are the words that follow from the exported fields of a Kind.
type words struct {
	list                  string // the option before a list of elements: fields, members
	ifMissing, ifExisting string // options: fnx, fxx
	expire, persist       string // events: hexpire, hpersist

	// Words of journalled commands: FIELDS, HDEL, HPEXPIREAT, HPERSIST.
	listArg, removeArg, expireAtArg, persistArg []byte
}

// New returns k with the words that follow from its fields.
func New(k Kind) *Kind {
	upper := func(word string) []byte { return []byte(strings.ToUpper(word)) }
	list, letter := k.Word+"s", k.Word[:1]
	k.words = words{list: list, ifMissing: letter + "nx", ifExisting: letter + "xx",
		expire: k.Prefix + "expire", persist: k.Prefix + "persist",
		listArg: upper(list), removeArg: upper(k.Remove), expireAtArg: upper(k.Prefix + "pexpireat"),
		persistArg: upper(k.Prefix + "persist")}
	return &k
}

// Value is a value whose elements have deadlines.
type Value interface {
	// Deadline returns when an element expires, in ms since 1970; 0 means never. ok is false if it does not exist.
	Deadline(element []byte) (at int64, ok bool)
	// SetDeadline makes an element expire at a time in ms since 1970, or never if at is 0. It reports whether the element
	// exists.
	SetDeadline(element []byte, at int64) bool
	// Delete removes an element, and reports whether it existed.
	Delete(element []byte) bool
}

// Replies for an element.
const (
	missing    = -2
	persistent = -1
	unchanged  = 0
	changed    = 1
	deleted    = 2
)

// maxDeadline is the last time at which an element can expire, in ms since 1970. Redis keeps it in 46 bits.
const maxDeadline = 1<<46 - 1

const (
	errNegativeTime command.Error = "ERR invalid expire time, must be >= 0"
	errMissingTime  command.Error = "ERR missing expire time"
	errArguments    command.Error = "ERR wrong number of arguments"
	errConditions   command.Error = "ERR Multiple condition flags specified"

	// ErrTimesOrKeepTTL and ErrTimesOrPersist are errors of ReadOptions for times that exclude each other.
	ErrTimesOrKeepTTL command.Error = "ERR Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments can be specified"
	ErrTimesOrPersist command.Error = "ERR Only one of EX, PX, EXAT, PXAT or PERSIST arguments can be specified"

	// ErrUnknownArgument is the error of HSETEX and HGETEX for each other's options.
	ErrUnknownArgument command.Error = "ERR unknown argument"
)

// list returns the word before a list of elements in errors: FIELDS, MEMBERS.
func (k *Kind) list() string { return string(k.words.listArg) }

func (k *Kind) errListMissing() command.Error {
	return command.Error("ERR Mandatory argument " + k.list() + " is missing or not at the right position")
}

func (k *Kind) errCount() command.Error {
	return command.Error("ERR The `num" + k.Word + "s` parameter must match the number of arguments")
}

func (k *Kind) errCountPositive() command.Error {
	return command.Error("ERR Number of " + k.Word + "s must be a positive integer")
}

func (k *Kind) errCountTooSmall() command.Error {
	return command.Error("ERR Parameter `num" + k.list()[:1] + k.Word[1:] + "s` should be greater than 0")
}

func (k *Kind) errCountInvalid() command.Error {
	return command.Error("ERR invalid number of " + k.Word + "s")
}

func (k *Kind) errListTwice() command.Error {
	return command.Error("ERR " + k.list() + " keyword specified multiple times")
}

func (k *Kind) errListShort() command.Error {
	return command.Error("ERR " + k.list() + " requires at least num" + k.Word + "s and one " + k.Word + " argument")
}

func (k *Kind) errNoList() command.Error {
	return command.Error("ERR missing " + k.list() + " argument")
}

func (k *Kind) errBothConditions() command.Error {
	letter := k.list()[:1]
	return command.Error("ERR Only one of " + letter + "XX or " + letter + "NX arguments can be specified")
}

func unknownArgument(word []byte) command.Error {
	return command.Error("ERR unknown argument: " + string(command.UntilNUL(word)))
}

// deadline reads an argument as the deadline of elements; if it is invalid, it writes an error and ok is false.
func deadline(c *command.Ctx, arg []byte, unit command.TimeUnit) (at int64, ok bool) {
	n, ok := c.Int(arg)
	if !ok {
		return 0, false
	}
	if n < 0 {
		c.Err(errNegativeTime)
		return 0, false
	}
	if at, ok = unit.Deadline(c.Now(), n); !ok || at > maxDeadline {
		c.Err(c.BadExpireTime())
		return 0, false
	}
	return at, true
}

// Named returns the elements among the arguments after the key: the word FIELDS or MEMBERS, their number, and the
// elements. If the arguments are invalid, it writes an error and ok is false.
func (k *Kind) Named(c *command.Ctx) (names [][]byte, ok bool) {
	const at = 2
	if !command.EqualFold(c.Args[at], k.words.list) {
		c.Err(k.errListMissing())
		return nil, false
	}
	n, ok := c.IntIn(c.Args[at+1], 1, math.MaxInt64, k.errCountPositive())
	if !ok {
		return nil, false
	}
	names = c.Args[at+2:]
	if n != int64(len(names)) {
		c.Err(k.errCount())
		return nil, false
	}
	return names, true
}

// replyForEach replies with the same number for each element.
func replyForEach(c *command.Ctx, names [][]byte, n int64) {
	c.W.Array(len(names))
	for range names {
		c.W.Int(n)
	}
}

// Changes are elements that got a deadline, lost theirs, or were removed because it had passed.
type Changes struct {
	kind             *Kind
	changed, deleted [][]byte
}

// Changes returns an empty list of changes.
func (k *Kind) Changes() Changes { return Changes{kind: k} }

// Expire gives an element a deadline, or removes it if the deadline has passed. It returns HEXPIRE's reply for it.
func (x *Changes) Expire(c *command.Ctx, v Value, name []byte, at int64, cond command.ExpireConditions) int64 {
	old, ok := v.Deadline(name)
	switch {
	case !ok:
		return missing
	case !cond.Allow(old, at):
		return unchanged
	case c.Over(at):
		v.Delete(name)
		x.deleted = append(x.deleted, name)
		return deleted
	}
	v.SetDeadline(name, at)
	x.changed = append(x.changed, name)
	return changed
}

// Persist takes the deadline of an element away. It returns HPERSIST's reply for it.
func (x *Changes) Persist(v Value, name []byte) int64 {
	switch at, ok := v.Deadline(name); {
	case !ok:
		return missing
	case at == 0:
		return persistent
	}
	v.SetDeadline(name, 0)
	x.changed = append(x.changed, name)
	return changed
}

// Tell reports and journals new deadlines and removals.
func (x *Changes) Tell(c *command.Ctx, e *engine.Entry, at int64) {
	k := x.kind
	if len(x.changed) > 0 {
		k.JournalDeadline(c, at, x.changed...)
	}
	if len(x.deleted) > 0 {
		c.Journal(append([][]byte{k.words.removeArg, c.Args[1]}, x.deleted...)...)
		k.Removed(c, e, x.deleted)
		return
	}
	x.TellExpiring(c, e)
}

// TellExpiring reports new deadlines, which the caller journals.
func (x *Changes) TellExpiring(c *command.Ctx, e *engine.Entry) {
	if len(x.changed) > 0 {
		c.G.ChangedFields(e, x.kind.words.expire, x.changed, 1)
	}
}

// TellPersisted reports lost deadlines. The caller is HPERSIST or its like, or calls JournalPersisted too.
func (x *Changes) TellPersisted(c *command.Ctx, e *engine.Entry) {
	if len(x.changed) > 0 {
		c.G.ChangedFields(e, x.kind.words.persist, x.changed, 1)
	}
}

// JournalPersisted journals lost deadlines as HPERSIST.
func (x *Changes) JournalPersisted(c *command.Ctx) {
	if k := x.kind; len(x.changed) > 0 && c.G.Journals() {
		c.Journal(k.AppendList([][]byte{k.words.persistArg, c.Args[1]}, x.changed)...)
	}
}

// JournalDeadline journals the deadline of elements of the key argument 1.
func (k *Kind) JournalDeadline(c *command.Ctx, at int64, names ...[]byte) {
	if c.G.Journals() {
		c.Journal(k.AppendList([][]byte{k.words.expireAtArg, c.Args[1], strconv.AppendInt(nil, at, 10)}, names)...)
	}
}

// Rebuild writes the commands that give the elements of a key their deadlines. Redis knows HPEXPIREAT from 7.4 on,
// SPEXPIREAT from 8.12 on.
func (k *Kind) Rebuild(r *command.Rebuilder, key []byte, deadlines iter.Seq2[[]byte, int64]) {
	one := []byte("1")
	for element, at := range deadlines {
		r.Command(k.words.expireAtArg, key, strconv.AppendInt(nil, at, 10), k.words.listArg, one, element)
	}
}

// AppendList appends elements with the word before them and their number.
func (k *Kind) AppendList(args, names [][]byte) [][]byte {
	return append(append(args, k.words.listArg, strconv.AppendInt(nil, int64(len(names)), 10)), names...)
}

// Removed reports that elements were removed, and removes the key with the last one.
func (k *Kind) Removed(c *command.Ctx, e *engine.Entry, names [][]byte) {
	c.G.ChangedFields(e, k.Remove, names, 1)
	if e.Count() == 0 {
		c.G.Remove(e, engine.EventGeneric, "del")
	}
}
