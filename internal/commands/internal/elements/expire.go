package elements

import (
	"math"

	"github.com/atomredis/atomredis/internal/command"
)

// Expire is the handler of HEXPIRE and its variants: it gives elements of the key argument 1 the deadline argument 2.
func (k *Kind) Expire(c *command.Ctx, unit command.TimeUnit) {
	e, ok := c.WriteAs(c.Args[1], k.Type)
	if !ok {
		return
	}
	at, ok := deadline(c, c.Args[2], unit)
	if !ok {
		return
	}
	names, cond, ok := k.readConditions(c)
	if !ok {
		return
	}
	if e == nil {
		replyForEach(c, names, missing)
		return
	}
	v, done := k.Of(c, e, names, 1), k.Changes()
	c.W.Array(len(names))
	for _, name := range names {
		c.W.Int(done.Expire(c, v, name, at, cond))
	}
	done.Tell(c, e, at)
}

// readConditions reads the elements of HEXPIRE and its variants, and the condition before or after them; if they are
// wrong, it writes an error and ok is false.
func (k *Kind) readConditions(c *command.Ctx) (names [][]byte, cond command.ExpireConditions, ok bool) {
	for o := c.Options(3); o.Next(); {
		switch {
		case o.Is(k.words.list):
			if names != nil {
				c.Err(k.errListTwice())
				return nil, cond, false
			}
			if o.Left() < 2 {
				c.Err(k.errListShort())
				return nil, cond, false
			}
			n, ok := c.IntIn(o.Arg(), 1, math.MaxInt32, k.errCountTooSmall())
			if !ok {
				return nil, cond, false
			}
			if n > int64(o.Left()) {
				c.Err(errArguments)
				return nil, cond, false
			}
			names = o.Take(int(n))
		case o.Is("nx"):
			cond.NX = true
		case o.Is("xx"):
			cond.XX = true
		case o.Is("gt"):
			cond.GT = true
		case o.Is("lt"):
			cond.LT = true
		default:
			c.Err(unknownArgument(o.Word()))
			return nil, cond, false
		}
	}
	conditions := 0
	for _, given := range [...]bool{cond.NX, cond.XX, cond.GT, cond.LT} {
		if given {
			conditions++
		}
	}
	switch {
	case names == nil:
		c.Err(k.errNoList())
		return nil, cond, false
	case conditions > 1:
		c.Err(errConditions)
		return nil, cond, false
	}
	return names, cond, true
}

// Times is the handler of HTTL and its variants: it replies with the deadlines of elements of the key argument 1, rounded
// up to the unit.
func (k *Kind) Times(c *command.Ctx, unit command.TimeUnit) {
	e, ok := c.ReadAs(c.Args[1], k.Type)
	if !ok {
		return
	}
	names, ok := k.Named(c)
	if !ok {
		return
	}
	if e == nil {
		replyForEach(c, names, missing)
		return
	}
	v := k.Of(c, e, names, 1)
	c.W.Array(len(names))
	for _, name := range names {
		at, ok := v.Deadline(name)
		switch {
		case !ok:
			at = missing
		case at == 0:
			at = persistent
		case at <= c.Now() && !c.G.IgnoresDeadlines():
			at = missing // it has expired; a replica keeps it until its master removes it
		default:
			if !unit.Absolute {
				at -= c.Now()
			}
			at = (at + unit.MS - 1) / unit.MS
		}
		c.W.Int(at)
	}
}

// Persist is the handler of HPERSIST and its like.
func (k *Kind) Persist(c *command.Ctx) {
	e, ok := c.WriteAs(c.Args[1], k.Type)
	if !ok {
		return
	}
	names, ok := k.Named(c)
	if !ok {
		return
	}
	if e == nil {
		replyForEach(c, names, missing)
		return
	}
	v, done := k.Of(c, e, names, 1), k.Changes()
	c.W.Array(len(names))
	for _, name := range names {
		c.W.Int(done.Persist(v, name))
	}
	done.TellPersisted(c, e)
}

// Options are the options of HSETEX, HGETEX and SADDEX.
type Options struct {
	Flags Flags
	At    int64    // the deadline of the elements, with Expires
	Names [][]byte // for HSETEX, fields and values in turn
}

// Flags are options without an argument, and Expires.
type Flags uint8

// The flags of Options.
const (
	Expires    Flags = 1 << iota // EX, PX, EXAT or PXAT
	KeepTTL                      // KEEPTTL
	Persists                     // PERSIST
	IfMissing                    // FNX, MNX
	IfExisting                   // FXX, MXX
)

// ReadOptions reads the arguments after the key, in any order; each element has perElement arguments. If they are wrong,
// it writes an error and ok is false; exclusive is the error for times that exclude each other, ErrTimesOrKeepTTL or
// ErrTimesOrPersist. persist says that PERSIST is an option.
func (k *Kind) ReadOptions(c *command.Ctx, perElement int, persist bool, exclusive command.Error) (x Options, ok bool) {
	refuse := func(e command.Error) (Options, bool) {
		c.Err(e)
		return x, false
	}
	for o := c.Options(2); o.Next(); {
		var unit command.TimeUnit
		var flag, excluded Flags
		switch {
		case o.Is(k.words.list):
			if x.Names != nil {
				return refuse(k.errListTwice())
			}
			if !o.More() {
				return refuse(command.WrongArity(c.Cmd))
			}
			n, ok := c.IntIn(o.Arg(), 1, math.MaxInt32, k.errCountInvalid())
			if !ok {
				return x, false
			}
			if n*int64(perElement) > int64(o.Left()) {
				return refuse(errArguments)
			}
			x.Names = o.Take(int(n) * perElement)
			continue
		case o.Is("ex"):
			unit = command.InSeconds
		case o.Is("px"):
			unit = command.InMillis
		case o.Is("exat"):
			unit = command.AtSeconds
		case o.Is("pxat"):
			unit = command.AtMillis
		case o.Is("keepttl"):
			flag, excluded = KeepTTL, Expires|KeepTTL
		case persist && o.Is("persist"):
			flag, excluded = Persists, Expires|Persists
		case o.Is(k.words.ifExisting):
			flag = IfExisting
		case o.Is(k.words.ifMissing):
			flag = IfMissing
		default:
			return refuse(unknownArgument(o.Word()))
		}
		if unit.MS != 0 {
			flag, excluded = Expires, Expires|KeepTTL|Persists
		}
		if x.Flags&excluded != 0 {
			return refuse(exclusive)
		}
		if flag&(IfExisting|IfMissing) != 0 && x.Flags&(IfExisting|IfMissing) != 0 {
			return refuse(k.errBothConditions())
		}
		if x.Flags |= flag; unit.MS == 0 {
			continue
		}
		if !o.More() {
			return refuse(errMissingTime)
		}
		if x.At, ok = deadline(c, o.Arg(), unit); !ok {
			return x, false
		}
	}
	if x.Names == nil {
		return refuse(k.errNoList())
	}
	return x, true
}

// Meets reports whether the existence of elements, at the beginning of each step of Names, is what the conditions ask for.
// exists reports whether an element exists.
func (x *Options) Meets(step int, exists func(name []byte) bool) bool {
	if x.Flags&(IfMissing|IfExisting) == 0 {
		return true
	}
	for i := 0; i < len(x.Names); i += step {
		if exists(x.Names[i]) != (x.Flags&IfExisting != 0) {
			return false
		}
	}
	return true
}
