package server

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"os"
	"slices"
	"strconv"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/atomredis/atomredis/command"
	"github.com/atomredis/atomredis/config"
	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/replication"
	"github.com/atomredis/atomredis/resp"
)

// How the history of the data is kept with the data, so that after a restart replicas go on where they were. What is
// stored beside the keys has the history as a note (replication.History.Note), and the journal has one where it changes
// other than by what is journalled. From there on a master's stream follows from the records. A replica's does not: its
// records end with the offset at which they were. A server that ends as it should leaves its backlog in a file.
//
// The servers of a group have the history from their leader, as they have everything: each makes the same stream of the
// same records, so that replicas can go on with the next leader. It gives the history another name, as what the former one
// has sent need not have been agreed on.
//
// A master that was killed may have sent what its journal does not have. So it goes on under another name, and those
// who have no more than it has know it by the old one. A replica keeps the name: the history is its master's.

// The words of notes behind REPLCONF, which the journal alone has.
const (
	noteHistory = "history" // and what replication.History.Note returns
	noteStream  = "stream"  // an offset, and what the stream has there
	noteOffset  = "offset"  // at which a replica's record was
)

// encodeWords encodes a command.
func encodeWords(words ...string) []byte {
	args := make([][]byte, len(words))
	for i, w := range words {
		args[i] = []byte(w)
	}
	return command.AppendRequest(nil, args)
}

// start prepares what the server has for its followers.
func (f *followers) start(srv *Server, set *config.Settings) {
	f.srv = srv
	f.history.End(newRunID())
	f.limit(set)
}

// limit has as much of the stream kept as repl-backlog-size says.
func (f *followers) limit(set *config.Settings) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.history.Limit(set.ReplBacklogSize)
}

// encodedNote returns the history as a command. mu is locked.
func (f *followers) encodedNote() []byte {
	return encodeWords(append([]string{"REPLCONF", noteHistory}, f.history.Note(f.changes.Database())...)...)
}

// makes reports whether the stream is made here, of what is done here, and not by a master or the leader of the group.
// mu is locked.
func (f *followers) makes() bool {
	return f.history.Known && !f.history.Relayed && !f.srv.group.following.Load()
}

// note has the journal tell what the history is from here on. mu is locked.
func (f *followers) note() {
	if f.keeper != nil && !f.srv.group.following.Load() {
		f.keeper.Append(f.srv.ks.Now(), f.encodedNote())
	}
}

// insert puts commands into the stream, encoded, that change nothing. mu is locked.
func (f *followers) insert(b []byte) {
	if f.keeper != nil {
		f.keeper.Append(f.srv.ks.Now(),
			encodeWords("REPLCONF", noteStream, strconv.FormatInt(f.history.Offset, 10), string(b)))
	}
	f.send(b)
}

// Recall implements replication.Host.
func (srv *Server) Recall(words [][]byte, db int) error {
	f := &srv.followed
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.recall(words, db)
}

var errHistoryNote = errors.New("damaged note of the replication history")

// recall does what a note says. mu is locked.
func (f *followers) recall(words [][]byte, db int) error {
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
			f.disconnect() // those that follow must learn the name, or would miss something
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

// lost ends a history that cannot be followed.
func (f *followers) lost(why string) {
	if f.history.Known {
		f.srv.log.Warn("replicas cannot go on where they were", "reason", why)
		f.history.End(newRunID())
		f.disconnect()
	}
}

// repeated adds a record to the stream that the journal had.
func (f *followers) repeated(record []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.history.Known && !f.history.Relayed {
		f.send(f.changes.Translate(record))
	}
}

// historyMark begins what is stored beside the keys if it has a history. Without one it has functions alone.
const historyMark = 1

// storedBeside returns what is stored beside the keys.
func (srv *Server) storedBeside() []byte {
	functions := srv.scripts.Stored()
	note := srv.followed.stored()
	if note == nil {
		return functions
	}
	b := binary.AppendUvarint([]byte{historyMark}, uint64(len(note)))
	return append(append(b, note...), functions...)
}

// restoreBeside restores what storedBeside returned.
func (srv *Server) restoreBeside(stored []byte) error {
	if len(stored) > 0 && stored[0] == historyMark {
		n, used := binary.Uvarint(stored[1:])
		if used <= 0 || n > uint64(len(stored)-1-used) {
			return errHistoryNote
		}
		if err := srv.followed.restore(stored[1+used:][:n]); err != nil {
			return err
		}
		stored = stored[1+used+int(n):]
	}
	return srv.restoreFunctions(stored)
}

// stored returns the history as it is stored with the data, nil if there is none.
func (f *followers) stored() []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.keeper == nil || !f.history.Known {
		return nil
	}
	return f.encodedNote()
}

// restore makes the history what stored has returned.
func (f *followers) restore(note []byte) error {
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

// recovered has the history go on, after the data has been restored with it. The guard holds everything.
func (srv *Server) recovered(g *engine.Guard, exact bool) {
	follows := srv.config.Get().ReplicaOf.Host != ""
	if follows {
		g.SetReplica(true) // from the beginning: only the master says what has expired
	}
	f := &srv.followed
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.keeper == nil {
		return
	}
	ended := f.readBacklog()
	h := &f.history
	switch {
	case !h.Known || f.srv.group.node != nil: // a group has it from its leader
		return
	case !exact:
		f.lost("the data has been repaired")
	case follows:
		h.Relayed = true
	case h.Relayed || !ended:
		h.Rename(newRunID())
		h.Relayed = false
		f.changes.Restart()
	}
	f.note()
	f.attach(g)
	if h.Known {
		f.alone = srv.ks.Now()
		f.watch()
	}
}

// backlogName is the file in which a server that ends leaves its backlog.
const backlogName = "replication.backlog"

func (f *followers) backlogPath() string {
	return f.srv.fs.PathJoin(f.srv.config.Get().Dir, backlogName)
}

// readBacklog reads the backlog that a server has left, which must be there once and never again, and reports whether
// it had this history to its end. mu is locked.
func (f *followers) readBacklog() (ended bool) {
	fs, path := f.srv.fs, f.backlogPath()
	file, err := fs.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return false
	}
	var b []byte
	if err == nil {
		b, err = io.ReadAll(file)
		err = errors.Join(err, file.Close(), f.removeBacklog())
	}
	if err != nil {
		f.srv.log.Warn("the backlog that was left for replicas cannot be used", "error", err.Error())
		return false
	}
	// A checksum, the history as a note, what is kept.
	if len(b) < 4 || crc32.ChecksumIEEE(b[4:]) != binary.LittleEndian.Uint32(b) {
		return false
	}
	args, n, err := (&resp.Parser{MaxBulk: resp.AnyBulk}).Next(b[4:], nil)
	if err != nil || n == 0 {
		return false
	}
	// By then a replica may have gone further than the data is.
	var left followers
	if err := left.recall(args[1:], 0); err != nil {
		return false
	}
	l, h := &left.history, &f.history
	if !h.Known || !l.Known || l.ID != h.ID || l.Offset != h.Offset || l.Relayed != h.Relayed {
		return false
	}
	h.Skip(h.Offset)
	h.Remember(b[4+n:])
	return true
}

// removeBacklog removes the file for good.
func (f *followers) removeBacklog() error {
	fs := f.srv.fs
	if err := fs.Remove(f.backlogPath()); err != nil {
		return err
	}
	dir, err := fs.OpenDir(f.srv.config.Get().Dir)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// leaveBacklog writes the backlog for the next start. Nothing changes any more, and everything is stored.
func (f *followers) leaveBacklog() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.keeper == nil || !f.history.Known || f.srv.group.node != nil {
		return
	}
	b := append(make([]byte, 4), f.encodedNote()...)
	b = append(b, f.history.All()...)
	binary.LittleEndian.PutUint32(b, crc32.ChecksumIEEE(b[4:]))
	if err := writeBacklog(f.srv.fs, f.backlogPath(), b); err != nil {
		f.srv.log.Warn("the backlog cannot be left for the next start", "error", err.Error())
		_ = f.removeBacklog()
	}
}

// dropBacklog removes what leaveBacklog has written: not everything is stored.
func (f *followers) dropBacklog() {
	if f.keeper != nil {
		_ = f.removeBacklog()
	}
}

// writeBacklog writes a file that need not outlive a power loss.
func writeBacklog(fs vfs.FS, path string, b []byte) error {
	file, err := fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = file.Write(b)
	return errors.Join(err, file.Close())
}

// changeHistory changes the history, for whoever is not about to change the data. Those that follow ask again, and
// learn its name.
func (f *followers) changeHistory(change func(h *replication.History)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(&f.history)
	f.note()
	f.disconnect()
}

// disconnect ends the connections of those that follow. mu is locked.
func (f *followers) disconnect() {
	for _, d := range slices.Clone(f.list) {
		d.s.post(mailKill)
	}
}

// present is what the history is now.
func (f *followers) present() (now presentHistory) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return presentHistory{f.history.Known, f.history.ID, f.history.Offset, f.changes.Database()}
}

// presentHistory is what present returns.
type presentHistory struct {
	Known  bool
	ID     string
	Offset int64
	db     int // in which the stream is; replication.NoDatabase if that is not known
}

// relayed has the stream be what a master sends from now on, and returns the offset at which it goes on; -1 if it does
// not. The guard holds everything.
func (f *followers) relayed(g *engine.Guard) int64 {
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

// led has the stream be made here from now on, after a master or the former leader of the group made it. The guard holds
// everything.
func (f *followers) led(g *engine.Guard) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.history.Known {
		return
	}
	f.history.Rename(newRunID())
	f.history.Relayed = false
	f.changes.Restart()
	f.note()
	f.attach(g)
	f.disconnect() // those that follow must learn the name
	f.alone = f.srv.ks.Now()
	f.watch()
}

// copied has the history be that of a copy of a master's data, which is not stored yet. Whoever stores it stores that
// too.
func (f *followers) copied(at *position) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.history.Begin(at.id, at.offset)
	f.history.Relayed = true
	f.changes.Resume(at.db)
}
