package command

import "math"

// This file is shared by commands whose reply can be much longer than the value that they read.

// MaxRepeated returns the longest reply in bytes of a command that can repeat elements, or list tiny ones: twice
// proto-max-bulk-len, so that the reply fits into memory.
func (c *Ctx) MaxRepeated() int64 { return 2 * min(int64(c.Host.MaxBulk()), math.MaxInt64/2) }

// Repeat writes -count random elements, which may repeat, for a negative count. Only the count bounds such a reply, so
// its limit is MaxRepeated. The command is refused at once if even the shortest elements would exceed the limit, and
// otherwise when the written reply does.
//
// begin writes the header for n elements, and draw writes the next n of them; it skips elements for which room
// returns false.
func (c *Ctx) Repeat(count int64, begin func(n int), draw func(n int, room func() bool)) {
	const (
		shortest = len("$0\r\n\r\n")
		piece    = 1024 // drawing several at once is faster
	)
	limit := c.MaxRepeated()
	if count < -limit/int64(shortest) {
		c.Err(ErrOutOfRange)
		return
	}
	start := len(c.W.Buf)
	room := func() bool { return int64(len(c.W.Buf)-start) <= limit }
	left := int(-count)
	for begin(left); left > 0 && room(); left -= piece {
		draw(min(left, piece), room)
	}
	if !room() {
		c.W.Buf = c.W.Buf[:start]
		c.Err(ErrOutOfRange)
	}
}
