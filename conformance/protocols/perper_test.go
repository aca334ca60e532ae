package protocols_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/atomredis/atomredis"
	_ "github.com/atomredis/atomredis/doors/perper-grpc"
	_ "github.com/atomredis/atomredis/doors/perper-ignite"
	objects "github.com/atomredis/atomredis/internal/protocols/perper/binary"
	"github.com/atomredis/atomredis/internal/wire/fabric"
)

// tasks are functions that run concurrently.
type tasks struct {
	sync.WaitGroup
	mu  sync.Mutex
	err error // the first
}

func (g *tasks) Go(fn func() error) {
	g.WaitGroup.Go(func() {
		if err := fn(); err != nil {
			g.mu.Lock()
			defer g.mu.Unlock()
			if g.err == nil {
				g.err = err
			}
		}
	})
}

func (g *tasks) Wait() error {
	g.WaitGroup.Wait()
	return g.err
}

// perperServer returns a server with both doors.
func perperServer(t *testing.T) *atomredis.DB {
	db, err := atomredis.Open(atomredis.Options{Addr: "127.0.0.1:0", Config: testConfig(),
		Doors: map[string]string{"perper-ignite": "127.0.0.1:0", "perper-grpc": "127.0.0.1:0"}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

// perperAgent is a program that uses both protocols as the agents of Perper do: it changes caches by frames of Ignite,
// and waits by gRPC.
type perperAgent struct {
	fabric.FabricClient
	ctx  context.Context
	conn net.Conn
	in   *bufio.Reader
	id   uint64
}

func newPerperAgent(t *testing.T, db *atomredis.DB) *perperAgent {
	ctx, cancel := context.WithTimeout(context.Background(), 9*time.Minute)
	t.Cleanup(cancel)
	g, err := grpc.NewClient(db.DoorAddr("perper-grpc"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() { g.Close() })
	conn, err := net.Dial("tcp", db.DoorAddr("perper-ignite"))
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	hello, _ := hex.DecodeString("0e00000001010007000000020c0100000004")
	_, err = conn.Write(hello)
	require.NoError(t, err)
	a := &perperAgent{FabricClient: fabric.NewFabricClient(g), ctx: ctx, conn: conn, in: bufio.NewReader(conn)}
	welcome, err := a.message()
	require.NoError(t, err)
	require.Equal(t, byte(1), welcome[0])
	for _, cache := range []string{"executions", "stream-listeners"} {
		_, err := a.ask(1052, objects.AppendString(nil, cache))
		require.NoError(t, err)
	}
	return a
}

func (a *perperAgent) message() ([]byte, error) {
	var size [4]byte
	if _, err := io.ReadFull(a.in, size[:]); err != nil {
		return nil, err
	}
	b := make([]byte, binary.LittleEndian.Uint32(size[:]))
	_, err := io.ReadFull(a.in, b)
	return b, err
}

// ask sends a request and returns the body of its reply.
func (a *perperAgent) ask(op uint16, body []byte) ([]byte, error) {
	if _, err := a.conn.Write(a.request(nil, op, body)); err != nil {
		return nil, err
	}
	return a.answer(a.id)
}

// request appends a request.
func (a *perperAgent) request(dst []byte, op uint16, body []byte) []byte {
	a.id++
	dst = binary.LittleEndian.AppendUint32(dst, uint32(10+len(body)))
	dst = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint16(dst, op), a.id)
	return append(dst, body...)
}

// answer reads the next reply, which must be to a request, and returns its body.
func (a *perperAgent) answer(id uint64) ([]byte, error) {
	reply, err := a.message()
	switch {
	case err != nil:
		return nil, err
	case binary.LittleEndian.Uint64(reply) != id:
		return nil, fmt.Errorf("reply to %x instead of %d", reply[:8], id)
	case binary.LittleEndian.Uint16(reply[8:]) != 0:
		return nil, fmt.Errorf("request %d: %q", id, reply[10:])
	}
	return reply[10:], nil
}

// cache executes an operation on objects in a cache, and returns the object in the reply.
func (a *perperAgent) cache(op uint16, name string, args ...[]byte) ([]byte, error) {
	return a.ask(op, onCache(name, args...))
}

// onCache returns the body of a request on objects in a cache.
func onCache(name string, args ...[]byte) []byte {
	b := append(binary.LittleEndian.AppendUint32(nil, uint32(objects.Hash(name))), 0)
	for _, arg := range args {
		b = append(b, arg...)
	}
	return b
}

func text(s string) []byte { return objects.AppendString(nil, s) }
func long(n int64) []byte  { return objects.AppendLong(nil, n) }

// The operations of Ignite used in the tests.
const (
	opGet            = 1000
	opPut            = 1001
	opPutIfAbsent    = 1002
	opReplaceIfEqual = 1010
	opRemove         = 1016
	opSize           = 1020
	opGetOrCreate    = 1052
)

// execution returns the object of an execution.
func execution(agent, instance, delegate string, finished bool, parameters, result []byte) []byte {
	var fields []objects.Field
	for _, f := range []struct {
		name  string
		value []byte
	}{
		{"agent", text(agent)}, {"instance", text(instance)}, {"delegate", text(delegate)},
		{"finished", objects.AppendBool(nil, finished)}, {"parameters", parameters}, {"result", result},
		{"error", objects.AppendNull(nil)},
	} {
		fields = append(fields, objects.Field{ID: objects.ID(f.name), Value: f.value})
	}
	return objects.AppendObject(nil, objects.ID("ExecutionData"), fields)
}

// array returns an array of objects.
func array(elements ...[]byte) []byte {
	b := objects.AppendArray(nil, -1, len(elements))
	for _, e := range elements {
		b = append(b, e...)
	}
	return b
}

// field returns a field of a wrapped object.
func field(wrapped []byte, name string) ([]byte, error) {
	inner, err := objects.Unwrap(wrapped)
	if err != nil {
		return nil, err
	}
	o, err := objects.ParseObject(inner)
	if err != nil {
		return nil, err
	}
	return o.Field(func(int32, int32) []int32 { return nil }, objects.ID(name))
}

// call calls an agent and returns the first result.
func (a *perperAgent) call(agent, instance, delegate, id string, parameters ...[]byte) ([]byte, error) {
	if _, err := a.cache(opPutIfAbsent, "executions", text(id),
		execution(agent, instance, delegate, false, array(parameters...), objects.AppendNull(nil))); err != nil {
		return nil, err
	}
	if _, err := a.ExecutionFinished(a.ctx, &fabric.ExecutionFinishedRequest{Execution: id}); err != nil {
		return nil, err
	}
	data, err := a.cache(opGet, "executions", text(id))
	if err != nil {
		return nil, err
	}
	result, err := field(data, "result")
	if err != nil {
		return nil, err
	}
	return result[9:], nil // after the head of the array
}

// serve executes the agent's calls until it is told to stop.
func (a *perperAgent) serve(name string, do func(e *fabric.ExecutionsResponse, parameters []byte) ([]byte, error)) error {
	s, err := a.ReservedExecutions(a.ctx)
	if err != nil {
		return err
	}
	ask := &fabric.ReservedExecutionsRequest{ReserveNext: 1, WorkGroup: name,
		Filter: &fabric.ExecutionsRequest{Agent: name}}
	for {
		if err := s.Send(ask); err != nil {
			return err
		}
		ask = &fabric.ReservedExecutionsRequest{ReserveNext: 1}
		m, err := s.Recv()
		for err == nil && m.StartOfStream {
			m, err = s.Recv()
		}
		if err != nil {
			return err
		}
		if m.Delegate == "forever" {
			if m, err = s.Recv(); err != nil || !m.Cancelled {
				return fmt.Errorf("got %v, %v instead of a cancelled execution", m, err)
			}
			continue
		}
		data, err := a.cache(opGet, "executions", text(m.Execution))
		if err != nil {
			return err
		}
		parameters, err := field(data, "parameters")
		if err != nil {
			return err
		}
		result, err := do(m, parameters[9:])
		if err != nil {
			return err
		}
		old, err := objects.Unwrap(data)
		if err != nil {
			return err
		}
		replaced, err := a.cache(opReplaceIfEqual, "executions", text(m.Execution), old,
			execution(name, m.Instance, m.Delegate, true, parameters, array(result)))
		if err != nil || replaced[0] != 1 {
			return fmt.Errorf("replaced %v, %v", replaced, err)
		}
		if m.Delegate == "Stop" {
			return nil
		}
	}
}

// position moves a listener of a stream.
func (a *perperAgent) position(stream, listener string, at int64) error {
	_, err := a.cache(opPut, "stream-listeners", text(listener), objects.AppendObject(nil, objects.ID("StreamListener"),
		[]objects.Field{{ID: objects.ID("stream"), Value: text(stream)}, {ID: objects.ID("position"), Value: long(at)}}))
	return err
}

// read reads n items of a stream as agents do, and calls ready once it listens.
func (a *perperAgent) read(stream, listener string, n int, ready func()) (keys []int64, err error) {
	s, err := a.StreamItems(a.ctx, &fabric.StreamItemsRequest{Stream: stream, StartKey: -1})
	if err != nil {
		return nil, err
	}
	if _, err := s.Header(); err != nil {
		return nil, err
	}
	if err := a.position(stream, listener, math.MinInt64); err != nil {
		return nil, err
	}
	ready()
	for range n {
		m, err := s.Recv()
		if err != nil {
			return nil, err
		}
		keys = append(keys, m.Key)
		if err := a.position(stream, listener, m.Key); err != nil {
			return nil, err
		}
		if _, err := a.cache(opGet, stream, long(m.Key)); err != nil {
			return nil, err
		}
	}
	_, err = a.cache(opRemove, "stream-listeners", text(listener))
	return keys, err
}

// One agent calls another: it starts it, calls it, reads streams that it writes, cancels a call, and keeps a state.
func TestTwoAgentsOfPerper(t *testing.T) {
	db := perperServer(t)
	const items = 50
	var agents tasks
	callee := newPerperAgent(t, db)
	agents.Go(func() error {
		return callee.serve("calc", func(e *fabric.ExecutionsResponse, parameters []byte) ([]byte, error) {
			switch e.Delegate {
			case "add":
				x, rest, _ := objects.Next(parameters)
				n, _ := objects.AsLong(x)
				m, _ := objects.AsLong(rest)
				return long(n + m), nil
			case "count": // a stream, once somebody listens
				if _, err := callee.ask(opGetOrCreate, text(e.Execution)); err != nil {
					return nil, err
				}
				return text(e.Execution), nil
			case "fill":
				stream, _ := objects.AsString(parameters)
				if _, err := callee.ListenerAttached(callee.ctx, &fabric.ListenerAttachedRequest{Stream: stream}); err != nil {
					return nil, err
				}
				for i := range int64(items) {
					if _, err := callee.cache(opPut, stream, long(i*10), text("item")); err != nil {
						return nil, err
					}
				}
			case "pack": // in its own order
				if _, err := callee.ask(opGetOrCreate, text(e.Execution)); err != nil {
					return nil, err
				}
				for i := range int64(items) {
					if _, err := callee.cache(opPut, e.Execution, long(i^1), text("item")); err != nil {
						return nil, err
					}
				}
				return text(e.Execution), nil
			}
			return objects.AppendNull(nil), nil
		})
	})
	a := newPerperAgent(t, db)
	call := func(delegate, id string, parameters ...[]byte) []byte {
		t.Helper()
		result, err := a.call("calc", "calc-1", delegate, id, parameters...)
		require.NoError(t, err)
		return result
	}
	_, err := a.cache(opPutIfAbsent, "executions", text("calc-1"),
		execution("Registry", "calc", "Run", false, array(), objects.AppendNull(nil)))
	require.NoError(t, err)
	call("Start", "Start-1")
	require.Equal(t, long(5), call("add", "add-1", long(2), long(3)))

	stream, _ := objects.AsString(call("count", "count-1"))
	require.Equal(t, "count-1", stream)
	var readers tasks
	listening := make(chan struct{}, 3)
	for i := range 3 {
		reader := newPerperAgent(t, db)
		readers.Go(func() error {
			keys, err := reader.read(stream, fmt.Sprint(stream, "-", i), items, func() { listening <- struct{}{} })
			for i, k := range keys {
				if k != int64(i*10) {
					return fmt.Errorf("key %d instead of %d", k, i*10)
				}
			}
			return err
		})
	}
	for range 3 {
		<-listening
	}
	call("fill", "fill-1", text(stream))
	require.NoError(t, readers.Wait())
	require.Eventually(t, func() bool {
		size, err := a.cache(opSize, stream, binary.LittleEndian.AppendUint32(nil, 0))
		return err == nil && binary.LittleEndian.Uint64(size) == 0
	}, time.Minute, time.Millisecond, "nobody reads it any more")

	packed, _ := objects.AsString(call("pack", "pack-1"))
	s, err := a.StreamItems(a.ctx, &fabric.StreamItemsRequest{Stream: packed, StartKey: 0, Stride: 2})
	require.NoError(t, err)
	for k := int64(0); k < items; k += 2 {
		m, err := s.Recv()
		require.NoError(t, err)
		require.Equal(t, k, m.Key)
	}

	ctx, cancel := context.WithCancel(a.ctx)
	defer cancel()
	seen, err := a.Executions(ctx, &fabric.ExecutionsRequest{Agent: "calc", Delegate: "forever"})
	require.NoError(t, err)
	m, err := seen.Recv()
	require.NoError(t, err)
	require.True(t, m.StartOfStream)
	_, err = a.cache(opPutIfAbsent, "executions", text("forever-1"),
		execution("calc", "calc-1", "forever", false, array(), objects.AppendNull(nil)))
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		r, err := db.Do(t.Context(), "PERPER.LOCKS", "calc")
		return err == nil && strings.Contains(r.String(), "forever-1")
	}, time.Minute, time.Millisecond)
	_, err = a.cache(opRemove, "executions", text("forever-1"))
	require.NoError(t, err)
	for _, cancelled := range []bool{false, true} {
		m, err = seen.Recv()
		require.NoError(t, err)
		require.Equal(t, cancelled, m.Cancelled)
	}

	_, err = a.ask(opGetOrCreate, text("calc-1"))
	require.NoError(t, err)
	_, err = a.cache(opPut, "calc-1", text("total"), long(5))
	require.NoError(t, err)
	r, err := db.Do(t.Context(), "PERPER.GET", "calc-1", "total")
	require.NoError(t, err)
	require.Equal(t, `"5"`, r.String())
	call("Stop", "Stop-1")
	require.NoError(t, agents.Wait())
}

// write puts items into a stream one by one, without waiting for the answers to the last ones. It calls progress with
// the answered keys.
func (a *perperAgent) write(stream string, items int64, progress func(key int64)) error {
	const ahead = 100
	answered := int64(0)
	for sent := int64(0); answered < items; {
		var requests []byte
		for ; sent < items && sent < answered+ahead; sent++ {
			requests = a.request(requests, opPut, onCache(stream, long(sent+1), text(fmt.Sprint("item ", sent+1))))
		}
		if _, err := a.conn.Write(requests); err != nil {
			return err
		}
		for last := answered + (sent-answered+1)/2; answered < last; {
			if _, err := a.answer(a.id - uint64(sent-answered-1)); err != nil {
				return err
			}
			answered++
			progress(answered)
		}
	}
	return nil
}

// follow reads the keys of a stream after start up to end, or from the next one on if start is -1, and moves its
// listener along. None may be missing, and they must arrive in order.
func (a *perperAgent) follow(stream, listener string, start, end int64, ready func()) error {
	ctx, cancel := context.WithCancel(a.ctx)
	defer cancel()
	s, err := a.StreamItems(ctx, &fabric.StreamItemsRequest{Stream: stream, StartKey: start})
	if err != nil {
		return err
	}
	if _, err := s.Header(); err != nil {
		return err
	}
	ready()
	for last := start; last < end; {
		m, err := s.Recv()
		if err != nil {
			return fmt.Errorf("%s: behind key %d: %w", listener, last, err)
		}
		if m.Key != last+1 && last != -1 {
			return fmt.Errorf("%s: key %d behind %d", listener, m.Key, last)
		}
		if last = m.Key; last%20 != 0 && last != end {
			continue
		}
		item, err := a.cache(opGet, stream, long(last))
		if err != nil {
			return err
		}
		if got, _ := objects.AsString(item); got != fmt.Sprint("item ", last) {
			return fmt.Errorf("%s: item %d is %q", listener, last, got)
		}
		if err := a.position(stream, listener, last); err != nil {
			return err
		}
	}
	return nil
}

// Many streams, whose readers join and leave: each sees the items in order, none is missing, and items that nobody will
// read are removed.
func TestManyStreamsOfPerper(t *testing.T) {
	streams, items := 100, int64(1000)
	switch {
	case testing.Short():
		streams, items = 10, 500
	case os.Getenv("ATOMREDIS_FULL_TESTS") != "":
		items = 10_000
	}
	db := perperServer(t)
	do := func(args ...any) string {
		r, err := db.Do(t.Context(), args...)
		require.NoError(t, err)
		return r.String()
	}
	var all tasks
	for i := range streams {
		stream := fmt.Sprint("s", i)
		do("PERPER.CREATE", stream)
		if i == 0 {
			do("PERPER.LISTEN", stream, "s0-persist", int64(math.MinInt64))
		}
		begun, quarter := make(chan struct{}), make(chan struct{})
		close(begun)
		reader := func(name string, begin <-chan struct{}, follow func(a *perperAgent, listener string) error) {
			a := newPerperAgent(t, db)
			all.Go(func() error {
				<-begin
				listener := stream + "-" + name
				if err := a.position(stream, listener, math.MinInt64); err != nil {
					return err
				}
				if err := follow(a, listener); err != nil {
					return err
				}
				_, err := a.cache(opRemove, "stream-listeners", text(listener))
				return err
			})
		}
		listening, joined := make(chan struct{}, 2), make(chan struct{})
		ready := func() { listening <- struct{}{} }
		reader("stays", begun, func(a *perperAgent, listener string) error {
			return a.follow(stream, listener, 0, items, ready)
		})
		reader("leaves", begun, func(a *perperAgent, listener string) error {
			parts, ready := []int64{0, items / 3, items / 2, items}, ready
			for i, end := range parts[1:] {
				if err := a.follow(stream, listener, parts[i], end, ready); err != nil {
					return err
				}
				ready = func() {}
			}
			return nil
		})
		reader("joins", quarter, func(a *perperAgent, listener string) error {
			return a.follow(stream, listener, -1, items, func() { close(joined) })
		})
		writer := newPerperAgent(t, db)
		all.Go(func() error {
			<-listening
			<-listening
			return writer.write(stream, items, func(key int64) {
				switch key {
				case items / 4:
					close(quarter)
				case items / 2: // so that items remain for those who join
					<-joined
				}
			})
		})
	}
	require.NoError(t, all.Wait())
	for i := range streams {
		stream := fmt.Sprint("s", i)
		if i == 0 {
			require.Equal(t, fmt.Sprintf("(integer) %d", items), do("PERPER.LEN", stream), "a listener keeps all items")
			do("PERPER.REMOVE", "stream-listeners", "s0-persist")
		}
		require.Eventually(t, func() bool { return do("PERPER.LEN", stream) == "(integer) 0" }, time.Minute, time.Millisecond)
		require.Equal(t, "(integer) 0", do("EXISTS", "perper:{"+stream+"}:order", "perper:{"+stream+"}:inserted"))
	}
}

// The tutorial's programs and command lines work as the page says.
func TestTheTutorialOfPerperRunsAsWritten(t *testing.T) {
	const interpreter = "/usr/bin/python3"
	if exec.Command(interpreter, "-c", "import grpc, google.protobuf").Run() != nil {
		t.Skip("there is no Python with grpc: apt-get install python3-grpcio python3-protobuf")
	}
	protoc, err := exec.LookPath("protoc")
	if err != nil {
		t.Skip("there is no protoc: apt-get install protobuf-compiler")
	}
	redisCLI, err := exec.LookPath("redis-cli")
	if err != nil {
		t.Skip("there is no redis-cli")
	}
	db := perperServer(t)
	page, err := os.ReadFile("../../docs/perper.md")
	require.NoError(t, err)
	_, tutorial, ok := strings.Cut(string(page), "## A tutorial\n")
	require.True(t, ok)
	tutorial, _, _ = strings.Cut(tutorial, "\n## ")
	_, program, ok := strings.Cut(tutorial, "```python\n")
	require.True(t, ok)
	program, _, _ = strings.Cut(program, "```")

	dir := t.TempDir()
	proto, err := os.ReadFile("../../internal/wire/fabric/fabric.proto")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "fabric.proto"), proto, 0o600))
	generate := exec.Command(protoc, "--python_out=.", "fabric.proto")
	generate.Dir = dir
	out, err := generate.CombinedOutput()
	require.NoError(t, err, string(out))
	program = strings.ReplaceAll(program, "127.0.0.1:40400", db.DoorAddr("perper-grpc"))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "agent.py"), []byte(program), 0o600))

	_, port, err := net.SplitHostPort(db.Addr())
	require.NoError(t, err)
	script := fmt.Sprintf("#!/bin/sh\nexec %s --no-raw -p %s \"$@\"\n", redisCLI, port)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "redis-cli"), []byte(script), 0o700))
	agent := exec.Command(interpreter, "agent.py")
	agent.Dir = dir
	agent.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
	output, err := os.Create(filepath.Join(dir, "output"))
	require.NoError(t, err)
	defer output.Close()
	said := func() string {
		b, _ := os.ReadFile(output.Name())
		return string(b)
	}
	agent.Stdout, agent.Stderr = output, output
	require.NoError(t, agent.Start())
	ended := make(chan error, 1)
	go func() { ended <- agent.Wait() }()
	defer agent.Process.Kill()

	blocks := regexp.MustCompile("(?s)```console\n(.*?)```").FindAllStringSubmatch(tutorial, -1)
	require.NotEmpty(t, blocks)
	for _, block := range blocks {
		for _, step := range strings.Split("\n"+block[1], "\n$ ")[1:] {
			line, want, _ := strings.Cut(step, "\n")
			cmd := exec.Command("sh", "-c", line)
			cmd.Dir, cmd.Env = dir, agent.Env
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s: %s\n%s", line, out, said())
			require.Equal(t, strings.TrimRight(want, "\n"), strings.TrimRight(string(out), "\n"), line)
		}
	}
	require.NoError(t, <-ended, said())
	_, wants, ok := strings.Cut(tutorial, "```text\n")
	require.True(t, ok)
	wants, _, _ = strings.Cut(wants, "```")
	require.Equal(t, wants, said())
}
