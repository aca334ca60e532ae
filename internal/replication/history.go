package replication

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"slices"
	"strconv"
)

// NoDatabase says that the selected database is unknown.
const NoDatabase = -1

// History is the past of the stream: its ID, its length, and the end that is kept. The caller must keep it in step with the
// data: while it is Known, the stream has all changes of the data.
type History struct {
	// Known says that the data is the result of the stream. Otherwise no replica can continue from here, and only ID and
	// Offset are valid.
	Known bool
	// Relayed says that the stream is a master's, passed on byte for byte. Otherwise it is made here.
	Relayed bool
	// ID is the name of the history, and Offset the length of the stream in bytes.
	ID     string
	Offset int64
	// Former are earlier names of the history, the latest first.
	Former []Former

	limit int    // how much of the stream may be kept, in bytes
	ring  []byte // the kept end; once it has limit bytes, it begins at head
	head  int
}

// Former is an earlier name of a history; it is valid for the first Shared bytes.
type Former struct {
	ID     string
	Shared int64
}

// maxFormer is the number of remembered former names, for replicas that have missed changes of the name.
const maxFormer = 8

// NewID returns a random ID of a history, a server or a node.
func NewID() string {
	var b [20]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// Begin begins a history of that name at an offset; nothing before it is kept.
func (h *History) Begin(id string, offset int64) {
	h.Known, h.Relayed = true, false
	h.ID, h.Offset, h.Former = id, offset, nil
	h.forget()
}

// End ends the history: the data has none any more. id is the name of the next one.
func (h *History) End(id string) {
	h.Begin(id, h.Offset)
	h.Known = false
}

// Rename gives the history a new name from here on. The present name stays valid up to here.
func (h *History) Rename(id string) {
	h.Former = slices.Insert(h.Former, 0, Former{h.ID, h.Offset})
	h.Former = h.Former[:min(len(h.Former), maxFormer)]
	h.ID = id
}

// Add adds to the stream.
func (h *History) Add(b []byte) {
	h.Offset += int64(len(b))
	if over := len(b) - h.limit; over > 0 {
		b = b[over:]
	}
	if room := h.limit - len(h.ring); room > 0 {
		n := min(room, len(b))
		h.ring = append(h.ring, b[:n]...)
		b = b[n:]
	}
	for len(b) > 0 {
		n := copy(h.ring[h.head:], b)
		b = b[n:]
		h.head = (h.head + n) % len(h.ring)
	}
}

// Skip moves the stream on to an offset; the bytes in between are unknown.
func (h *History) Skip(offset int64) {
	h.forget()
	h.Offset = offset
}

// forget drops the kept end.
func (h *History) forget() { h.ring, h.head = nil, 0 }

// Limit sets how many bytes of the stream are kept at most. The kept end stays as far as it fits.
func (h *History) Limit(n int) {
	kept := h.tail(min(len(h.ring), n))
	h.limit, h.ring, h.head = n, kept, 0
}

// MaxKept returns what Limit has set.
func (h *History) MaxKept() int { return h.limit }

// Kept returns how much of the stream is kept, in bytes.
func (h *History) Kept() int { return len(h.ring) }

// tail returns a copy of the last n bytes, which are kept.
func (h *History) tail(n int) []byte {
	if newest := h.ring[:h.head]; n > len(newest) {
		older := h.ring[h.head:]
		return slices.Concat(older[len(older)-n+len(newest):], newest)
	}
	return slices.Clone(h.ring[h.head-n : h.head])
}

// Since returns what followed the first offset bytes of the history with a name, if all of that is kept.
func (h *History) Since(id string, offset int64) (b []byte, ok bool) {
	known := id == h.ID || slices.ContainsFunc(h.Former, func(f Former) bool { return f.ID == id && offset <= f.Shared })
	if !h.Known || !known || offset > h.Offset || h.Offset-offset > int64(len(h.ring)) {
		return nil, false
	}
	return h.tail(int(h.Offset - offset)), true
}

// Remember adds an end of the stream that was kept elsewhere, if nothing is kept yet.
func (h *History) Remember(end []byte) {
	offset := h.Offset
	h.Add(end)
	h.Offset = offset
}

// noteFormat is the version of how records become the stream. Servers with another version cannot continue the stream. Those
// that write formerFormat make the same stream, but not as followers in a group; their note has one former ID before the
// database, "-" without one.
const (
	noteFormat   = "2"
	formerFormat = "1"
)

var errNote = errors.New("damaged note of the replication history")

// Note returns the history as words, without the kept end; db is the stream's current database.
func (h *History) Note(db int) []string {
	role := "none"
	if h.Known {
		if role = "master"; h.Relayed {
			role = "replica"
		}
	}
	words := []string{noteFormat, role, h.ID, strconv.FormatInt(h.Offset, 10), strconv.Itoa(db)}
	for _, f := range h.Former {
		words = append(words, f.ID, strconv.FormatInt(f.Shared, 10))
	}
	return words
}

// Recall restores the history from the words of Note. The kept end stays if it is the end of that history too.
func (h *History) Recall(words []string) (db int, err error) {
	if len(words) < 1 {
		return NoDatabase, errNote
	}
	switch words[0] {
	case noteFormat:
	case formerFormat:
		if len(words) != 7 {
			return NoDatabase, errNote
		}
		words = []string{words[0], words[1], words[2], words[3], words[6], words[4], words[5]}
		if words[5] == "-" {
			words = words[:5]
		}
	default:
		h.End(h.ID)
		return NoDatabase, nil
	}
	if len(words) < 5 || len(words)%2 == 0 {
		return NoDatabase, errNote
	}
	offset, err1 := strconv.ParseInt(words[3], 10, 64)
	db, err2 := strconv.Atoi(words[4])
	if errors.Join(err1, err2) != nil || offset < 0 || db < NoDatabase {
		return NoDatabase, errNote
	}
	same := h.Known && h.Offset == offset && h.ID == words[2]
	var former []Former
	for pair := range slices.Chunk(words[5:], 2) {
		shared, err := strconv.ParseInt(pair[1], 10, 64)
		if err != nil || shared < 0 {
			return NoDatabase, errNote
		}
		former = append(former, Former{pair[0], shared})
		same = same || h.Known && h.Offset == offset && h.ID == pair[0] && shared == offset
	}
	kept := *h
	h.Begin(words[2], offset)
	if h.Former = former; same {
		h.ring, h.head = kept.ring, kept.head
	}
	switch words[1] {
	case "none":
		h.Known = false
	case "replica":
		h.Relayed = true
	case "master":
	default:
		return NoDatabase, errNote
	}
	return db, nil
}

// All returns a copy of all that is kept.
func (h *History) All() []byte { return h.tail(len(h.ring)) }
