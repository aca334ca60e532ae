package catalog

import "sync"

// Cursors are the results of queries that clients read in pieces.
type Cursors struct {
	mu   sync.Mutex
	byID map[int64]*Cursor
}

// Cursor is a result that is read in pieces.
type Cursor struct {
	// Rest continues the query; only the caller that has taken the cursor may use it.
	Rest any
	// Count is the default number of rows of a read.
	Count int
	// Idle is the time in ms after which an unread cursor expires, and Until its deadline, in ms since 1970.
	Idle, Until int64
	// End is called when the rest will not be read, and after the last row; it may be nil.
	End func()
}

// Close ends a cursor whose rest will not be read.
func (c *Cursor) Close() {
	if c.End != nil {
		c.End()
	}
}

// Add keeps a cursor under a number. It reports false if another one has it.
func (c *Cursors) Add(id int64, cursor *Cursor) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byID[id] != nil {
		return false
	}
	if c.byID == nil {
		c.byID = map[int64]*Cursor{}
	}
	c.byID[id] = cursor
	return true
}

// Look calls do with the cursor of that number, if it exists. do must not change it, and nobody can take it
// meanwhile.
func (c *Cursors) Look(id int64, do func(cursor *Cursor)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if cursor := c.byID[id]; cursor != nil {
		do(cursor)
	}
}

// Take removes a cursor and returns it, or nil if no cursor has the number. A cursor that has more rows is added again.
func (c *Cursors) Take(id int64) *Cursor {
	c.mu.Lock()
	defer c.mu.Unlock()
	cursor := c.byID[id]
	delete(c.byID, id)
	return cursor
}

// Expire removes expired cursors and returns their number.
func (c *Cursors) Expire(now int64) (removed int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, cursor := range c.byID {
		if cursor.Until <= now {
			delete(c.byID, id)
			cursor.Close()
			removed++
		}
	}
	return removed
}

// Len returns how many there are.
func (c *Cursors) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.byID)
}

// dropped removes all cursors of a dropped index.
func (c *Cursors) dropped() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, cursor := range c.byID {
		cursor.Close()
	}
	clear(c.byID)
}
