// Package spiderq is the door for clients of spiderq. It translates requests over ZeroMQ into the commands of
// internal/protocols/spiderq. It holds no data. docs/spiderq.md describes it.
//
// A peer's requests are executed one after the other, except those that may wait (Lend and Flush), which have clients
// of their own. Each reply is sent when it is ready, after the envelope frames of its request.
package spiderq

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/atomredis/atomredis/doors/door"
	"github.com/atomredis/atomredis/internal/wire/zmtp"
	"github.com/atomredis/atomredis/resp"
)

func init() {
	door.Register(door.Kind{
		Name: "spiderq", Port: 5550,
		New: func(h door.Host) (door.Door, error) { return newDoor(h), nil },
		Directives: []door.Directive{
			{Name: "spiderq-queue", Default: "spiderq", Check: checkQueue},
			{Name: "spiderq-protocol", Default: "1.2", Check: oneOf("1.2", "1.4")},
			{Name: "spiderq-terminate", Default: "door", Check: oneOf("door", "shutdown")},
			{Name: "spiderq-snapshot"},
			{Name: "spiderq-flush-limit", Default: "131072", Check: checkLimit},
		},
	})
}

func checkQueue(value string) error {
	if value == "" {
		return errors.New("argument must be the name of a queue")
	}
	return nil
}

func checkLimit(value string) error {
	if n, err := strconv.ParseInt(value, 10, 64); err != nil || n < 1 {
		return errors.New("argument must be a number of entries, at least 1")
	}
	return nil
}

// oneOf is the Check of a directive with few values.
func oneOf(a, b string) func(value string) error {
	return func(value string) error {
		if value != a && value != b {
			return fmt.Errorf("argument must be one of the following: %s, %s", a, b)
		}
		return nil
	}
}

// Limits of a peer.
const (
	maxFrames  = 64               // frames of a message
	maxWaiting = 1024             // waiting requests of one peer
	ioTimeout  = 30 * time.Second // for the handshake, and for a peer to read what is sent
)

// maxMessage limits the bytes of a message from a peer whose client is admitted.
const maxMessage = min(512<<20+64<<10, math.MaxInt)

// spiderq is the door.
type spiderq struct {
	door.Peers
	requests atomic.Int64
	refused  atomic.Int64 // malformed requests
	waiting  atomic.Int64 // a gauge: requests that may wait
	added    atomic.Int64 // entries added since the last snapshot

	saving     sync.Mutex     // held while a snapshot is written
	background sync.WaitGroup // goroutines that write one
}

func newDoor(h door.Host) *spiderq {
	d := &spiderq{}
	d.Peers = door.Peers{Host: h, Peer: d.peer}
	return d
}

// Close implements door.Door.
func (d *spiderq) Close() error {
	err := d.Peers.Close()
	if d.Host.Setting("spiderq-snapshot") != "" {
		err = errors.Join(err, d.snapshot(context.Background()))
	}
	d.background.Wait()
	return err
}

// Info implements door.Door.
func (d *spiderq) Info(add func(field, value string)) {
	add("requests", strconv.FormatInt(d.requests.Load(), 10))
	add("requests_refused", strconv.FormatInt(d.refused.Load(), 10))
	add("requests_waiting", strconv.FormatInt(d.waiting.Load(), 10))
}

// peer serves a peer.
func (d *spiderq) peer(c *door.Conn) {
	z, err := zmtp.Accept(c, "ROUTER", []string{"REQ", "DEALER", "ROUTER"},
		zmtp.Limits{Message: door.Stranger, Frames: maxFrames, Time: ioTimeout})
	if err != nil {
		return
	}
	p := &peer{door: d, conn: c, z: z, pool: door.NewPool(c.Client, maxWaiting+1)}
	client, err := p.pool.Get()
	if err != nil {
		return
	}
	for {
		if c.Client.Admitted() {
			z.LimitMessage(maxMessage)
		}
		frames, err := z.Read()
		if err != nil {
			return
		}
		c.Requested()
		if !p.serve(client, frames) {
			return
		}
	}
}

// peer is a peer with its connection.
type peer struct {
	door *spiderq
	conn *door.Conn
	z    *zmtp.Conn
	pool *door.Pool
	out  []byte // a reply of serve; reused
}

// serve executes the request in the last frame, and reports whether the connection continues.
func (p *peer) serve(client *door.Client, frames [][]byte) bool {
	p.door.requests.Add(1)
	last := len(frames) - 1
	v := version12
	if p.door.Host.Setting("spiderq-protocol") == "1.4" {
		v = version14
	}
	r, refusal := parseRequest(frames[last], v)
	if refusal != nil {
		p.door.refused.Add(1)
		return p.reply(frames[:last], refusal)
	}
	switch {
	case r.tag == tagLend && !r.poll, r.tag == tagFlush:
		return p.serveLater(frames[:last], r, v)
	case r.tag == tagTerminate:
		return p.terminate(client, frames[:last])
	}
	out, err := p.door.execute(p.conn.Context(), client, p.out[:0], r, v)
	if err != nil {
		p.door.failed(p.conn, err)
		return false
	}
	if p.out = out; cap(p.out) > 64<<10 {
		p.out = nil
	}
	return p.reply(frames[:last], out)
}

// terminate ends the door or, if configured, the server, with the permissions of the peer's user. The peer must be
// answered before, because its connection may end at any time afterwards; so the permission is checked first.
func (p *peer) terminate(client *door.Client, envelope [][]byte) bool {
	command := []any{"SPIDERQ.TERMINATE", p.door.Host.Setting("spiderq-queue")}
	if p.door.Host.Setting("spiderq-terminate") == "shutdown" {
		command = []any{"SHUTDOWN"}
	}
	err := client.Permitted(command...)
	if err == nil {
		p.reply(envelope, []byte{tagTerminated})
		_, err = client.Do(p.conn.Context(), command...)
	}
	p.door.failed(p.conn, err)
	return err == nil
}

// serveLater executes a request that may wait on a goroutine.
func (p *peer) serveLater(envelope [][]byte, r request, v version) bool {
	client, err := p.pool.Get()
	if err != nil {
		p.door.failed(p.conn, err)
		return false
	}
	kept := make([][]byte, len(envelope))
	for i, f := range envelope {
		kept[i] = append([]byte(nil), f...)
	}
	p.door.waiting.Add(1)
	p.conn.Go(func() {
		defer p.door.waiting.Add(-1)
		defer p.pool.Put(client)
		out, err := p.door.execute(p.conn.Context(), client, nil, r, v)
		if err != nil {
			p.door.failed(p.conn, err)
			p.conn.Close()
			return
		}
		if !p.reply(kept, out) {
			p.conn.Close()
		}
	})
	return true
}

// reply sends a reply after the envelope frames of its request.
func (p *peer) reply(envelope [][]byte, reply []byte) bool {
	return p.z.Write(append(envelope[:len(envelope):len(envelope)], reply)...) == nil
}

// failed logs the reason for disconnecting a peer when the protocol has no error for it.
func (d *spiderq) failed(c *door.Conn, err error) {
	var refused resp.Error
	if errors.As(err, &refused) || errors.Is(err, door.ErrTooManyClients) {
		d.Host.Log().Warn("a peer of spiderq is disconnected", "peer", c.RemoteAddr().String(), "error", err.Error())
	}
}

// execute executes a request and appends its reply to out.
func (d *spiderq) execute(ctx context.Context, client *door.Client, out []byte, r request, v version) ([]byte, error) {
	queue := d.Host.Setting("spiderq-queue")
	do := func(args ...any) (resp.Reply, error) { return client.Do(ctx, args...) }
	switch r.tag {
	case tagPing:
		_, err := do("SPIDERQ.PING", queue)
		return append(out, tagPong), err
	case tagCount:
		reply, err := do("SPIDERQ.COUNT", queue)
		if err != nil {
			return nil, err
		}
		n, err := reply.Int()
		return binary.BigEndian.AppendUint32(append(out, tagCounted), uint32(min(n, math.MaxUint32))), err
	case tagAdd:
		where := "TAIL"
		if r.head {
			where = "HEAD"
		}
		out, err := word(out, "ADDED", tagAdded, tagKept)(do("SPIDERQ.ADD", queue, r.key, r.value, where))
		if err == nil && out[len(out)-1] == tagAdded {
			d.countAdded()
		}
		return out, err
	case tagUpdate:
		return word(out, "UPDATED", tagUpdated, tagNotFound)(do("SPIDERQ.UPDATE", queue, r.key, r.value))
	case tagRemove:
		return word(out, "REMOVED", tagRemoved, tagNotRemoved)(do("SPIDERQ.REMOVE", queue, r.key))
	case tagLookup:
		reply, err := do("SPIDERQ.LOOKUP", queue, r.key)
		if err != nil || reply.IsNull() {
			return append(out, tagValueNotFound), err
		}
		value, err := reply.Bytes()
		return appendBytes(append(out, tagValueFound), value), err
	case tagLend:
		mode := "BLOCK"
		if r.poll {
			mode = "POLL"
		}
		return lent(out)(do("SPIDERQ.LEND", queue, r.timeout, mode))
	case tagRepay:
		return word(out, "REPAID", tagRepaid, tagNotFound)(do("SPIDERQ.REPAY", queue, r.lendKey, r.key, r.value,
			statuses[r.status]))
	case tagHeartbeat:
		return word(out, "HEARTBEATEN", tagHeartbeaten, tagSkipped)(do("SPIDERQ.HEARTBEAT", queue, r.lendKey, r.key,
			r.timeout))
	case tagStats:
		return statsGot(out, v)(do("SPIDERQ.STATS", queue))
	case tagFlush:
		if _, err := do("SPIDERQ.FLUSH", queue); err != nil {
			return nil, err
		}
		if d.Host.Setting("spiderq-snapshot") != "" {
			if err := d.snapshot(ctx); err != nil {
				return nil, err
			}
		}
		return append(out, tagFlushed), nil
	}
	return nil, fmt.Errorf("unexpected request %d of spiderq", r.tag)
}

// word encodes a reply of one word as a tag: yes for want, no for any other.
func word(out []byte, want string, yes, no byte) func(resp.Reply, error) ([]byte, error) {
	return func(r resp.Reply, err error) ([]byte, error) {
		if err != nil {
			return nil, err
		}
		if text, err := r.Text(); err != nil || text != want {
			yes = no
		}
		return append(out, yes), nil
	}
}

// lent encodes the reply of SPIDERQ.LEND.
func lent(out []byte) func(resp.Reply, error) ([]byte, error) {
	return func(r resp.Reply, err error) ([]byte, error) {
		if err != nil || r.IsNull() {
			return append(out, tagQueueEmpty), err
		}
		parts, err := r.Slice()
		if err != nil || len(parts) != 3 {
			return nil, fmt.Errorf("unexpected reply of SPIDERQ.LEND: %w", err)
		}
		lendKey, err := parts[0].Int()
		if err != nil {
			return nil, err
		}
		out = binary.BigEndian.AppendUint64(append(out, tagLent), uint64(lendKey))
		for _, part := range parts[1:] {
			b, err := part.Bytes()
			if err != nil {
				return nil, err
			}
			out = appendBytes(out, b)
		}
		return out, nil
	}
}

// The counters of StatsGot, in their order.
var (
	counters12 = []string{"count", "add", "update", "lookup", "lend", "repay", "heartbeat", "stats"}
	counters14 = []string{"ping", "count", "add", "update", "lookup", "remove", "lend", "repay", "heartbeat", "stats"}
)

// statsGot encodes the reply of SPIDERQ.STATS.
func statsGot(out []byte, v version) func(resp.Reply, error) ([]byte, error) {
	names := counters12
	if v == version14 {
		names = counters14
	}
	return func(r resp.Reply, err error) ([]byte, error) {
		if err != nil {
			return nil, err
		}
		counts, err := r.Map()
		if err != nil {
			return nil, err
		}
		out = append(out, tagStatsGot)
		for _, name := range names {
			n, err := counts[name].Int()
			if err != nil {
				return nil, err
			}
			out = binary.BigEndian.AppendUint64(out, uint64(n))
		}
		return out, nil
	}
}
