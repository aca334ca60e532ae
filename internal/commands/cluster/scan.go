package cluster

import (
	"bytes"
	"fmt"
	"strconv"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/cluster"
	"github.com/atomredis/atomredis/internal/command"
)

// Cursors of CLUSTERSCAN have three parts, "1f3c5a-{06S}-42": the fingerprint of the server's run, a tag by which
// clients find the node, and a cursor of SCAN. The cursor of SCAN goes through all slots of the node; with SLOT it
// goes through the keys of that slot.

const (
	errScanCursor command.Error = "ERR invalid cursor"
	errScanSlots  command.Error = "ERR the cursor is of another slot than SLOT"
)

const (
	fingerprintLen = 6
	noFingerprint  = "0" // of the cursor that starts a scan
)

func clusterscan(c *command.Ctx) {
	o, ok := c.ScanFilter(2, command.ScanType|command.ScanSlot)
	if !ok {
		return
	}
	if o.Slot >= cluster.Slots {
		c.Err(errSlotRange)
		return
	}
	if string(c.Args[1]) == "0" {
		replyCursor(c, noFingerprint, max(o.Slot, 0), 0)
		c.W.Array(0)
		return
	}
	slot, at, ok := parseCursor(c, c.Args[1])
	if !ok {
		return
	}
	if o.Slot >= 0 && slot != o.Slot {
		c.Err(errScanSlots)
		return
	}
	found, next := scanKeys(c, &o, at)
	if next == 0 {
		c.W.Array(2)
		c.W.BulkString("0")
	} else {
		replyCursor(c, fingerprint(c), slot, next)
	}
	c.W.Array(len(found))
	for _, key := range found {
		c.W.BulkString(key)
	}
}

// scanKeys visits some keys from a cursor of SCAN on. It returns those that match the options, and the next cursor;
// 0 is the end.
func scanKeys(c *command.Ctx, o *command.ScanOptions, at uint64) (found []string, next uint64) {
	typ, known := engine.ParseType(string(o.TypeName))
	var key []byte
	foreign := c.Host.Foreign()
	visit := func(e *engine.Entry) {
		key = append(key[:0], e.Key()...)
		if o.TypeName != nil && (!known || e.Type() != typ) || foreign != nil && foreign(key) {
			return
		}
		found = append(found, string(key))
	}
	if o.Slot >= 0 {
		next = c.G.ScanSlot(c.DB, int(o.Slot), at, o.Count, o.Matcher(), visit)
	} else {
		next = c.G.Scan(c.DB, at, o.Count, o.Matcher(), visit)
	}
	return found, next
}

// fingerprint identifies this run of the server; cursors of other runs are meaningless to it.
func fingerprint(c *command.Ctx) string { return nodeOf(c).Run[:fingerprintLen] }

// replyCursor writes the cursor at the beginning of a reply.
func replyCursor(c *command.Ctx, fingerprint string, slot int64, at uint64) {
	c.W.Array(2)
	c.W.BulkString(fmt.Sprintf("%s-{%s}-%d", fingerprint, cluster.TagOf(int(slot)), at))
}

// parseCursor returns the parts of a cursor. A cursor of another run starts the scan again. If it is invalid, it
// writes an error and ok is false.
func parseCursor(c *command.Ctx, arg []byte) (slot int64, at uint64, ok bool) {
	mark, rest, ok := bytes.Cut(arg, []byte("-{"))
	tag, number, ok2 := bytes.Cut(rest, []byte("}-"))
	at, err := strconv.ParseUint(string(number), 10, 64)
	if !ok || !ok2 || len(mark) == 0 || len(tag) == 0 || err != nil {
		c.Err(errScanCursor)
		return 0, 0, false
	}
	if string(mark) != fingerprint(c) {
		at = 0
	}
	return int64(cluster.SlotOf(tag)), at, true
}
