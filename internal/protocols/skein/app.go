package skein

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/zsets"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/protocols/due"
	"github.com/atomredis/atomredis/internal/protocols/internal/effect"
	"github.com/atomredis/atomredis/internal/protocols/skein/event"
	"github.com/atomredis/atomredis/internal/protocols/skein/keys"
	"github.com/atomredis/atomredis/resp"
)

// This file has applications, and the operations on their keys.

// key is one of the keys of an application, first those with its keys and values.
type key uint8

const (
	valuesKey key = iota
	ownersKey
	indexKey
	ownedKey
	containersKey
	servicesKey
	leasesKey
	statusKey
	numberOfKeys

	readOnly = ownedKey // the number of those that reading needs
)

var suffixes = [numberOfKeys]string{
	ownersKey: keys.Owners, indexKey: keys.Index, ownedKey: keys.Owned, containersKey: keys.Containers,
	servicesKey: keys.Services, leasesKey: keys.Leases, statusKey: keys.Status,
}

var types = [numberOfKeys]engine.Type{
	valuesKey: engine.Hash, ownersKey: engine.Hash, indexKey: engine.ZSet, ownedKey: engine.ZSet,
	containersKey: engine.Hash, servicesKey: engine.Hash, leasesKey: engine.ZSet, statusKey: engine.String,
}

// app is an application under a guard that holds the keys that the command uses.
type app struct {
	c       *command.Ctx
	service *Service
	names   *[numberOfKeys][]byte
}

// named reports whether a name is valid for an application: its keys must be in one slot.
func named(name []byte) bool { return len(name) > 0 && !bytes.ContainsAny(name, "{}") }

func appOf(c *command.Ctx, name []byte) *app {
	return &app{c: c, service: Of(c.Host), names: namesOf(name)}
}

// namesOf returns the keys of the application of that name.
func namesOf(name []byte) *[numberOfKeys][]byte {
	base := len(keys.Prefix) + len(name) + 2
	buf := make([]byte, 0, int(numberOfKeys)*(base+len(keys.Containers)))
	all := new([numberOfKeys][]byte)
	for k, suffix := range suffixes {
		start := len(buf)
		buf = append(append(append(append(append(buf, keys.Prefix...), '{'), name...), '}'), suffix...)
		all[k] = buf[start:len(buf):len(buf)]
	}
	return all
}

// The DerivedKeys of commands that may use all keys, of those of SKEIN.CONTAINER, and of those that only read keys and
// values.
func allKeys(args [][]byte, fn func(key []byte))       { eachKey(args[1], numberOfKeys, fn) }
func containerKeys(args [][]byte, fn func(key []byte)) { eachKey(args[2], numberOfKeys, fn) }
func readKeys(args [][]byte, fn func(key []byte))      { eachKey(args[1], readOnly, fn) }

func eachKey(name []byte, n key, fn func(key []byte)) {
	for _, k := range namesOf(name)[:n] {
		fn(k)
	}
}

// nameIn returns the name of an application if e is its key of that suffix.
func nameIn(e *engine.Entry, k key) (name string, ok bool) {
	rest, ok := strings.CutPrefix(e.Key(), keys.Prefix+"{")
	if !ok || e.Type() != types[k] {
		return "", false
	}
	if rest, ok = strings.CutSuffix(rest, "}"+suffixes[k]); !ok || !named([]byte(rest)) {
		return "", false
	}
	return strings.Clone(rest), true
}

// id identifies the application.
func (a *app) id() due.ID { return due.ID{DB: a.c.DB, Key: string(a.names[valuesKey])} }

// check reports whether the first n keys are of the right types. If not, it writes an error.
func (a *app) check(n key) bool {
	for k, name := range a.names[:n] {
		if !effect.Is(a.c, name, types[k]) {
			return false
		}
	}
	return true
}

// typesFit is check of all keys without a reply.
func (a *app) typesFit() bool {
	for k, name := range a.names {
		if e := a.c.G.Peek(a.c.DB, name); e != nil && e.Type() != types[k] {
			return false
		}
	}
	return true
}

// value returns the value of a key; ok is false if there is none. It is valid until the hash changes.
func (a *app) value(k []byte) (v []byte, ok bool) { return effect.HGet(a.c, a.names[valuesKey], k) }

// owner returns the owner of a key, nil if it has none.
func (a *app) owner(k []byte) []byte {
	owner, _ := effect.HGet(a.c, a.names[ownersKey], k)
	return owner
}

// lexRange returns the members of a range of keys.
func lexRange(start, end []byte) (r zsets.LexRange) {
	r.Max.Kind = zsets.LexMax
	if !keys.FromFirst(start) {
		r.Min = zsets.LexBound{Kind: zsets.Inclusive, Member: keys.Member(nil, start)}
	}
	if len(end) > 0 {
		r.Max = zsets.LexBound{Kind: zsets.Exclusive, Member: keys.Member(nil, end)}
	}
	return r
}

// prefixRange returns the members that begin with a prefix, whose last byte is not the largest.
func prefixRange(prefix []byte) zsets.LexRange {
	end := bytes.Clone(prefix)
	end[len(end)-1]++
	return zsets.LexRange{Min: zsets.LexBound{Kind: zsets.Inclusive, Member: prefix},
		Max: zsets.LexBound{Kind: zsets.Exclusive, Member: end}}
}

// within returns the keys of a range in their order.
func (a *app) within(start, end []byte) (found [][]byte) {
	z := effect.ZSet(a.c, a.names[indexKey])
	if z == nil {
		return nil
	}
	r := lexRange(start, end)
	found = make([][]byte, 0, z.CountByLex(r))
	z.RangeByLex(r, false, 0, -1, func(member []byte, _ float64) bool {
		found = append(found, keys.Key(nil, member))
		return true
	})
	return found
}

// countWithin counts the keys of a range.
func (a *app) countWithin(start, end []byte) int {
	if z := effect.ZSet(a.c, a.names[indexKey]); z != nil {
		return z.CountByLex(lexRange(start, end))
	}
	return 0
}

// perform executes an allowed operation, and replies with its result.
func (a *app) perform(op *operation) {
	switch op.kind {
	case putOperation:
		a.performPut(op)
	case rangeOperation:
		if op.results == count {
			a.c.W.Int(int64(a.countWithin(op.start, op.end)))
			return
		}
		a.reply(a.within(op.start, op.end), op.results)
	case delOperation:
		found := a.within(op.start, op.end)
		a.reply(found, op.results)
		a.delete(found)
	}
}

// reply replies with keys.
func (a *app) reply(found [][]byte, how results) {
	w := a.c.W
	if how == count {
		w.Int(int64(len(found)))
		return
	}
	w.Array(len(found))
	for _, k := range found {
		if how == onlyKeys {
			w.Bulk(k)
			continue
		}
		v, _ := a.value(k)
		w.Array(3)
		w.Bulk(k)
		w.Bulk(v)
		replyText(w, a.owner(k))
	}
}

// replyText replies with a text, or null if it is nil.
func replyText(w *resp.Writer, text []byte) {
	if text == nil {
		w.Null()
		return
	}
	w.Bulk(text)
}

// replyOne replies with the value and the owner of a key, or null.
func (a *app) replyOne(k []byte) {
	v, ok := a.value(k)
	if !ok {
		a.c.W.NullArray()
		return
	}
	a.c.W.Array(2)
	a.c.W.Bulk(v)
	replyText(a.c.W, a.owner(k))
}

// performPut replies with the previous value if that is requested, otherwise with OK.
func (a *app) performPut(op *operation) {
	if op.previous {
		a.replyOne(op.key)
	} else {
		a.c.W.OK()
	}
	value := op.value
	if op.hasValue {
		if _, existed := a.value(op.key); !existed {
			effect.ZAdd(a.c, a.names[indexKey], keys.Member(nil, op.key), 0)
		}
		effect.HSet(a.c, a.names[valuesKey], op.key, value)
	} else {
		value, _ = a.value(op.key)
	}
	if !op.keepOwner {
		a.setOwner(op.key, op.ownerText)
	}
	a.service.tell(a, &event.Event{Type: event.Put, Keys: [][]byte{op.key}, Value: value, Owner: a.owner(op.key)})
}

// ownedMember returns the member for a key of an owner. Container IDs contain no NUL, so the members of an owner are
// exactly those that begin with the owner and a NUL.
func ownedMember(owner, k []byte) []byte {
	m := make([]byte, 0, len(owner)+1+len(k)+len(k)/2)
	return keys.Member(append(append(m, owner...), 0), k)
}

// setOwner makes a container the owner of a key; nil is none.
func (a *app) setOwner(k, owner []byte) {
	was := a.owner(k)
	if bytes.Equal(was, owner) {
		return
	}
	if was != nil {
		effect.ZRem(a.c, a.names[ownedKey], ownedMember(was, k))
	}
	if owner == nil {
		effect.HDel(a.c, a.names[ownersKey], k)
		return
	}
	effect.HSet(a.c, a.names[ownersKey], k, owner)
	effect.ZAdd(a.c, a.names[ownedKey], ownedMember(owner, k), 0)
}

// delete removes existing keys, in order, and publishes the event.
func (a *app) delete(found [][]byte) {
	if len(found) == 0 {
		return
	}
	members := make([][]byte, len(found))
	var owned, ownedMembers [][]byte
	for i, k := range found {
		members[i] = keys.Member(nil, k)
		if owner := a.owner(k); owner != nil {
			owned, ownedMembers = append(owned, k), append(ownedMembers, ownedMember(owner, k))
		}
	}
	effect.HDel(a.c, a.names[valuesKey], found...)
	effect.ZRem(a.c, a.names[indexKey], members...)
	effect.HDel(a.c, a.names[ownersKey], owned...)
	effect.ZRem(a.c, a.names[ownedKey], ownedMembers...)
	a.service.tell(a, &event.Event{Type: event.Delete, Keys: found})
}

const (
	errIgnoreBoth = "ignore_value & ignore_owner can't both be true"
	errNotSet     = "ignore_value=True & key isn't already set"
)

// allowed returns the error for a forbidden put; "" if it is allowed, or for another operation.
func (a *app) allowed(op *operation) command.Error {
	switch {
	case op.kind != putOperation:
		return ""
	case !op.hasValue && op.keepOwner:
		return invalid(errIgnoreBoth)
	}
	if !op.hasValue {
		if _, ok := a.value(op.key); !ok {
			return failed(errNotSet)
		}
	}
	if op.ownerText == nil {
		return ""
	}
	return a.active(op.owner)
}

// allAllowed returns the error for a forbidden sequence of operations, "" if it is allowed. As in Skein, each
// operation is checked against the state before all of them. In addition, a put of an owner must find its key when
// its turn comes, because an earlier operation may remove the key.
func (a *app) allAllowed(ops []operation) command.Error {
	removes := false
	for i := range ops {
		if err := a.allowed(&ops[i]); err != "" {
			return err
		}
		removes = removes || ops[i].kind == delOperation
	}
	if !removes {
		return ""
	}
	there := zsets.New() // the keys that puts of owners need and that will exist
	limits := a.c.Host.ZSetLimits()
	for i := range ops {
		if ops[i].kind == putOperation && !ops[i].hasValue {
			there.Set(keys.Member(nil, ops[i].key), 0, limits)
		}
	}
	for i := range ops {
		switch op := &ops[i]; {
		case op.kind == delOperation:
			there.RemoveRangeByLex(lexRange(op.start, op.end), func([]byte, float64) {})
		case op.kind == putOperation && op.hasValue:
			there.Set(keys.Member(nil, op.key), 0, limits)
		case op.kind == putOperation:
			if _, ok := there.Score(keys.Member(nil, op.key)); !ok {
				return failed(errNotSet)
			}
		}
	}
	return ""
}

// holdAll reports whether all conditions hold.
func (a *app) holdAll(all []condition) bool {
	return !slices.ContainsFunc(all, func(cond condition) bool { return !a.holds(&cond) })
}

// holds reports whether a condition is true. A missing value equals only a missing value, and is neither less nor
// greater than others.
func (a *app) holds(cond *condition) bool {
	var order int
	var there bool
	if cond.ofOwner {
		owner := a.owner(cond.key)
		if there = owner != nil; there && cond.set {
			id, _ := parseContainerID(owner)
			order = id.compare(cond.owner)
		}
	} else {
		var value []byte
		if value, there = a.value(cond.key); there && cond.set {
			order = compareSigned(value, cond.value)
		}
	}
	if !there || !cond.set {
		return cond.operator == equal && there == cond.set || cond.operator == notEqual && there != cond.set
	}
	switch cond.operator {
	case equal:
		return order == 0
	case notEqual:
		return order != 0
	case less:
		return order < 0
	case lessEqual:
		return order <= 0
	case greater:
		return order > 0
	}
	return order >= 0
}

// compareSigned compares values as Java does, whose bytes have a sign.
func compareSigned(a, b []byte) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return cmp.Compare(int8(a[i]), int8(b[i]))
		}
	}
	return cmp.Compare(len(a), len(b))
}
