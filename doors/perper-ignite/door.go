// Package perperignite is the door for thin clients of Apache Ignite, such as the agents of Perper. It translates
// internal/wire/ignite into the commands of internal/protocols/perper. It holds no data. docs/perper.md describes it.
//
// The requests of a peer are executed one after the other. The next request begins before the last one is durable and
// answered. Open cursors and continuous queries end with their peer.
package perperignite

import (
	"crypto/rand"
	"errors"
	"math"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/atomredis/atomredis/doors/door"
	"github.com/atomredis/atomredis/internal/wire/ignite"
	"github.com/atomredis/atomredis/resp"
)

func init() {
	door.Register(door.Kind{
		Name: "perper-ignite", Port: 10800, TLS: true, AtLeader: true,
		New: func(h door.Host) (door.Door, error) { return newDoor(h), nil },
	})
}

// Limits of a peer.
const (
	maxCursors = 128
	ioTimeout  = 30 * time.Second // for the handshake, and for a peer to read what is sent
)

// maxMessage is how many bytes a request may have.
const maxMessage = min(512<<20+64<<10, math.MaxInt)

// igniteDoor is the door.
type igniteDoor struct {
	door.Peers
	node         nodeID // identifies the server for clients if it has no other id
	cluster      state
	own          ownClient // for the list of caches
	caches       sync.Map  // from ids of caches to their last known names
	tables       sync.Map  // from schema.table in upper case to the last known names of their caches
	requests     atomic.Int64
	failed       atomic.Int64 // requests that were answered with an error
	cursors      atomic.Int64 // a gauge
	watches      atomic.Int64 // a gauge: continuous queries
	locks        lockTable
	transactions atomic.Int64 // a gauge
}

func newDoor(h door.Host) *igniteDoor {
	d := new(igniteDoor)
	rand.Read(d.node[:]) // never fails
	d.Peers = door.Peers{Host: h, Peer: d.peer, Refuse: refuse}
	d.cluster.start = time.Now()
	d.cluster.now.Store(stateActive)
	return d
}

// Close implements door.Door.
func (d *igniteDoor) Close() error {
	err := d.Peers.Close()
	d.cluster.client.close()
	d.own.close()
	return err
}

// refuse sends a peer the reason for a refusal.
func refuse(conn net.Conn, why error) {
	ignite.Refuse(conn, ignite.Refusal{Status: ignite.StatusFailed, Message: why.Error()})
}

// Info implements door.Door.
func (d *igniteDoor) Info(add func(field, value string)) {
	add("requests", strconv.FormatInt(d.requests.Load(), 10))
	add("requests_failed", strconv.FormatInt(d.failed.Load(), 10))
	add("cursors_open", strconv.FormatInt(d.cursors.Load(), 10))
	add("continuous_queries", strconv.FormatInt(d.watches.Load(), 10))
	add("transactions_open", strconv.FormatInt(d.transactions.Load(), 10))
}

// peer is a peer with its connection.
type peer struct {
	door   *igniteDoor
	conn   *door.Conn
	wire   *ignite.Conn
	outbox *outbox

	mu         sync.Mutex // protects what follows; requests are executed under it
	ended      bool       // no request is executed any more
	cursors    map[int64]cursor
	watches    map[int64]*watch
	lastCursor int64  // id of the last opened cursor or query
	out        []byte // the body of a reply; reused
	then       func() // called once the answer is queued; nil for nothing
	position   uint64 // must be settled before the answer is sent

	topology     int64     // its version that the client knows; 0 if it has not asked for one
	topologyRead time.Time // when the version was compared last

	transactions     map[int32]*transaction
	lastTransaction  int32
	transactionBytes int // of all transactions
}

// peer serves a peer.
func (d *igniteDoor) peer(c *door.Conn) {
	wire, err := ignite.Accept(c, d.self(), ignite.Limits{Message: maxMessage, Time: ioTimeout},
		func(h *ignite.Hello) *ignite.Refusal { return admit(c, h) })
	if err != nil {
		return
	}
	p := &peer{door: d, conn: c, wire: wire, outbox: newOutbox(c, wire), cursors: map[int64]cursor{},
		watches: map[int64]*watch{}, transactions: map[int32]*transaction{}}
	defer p.outbox.close()
	defer p.end()
	for {
		if !wire.Ready() || p.outbox.full() {
			if p.outbox.flush() != nil {
				return
			}
		}
		r, err := wire.Read()
		if err != nil {
			p.rollBack()
			p.outbox.drain() // a peer that sends nothing more may still read
			return
		}
		c.Requested()
		if p.serve(r) != nil {
			return
		}
	}
}

// admit authenticates the client with the peer's credentials. It refuses a peer without credentials if the server needs
// a password.
func admit(c *door.Conn, h *ignite.Hello) *ignite.Refusal {
	if h.User == "" {
		if !c.Client.Admitted() {
			return &ignite.Refusal{Status: ignite.StatusNotAuthorized, Message: "The server asks for a user name and a password"}
		}
		return nil
	}
	if err := c.Client.Auth(c.Context(), h.User, h.Password); err != nil {
		return &ignite.Refusal{Status: ignite.StatusNotAuthorized, Message: "The user name or password is incorrect"}
	}
	return nil
}

// end ends what the peer has open.
func (p *peer) end() {
	p.rollBack()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.door.cursors.Add(-int64(len(p.cursors)))
	p.door.watches.Add(-int64(len(p.watches)))
	for _, w := range p.watches {
		w.end()
	}
}

// rollBack ends the transactions of the peer, which sends no further request.
func (p *peer) rollBack() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	for _, t := range p.transactions {
		t.end()
	}
}

// serve executes a request and queues the answer. An error says that the peer is gone, or that its client has ended.
func (p *peer) serve(r ignite.Request) error {
	p.door.requests.Add(1)
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.answer(r)
}

// answer is serve for a request that was counted. mu must be locked.
func (p *peer) answer(r ignite.Request) error {
	if p.ended {
		return door.ErrClosed
	}
	p.position = 0
	h := p.wire.Hello()
	body, err := p.execute(r)
	if err == nil {
		if p.out = body; cap(p.out) > 64<<10 {
			p.out = nil
		}
		news := p.news()
		err = p.outbox.add(p.position, func(dst []byte) []byte {
			if news != 0 {
				return ignite.AppendReplyAndTopology(dst, r.ID, news, body)
			}
			return h.AppendReply(dst, r.ID, body)
		})
		if p.then != nil {
			p.then()
			p.then = nil
		}
		return err
	}
	if errors.Is(err, errParked) {
		return nil
	}
	if errors.Is(err, door.ErrClosed) || errors.Is(err, door.ErrKilled) || p.conn.Context().Err() != nil {
		return err
	}
	return p.refuse(r.ID, err)
}

// refuse queues an error as the answer to a request.
func (p *peer) refuse(id int64, err error) error {
	p.door.failed.Add(1)
	f, h := failureOf(err), p.wire.Hello()
	return p.outbox.add(p.position, func(dst []byte) []byte { return h.AppendFailure(dst, id, f.status, f.message) })
}

// do executes a command. The answer to the request is sent when everything that the command's reply reports is durable.
func (p *peer) do(args ...any) (resp.Reply, error) {
	reply, position, err := p.conn.Client.DoAhead(p.conn.Context(), args...)
	p.position = max(p.position, position)
	return reply, err
}

// failure is an error with a status of the protocol.
type failure struct {
	status  int32
	message string
}

// failed returns a failure without a status of its own.
func failed(message string) error { return &failure{ignite.StatusFailed, message} }

// Error implements error.
func (f *failure) Error() string { return f.message }

// failureOf converts an error for the peer.
func failureOf(err error) *failure {
	var f *failure
	if errors.As(err, &f) {
		return f
	}
	var reply resp.Error
	if !errors.As(err, &reply) {
		return &failure{ignite.StatusFailed, err.Error()}
	}
	status := ignite.StatusFailed
	switch code, _, _ := strings.Cut(string(reply), " "); code {
	case "NOCACHE":
		status = ignite.StatusNoCache
	case "CACHEEXISTS", "CACHEID":
		status = ignite.StatusCacheExists
	case "NOPERM", "NOAUTH":
		status = ignite.StatusUnauthorized
	}
	return &failure{status, string(reply)}
}
