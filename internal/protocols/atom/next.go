package atom

import (
	"fmt"
	"strconv"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/streams"
	"github.com/atomredis/atomredis/internal/command"
	streamcommands "github.com/atomredis/atomredis/internal/commands/streams"
	"github.com/atomredis/atomredis/internal/protocols/atom/keys"
	"github.com/atomredis/atomredis/resp"
)

// This file has ATOM.NEXT and ATOM.RESPOND, with which an element serves commands. They act as a command loop of the
// protocol, which reads the command stream as a consumer of the element's group, acknowledges each command in the
// caller's response stream, writes the response there, and acknowledges the entry in the group.

// atomResponseTimeout is the default time for which callers wait for a response, in ms.
const atomResponseTimeout = 1000

// atomNoAck stands for the timeout of an acknowledgement that is not written.
const atomNoAck = -1

// Errors if the stream or group is removed while a client waits for a command, as in Redis 7.0.
const (
	errStreamGone command.Error = "UNBLOCKED the stream key no longer exists"
	errGroupGone  command.Error = "NOGROUP the consumer group this client was blocked on no longer exists"
)

// atomNext has the arguments of ATOM.NEXT, as views.
type atomNext struct {
	element, consumer []byte
	timeout           int64    // for a command, in ms; 0 is for ever
	noMake            bool     // a missing group is not created
	ack               int64    // timeout in acknowledgements, in ms, or atomNoAck
	acks              [][]byte // pairs of a command and its timeout in place of ack
}

// parseAtomNext reads the arguments. If they are wrong, it returns an error.
func parseAtomNext(args [][]byte) (n atomNext, e command.Error) {
	n = atomNext{element: args[1], consumer: args[1], ack: atomResponseTimeout}
	for o := command.OptionsIn(args[2:]); o.Next() && e == ""; {
		switch {
		case o.Is("consumer") && o.More():
			n.consumer = o.Arg()
		case o.Is("timeout") && o.More():
			n.timeout, e = parseAtomTimeout(o.Arg())
		case o.Is("nomkstream"):
			n.noMake = true
		case o.Is("ack") && o.More():
			if o.Arg(); o.Is("no") {
				n.ack = atomNoAck
			} else {
				n.ack, e = parseAtomTimeout(o.Word())
			}
		case o.Is("ackfor") && o.More() && o.Left()%2 == 0:
			n.acks = o.Rest()
			for o.Skip(1); o.Next() && e == ""; o.Skip(min(o.Left(), 1)) {
				_, e = parseAtomTimeout(o.Word())
			}
		default:
			return n, command.ErrSyntax
		}
	}
	if e == "" && len(n.element) == 0 {
		e = errElementName
	}
	return n, e
}

// parseAtomTimeout reads a timeout in ms; 0 is for ever.
func parseAtomTimeout(arg []byte) (ms int64, e command.Error) {
	ms, ok := resp.ParseInt(arg)
	switch {
	case !ok:
		return 0, command.ErrTimeoutNotInteger
	case ms < 0:
		return 0, command.ErrTimeoutNegative
	}
	return ms, ""
}

// ackTimeout returns the timeout for the acknowledgement of a command, or atomNoAck.
func (n *atomNext) ackTimeout(command []byte) int64 {
	for i := 0; i < len(n.acks); i += 2 {
		if string(n.acks[i]) == string(command) {
			ms, _ := resp.ParseInt(n.acks[i+1])
			return ms
		}
	}
	return n.ack
}

func cmdAtomNext(c *command.Ctx) {
	n, e := parseAtomNext(c.Args)
	if e != "" {
		c.Err(e)
		return
	}
	p := newPart()
	defer p.free()
	key, group := p.join(keys.Command, n.element), p.join(keys.Group, n.element)
	stream, ok := c.ReadToWriteAs(key, engine.Stream)
	if !ok {
		return
	}
	if stream == nil || stream.Stream().Group(group) == nil {
		if n.noMake {
			c.Err(command.Error(fmt.Sprintf("NOGROUP No such key '%s' or consumer group '%s'", command.UntilNUL(key),
				command.UntilNUL(group))))
			return
		}
		stream = makeAtomGroup(c, key, group)
	}
	if n.take(c, stream, stream.Stream().Group(group)) {
		return
	}
	// All shards, because the response stream for the acknowledgement follows from the command.
	c.Block(command.Block{Keys: [][]byte{key}, Shards: engine.AllShards, OnRemoval: true, Timeout: n.timeout,
		Try:   tryAtomNext,
		Empty: (*resp.Writer).Null})
}

// makeAtomGroup creates the group of an element, and the stream if needed. The group begins after the entry with
// which the element came up, or at the end if that entry is gone.
func makeAtomGroup(c *command.Ctx, key, group []byte) *engine.Entry {
	var after streams.ID
	if s := peekStream(c, key); s != nil {
		after = s.LastID()
		s.Range(streams.MinID, streams.MaxID, true, func(e streams.Entry) bool {
			_, isCommand := fieldOf(e, "element")
			_, introduces := fieldOf(e, "language")
			if isCommand || !introduces {
				return true
			}
			after = e.ID
			return false
		})
	}
	p := newPart()
	defer p.free()
	p.args = append(p.args, []byte("XGROUP"), []byte("CREATE"), key, group, p.id(after), []byte("MKSTREAM"))
	perform(c, streamcommands.CreateGroup, p)
	c.Journal(p.args...)
	return c.G.Write(c.DB, key)
}

// tryAtomNext is the Try of a client that waits for a command.
func tryAtomNext(c *command.Ctx, key []byte) bool {
	n, _ := parseAtomNext(c.Args) // valid: they were read before
	stream := c.G.Write(c.DB, key)
	if stream == nil || stream.Type() != engine.Stream {
		c.Err(errStreamGone)
		return true
	}
	p := newPart()
	g := stream.Stream().Group(p.join(keys.Group, n.element))
	p.free()
	if g == nil {
		c.Err(errGroupGone)
		return true
	}
	return n.take(c, stream, g)
}

// take hands out the next command, if there is one, and reports whether it has. It skips entries that cannot be
// answered: those with which elements come up, and commands without a caller or with one whose response stream
// cannot be written.
func (n *atomNext) take(c *command.Ctx, e *engine.Entry, g *streams.Group) bool {
	s, now := e.Stream(), c.Now()
	key, group := []byte(e.Key()), []byte(g.Name)
	for {
		last, ok := s.Last()
		if !ok || !g.LastID.Less(last.ID) {
			return false
		}
		consumer, created := g.CreateConsumer(n.consumer, now)
		consumer.Seen(now)
		var entry streams.Entry
		g.ReadNew(s, consumer, 1, false, now, func(e streams.Entry) { entry = e })
		streamcommands.GroupChanged(c, e, created)
		c.Journal(xreadgroupWord, groupWord, group, n.consumer, countWord, oneWord, streamsWord, key,
			streamcommands.NewEntriesID)
		if n.handOut(c, entry) {
			return true
		}
		g.Ack(entry.ID)
		c.G.ChangedBookkeeping(e, 0, "")
		c.Journal(xackWord, key, group, entry.ID.Append(nil))
	}
}

// Words of journalled commands.
var (
	xreadgroupWord = []byte("XREADGROUP")
	groupWord      = []byte("GROUP")
	countWord      = []byte("COUNT")
	oneWord        = []byte("1")
	streamsWord    = []byte("STREAMS")
	xackWord       = []byte("XACK")
	noneWord       = []byte("none")
	zeroWord       = []byte("0")
)

// The fields of commands, acknowledgements and responses.
var (
	atomElementField = []byte("element")
	atomCmdIDField   = []byte("cmd_id")
	atomTimeoutField = []byte("timeout")
	atomDataField    = []byte("data")
	atomSerField     = []byte("ser")
	atomErrCodeField = []byte("err_code")
	atomErrStrField  = []byte("err_str")
	atomCmdField     = []byte("cmd")
)

// handOut acknowledges the command in an entry and writes it as a map. If it cannot write to the caller, it does
// nothing and returns false.
func (n *atomNext) handOut(c *command.Ctx, entry streams.Entry) bool {
	caller, _ := fieldOf(entry, "element")
	if len(caller) == 0 {
		return false
	}
	command, _ := fieldOf(entry, "cmd")
	p := newPart()
	defer p.free()
	id := p.id(entry.ID)
	ack := n.ackTimeout(command)
	if ack != atomNoAck {
		var number [20]byte
		reply := addAtomEntry(c, p, p.join(keys.Response, caller),
			atomElementField, n.element, atomCmdIDField, id, atomTimeoutField, strconv.AppendInt(number[:0], ack, 10))
		if reply[0] == '-' {
			return false
		}
	}
	w := c.W
	w.Map(6)
	w.Bulk(atomCmdIDField)
	w.Bulk(id)
	for _, name := range [...]string{"element", "cmd", "data"} {
		value, ok := fieldOf(entry, name)
		w.BulkString(name)
		if ok {
			w.Bulk(value)
		} else {
			w.Null()
		}
	}
	w.BulkString("ack")
	if ack == atomNoAck {
		w.Null()
	} else {
		w.Int(ack)
	}
	w.BulkString("raw")
	mark, others := w.Defer(), 0
	for field, value := range entry.Fields() {
		switch string(field) {
		case "element", "cmd", "data":
		default:
			w.Bulk(field)
			w.Bulk(value)
			others++
		}
	}
	w.EndMap(mark, others)
	return true
}

// atomResponse has the arguments of ATOM.RESPOND, as views.
type atomResponse struct {
	element, id, caller, command, data, ser, errCode, errText []byte
}

// parseAtomRespond reads the arguments except the ID of the command. If they are wrong, it returns an error.
func parseAtomRespond(args [][]byte) (r atomResponse, e command.Error) {
	r = atomResponse{element: args[1], id: args[2], caller: args[3], ser: noneWord, errCode: zeroWord}
	for o := command.OptionsIn(args[4:]); o.Next(); {
		switch {
		case o.Is("cmd") && o.More():
			r.command = o.Arg()
		case o.Is("data") && o.More():
			r.data = o.Arg()
		case o.Is("ser") && o.More():
			r.ser = o.Arg()
		case o.Is("err") && o.Left() >= 2:
			r.errCode, r.errText = o.Arg(), o.Arg()
			if _, ok := resp.ParseInt(r.errCode); !ok {
				return r, command.ErrNotInteger
			}
		default:
			return r, command.ErrSyntax
		}
	}
	if len(r.element) == 0 || len(r.caller) == 0 {
		return r, errElementName
	}
	return r, ""
}

// atomRespondKeys calls fn with the keys that ATOM.RESPOND uses. It needs no error: wrong arguments are refused
// before any key is used.
func atomRespondKeys(args [][]byte, fn func(key []byte)) {
	if r, e := parseAtomRespond(args); e == "" {
		fn(atomKey(keys.Command, r.element))
		fn(atomKey(keys.Response, r.caller))
	}
}

func cmdAtomRespond(c *command.Ctx) {
	r, e := parseAtomRespond(c.Args)
	if e != "" {
		c.Err(e)
		return
	}
	parsed, ok := streamcommands.ParseID(c, r.id)
	if !ok {
		return
	}
	p := newPart()
	defer p.free()
	commands := p.join(keys.Command, r.element)
	if e := c.G.Peek(c.DB, commands); e != nil && e.Type() != engine.Stream {
		c.Err(command.ErrWrongType)
		return
	}
	id := p.id(parsed) // in the form that the caller knows, which compares it
	reply := addAtomEntry(c, p, p.join(keys.Response, r.caller), atomDataField, r.data, atomSerField, r.ser,
		atomErrCodeField, r.errCode,
		atomErrStrField, r.errText, atomCmdIDField, id, atomElementField, r.element, atomCmdField, r.command)
	if reply[0] == '-' {
		c.W.Raw(reply)
		return
	}
	p.args = append(p.args[:0], xackWord, commands, p.join(keys.Group, r.element), id)
	reply = perform(c, streamcommands.Ack, p)
	if reply[1] == '1' {
		c.Journal(p.args...)
	}
	c.W.Raw(reply)
}
