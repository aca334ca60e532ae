package crash

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"strconv"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	objects "github.com/atomredis/atomredis/internal/protocols/perper/binary"
	"github.com/atomredis/atomredis/internal/testing/transcript"
	"github.com/atomredis/atomredis/internal/wire/fabric"
)

// perper is a worker that uses the door for thin clients of Ignite. Two writers put and remove entries of a cache, also
// two at once; a third one creates executions, finishes them, and removes some. A finished execution does not come
// back: after each start the door for agents is asked for the unfinished ones.
type perper struct {
	addr    string
	fabric  string                      // the address of the other door
	writers [perperWriters]*doorHistory // the last one is that of executions
	// next is the number of the next execution.
	next  int
	found [perperWriters]map[string]string
}

const (
	perperWriters = 3
	perperCaller  = perperWriters - 1
	// perperKeys is the number of keys of a writer, perperCalls the most executions at once.
	perperKeys, perperCalls = 20, 10
	perperCache             = "crash"
	perperExecutions        = "executions"
	perperRunning           = "running"
	perperFinished          = "finished"
)

func newPerper(addr, fabric string) *perper {
	w := &perper{addr: addr, fabric: fabric}
	for i := range w.writers {
		w.writers[i] = newDoorHistory()
	}
	return w
}

func (w *perper) name() string { return "perper" }

func (w *perper) run(_ dialer, r *rand.Rand) error {
	tasks := []func(*thinClient, *rand.Rand) error{perperCaller: w.call}
	for i := range perperCaller {
		tasks[i] = func(c *thinClient, r *rand.Rand) error { return w.write(c, r, i) }
	}
	return runDoorTasks("perper", w.dial, r, tasks)
}

// The operations of the protocol used here.
const (
	ignitePut             = 1001
	ignitePutIfAbsent     = 1002
	ignitePutAll          = 1004
	igniteReplaceIfEquals = 1010
	igniteRemove          = 1016
	igniteGetOrCreate     = 1052
)

// igniteHandshake is the handshake of a client of version 1.7.0.
const igniteHandshake = "\x0e\x00\x00\x00\x01\x01\x00\x07\x00\x00\x00\x02\x0c\x01\x00\x00\x00\x04"

// thinClient is a thin client of Ignite.
type thinClient struct{ conn net.Conn }

func (w *perper) dial() (*thinClient, func(), error) {
	conn, err := transcript.Dial(w.addr)
	if err != nil {
		return nil, nil, err
	}
	c := &thinClient{conn}
	hangUp := func() { conn.Close() }
	_, err = conn.Write([]byte(igniteHandshake))
	if err == nil {
		_, err = c.read()
	}
	if err != nil {
		hangUp()
		return nil, nil, &net.OpError{Op: "handshake", Err: err}
	}
	for _, cache := range []string{perperCache, perperExecutions} {
		if _, err := c.ask(igniteGetOrCreate, objects.AppendString(nil, cache)); err != nil {
			hangUp()
			if errors.Is(err, errEnded) {
				err = &net.OpError{Op: "create", Err: err}
			}
			return nil, nil, err
		}
	}
	return c, hangUp, nil
}

// read reads a frame.
func (c *thinClient) read() ([]byte, error) {
	c.conn.SetReadDeadline(time.Now().Add(replyTimeout))
	var size [4]byte
	if _, err := io.ReadFull(c.conn, size[:]); err != nil {
		return nil, err
	}
	frame := make([]byte, binary.LittleEndian.Uint32(size[:]))
	_, err := io.ReadFull(c.conn, frame)
	return frame, err
}

// ask sends a request and returns the body of its reply.
func (c *thinClient) ask(op uint16, body []byte) ([]byte, error) {
	const header = 10 // the operation, or flags, and the number of the request
	request := binary.LittleEndian.AppendUint32(nil, uint32(header+len(body)))
	request = binary.LittleEndian.AppendUint16(request, op)
	request = append(append(request, make([]byte, 8)...), body...)
	if _, err := c.conn.Write(request); err != nil {
		return nil, ended(err)
	}
	reply, err := c.read()
	if err != nil {
		return nil, ended(err)
	}
	if len(reply) < header || reply[8] != 0 {
		return nil, fmt.Errorf("operation %d gave %x", op, reply)
	}
	return reply[header:], nil
}

// entryOf appends parts to the head of a cache operation. The cache's number is the hash of its name.
func entryOf(cache string, parts ...[]byte) []byte {
	b := append(binary.LittleEndian.AppendUint32(nil, uint32(objects.Hash(cache))), 0)
	for _, o := range parts {
		b = append(b, o...)
	}
	return b
}

func (w *perper) write(c *thinClient, r *rand.Rand, i int) error {
	h := w.writers[i]
	key := func() string { return fmt.Sprintf("w%d-%d", i, r.IntN(perperKeys)) }
	for {
		a, b := key(), key()
		value := strconv.FormatUint(r.Uint64(), 36)
		object := objects.AppendString(nil, value)
		var err error
		switch r.IntN(5) {
		case 0:
			done := h.send(doorChange{a: ""})
			_, err = c.ask(igniteRemove, entryOf(perperCache, objects.AppendString(nil, a)))
			h.answered(done, err)
		case 1:
			done := h.send(doorChange{a: value, b: value})
			_, err = c.ask(ignitePutAll, entryOf(perperCache, []byte{2, 0, 0, 0}, objects.AppendString(nil, a), object,
				objects.AppendString(nil, b), object))
			h.answered(done, err)
		default:
			done := h.send(doorChange{a: value})
			_, err = c.ask(ignitePut, entryOf(perperCache, objects.AppendString(nil, a), object))
			h.answered(done, err)
		}
		if err != nil {
			return err
		}
	}
}

// execution returns the ExecutionData of an execution that is running or has finished.
func execution(id string, state string) []byte {
	text := func(name, value string) objects.Field {
		return objects.Field{ID: objects.ID(name), Value: objects.AppendString(nil, value)}
	}
	return objects.AppendObject(nil, objects.ID("ExecutionData"), []objects.Field{text("agent", perperCache),
		text("instance", id), text("delegate", "Run"), {ID: objects.ID("finished"), Value: objects.AppendBool(nil, state == perperFinished)}})
}

// call creates executions, finishes them as agents do, and removes some finished ones.
func (w *perper) call(c *thinClient, r *rand.Rand) error {
	h := w.writers[perperCaller]
	state := maps.Clone(h.base)
	for {
		var id string
		switch n := r.IntN(perperCalls); {
		case len(state) <= n:
			id = "x" + strconv.Itoa(w.next)
			w.next++
		default:
			for id = range state {
				break
			}
		}
		key := objects.AppendString(nil, id)
		next, op, body := perperRunning, uint16(ignitePutIfAbsent), entryOf(perperExecutions, key, execution(id, perperRunning))
		switch state[id] {
		case perperRunning:
			next, op = perperFinished, igniteReplaceIfEquals
			body = entryOf(perperExecutions, key, execution(id, perperRunning), execution(id, perperFinished))
		case perperFinished:
			next, op, body = "", igniteRemove, entryOf(perperExecutions, key)
		}
		done := h.send(doorChange{id: next})
		reply, err := c.ask(op, body)
		h.answered(done, err)
		if err != nil {
			return err
		}
		if len(reply) != 1 || reply[0] != 1 {
			return fmt.Errorf("operation %d of execution %s gave %x", op, id, reply)
		}
		doorChange{id: next}.apply(state)
	}
}

func (w *perper) inquire(c *transcript.Conn) error {
	replies, err := ask(c, []string{"SELECT", "0"}, []string{"HGETALL", "perper:{" + perperCache + "}"},
		[]string{"HGETALL", "perper:{" + perperExecutions + "}"})
	if err != nil {
		return err
	}
	for i := range w.found {
		w.found[i] = map[string]string{}
	}
	for key, value := range fields(replies[1]) {
		name := plainText(key)
		n, err := strconv.Atoi(name[min(1, len(name)):min(2, len(name))])
		if err != nil || n >= perperCaller {
			return fmt.Errorf("key %q was never put", key)
		}
		w.found[n][name] = plainText(value)
	}
	for key, value := range fields(replies[2]) {
		id := plainText(key)
		w.found[perperCaller][id] = fmt.Sprintf("%x", value)
		for _, state := range []string{perperRunning, perperFinished} {
			if value == string(execution(id, state)) {
				w.found[perperCaller][id] = state
			}
		}
	}
	return w.inquireAgent()
}

// inquireAgent asks, as an agent does, for the executions that it has to run.
func (w *perper) inquireAgent() error {
	conn, err := grpc.NewClient("passthrough:///"+w.fabric, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close()
	reply, err := callRPC(fabric.NewFabricClient(conn).AllExecutions, &fabric.ExecutionsRequest{Agent: perperCache})
	if err != nil {
		return err
	}
	unfinished := map[string]string{}
	for _, e := range reply.Executions {
		unfinished[e.Execution] = perperRunning
	}
	running := maps.Clone(w.found[perperCaller])
	maps.DeleteFunc(running, func(_, state string) bool { return state != perperRunning })
	if !maps.Equal(running, unfinished) {
		return fmt.Errorf("an agent is told of executions that are not those that run:%s", differences(running, unfinished))
	}
	return nil
}

// plainText is the text of a string object, and the bytes of any other object.
func plainText(object string) string {
	if len(object) > 5 && object == string(objects.AppendString(nil, object[5:])) {
		return object[5:]
	}
	return object
}

func (w *perper) settle(_ *snapshot, e ending) (acked int, err error) {
	for i, h := range w.writers {
		n, err := h.settle(w.found[i], e)
		if err != nil {
			return 0, fmt.Errorf("perper: writer %d: %w", i, err)
		}
		acked += n
	}
	return acked, nil
}
