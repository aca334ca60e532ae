package command

import "github.com/atomredis/atomredis/engine"

// This file is shared by all commands on strings, and on types that are stored as strings.

// LengthAllowed reports whether a string may be n + more bytes long; if not, it writes an error.
func (c *Ctx) LengthAllowed(n, more int) bool {
	if limit := c.Host.MaxBulk(); (n > limit || more > limit-n) && !c.Origin.In(Accepted) {
		c.Err(ErrStringTooLong)
		return false
	}
	return true
}

// Store makes a copy of v the value of the string e, or of a new entry if e is nil, and reports the change. The
// deadline stays.
func (c *Ctx) Store(e *engine.Entry, key, v []byte, event string) *engine.Entry {
	if e == nil {
		e = c.G.CreateString(c.DB, key, v)
	} else {
		e.SetBytes(v)
	}
	c.G.Changed(e, engine.EventString, event)
	return e
}

// ReplyString replies with the string of e, or a null if e is nil.
func (c *Ctx) ReplyString(e *engine.Entry) {
	if e == nil {
		c.W.Null()
	} else {
		c.Bulk(e)
	}
}

// MaxCopied is the length in bytes up to which strings are copied into the output. Longer ones are sent without a
// copy, if the transport can.
const MaxCopied = 32 << 10

// Bulk replies with the string of e.
func (c *Ctx) Bulk(e *engine.Entry) {
	if v := e.Bytes(); len(v) <= MaxCopied || !c.W.Lends {
		c.W.Bulk(v)
	} else {
		b, loan := c.G.Lend(e)
		c.W.BulkLent(b, loan)
	}
}

// SetString makes v the value of e, of any type, or of a new entry if e is nil. It removes the deadline and reports
// the change.
func (c *Ctx) SetString(e *engine.Entry, key, v []byte) *engine.Entry {
	existed := e != nil
	if e = c.Overwrite(e, key, v); existed {
		c.G.SetDeadline(e, 0)
	}
	c.G.Changed(e, engine.EventString, "set")
	return e
}

// SetOwnString is SetString, but the value takes over the memory of v. It returns memory that is unused now: that of
// the old value, or v itself if it was short; otherwise nil.
func (c *Ctx) SetOwnString(e *engine.Entry, key, v []byte) (_ *engine.Entry, spare []byte) {
	if len(v) <= MaxCopied {
		return c.SetString(e, key, v), v
	}
	if e == nil {
		e = c.G.CreateString(c.DB, key, nil)
	} else {
		c.G.SetDeadline(e, 0)
	}
	spare = c.G.Exchange(e, v)
	c.G.Changed(e, engine.EventString, "set")
	return e, spare
}

// Overwrite makes v the value of e, of any type, or of a new entry if e is nil. It stores a copy, or v itself if the
// command may keep it.
func (c *Ctx) Overwrite(e *engine.Entry, key, v []byte) *engine.Entry {
	keep := c.Client.MayKeep(v)
	switch {
	case e == nil && keep:
		e = c.G.CreateString(c.DB, key, nil)
	case e == nil:
		return c.G.CreateString(c.DB, key, v)
	case !keep:
		c.G.Overwrite(e, v)
		return e
	}
	c.Client.Kept(c.G, e, c.G.Exchange(e, v))
	return e
}
