package command

import "math"

// This file has what commands share that draw random elements.

// Repeat writes as many random elements, which may repeat, as a negative count asks for. Nothing but the count bounds
// such a reply, and it must fit into memory: it may be as long as two strings of proto-max-bulk-len. The command is
// refused at once if the shortest elements would take more than that, and else as soon as what is written does.
//
// begin writes the header of n elements, and draw writes the next n of them; it leaves out those for which room is
// false.
func (c *Ctx) Repeat(count int64, begin func(n int), draw func(n int, room func() bool)) {
	const (
		shortest = len("$0\r\n\r\n")
		piece    = 1024 // drawing several at once is faster
	)
	limit := 2 * min(int64(c.Host.MaxBulk()), math.MaxInt64/2)
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
