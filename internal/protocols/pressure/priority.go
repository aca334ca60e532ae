package pressure

import (
	"sort"
	"strconv"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/protocols/internal/effect"
)

// The list has messages in the order of their priorities, so that clients of the protocol's steps take the most urgent one first,
// too. A message with a priority has a note; all others have priority 0, also those that such clients add. Where a message belongs
// is found by halving the list. Equal messages have the highest priority of their notes.

// maxPriority is the highest priority. The default is 0.
const maxPriority = 9

// settingPriorities is set in :+settings once a message with a priority was put.
var settingPriorities = []byte("priorities")

// prioritized reports whether messages of the queue may have priorities.
func (q *pressureQueue) prioritized() bool {
	_, ok := effect.HGet(q.c, q.keys[qSettings], settingPriorities)
	return ok && q.has(qNotes)
}

// priorityOf returns the priority of a message in the list.
func (q *pressureQueue) priorityOf(message []byte) int64 {
	if notes := q.notes(digest(message)); len(notes) > 0 {
		return notes[0].priority
	}
	return 0
}

// ahead returns how many messages at the head of the list have at least a priority.
func (q *pressureQueue) ahead(priority int64) int {
	e := q.peek(qMessages)
	if e == nil || e.Type() != engine.List {
		return 0
	}
	l := e.List()
	return sort.Search(l.Len(), func(i int) bool {
		v, _ := l.Index(l.Len() - 1 - i)
		return q.priorityOf(v) < priority
	})
}

// place adds a message to the list as the last one of its priority, or with first set as the first one.
func (q *pressureQueue) place(h *heldMessage, first bool) {
	if h.priority > 0 && !q.prioritized() {
		effect.HSet(q.c, q.keys[qSettings], settingPriorities, []byte("1"))
	}
	if first {
		q.putAt(q.ahead(h.priority+1), h.message)
	} else {
		q.putAt(q.ahead(h.priority), h.message)
	}
	q.addNote(h.message, h.attributes)
}

// putAt adds a message behind the first n of the list. As ordinary commands, which the journal gets, that takes three: a mark
// takes the place of the message before, so that LINSERT finds it.
func (q *pressureQueue) putAt(n int, message []byte) {
	length := int(q.length())
	switch {
	case n >= length:
		q.push(qMessages, message)
		return
	case n == 0:
		q.pushHead(qMessages, message)
		return
	}
	c, key := q.c, q.keys[qMessages]
	e := q.list(qMessages)
	before, _ := e.List().Index(length - n)
	before = append([]byte(nil), before...)
	index, mark := strconv.AppendInt(nil, int64(-n), 10), q.service().reservations.newID(c.Now())
	mark = append([]byte("\x00before this one \x00"), mark...)
	e.List().InsertAt(length-n, message)
	c.G.Changed(e, engine.EventList, "linsert")
	c.Journal(lsetWord, key, index, mark)
	c.Journal(linsertWord, key, beforeWord, mark, message)
	c.Journal(lsetWord, key, index, before)
}

var lsetWord, linsertWord, beforeWord = []byte("LSET"), []byte("LINSERT"), []byte("BEFORE")
