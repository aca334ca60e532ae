// A stream that comes from elsewhere.

package streams

// SetTimes sets when there was a command in the consumer's name last, and when something was delivered to it or
// claimed for it, -1 for never.
func (c *Consumer) SetTimes(seen, active int64) {
	c.group.stream.note(c.part)
	c.SeenTime, c.ActiveTime = seen, active
}

// EstimateRead returns how many entries a group has probably read whose last ID is given and whose count is not, or
// UnknownEntriesRead.
func (s *Stream) EstimateRead(last ID) int64 { return s.countUpTo(last) }
