package psync

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/background"
	"github.com/atomredis/atomredis/internal/replication"
	"github.com/atomredis/atomredis/internal/transfer"
	"github.com/atomredis/atomredis/persist/rdb"
)

// Full synchronization: an RDB file, and then the stream since its snapshot. A partial one is the second part alone.

// copyTo begins a full synchronization in the background.
func (f *Followers) copyTo(d *feed, announce bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		d.client.Close()
		return
	}
	f.Copies.Add(1)
	f.serve(d, func() error {
		background.Work()
		err := d.copy(announce)
		if err == nil && !d.rdbOnly {
			err = d.catchUp()
		}
		if err == nil && d.foreign {
			err = f.host.RepeatKept()
		}
		return err
	})
}

// serve adds a follower and calls send in the background. mu is locked.
func (f *Followers) serve(d *feed, send func() error) {
	f.list = append(f.list, d)
	f.watch()
	f.running.Add(1)
	go func() {
		defer f.running.Done()
		if err := send(); err != nil && d.ctx.Err() == nil {
			d.giveUp("it cannot get what it needs", err)
		}
	}()
}

// goOn is GoOn.
func (f *Followers) goOn(d *feed, id string, offset int64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	missed, ok := f.history.Since(id, offset)
	if !ok || f.closed {
		return false
	}
	answer := "+CONTINUE\r\n"
	if d.of.Capabilities.PSYNC2 {
		answer = "+CONTINUE " + f.history.ID + "\r\n"
	}
	d.queued.Add(int64(len(answer)))
	d.client.Send([]byte(answer))
	d.state, d.streaming, d.pending = replication.FollowerCopy, true, missed
	d.waiting.Store(int64(len(missed)))
	d.acked.Store(offset)
	f.Partial.Add(1)
	f.serve(d, d.catchUp)
	return true
}

// valkey9 is the first version of Valkey with files of its own.
const valkey9 = 9 << 16

// copy sends the RDB file.
func (d *feed) copy(announce bool) error {
	how := transfer.Copy{Content: d.content, Begun: func(s *engine.Snapshot) { d.source.Store(s) }, About: d.about,
		Valkey: d.of.Capabilities.Valkey >= valkey9 && !d.of.Capabilities.Ours}
	defer d.source.Store(nil)
	if !d.open {
		return d.copyByFile(how, announce)
	}
	var mark [markLength / 2]byte
	rand.Read(mark[:])
	end := hex.EncodeToString(mark[:])
	how.At = func(g *engine.Guard) { d.begin(g, announce, "$EOF:"+end+"\r\n") }
	if err := d.f.exporter.Copy(d.ctx, d, how); err != nil {
		return err
	}
	d.source.Store(nil)
	d.marked.Store(true)
	if _, err := io.WriteString(d, end); err != nil || d.rdbOnly {
		return err
	}
	// Redis finds the mark only at the end of what it has received, so the stream waits for its first acknowledgement.
	select {
	case <-d.loaded:
		return nil
	case <-d.ctx.Done():
		return d.ctx.Err()
	}
}

// copyByFile is copy for a follower that needs the length of the file before it.
func (d *feed) copyByFile(how transfer.Copy, announce bool) error {
	file, err := os.CreateTemp(d.f.host.SpoolDir(), "follower-*.rdb")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	defer file.Close()
	os.Remove(file.Name()) // where the system allows it: nothing is left if the process is killed
	how.At = func(g *engine.Guard) { d.begin(g, announce, "") }
	if err := d.f.exporter.Copy(d.ctx, file, how); err != nil {
		return err
	}
	d.source.Store(nil)
	size, err := file.Seek(0, io.SeekEnd)
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		return err
	}
	f := d.f
	f.mu.Lock()
	d.state = replication.FollowerCopy // ends the empty lines
	f.mu.Unlock()
	if _, err := fmt.Fprintf(d, "$%d\r\n", size); err != nil {
		return err
	}
	buf := make([]byte, feedWindow/4)
	_, err = io.CopyBuffer(onlyWriter{d}, onlyReader{file}, buf)
	return err
}

// about returns the field that tells a replica the database of the stream behind the file.
func (d *feed) about() []rdb.Aux {
	if d.db == replication.NoDatabase {
		return nil
	}
	return []rdb.Aux{{Name: "repl-stream-db", Value: strconv.Itoa(d.db)}}
}

// onlyWriter and onlyReader hide the methods that would make io.Copy not use its buffer.
type (
	onlyWriter struct{ io.Writer }
	onlyReader struct{ io.Reader }
)

// begin starts the stream of the follower, at the moment of the snapshot, and sends head. The guard holds everything.
func (d *feed) begin(g *engine.Guard, announce bool, head string) {
	f := d.f
	f.mu.Lock()
	defer f.mu.Unlock()
	leads := !d.f.host.FollowsLeader()
	if !d.rdbOnly && !leads && !f.leaderMakes() {
		d.giveUp("the leader of the group makes no stream yet", nil)
	}
	streaming := !d.rdbOnly && d.ctx.Err() == nil
	if streaming && !f.history.Relayed && leads {
		f.restart(g) // a stream must begin with SELECT
	}
	if announce {
		head = fmt.Sprintf("+FULLRESYNC %s %d\r\n", f.history.ID, f.history.Offset) + head
	}
	if d.open {
		d.state = replication.FollowerCopy
	}
	d.db, d.streaming = f.changes.Database(), streaming
	d.queued.Add(int64(len(head)))
	d.client.Send([]byte(head))
}

// catchUp sends the stream that was kept back. At its end the follower is online.
func (d *feed) catchUp() error {
	f := d.f
	for {
		f.mu.Lock()
		pending := d.pending
		d.pending = nil
		if len(pending) < feedWindow/16 {
			if len(pending) > 0 {
				d.client.Send(pending)
			}
			d.waiting.Store(0)
			d.state = replication.FollowerOnline
			d.ackedAt.CompareAndSwap(0, d.f.ks.Now())
			f.mu.Unlock()
			d.f.Count()
			d.f.log.Info("full synchronization of a replica succeeded", "client", d.client.ID(), "addr", d.client.Addr())
			return nil
		}
		f.mu.Unlock()
		if _, err := d.Write(pending); err != nil {
			return err
		}
	}
}

// markLength is the length of the mark at the end of an RDB file of unknown length.
const markLength = 40
