package psync

import (
	"encoding/binary"
	"errors"
	"slices"
	"strconv"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/config"
	"github.com/atomredis/atomredis/internal/replication"
	"github.com/atomredis/atomredis/resp"
)

// The history is stored with the data, so that a restarted server accepts partial synchronizations. A checkpoint has it as a
// note (replication.History.Note), and the journal has a note wherever it changes other than by a record. From there on the
// records determine a master's stream. They do not determine a replica's stream: its records end with their offset. A server
// that is stopped also leaves its backlog in a file (backlog.go).
//
// The servers of a group have the history of their leader: each makes the same stream from the same records, so that replicas
// can continue with the next leader. A new leader renames the history, because its predecessor may have sent records that
// the group has not agreed on.
//
// A killed master may have sent more than its journal has. It renames the history, and accepts the old ID up to its
// own offset. A replica keeps the ID: the history is its master's.

// Notes in the journal are REPLCONF with one of these words. They are not part of the stream.
const (
	noteHistory = "history" // the words of replication.History.Note
	noteStream  = "stream"  // an offset, and bytes that the stream has there
	noteOffset  = "offset"  // the offset behind a record of a replica
)

// encodeWords encodes a command.
func encodeWords(words ...string) []byte {
	args := make([][]byte, len(words))
	for i, w := range words {
		args[i] = []byte(w)
	}
	return command.AppendRequest(nil, args)
}

// limit sets the size of the backlog to repl-backlog-size.
func (f *Followers) limit(set *config.Settings) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.history.Limit(set.Replication.BacklogSize)
}

// encodedNote returns the note of the history, encoded. mu is locked.
func (f *Followers) encodedNote() []byte {
	return encodeWords(append([]string{"REPLCONF", noteHistory}, f.history.Note(f.changes.Database())...)...)
}

// makes reports whether the stream is made of the commands of this server, and not by a master or the leader of a group. mu
// is locked.
func (f *Followers) makes() bool {
	return f.history.Known && !f.history.Relayed && !f.host.FollowsLeader()
}

// note appends the note of the history to the journal. mu is locked.
func (f *Followers) note() {
	if f.keeper != nil && !f.host.FollowsLeader() {
		f.keeper.Append(f.ks.Now(), f.encodedNote())
	}
}

// insert adds encoded commands to the stream that change no data, with a note in the journal. mu is locked.
func (f *Followers) insert(b []byte) {
	if f.keeper != nil {
		f.keeper.Append(f.ks.Now(),
			encodeWords("REPLCONF", noteStream, strconv.FormatInt(f.history.Offset, 10), string(b)))
	}
	f.send(b)
}

// Recall executes a note of the journal; words follow REPLCONF, and db is the database of the record.
func (f *Followers) Recall(words [][]byte, db int) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.recall(words, db)
}

var errHistoryNote = errors.New("damaged note of the replication history")

// recall is Recall with mu locked.
func (f *Followers) recall(words [][]byte, db int) error {
	if len(words) == 0 {
		return errHistoryNote
	}
	if string(words[0]) == noteHistory {
		var text []string
		for _, w := range words[1:] {
			text = append(text, string(w))
		}
		was := f.history
		selected, err := f.history.Recall(text)
		f.changes.Resume(selected)
		if h := &f.history; !h.Known || h.ID != was.ID || h.Offset != was.Offset {
			f.disconnect() // followers must learn the new ID, or have missed something
		}
		return err
	}
	if len(words) < 2 {
		return errHistoryNote
	}
	offset, ok := resp.ParseInt(words[1])
	if !ok {
		return errHistoryNote
	}
	switch {
	case string(words[0]) == noteOffset && len(words) == 2:
		f.history.Skip(offset)
		f.changes.Resume(db)
	case string(words[0]) == noteStream && len(words) == 3:
		switch {
		case offset == f.history.Offset:
			f.send(words[2])
		case offset > f.history.Offset:
			f.lost("the journal does not have all of the stream")
		}
	default:
		return errHistoryNote
	}
	return nil
}

// lost ends a history of which a part is missing. mu is locked.
func (f *Followers) lost(why string) {
	if f.history.Known {
		f.log.Warn("the replication history has a gap; replicas need a full synchronization", "reason", why)
		f.history.End(replication.NewID())
		f.disconnect()
	}
}

// Repeated adds a record to the stream that was read from the journal.
func (f *Followers) Repeated(record []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.history.Known && !f.history.Relayed {
		f.send(f.changes.Translate(record))
	}
}

// historyMark is the first byte of the data that is stored beside the keys if a history precedes the functions.
const historyMark = 1

// StoredBefore returns the data to store beside the keys: the history, if there is one, and others.
func (f *Followers) StoredBefore(others []byte) []byte {
	note := f.Stored()
	if note == nil {
		return others
	}
	b := binary.AppendUvarint([]byte{historyMark}, uint64(len(note)))
	return append(append(b, note...), others...)
}

// RestoreBefore restores the history from the result of StoredBefore, and returns others.
func (f *Followers) RestoreBefore(stored []byte) (others []byte, err error) {
	if len(stored) == 0 || stored[0] != historyMark {
		return stored, nil
	}
	n, used := binary.Uvarint(stored[1:])
	if used <= 0 || n > uint64(len(stored)-1-used) {
		return nil, errHistoryNote
	}
	note, others := stored[1+used:][:n], stored[1+used+int(n):]
	return others, f.Restore(note)
}

// Stored returns the note of the history, nil if there is none or no storage.
func (f *Followers) Stored() []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.keeper == nil || !f.history.Known {
		return nil
	}
	return f.encodedNote()
}

// Restore restores the history from the result of Stored.
func (f *Followers) Restore(note []byte) error {
	if len(note) == 0 {
		return nil
	}
	args, _, err := (&resp.Parser{MaxBulk: resp.AnyBulk}).Next(note, nil)
	if err != nil || len(args) < 2 {
		return errHistoryNote
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.keeper == nil {
		return nil
	}
	return f.recall(args[1:], 0)
}

// Recovered continues the history after the data has been read; exact is false if the data has been repaired. The guard holds
// everything.
func (f *Followers) Recovered(g *engine.Guard, exact bool) {
	follows := f.config.Get().Replication.ReplicaOf.Host != ""
	if follows {
		g.SetReplica(true) // at once: only the master expires keys
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.keeper == nil {
		return
	}
	ended := f.readBacklog()
	h := &f.history
	switch {
	case !h.Known || f.inGroup(): // the history of a group is its leader's
		return
	case !exact:
		f.lost("the data has been repaired")
	case follows:
		h.Relayed = true
	case h.Relayed || !ended:
		h.Rename(replication.NewID())
		h.Relayed = false
		f.changes.Restart()
	}
	f.note()
	f.attach(g)
	if h.Known {
		f.alone = f.ks.Now()
		f.watch()
	}
}

// ChangeHistory changes the ID of the history, but not the data. It disconnects followers: PSYNC tells them the new ID.
func (f *Followers) ChangeHistory(change func(h *replication.History)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(&f.history)
	f.note()
	f.disconnect()
}

// disconnect closes the connections of all followers. mu is locked.
func (f *Followers) disconnect() {
	for _, d := range slices.Clone(f.list) {
		d.client.Close()
	}
}

// Present returns the end of the history.
func (f *Followers) Present() (now Position) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return Position{f.history.Known, f.history.ID, f.history.Offset, f.changes.Database()}
}

// Position is an offset in a history.
type Position struct {
	Known  bool // see replication.History
	ID     string
	Offset int64
	db     int // the selected database there; replication.NoDatabase if unknown
}

// relayed makes the stream that of a master from now on, and returns its offset, -1 without a history. The guard holds
// everything.
func (f *Followers) relayed(g *engine.Guard) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.history.Known {
		return -1
	}
	if !f.history.Relayed {
		f.history.Relayed = true
		f.note()
		f.attach(g)
	}
	return f.history.Offset
}

// Led makes the stream that of this server from now on, after a master or another leader of the group has made it. The guard
// holds everything.
func (f *Followers) Led(g *engine.Guard) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.history.Known {
		return
	}
	f.history.Rename(replication.NewID())
	f.history.Relayed = false
	f.changes.Restart()
	f.note()
	f.attach(g)
	f.disconnect() // followers must learn the new ID
	f.alone = f.ks.Now()
	f.watch()
}

// copied begins the history of a full synchronization, at its position. It writes no note: the history is stored with the
// data.
func (f *Followers) copied(at *Position) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.history.Begin(at.ID, at.Offset)
	f.history.Relayed = true
	f.changes.Resume(at.db)
}

// Backlog is the state of the history for INFO.
type Backlog struct {
	ID     string
	Former replication.Former // the previous ID; "" if there was none
	Known  bool
	Offset int64
	// Kept is the length of the backlog, and Max its size, in bytes.
	Kept, Max int
}

// Backlog returns the state of the history.
func (f *Followers) Backlog() Backlog {
	f.mu.Lock()
	defer f.mu.Unlock()
	h := &f.history
	b := Backlog{ID: h.ID, Known: h.Known, Offset: h.Offset, Kept: h.Kept(), Max: h.MaxKept()}
	if len(h.Former) > 0 {
		b.Former = h.Former[0]
	}
	return b
}
