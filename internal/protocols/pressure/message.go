package pressure

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/protocols/internal/effect"
)

// A message in the list is its bytes and nothing else, as the protocol has it. What else is known of it stands
// beside: in :+held under an id while the message is not in the list, and in :+notes under the digest of its bytes
// while it is. Equal messages are interchangeable, so it does not matter which of them a note belongs to. A client
// that pops a message with an ordinary command leaves its note behind; refresh drops the notes of an empty list, and
// addNote drops notes when there are many more of them than messages.

// attributes is what a message has beside its bytes.
type attributes struct {
	attempts int64 // how often it was handed out, and failed
	limit    int64 // how often it may be handed out; 0 is the limit of the queue
	backoff  int64 // ms before the second attempt, doubled before each further one; 0 is that of the queue
	priority int64 // messages with a higher one are handed out first
}

// append appends the attributes as three numbers, after the priority if there is one.
func (a attributes) append(dst []byte) []byte {
	if a.priority > 0 {
		dst = fmt.Appendf(dst, "p%d ", a.priority)
	}
	return fmt.Appendf(dst, "%d %d %d", a.attempts, a.limit, a.backoff)
}

// parseNumbers reads attributes and a number, each with a space behind it, that are not negative, and returns what follows. Other
// clients may have written them, so the attributes are limited as those of commands are.
func parseNumbers(v []byte) (a attributes, last int64, rest []byte, ok bool) {
	priority := int64(0)
	if word, after, ok := bytes.Cut(v, []byte{' '}); ok && len(word) > 1 && word[0] == 'p' {
		n, err := strconv.ParseInt(string(word[1:]), 10, 64)
		if err != nil || n < 0 {
			return attributes{}, 0, nil, false
		}
		priority, v = min(n, maxPriority), after
	}
	var numbers [4]int64
	for i := range numbers {
		word, after, ok := bytes.Cut(v, []byte{' '})
		n, err := strconv.ParseInt(string(word), 10, 64)
		if !ok || err != nil || n < 0 {
			return attributes{}, 0, nil, false
		}
		numbers[i], v = n, after
	}
	a = attributes{min(numbers[0], maxAttempts), min(numbers[1], maxAttempts), min(numbers[2], maxBackoff), priority}
	return a, numbers[3], v, true
}

// heldMessage is a message outside of the list.
type heldMessage struct {
	attributes
	reason  []byte // of a dead message
	message []byte
}

// append appends the value of a field of :+held: the attributes, the length of the reason, the reason, the message.
func (h *heldMessage) append(dst []byte) []byte {
	dst = fmt.Appendf(h.attributes.append(dst), " %d ", len(h.reason))
	return append(append(dst, h.reason...), h.message...)
}

// parseHeld reads such a value. An invalid one counts as a message without attributes.
func parseHeld(v []byte) heldMessage {
	a, n, rest, ok := parseNumbers(v)
	if !ok || n > int64(len(rest)) {
		return heldMessage{message: v}
	}
	return heldMessage{a, rest[:n], rest[n:]}
}

// held returns what :+held has under an id; ok is false if it has nothing. It is valid until the hash changes.
func (q *pressureQueue) held(id []byte) (h heldMessage, ok bool) {
	if q.bare {
		return heldMessage{}, false
	}
	v, ok := effect.HGet(q.c, q.keys[qHeld], id)
	if !ok {
		return heldMessage{}, false
	}
	return parseHeld(v), true
}

// hold stores a message under an id in one of the sorted sets, with a time.
func (q *pressureQueue) hold(set queueKey, id []byte, at int64, h *heldMessage) {
	q.addTo()
	effect.HSet(q.c, q.keys[qHeld], id, h.append(nil))
	effect.ZAdd(q.c, q.keys[set], id, at)
}

// release removes ids from a sorted set and from :+held.
func (q *pressureQueue) release(set queueKey, ids [][]byte) {
	effect.ZRem(q.c, q.keys[set], ids...)
	effect.HDel(q.c, q.keys[qHeld], ids...)
}

// policy returns the attributes of messages that have none of their own.
func (q *pressureQueue) policy() (a attributes) {
	a.limit, a.backoff = q.setting(settingAttempts, maxAttempts), q.setting(settingBackoff, maxBackoff)
	return a
}

// The fields of :+settings. The last one only makes the key exist.
var settingAttempts, settingBackoff, settingJobs = []byte("attempts"), []byte("backoff"), []byte("jobs")

// setting returns a number of :+settings, up to a limit; one that is missing or no positive number is 0.
func (q *pressureQueue) setting(field []byte, limit int64) int64 {
	v, _ := effect.HGet(q.c, q.keys[qSettings], field)
	n, _ := strconv.ParseInt(string(v), 10, 64)
	return min(max(n, 0), limit)
}

// digest returns the field of a message in :+notes.
func digest(message []byte) []byte {
	sum := sha256.Sum256(message)
	return hex.AppendEncode(nil, sum[:16])
}

// note is a number of equal messages in the list with the same attributes.
type note struct {
	attributes
	count int64
}

// maxNotes is how many notes equal messages have. Further ones share the attributes of one of these.
const maxNotes = 100

// parseNotes reads a value of :+notes: the notes of equal messages, "<attributes> <count> ;" each.
func parseNotes(v []byte) (notes []note) {
	for text := range bytes.SplitSeq(v, []byte{';'}) {
		if a, n, _, ok := parseNumbers(text); ok && n > 0 && len(notes) < maxNotes {
			notes = append(notes, note{a, n})
		}
	}
	return notes
}

// setNotes stores the notes of equal messages, those with the highest priority first.
func (q *pressureQueue) setNotes(field []byte, notes []note) {
	if len(notes) == 0 {
		effect.HDel(q.c, q.keys[qNotes], field)
		return
	}
	slices.SortStableFunc(notes, func(a, b note) int { return cmp.Compare(b.priority, a.priority) })
	var v []byte
	for _, n := range notes {
		v = fmt.Appendf(n.attributes.append(v), " %d ;", n.count)
	}
	q.addTo()
	effect.HSet(q.c, q.keys[qNotes], field, v)
}

// notes returns the notes of the messages that equal one.
func (q *pressureQueue) notes(field []byte) []note {
	v, _ := effect.HGet(q.c, q.keys[qNotes], field)
	return parseNotes(v)
}

// addNote records the attributes of a message that is in the list now. Attributes that say nothing have no note.
func (q *pressureQueue) addNote(message []byte, a attributes) {
	if a == (attributes{}) {
		return
	}
	if int64(effect.HLen(q.c, q.keys[qNotes])) > 2*q.length()+64 {
		q.dropStaleNotes()
	}
	field := digest(message)
	notes := q.notes(field)
	total := int64(1)
	for _, n := range notes {
		total += n.count
	}
	for total > q.length() && len(notes) > 0 { // the oldest ones belong to messages that others have taken
		n := min(notes[0].count, total-q.length())
		total -= n
		if notes[0].count -= n; notes[0].count == 0 {
			notes = notes[1:]
		}
	}
	i := slices.IndexFunc(notes, func(n note) bool { return n.attributes == a })
	switch {
	case i >= 0:
		notes[i].count++
	case len(notes) < maxNotes:
		notes = append(notes, note{a, 1})
	default:
		notes[maxNotes-1].count++
	}
	q.setNotes(field, notes)
}

// takeNote removes and returns the attributes of a message that was taken from the list.
func (q *pressureQueue) takeNote(message []byte) (a attributes) {
	if !q.has(qNotes) {
		return a
	}
	field := digest(message)
	if notes := q.notes(field); len(notes) > 0 {
		a = notes[0].attributes
		if notes[0].count--; notes[0].count == 0 {
			notes = notes[1:]
		}
		q.setNotes(field, notes)
	}
	return a
}

// dropStaleNotes removes the notes of messages that are not in the list any more.
func (q *pressureQueue) dropStaleNotes() {
	there := map[string]bool{}
	if e := q.peek(qMessages); e != nil && e.Type() == engine.List {
		e.List().Range(0, e.List().Len()-1, func(v []byte) bool {
			there[string(digest(v))] = true
			return true
		})
	}
	var stale [][]byte
	for field := range effect.Hash(q.c, q.keys[qNotes]).All() {
		if !there[string(field)] {
			stale = append(stale, bytes.Clone(field))
		}
	}
	effect.HDel(q.c, q.keys[qNotes], stale...)
}

// enqueue adds messages to the end of the list, or of their priority.
func (q *pressureQueue) enqueue(messages ...heldMessage) { q.insert(q.push, false, messages) }

// enqueueFirst adds messages to the head of the list, or of their priority; the last one becomes the first.
func (q *pressureQueue) enqueueFirst(messages ...heldMessage) { q.insert(q.pushHead, true, messages) }

func (q *pressureQueue) insert(push func(k queueKey, elements ...[]byte), first bool, messages []heldMessage) {
	if len(messages) == 0 {
		return
	}
	if q.prioritized() || slices.ContainsFunc(messages, func(h heldMessage) bool { return h.priority > 0 }) {
		for i := range messages {
			q.place(&messages[i], first)
		}
		return
	}
	elements := make([][]byte, len(messages))
	for i := range messages {
		elements[i] = messages[i].message
	}
	push(qMessages, elements...)
	for i := range messages {
		q.addNote(elements[i], messages[i].attributes)
	}
}
