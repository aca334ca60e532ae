package psync

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/replication"
	"github.com/atomredis/atomredis/internal/version"
	"github.com/atomredis/atomredis/resp"
)

// link is the connection to a master. It reconnects until it is stopped.
type link struct {
	r *Replica

	ctx  context.Context // ends with the link
	stop context.CancelFunc

	// Used by the link's goroutine only.
	executor Executor
	addrs    addresses
	conn     net.Conn
	from     *resp.CommandReader
	db       int        // of the next command
	handing  bool       // the next PSYNC has FAILOVER
	begin    int64      // the offset at which from begins
	queue    [][][]byte // the commands of a transaction
	multi    bool       // a transaction has begun

	nudge chan struct{} // makes keepAlive send an acknowledgement

	mu     sync.Mutex // protects what follows
	now    replication.Link
	latest synced // after the last executed command
	next   synced // an earlier one, which will be on disk first
	safe   int64  // the offset on the disk
	owes   bool   // the master waits for an acknowledgement that needs more of the journal on disk
}

// synced is an offset in the master's stream, and the position of the journal behind the commands before it.
type synced struct {
	offset int64
	lsn    uint64
}

func (l *link) status() replication.Link {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.now
}

// update changes the status.
func (l *link) update(fn func(st *replication.Link)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fn(&l.now)
}

func (l *link) setState(s replication.LinkState) {
	l.update(func(st *replication.Link) { st.State = s })
}

// The pause before another attempt to connect doubles from minLinkPause to maxLinkPause.
const (
	minLinkPause = 100 * time.Millisecond
	maxLinkPause = 5 * time.Second
)

// run connects until the link is stopped.
func (l *link) run() {
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
		l.r.log.Warn("the link to the master is down; trying again", "addr", addr, "error", err.Error())
		switch pause = min(2*pause, l.r.MaxPause); {
		case connected, errors.Is(err, errElsewhere):
			pause = minLinkPause
		default:
			l.addrs.failed()
		}
		select {
		case <-l.ctx.Done():
		case <-time.After(pause):
		}
	}
}

// follow connects once, synchronizes, calls connected, and executes the master's commands until the connection breaks.
func (l *link) follow(addr string, connected func()) error {
	if err := l.stores(); err != nil {
		return err
	}
	l.setState(replication.LinkConnecting)
	conn, err := l.r.host.Dial(l.ctx, addr, l.timeout())
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
	l.r.log.Info("the link to the master is up", "addr", addr, "copied", next != nil)
	connected()
	l.acknowledge()
	return l.execute(resp.NewCommandReader(in))
}

// linkBuffer is the size of the buffers for an RDB file, in bytes.
const linkBuffer = 256 << 10

// stores returns an error if the storage fails, unless replica-ignore-disk-write-errors is set.
func (l *link) stores() error {
	if l.r.storage == nil || l.r.config.Get().Replication.IgnoreDiskErrors {
		return nil
	}
	if err := l.r.host.StorageFailure(); err != nil {
		return fmt.Errorf("the master's commands cannot be stored: %w", err)
	}
	return nil
}

// timeout returns repl-timeout, for which the master may be silent.
func (l *link) timeout() time.Duration {
	return time.Duration(l.r.config.Get().Replication.Timeout) * time.Second
}

// masterReader reads from the connection of a link.
type masterReader struct{ l *link }

func (m masterReader) Read(b []byte) (int, error) {
	if err := m.l.conn.SetReadDeadline(time.Now().Add(m.l.timeout())); err != nil {
		return 0, err
	}
	n, err := m.l.conn.Read(b)
	if n > 0 {
		m.l.update(func(st *replication.Link) { st.Heard = time.Now() })
		m.l.r.Received.Add(int64(n))
	}
	return n, err
}

// send writes a command to the master.
func (l *link) send(words ...string) error {
	args := make([][]byte, len(words))
	for i, w := range words {
		args[i] = []byte(w)
	}
	return l.write(command.AppendRequest(nil, args))
}

func (l *link) write(b []byte) error {
	if err := l.conn.SetWriteDeadline(time.Now().Add(l.timeout())); err != nil {
		return err
	}
	_, err := l.conn.Write(b)
	return err
}

// maxMasterLine bounds the lines with which a master answers, in bytes.
const maxMasterLine = 4096

// line reads a line of the master, without its end. It skips empty lines, the signs of life of a waiting master.
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
func (l *link) ask(in *bufio.Reader, words ...string) (string, error) {
	if err := l.send(words...); err != nil {
		return "", err
	}
	return line(in)
}

// handshake introduces the server to the master.
func (l *link) handshake(in *bufio.Reader) error {
	reply, err := l.ask(in, "PING")
	if err != nil {
		return err
	}
	set := l.r.config.Get()
	// Without a password PING fails; AUTH follows.
	if reply[0] == '-' && !strings.HasPrefix(reply, "-NOAUTH") && !strings.HasPrefix(reply, "-NOPERM") {
		return fmt.Errorf("the master's answer to PING: %s", reply[1:])
	}
	if set.Replication.MasterAuth != "" {
		words := []string{"AUTH", set.Replication.MasterAuth}
		if set.Replication.MasterUser != "" {
			words = []string{"AUTH", set.Replication.MasterUser, set.Replication.MasterAuth}
		}
		if reply, err = l.ask(in, words...); err != nil {
			return err
		}
		if reply[0] == '-' {
			return fmt.Errorf("the master's answer to AUTH: %s", reply[1:])
		}
	}
	// Masters reply with an error to an unknown option; it is ignored.
	options := [][]string{{"REPLCONF", "listening-port", strconv.Itoa(set.AnnouncedPort())}}
	if set.Replication.AnnounceIP != "" {
		options = append(options, []string{"REPLCONF", "ip-address", set.Replication.AnnounceIP})
	}
	// Valkey sends what its newest version can write only to those that tell that they are of one. Redis refuses the option.
	options = append(options, []string{"REPLCONF", "capa", "eof", "capa", "psync2"}, []string{"REPLCONF", "version", version.Valkey})
	for _, words := range options {
		if reply, err = l.ask(in, words...); err != nil {
			return err
		}
		if reply[0] == '-' && words[1] != "version" {
			l.r.log.Info("the master refused an option of REPLCONF", "option", words[1], "answer", reply[1:])
		}
	}
	return nil
}

// psync asks for a partial synchronization. If a full one follows it returns its position, otherwise nil.
func (l *link) psync(in *bufio.Reader) (*Position, error) {
	f := l.r.followers
	id, from := "?", "-1"
	if h := f.Present(); h.Known {
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
		l.r.followers.handedOver(l, len(words) > 0 && (words[0] == "+CONTINUE" || words[0] == "+FULLRESYNC"))
	}
	switch {
	case len(words) == 0:
	case words[0] == "+CONTINUE" && id != "?":
		if len(words) > 1 && words[1] != id {
			f.ChangeHistory(func(h *replication.History) { h.Rename(words[1]) })
		}
		return nil, nil
	case words[0] == "+FULLRESYNC" && len(words) == 3:
		if offset, err := strconv.ParseInt(words[2], 10, 64); err == nil && offset >= 0 {
			return &Position{ID: words[1], Offset: offset}, nil
		}
	}
	return nil, fmt.Errorf("the master's answer to PSYNC: %.200q", reply)
}

// keepAlive sends an acknowledgement every second, or during a full synchronization an empty line, until end is called.
func (l *link) keepAlive() (end func()) {
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
				l.write([]byte("\n")) // the reader finds an error too
			}
		}
	}()
	return func() {
		close(stop)
		l.conn.Close() // ends a write that waits
		<-ended
	}
}

// acknowledge sends the offsets up to which the stream was executed and is on disk. The reader sees an error too.
func (l *link) acknowledge() {
	words := []string{"REPLCONF", "ACK", strconv.FormatInt(l.status().Offset, 10)}
	if l.r.storage != nil && l.r.storage.HasJournal() {
		words = append(words, "FACK", strconv.FormatInt(l.onDisk(), 10))
	}
	l.send(words...)
}
