// Setters for a stream that comes from elsewhere.

package streams

// SetTimes sets the time of the last command in the consumer's name, and of the last delivery or claim, -1 for never.
func (c *Consumer) SetTimes(seen, active int64) {
	c.group.stream.note(c.part)
	c.SeenTime, c.ActiveTime = seen, active
}

// EstimateRead estimates how many entries a group with this last ID and an unknown count has read, or returns
// UnknownEntriesRead.
func (s *Stream) EstimateRead(last ID) int64 { return s.countUpTo(last) }
