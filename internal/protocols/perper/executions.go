package perper

import (
	"crypto/rand"
	"encoding/hex"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/protocols/internal/effect"
	"github.com/atomredis/atomredis/internal/protocols/perper/binary"
)

// This file has the commands on executions, the calls of agents.

func init() { command.Register(executionCommands) }

const (
	ofAgent  = "O(N), where N is the number of executions of the agent that are not finished"
	perGroup = "O(N), where N is the number of executions that do not match"
	takes    = command.Write | command.Blocking | command.TouchesArbitraryKeys
)

var executionCommands = []*command.Command{
	entry("agent", 2, reads|command.Fast, executionKeysOf, "Counts the instances and the executions of an agent", "agent",
		constant, showAgent),
	entry("call", -4, adds, calledKeysOf, "Creates an execution", "agent instance delegate [ID execution] "+
		"[PARAMETERS value [value ...]]", constant, call),
	entry("cancel", 2, writes, executionKeysOf, "Removes an execution", "execution", constant, cancel),
	entry("executions", -2, reads, executionKeysOf, "Lists the executions of an agent that are not finished",
		"agent [INSTANCE instance] [DELEGATE delegate] [WITHSERIAL]", ofAgent, listExecutions),
	entry("finish", -2, adds, executionKeysOf, "Finishes an execution", "execution [ERROR text | RESULTS value [value ...]]",
		constant, finish),
	entry("locks", -1, reads, executionKeysOf, "Lists the executions that are reserved", "[group]",
		"O(N log N), where N is the number of locks", locks),
	entry("next", -3, takes, executionKeysOf, "Reserves the first execution that matches and is free; waits for one",
		"group agent [INSTANCE instance] [DELEGATE delegate] [WITHSERIAL] [NOWAIT | TIMEOUT milliseconds]", perGroup, next),
	entry("release", -2, writes, executionKeysOf, "Ends what the client has reserved in a group", "group [execution]",
		"O(N), where N is the number of locks of the client", release),
	entry("reserve", -3, takes, executionKeysOf, "Reserves an execution for this client in a group; waits while another has it",
		"group execution [NOWAIT | TIMEOUT milliseconds]", constant, reserve),
	entry("wait", -2, reads|command.Blocking, executionKeysOf, "Waits until an execution is finished or gone",
		"execution [TIMEOUT milliseconds]", constant, wait),
}

// executionKeysOf is the DerivedKeys of commands on executions.
func executionKeysOf(_ [][]byte, fn func(key []byte)) { fabricKeys(executionsCache, fn) }

// calledKeysOf is the DerivedKeys of PERPER.CALL, which creates the cache and registers the type.
func calledKeysOf(_ [][]byte, fn func(key []byte)) {
	fabricKeys(executionsCache, fn)
	fn(cachesKey)
}

// fabricKeys calls fn with the keys for reading a cache.
func fabricKeys(cache []byte, fn func(key []byte)) {
	for _, k := range namesOf(cache) {
		fn(k)
	}
	fn(typesKey)
	fn(leftOf(cache))
}

// fitting reports whether the executions can be read. If not, it writes an error.
func fitting(c *command.Ctx) bool {
	return cacheOf(c, executionsCache).typesFit() && effect.Is(c, typesKey, engine.Hash)
}

const (
	errExecution command.Error = "ERR an execution must have an agent and a name"
	errExists    command.Error = "ERR the execution exists already"
	errUnread    command.Error = "BADOBJECT the execution cannot be read"
)

// executionType is the type of executions, which is registered unless an agent has done so.
var executionType = &binary.Type{ID: binary.ID("ExecutionData"), Name: "ExecutionData", Fields: []binary.TypeField{
	{Name: "agent", Code: int32(binary.String), ID: agentField},
	{Name: "instance", Code: int32(binary.String), ID: instanceField},
	{Name: "delegate", Code: int32(binary.String), ID: delegateField},
	{Name: "finished", Code: int32(binary.Bool), ID: finishedField},
	{Name: "parameters", Code: int32(binary.ObjectArray), ID: parametersField},
	{Name: "result", Code: int32(binary.ObjectArray), ID: resultField},
	{Name: "error", Code: int32(binary.String), ID: errorField},
}, Schemas: []binary.Schema{
	schemaOf(agentField, instanceField, delegateField, finishedField, parametersField, resultField, errorField),
}}

// call creates an execution with the given or a random name. It creates the cache and registers the type if needed.
func call(c *command.Ctx) {
	agent, instance, delegate := string(c.Args[1]), string(c.Args[2]), string(c.Args[3])
	id, parameters := "", [][]byte(nil)
	for o := c.Options(4); o.Next(); {
		switch {
		case o.Is("id") && o.More():
			id = string(o.Arg())
		case o.Is("parameters") && o.More():
			for o.Next() {
				parameters = append(parameters, o.Word())
			}
		default:
			c.Err(command.ErrSyntax)
			return
		}
	}
	array, ok := objectArray(c, parameters)
	switch {
	case !ok:
		return
	case id == "":
		id = delegate + "-" + newUUID()
	}
	if agent == "" {
		c.Err(errExecution)
		return
	}
	ca := cacheOf(c, executionsCache)
	if !fitting(c) || !ca.createFor(executionType) {
		return
	}
	k := []byte(executionID(id))
	if _, has := ca.get(k); has {
		c.Err(errExists)
		return
	}
	null := binary.AppendNull(nil)
	ca.put(k, binary.AppendObject(nil, executionType.ID, []binary.Field{
		{ID: agentField, Value: binary.AppendString(nil, agent)},
		{ID: instanceField, Value: binary.AppendString(nil, instance)},
		{ID: delegateField, Value: binary.AppendString(nil, delegate)},
		{ID: finishedField, Value: binary.AppendBool(nil, false)},
		{ID: parametersField, Value: array},
		{ID: resultField, Value: null},
		{ID: errorField, Value: null},
	}))
	c.W.BulkString(id)
}

// newUUID returns a random UUID.
func newUUID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	h := hex.EncodeToString(b[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// objectArray returns an array of objects from readable texts. If one is invalid, it writes an error and ok is
// false.
func objectArray(c *command.Ctx, texts [][]byte) (array []byte, ok bool) {
	const anyType = -1
	array = binary.AppendArray(nil, anyType, len(texts))
	for _, text := range texts {
		object, err := binary.ParseText(text)
		if err != nil {
			c.Err(errObject)
			return nil, false
		}
		array = append(array, object...)
	}
	return array, true
}

// finish sets the result of an execution. It replies with 0 if the execution is gone or already finished.
func finish(c *command.Ctx) {
	result, failure := [][]byte(nil), binary.AppendNull(nil)
	for o := c.Options(2); o.Next(); {
		switch {
		case o.Is("error") && o.Left() == 1:
			failure = binary.AppendString(nil, string(o.Arg()))
		case o.Is("results"):
			for o.Next() {
				result = append(result, o.Word())
			}
		default:
			c.Err(command.ErrSyntax)
			return
		}
	}
	array, ok := objectArray(c, result)
	if !ok || !fitting(c) {
		return
	}
	ca := cacheOf(c, executionsCache)
	k := []byte(executionID(string(c.Args[1])))
	v, has := ca.get(k)
	if !has || readExecution(c, k, v).finished {
		c.W.Int(0)
		return
	}
	v, err := withFields(c, v, map[int32][]byte{
		finishedField: binary.AppendBool(nil, true), resultField: array, errorField: failure,
	})
	if err != nil {
		c.Err(errUnread)
		return
	}
	ca.put(k, v)
	c.W.Int(1)
}

// withFields returns a copy of a complex object with some fields changed.
func withFields(c *command.Ctx, object []byte, changed map[int32][]byte) ([]byte, error) {
	o, err := binary.ParseObject(object)
	if err != nil {
		return nil, err
	}
	var fields []binary.Field
	err = o.Fields(registered(c).Schemas(), func(f binary.Field) bool {
		if v, ok := changed[f.ID]; ok {
			f.Value = v
		}
		fields = append(fields, f)
		return true
	})
	if err != nil {
		return nil, err
	}
	return binary.AppendObject(nil, o.TypeID, fields), nil
}

func cancel(c *command.Ctx) {
	if fitting(c) {
		yes(c, cacheOf(c, executionsCache).remove([]byte(executionID(string(c.Args[1])))))
	}
}

// listExecutions replies with the name, instance and delegate of each execution. With WITHSERIAL the number of the
// last change comes first.
func listExecutions(c *command.Ctx) {
	q := newFilter(c.Args[1])
	for o := c.Options(2); o.Next(); {
		if !q.option(&o) {
			c.Err(command.ErrSyntax)
			return
		}
	}
	if !fitting(c) {
		return
	}
	f := fabricOf(c.Host)
	f.mu.Lock()
	defer f.mu.Unlock()
	_, x := f.executions(c)
	if q.withSerial {
		c.W.Array(2)
		c.W.Int(x.serial)
	}
	mark, n := c.W.Defer(), 0
	if a := x.agents[q.agent]; a != nil {
		for at := a.unfinished.Front(); at != nil; at = at.Next() {
			if e := at.Value.(*execution); q.matches(e) {
				c.W.Array(3)
				c.W.BulkString(e.id)
				c.W.BulkString(e.instance)
				c.W.BulkString(e.delegate)
				n++
			}
		}
	}
	c.W.EndArray(mark, n)
}

// showAgent counts finished executions too.
func showAgent(c *command.Ctx) {
	if !fitting(c) {
		return
	}
	f := fabricOf(c.Host)
	f.mu.Lock()
	defer f.mu.Unlock()
	_, x := f.executions(c)
	name := c.Args[1]
	all, unfinished := 0, 0
	if a := x.agents[string(name)]; a != nil {
		all, unfinished = a.all, a.unfinished.Len()
	}
	c.W.Map(3)
	c.W.BulkString("instances")
	c.W.Int(int64(x.instances[string(name)]))
	c.W.BulkString("executions")
	c.W.Int(int64(all))
	c.W.BulkString("unfinished")
	c.W.Int(int64(unfinished))
}

// endReply returns the reply of PERPER.WAIT: 1 if the execution is finished, 0 if it is gone.
func endReply(finished bool) command.Reply {
	if finished {
		return yesReply
	}
	return noReply
}

// wait replies with 1 when the execution is finished, and with 0 when it is gone.
func wait(c *command.Ctx) {
	timeout, ok := timeoutOption(c, 2)
	if !ok || !fitting(c) {
		return
	}
	f, id, db := fabricOf(c.Host), string(c.Args[1]), c.DB
	f.mu.Lock()
	f.executions(c)
	f.mu.Unlock()
	ended := func() command.Reply {
		if e := f.db(db).executions.get(id); !e.active() {
			return endReply(e != nil)
		}
		return nil
	}
	f.mu.Lock()
	reply := ended()
	f.mu.Unlock()
	switch {
	case reply != nil:
		reply(c.W)
	case c.NoBlock:
		c.W.Null()
	default:
		f.await(c, timeout, func(w *waiter) bool {
			reply := ended()
			if reply != nil {
				f.answer(answer{waiter: w, reply: reply})
			}
			return reply != nil
		}, func(w *waiter) (leave func()) { return joinList(f.db(db).ends, id, w) })
	}
}
