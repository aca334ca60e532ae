package server

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/atomredis/atomredis/replication"

	"github.com/atomredis/atomredis/command"
	"github.com/atomredis/atomredis/config"
	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/persist/rdb"
	"github.com/atomredis/atomredis/resp"
)

// What the server does as a replica: one goroutine, the link, connects to the master, copies its data, and executes
// its commands as they come, in the master's order, one guard for each command or transaction. They are journalled
// like those of clients, so that a replica is as durable as a master. A copy is read whole, to a file, before it
// takes the place of what there was; while it does, clients are told that the server is loading, and what is stored
// stays the old data until the new one is stored as a whole.
//
// When the connection breaks, or one of both restarts, the link goes on where it was, if the master still has what
// follows (PSYNC), and otherwise copies everything again.

const (
	errNoReplicas command.Error = "NOREPLICAS Not enough good replicas to write."
)

// replica is what the server has as one.
type replica struct {
	current atomic.Pointer[masterLink] // nil: the server is a master; changes only under a guard over everything
	loading atomic.Bool                // a copy takes the place of the data

	mu     sync.Mutex      // protects what follows
	ended  <-chan struct{} // of the link begun last; nil if there was none
	closed bool
}

// link returns the link to the master, nil if there is none because the server is a master itself.
func (r *replica) link() *masterLink { return r.current.Load() }

// masterLink follows a master, until it is stopped.
type masterLink struct {
	srv *Server

	ctx  context.Context // ends with the link
	stop context.CancelFunc

	// Used by the link's goroutine only.
	r     *replayer
	where whereabouts
	conn  net.Conn
	from  *resp.CommandReader
	// handing says that the master is to become one by this: FAILOVER has begun it here.
	handing bool
	begin   int64 // the offset of what from has read first
	queue   [][][]byte
	multi   bool

	nudge chan struct{} // the master is to be told what is on the disk

	mu     sync.Mutex // protects what follows
	now    replication.Link
	latest synced // what was executed last
	next   synced // what will be on the disk next, of what is known
	safe   int64  // the offset of what is on the disk
	owes   bool   // the master has asked, and not all was on the disk
}

// synced is an offset in the master's stream, and the position of the journal behind what was executed up to there.
type synced struct {
	offset int64
	lsn    uint64
}

func (l *masterLink) status() replication.Link {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.now
}

// update changes the status.
func (l *masterLink) update(fn func(st *replication.Link)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fn(&l.now)
}

func (l *masterLink) setState(s replication.LinkState) {
	l.update(func(st *replication.Link) { st.State = s })
}

// startFollowing makes the server a replica, in place of what it was. The guard holds everything. handing says that
// the master has yet to become one.
func (srv *Server) startFollowing(g *engine.Guard, host string, port int, handing bool) {
	r := &srv.replica
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return
	}
	if old := r.link(); old != nil {
		old.stop()
	}
	l := &masterLink{srv: srv, where: whereabouts{given: net.JoinHostPort(host, strconv.Itoa(port))},
		r: newReplayer(srv, command.FromMaster), nudge: make(chan struct{}, 1), handing: handing}
	l.r.s.guard.FromMaster = true
	l.ctx, l.stop = context.WithCancel(context.Background())
	l.now = replication.Link{Host: host, Port: port, Offset: srv.followed.relayed(g), Down: time.Now()}
	before, ended := r.ended, make(chan struct{})
	r.ended = ended
	r.current.Store(l)
	g.SetReplica(true)
	srv.restrict()
	srv.scoreForRole()
	srv.withdrawWriters()
	go func() {
		defer close(ended)
		defer l.stop()
		if before != nil {
			<-before
		}
		l.run()
	}()
}

// withdrawWriters answers who waits to write, and has services forget what clients have: nobody is served any more,
// because what they wait for comes from the master and is not this server's to give. The guard holds everything.
func (srv *Server) withdrawWriters() {
	for _, s := range srv.services {
		s.Following()
	}
	for _, s := range srv.clients.all() {
		if w := s.snapshot().wait; w != nil && w.cmd.Flags&command.Write != 0 && w.waiter.Withdraw() {
			s.post(mailRoleChanged)
		}
	}
}

// followConfigured makes the server a replica if its configuration says so.
func (srv *Server) followConfigured() {
	of := srv.config.Get().ReplicaOf
	if of.Host == "" {
		return
	}
	var g engine.Guard
	g.Lock(srv.ks, engine.AllShards, srv.ks.Now())
	defer g.Unlock()
	srv.startFollowing(&g, of.Host, of.Port, false)
}

// stopFollowing makes the server a master, with the data that it has. The guard holds everything.
func (srv *Server) stopFollowing(g *engine.Guard) {
	r := &srv.replica
	r.link().stop()
	r.current.Store(nil)
	srv.followed.led(g)
	g.SetReplica(false)
	srv.restrict()
	srv.scoreForRole()
	srv.evictLater(0)
	srv.servicesLoaded()
}

// close ends the link. The server does not become a master by that.
func (r *replica) close() {
	r.mu.Lock()
	r.closed = true
	ended := r.ended
	r.mu.Unlock()
	if l := r.link(); l != nil {
		l.stop()
	}
	if ended != nil {
		<-ended
	}
}

// restriction returns the error that a replica has for a command with these flags, "" if it may run.
func (r *replica) restriction(flags command.Flag, writes bool, set *config.Settings) command.Error {
	l := r.link()
	switch {
	case l == nil:
		return ""
	case writes && (set.ReplicaReadOnly || flags&command.Blocking != 0):
		return command.ErrReadOnly // what is waited for comes from the master, and is not this server's to give
	case r.loading.Load() && flags&command.Loading == 0:
		return errLoading
	case !set.ReplicaServeStaleData && flags&command.Stale == 0 && l.status().State != replication.LinkConnected:
		return command.ErrMasterDown
	}
	return ""
}

// The link waits for minLinkPause before it tries again, and longer each time, up to maxLinkPause, which tests make
// shorter.
const minLinkPause = 100 * time.Millisecond

var maxLinkPause = 5 * time.Second

// run connects again and again.
func (l *masterLink) run() {
	pause := minLinkPause
	for l.ctx.Err() == nil {
		connected := false
		addr := l.lookFor()
		err := l.follow(addr, func() { connected = true })
		if l.ctx.Err() != nil {
			return
		}
		l.update(func(st *replication.Link) {
			if st.State == replication.LinkConnected {
				st.Down = time.Now()
			}
			st.State, st.Problem = replication.LinkConnect, err.Error()
		})
		l.srv.log.Warn("the link to the master is down; trying again", "addr", addr, "error", err.Error())
		switch pause = min(2*pause, maxLinkPause); {
		case connected, errors.Is(err, errElsewhere):
			pause = minLinkPause
		default:
			l.where.failed()
		}
		select {
		case <-l.ctx.Done():
		case <-time.After(pause):
		}
	}
}

// follow connects once and executes what the master sends until the connection breaks. connected is called when the
// data is the master's.
func (l *masterLink) follow(addr string, connected func()) error {
	if err := l.stores(); err != nil {
		return err
	}
	l.setState(replication.LinkConnecting)
	conn, err := l.srv.dial(l.ctx, addr, l.timeout(), l.srv.config.Get().TLS.Replication)
	if err != nil {
		return err
	}
	l.conn = conn
	l.queue, l.multi = nil, false
	release := context.AfterFunc(l.ctx, func() { conn.Close() })
	defer release()
	defer conn.Close()
	l.setState(replication.LinkHandshake)
	in := bufio.NewReaderSize(masterReader{l}, linkBuffer)
	if err := l.handshake(in); err != nil {
		return err
	}
	if err := l.askGroup(in); err != nil {
		return err
	}
	next, err := l.psync(in)
	if err != nil {
		return err
	}
	defer l.keepAlive()()
	if next != nil {
		if in, err = l.copyData(in, next); err != nil {
			return err
		}
	}
	l.update(func(st *replication.Link) { st.State, st.Problem = replication.LinkConnected, "" })
	l.executed()
	l.srv.log.Info("the link to the master is up", "addr", addr, "copied", next != nil)
	connected()
	l.acknowledge()
	return l.execute(resp.NewCommandReader(in))
}

// linkBuffer is how many bytes of a master's data are read and written at a time.
const linkBuffer = 256 << 10

// stores returns an error if the replica cannot store what the master sends, and is not to go on without.
func (l *masterLink) stores() error {
	if l.srv.storage.Storage == nil || l.srv.config.Get().ReplicaIgnoreDiskErrors {
		return nil
	}
	if err := l.srv.storageFailure(); err != nil {
		return fmt.Errorf("what the master sends cannot be stored: %w", err)
	}
	return nil
}

// timeout is for how long the master may be silent.
func (l *masterLink) timeout() time.Duration {
	return time.Duration(l.srv.config.Get().ReplTimeout) * time.Second
}

// masterReader reads from the connection of a link.
type masterReader struct{ l *masterLink }

func (m masterReader) Read(b []byte) (int, error) {
	if err := m.l.conn.SetReadDeadline(time.Now().Add(m.l.timeout())); err != nil {
		return 0, err
	}
	n, err := m.l.conn.Read(b)
	if n > 0 {
		m.l.update(func(st *replication.Link) { st.Heard = time.Now() })
		m.l.srv.stats.replIn.Add(int64(n))
		m.l.srv.stats.bytesIn.Add(int64(n))
	}
	return n, err
}

// send writes a command to the master.
func (l *masterLink) send(words ...string) error {
	args := make([][]byte, len(words))
	for i, w := range words {
		args[i] = []byte(w)
	}
	return l.write(command.AppendRequest(nil, args))
}

func (l *masterLink) write(b []byte) error {
	if err := l.conn.SetWriteDeadline(time.Now().Add(l.timeout())); err != nil {
		return err
	}
	_, err := l.conn.Write(b)
	return err
}

// maxMasterLine bounds the lines with which a master answers, in bytes.
const maxMasterLine = 4096

// line reads a line of the master, without its end. Empty ones only tell that the master is there.
func line(in *bufio.Reader) (string, error) {
	for {
		b, err := in.ReadSlice('\n')
		switch {
		case err == bufio.ErrBufferFull, len(b) > maxMasterLine:
			return "", errors.New("the master's answer is too long")
		case err != nil:
			return "", err
		}
		if b = bytes.TrimRight(b, "\r\n"); len(b) > 0 {
			return string(b), nil
		}
	}
}

// ask sends a command and returns the line that answers it.
func (l *masterLink) ask(in *bufio.Reader, words ...string) (string, error) {
	if err := l.send(words...); err != nil {
		return "", err
	}
	return line(in)
}

// handshake introduces the server to the master.
func (l *masterLink) handshake(in *bufio.Reader) error {
	reply, err := l.ask(in, "PING")
	if err != nil {
		return err
	}
	set := l.srv.config.Get()
	// A master that wants a password first says so.
	if reply[0] == '-' && !strings.HasPrefix(reply, "-NOAUTH") && !strings.HasPrefix(reply, "-NOPERM") {
		return fmt.Errorf("the master's answer to PING: %s", reply[1:])
	}
	if set.MasterAuth != "" {
		words := []string{"AUTH", set.MasterAuth}
		if set.MasterUser != "" {
			words = []string{"AUTH", set.MasterUser, set.MasterAuth}
		}
		if reply, err = l.ask(in, words...); err != nil {
			return err
		}
		if reply[0] == '-' {
			return fmt.Errorf("the master's answer to AUTH: %s", reply[1:])
		}
	}
	// Masters that do not know the options answer errors, which change nothing.
	options := [][]string{{"REPLCONF", "listening-port", strconv.Itoa(set.AnnouncedPort())}}
	if set.ReplicaAnnounceIP != "" {
		options = append(options, []string{"REPLCONF", "ip-address", set.ReplicaAnnounceIP})
	}
	for _, words := range append(options, []string{"REPLCONF", "capa", "eof", "capa", "psync2"}) {
		if reply, err = l.ask(in, words...); err != nil {
			return err
		}
		if reply[0] == '-' {
			l.srv.log.Info("the master does not take an option of a replica", "option", words[1], "answer", reply[1:])
		}
	}
	return nil
}

// position is a place in the history of a master.
type position struct {
	id     string
	offset int64
	db     int // that is selected there
}

// psync asks for what follows the data that the server has. If everything comes instead it returns the position that
// it has.
func (l *masterLink) psync(in *bufio.Reader) (*position, error) {
	f := &l.srv.followed
	id, from := "?", "-1"
	if h := f.present(); h.Known {
		id, from = h.ID, strconv.FormatInt(h.Offset+1, 10)
	}
	question := []string{"PSYNC", id, from}
	if l.handing {
		question = append(question, "FAILOVER")
	}
	reply, err := l.ask(in, question...)
	if err != nil {
		return nil, err
	}
	words := strings.Fields(reply)
	if l.handing {
		l.handing = false
		l.srv.handedOver(l, len(words) > 0 && (words[0] == "+CONTINUE" || words[0] == "+FULLRESYNC"))
	}
	switch {
	case len(words) == 0:
	case words[0] == "+CONTINUE" && id != "?":
		if len(words) > 1 && words[1] != id {
			f.changeHistory(func(h *replication.History) { h.Rename(words[1]) })
		}
		return nil, nil
	case words[0] == "+FULLRESYNC" && len(words) == 3:
		if offset, err := strconv.ParseInt(words[2], 10, 64); err == nil && offset >= 0 {
			return &position{id: words[1], offset: offset}, nil
		}
	}
	return nil, fmt.Errorf("the master's answer to PSYNC: %.200q", reply)
}

// keepAlive tells the master every second what has been executed, or while data is copied just that the server is
// there. The function that it returns ends that.
func (l *masterLink) keepAlive() (end func()) {
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
			case <-l.nudge:
			}
			if l.status().State == replication.LinkConnected {
				l.acknowledge()
			} else {
				l.write([]byte("\n")) // an error is found by who reads
			}
		}
	}()
	return func() {
		close(stop)
		l.conn.Close() // which may hold up a write
		<-ended
	}
}

// acknowledge tells the master what has been executed, and how much of that is on the disk. An error is found by who
// reads.
func (l *masterLink) acknowledge() {
	words := []string{"REPLCONF", "ACK", strconv.FormatInt(l.status().Offset, 10)}
	if l.srv.HasJournal() {
		words = append(words, "FACK", strconv.FormatInt(l.onDisk(), 10))
	}
	l.send(words...)
}

// executed notes how far the stream has been executed. No guard is held: what has changed is in the journal.
func (l *masterLink) executed() {
	if l.srv.storage.Storage == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.latest = synced{l.now.Offset, l.srv.storage.Appended()}
}

// onDisk returns the offset up to which what has been executed is on the disk.
func (l *masterLink) onDisk() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	durable := l.srv.storage.Durable()
	for _, at := range []synced{l.next, l.latest} {
		if at.lsn <= durable && at.offset > l.safe {
			l.safe = at.offset
		}
	}
	if l.next.offset <= l.safe {
		l.next = l.latest
	}
	l.owes = l.owes && l.safe < l.latest.offset
	return l.safe
}

// owe has the master told once what it has asked for is on the disk.
func (l *masterLink) owe() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.next = l.latest
	l.owes = l.safe < l.latest.offset
}

// journalSynced tells the master if it waits for that. Any goroutine may call it.
func (l *masterLink) journalSynced() {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.owes && l.next.lsn <= l.srv.storage.Durable() {
		l.owes = false
		select {
		case l.nudge <- struct{}{}:
		default:
		}
	}
}

// markLength is the length of the mark at the end of a file whose size is not known before.
const markLength = 40

// copyData replaces the data by the file that the master sends, which has it as it is at a position. It returns where
// the commands begin.
func (l *masterLink) copyData(in *bufio.Reader, at *position) (*bufio.Reader, error) {
	l.update(func(st *replication.Link) { st.State, st.Size, st.Received = replication.LinkSync, -1, 0 })
	start := time.Now()
	head, err := line(in)
	if err != nil {
		return nil, err
	}
	size := int64(-1)
	mark, marked := strings.CutPrefix(head, "$EOF:")
	if !marked {
		size, err = strconv.ParseInt(strings.TrimPrefix(head, "$"), 10, 64)
	}
	if head[0] != '$' || err != nil || !marked && size < 0 || marked && len(mark) != markLength {
		return nil, fmt.Errorf("the master sends no data but %.200q", strings.TrimPrefix(head, "-"))
	}
	l.update(func(st *replication.Link) { st.Size = size })
	file, err := os.CreateTemp(l.srv.spoolDir(), "replica-*.rdb")
	if err != nil {
		return nil, err
	}
	defer os.Remove(file.Name())
	defer file.Close()
	os.Remove(file.Name()) // already, where that is possible: nothing must be left if the process is killed
	from := io.Reader(in)
	if !marked {
		from = io.LimitReader(in, size)
	}
	rest, err := l.receive(from, file, at)
	if err != nil {
		return nil, fmt.Errorf("the master's data: %w", err)
	}
	if marked {
		in = bufio.NewReaderSize(io.MultiReader(bytes.NewReader(rest), in), linkBuffer)
		end := make([]byte, markLength)
		if _, err := io.ReadFull(in, end); err != nil {
			return nil, err
		}
		if string(end) != mark {
			return nil, errors.New("the master's data does not end where it should")
		}
	} else if n, err := io.Copy(io.Discard, from); err != nil || n > 0 || len(rest) > 0 {
		return nil, errors.Join(errors.New("the master's data does not end where it should"), err)
	}
	if err := l.replace(file, at); err != nil {
		return nil, err
	}
	l.srv.log.Info("the master's data has been copied", "bytes", l.status().Received, "duration",
		time.Since(start).Round(time.Millisecond))
	return in, nil
}

// spoolDir returns where what the master sends is kept until all of it is there.
func (srv *Server) spoolDir() string {
	if set := srv.config.Get(); set.Durable() && srv.ownFiles {
		return set.Dir
	}
	return os.TempDir()
}

// receive writes the master's file to another one, and makes sure that it can be loaded: the old data must not go for
// nothing. It returns what was read beyond the end of the file.
func (l *masterLink) receive(from io.Reader, to *os.File, at *position) (rest []byte, err error) {
	out := bufio.NewWriterSize(to, linkBuffer)
	counted := writerFunc(func(b []byte) (int, error) {
		l.update(func(st *replication.Link) { st.Received += int64(len(b)) })
		return out.Write(b)
	})
	r := rdb.NewReader(io.TeeReader(from, counted), *l.srv.RDBLimits())
	for {
		item, err := r.Next()
		if err == io.EOF {
			return r.Rest(), out.Flush()
		}
		if err == io.ErrUnexpectedEOF {
			err = errors.New("it has broken off")
		}
		if err != nil {
			return nil, err
		}
		switch item := item.(type) {
		case rdb.Aux:
			if item.Name == "repl-stream-db" {
				if n, err := strconv.Atoi(item.Value); err == nil && n >= 0 && n < l.srv.ks.Databases() {
					at.db = n
				}
			}
		case *rdb.Key:
			if n := l.srv.ks.Databases(); item.DB >= n {
				return nil, fmt.Errorf("a key in database %d, and there are %d databases: see the directive databases",
					item.DB, n)
			}
		}
	}
}

// writerFunc is a function as an io.Writer.
type writerFunc func(b []byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// replace makes the content of a file the data of the server.
func (l *masterLink) replace(file *os.File, at *position) error {
	srv := l.srv
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	// From now on clients are told that the server is loading, and so they are if it fails: until another copy is whole.
	srv.replica.loading.Store(true)
	var failed error
	fill := func() error {
		failed = srv.fill(l.ctx, file, l.r, func([]byte) { srv.followed.copied(at) })
		return failed
	}
	err := error(nil)
	if st := srv.storage.Storage; st == nil {
		err = fill()
	} else {
		err = st.Replace(fill)
		for err != nil && failed == nil {
			// The data is there but could not be stored. What comes now must not be journalled behind what is stored.
			srv.log.Error("the copy cannot be stored; trying again", "error", err.Error())
			select {
			case <-l.ctx.Done():
				return l.ctx.Err()
			case <-time.After(maxLinkPause):
			}
			err = st.Save()
		}
	}
	if err != nil {
		return err
	}
	l.update(func(st *replication.Link) { st.Offset = at.offset })
	srv.replica.loading.Store(false)
	return nil
}

// fill reads an RDB file, in which functions stand before keys, into the keyspace in place of what is there. done is
// called once it is there.
func (srv *Server) fill(ctx context.Context, file io.Reader, by *replayer, done func(history []byte)) error {
	srv.followed.drop() // what comes is not told to them
	var history []byte
	about := func(aux rdb.Aux) error {
		switch {
		case aux.Name == auxHistory:
			history = []byte(aux.Value)
		case aux.Name == auxRecord && srv.shards != nil:
			return srv.shards.apply([]byte(aux.Value))
		}
		return nil
	}
	return srv.importer.Replace(ctx, file, by, about, func() { done(history) })
}

// execute carries out the master's commands until the connection breaks.
func (l *masterLink) execute(commands *resp.CommandReader) error {
	h := l.srv.followed.present()
	l.from, l.begin, l.r.s.db = commands, h.Offset, max(h.db, 0)
	commands.Keep = true
	for {
		args, err := commands.Next()
		switch {
		case err == io.EOF, err == io.ErrUnexpectedEOF:
			return errors.New("the master has closed the connection")
		case err != nil:
			return err
		}
		if err := l.take(args); err != nil {
			return err
		}
		if !l.multi {
			l.advance()
			l.executed()
			if err := l.stores(); err != nil {
				return err
			}
			if l.srv.eviction.limit.Load() != 0 && !l.srv.config.Get().ReplicaIgnoreMaxmemory {
				l.srv.makeRoom(l.srv.ks.Now())
			}
		}
	}
}

// maxKeptRaw is the size in bytes of the largest buffer for the master's bytes that is kept.
const maxKeptRaw = 1 << 20

// advance notes that all that was read has been executed, and passes it on. What has been received of a transaction is
// asked for again if its end does not come. If something has changed its guard is still held.
func (l *masterLink) advance() {
	raw := l.from.Raw
	if len(raw) == 0 {
		return
	}
	l.update(func(st *replication.Link) { st.Offset = l.begin + l.from.Consumed })
	l.srv.followed.relay(raw, l.r.s.db)
	if l.from.Raw = raw[:0]; cap(raw) > maxKeptRaw {
		l.from.Raw = nil
	}
}

// take takes the next command of the master. Those of a transaction wait for its end.
func (l *masterLink) take(args [][]byte) error {
	switch {
	case command.EqualFold(args[0], "ping"):
	case command.EqualFold(args[0], "replconf"):
		if len(args) > 1 && command.EqualFold(args[1], "getack") {
			l.acknowledge()
			l.owe()
			l.journalSynced() // it may have become so just now
		}
	case command.EqualFold(args[0], "multi"):
		if l.multi {
			return errors.New("the master sends a transaction within a transaction")
		}
		l.multi = true
	case command.EqualFold(args[0], "exec"):
		if !l.multi {
			return errors.New("the master sends the end of a transaction that has not begun")
		}
		err := l.carryOut(l.queue)
		l.queue = nil
		return err
	case l.multi:
		l.queue = append(l.queue, resp.CloneArgs(args))
	default:
		return l.carryOut([][][]byte{args})
	}
	return nil
}

// carryOut executes commands under one guard. A command that cannot be executed changes nothing of the others: as in
// Redis it is told in the log, and counted.
func (l *masterLink) carryOut(unit [][][]byte) error {
	srv, s := l.srv, l.r.s
	l.multi = false
	found := make([]*command.Command, len(unit))
	var shards uint64
	for i, args := range unit {
		cmd, _ := srv.table.LookupOriginal(args)
		if e := s.admit(command.FromMaster, cmd, nil, args); e != "" {
			l.refused(args, string(e))
			continue
		}
		found[i] = cmd
		shards |= cmd.ShardsAmong(srv.ks, args)
	}
	s.now = srv.ks.Now()
	s.guard.Owner = &s.origin
	srv.scripts.Expect(shards)
	s.guard.Lock(srv.ks, shards, s.now)
	defer s.guard.Unlock()
	if err := l.ctx.Err(); err != nil {
		return err // somebody has ended the link before the guard was taken
	}
	c := &s.ctx
	for i, cmd := range found {
		if cmd == nil {
			continue
		}
		s.out.Buf = s.out.Buf[:0]
		c.Cmd, c.Args, c.DB = cmd, unit[i], s.db
		s.runMonitored(c)
		if len(s.out.Buf) > 0 && s.out.Buf[0] == '-' {
			l.refused(unit[i], string(bytes.TrimSpace(s.out.Buf[1:])))
		}
	}
	s.endCommands() // before the arguments are overwritten
	if s.origin.Changed() {
		srv.tracking.Broadcast(&s.origin.Changer)
	}
	s.out.Buf, s.origin.Later = s.out.Buf[:0], s.origin.Later[:0]
	if s.guard.Logged() && srv.followed.keeper != nil {
		offset := strconv.FormatInt(l.begin+l.from.Consumed, 10)
		s.guard.Log(s.db, [][]byte{[]byte("REPLCONF"), []byte(noteOffset), []byte(offset)})
	}
	l.advance()
	return nil
}

// refused tells of a command of the master that could not be executed.
func (l *masterLink) refused(args [][]byte, why string) {
	l.srv.stats.unexpected.Add(1)
	l.srv.log.Error("a command of the master cannot be executed here", "command", fmt.Sprintf("%.64s", args[0]), "error",
		why)
}

// Master implements replication.Host.
func (srv *Server) Master() (link replication.Link, ok bool) {
	if link, ok := srv.group.link(); ok {
		return link, true
	}
	if l := srv.replica.link(); l != nil {
		return l.status(), true
	}
	return link, false
}

// Follow implements replication.Host.
func (srv *Server) Follow(g *engine.Guard, host string, port int) {
	srv.config.SetReplicaOf(host, port)
	srv.startFollowing(g, host, port, false)
}

// Lead implements replication.Host.
func (srv *Server) Lead(g *engine.Guard) {
	srv.stopFollowing(g)
	srv.config.SetReplicaOf("", 0)
}

// errReplicaOfInCluster is returned by New.
var errReplicaOfInCluster = errors.New("replicaof directive not allowed in cluster mode")
