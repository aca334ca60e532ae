package atom

import (
	"bytes"
	"fmt"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/streams"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/protocols/atom/keys"
	"github.com/atomredis/atomredis/resp"
)

// This file has ATOM.CALL. It acts as a caller of the protocol: it adds an entry to the command stream of an
// element, and waits in the caller's response stream for the acknowledgement and the response to this command.

// atomAnonymous is the caller's name if none is given. All anonymous callers share its response stream, which the
// elements create and trim. An answer is identified by the command's ID, not by its stream.
var atomAnonymous = []byte("atomredis")

// atomAckTimeout is the default time for which a caller waits for the acknowledgement, in ms.
const atomAckTimeout = 1000

const (
	errCallWaits  command.Error = "ERR ATOM.CALL cannot wait for an answer in a transaction or a script: use NOWAIT"
	errAckTimeout command.Error = "ERR the element acknowledged the command with a timeout that is not a number of milliseconds"
)

// atomCall has the arguments of ATOM.CALL, as views.
type atomCall struct {
	element, command, data, from []byte
	timeout                      int64 // for the acknowledgement, in ms; 0 is for ever
	noWait                       bool
}

// parseAtomCall reads the arguments. If they are wrong, it returns an error.
func parseAtomCall(args [][]byte) (a atomCall, e command.Error) {
	a = atomCall{element: args[1], command: args[2], from: atomAnonymous, timeout: atomAckTimeout}
	for o := command.OptionsIn(args[3:]); o.Next(); {
		switch {
		case o.Is("data") && o.More():
			a.data = o.Arg()
		case o.Is("from") && o.More():
			a.from = o.Arg()
		case o.Is("timeout") && o.More():
			var ok bool
			if a.timeout, ok = resp.ParseInt(o.Arg()); !ok {
				return a, command.ErrTimeoutNotInteger
			}
			if a.timeout < 0 {
				return a, command.ErrTimeoutNegative
			}
		case o.Is("nowait"):
			a.noWait = true
		default:
			return a, command.ErrSyntax
		}
	}
	if len(a.element) == 0 || len(a.from) == 0 {
		return a, errElementName
	}
	return a, ""
}

// atomCallKeys calls fn with the keys that ATOM.CALL uses. It needs no error: wrong arguments are refused before any
// key is used.
func atomCallKeys(args [][]byte, fn func(key []byte)) {
	if a, e := parseAtomCall(args); e == "" {
		fn(atomKey(keys.Command, a.element))
		fn(atomKey(keys.Response, a.from))
	}
}

func cmdAtomCall(c *command.Ctx) {
	a, e := parseAtomCall(c.Args)
	if e != "" {
		c.Err(e)
		return
	}
	if c.NoBlock && !a.noWait {
		c.Err(errCallWaits) // no client could get the answer
		return
	}
	p := newPart()
	defer p.free()
	commands, responses := p.join(keys.Command, a.element), p.join(keys.Response, a.from)
	if c.G.Peek(c.DB, commands) == nil {
		c.Err(errNoElement)
		return
	}
	if r := c.G.Peek(c.DB, responses); r != nil && r.Type() != engine.Stream {
		c.Err(command.ErrWrongType) // the element could not answer
		return
	}
	reply := addAtomEntry(c, p, commands, atomElementField, a.from, atomCmdField, a.command, atomDataField, a.data)
	if reply[0] == '-' {
		c.W.Raw(reply)
		return
	}
	_, id, _ := bytes.Cut(reply[:len(reply)-len("\r\n")], []byte("\r\n"))
	if a.noWait {
		c.W.Map(1)
		c.W.BulkString("cmd_id")
		c.W.Bulk(id)
		return
	}
	w := &atomWait{element: bytes.Clone(a.element), id: bytes.Clone(id), timeout: a.timeout,
		stream: peekStream(c, responses)}
	if w.stream != nil {
		w.last = w.stream.LastID()
	}
	// While the client waits, the data is not needed. The names are: the permission for them is checked again.
	c.Args = [][]byte{c.Args[0], a.element, a.command, []byte("FROM"), a.from}
	c.Block(command.Block{Keys: [][]byte{responses}, OnRemoval: true, Timeout: a.timeout, Try: w.try, Empty: w.missing})
}

// atomWait is a call whose command has been sent. It belongs to the blocked client: to the goroutine that calls its
// Try, and afterwards to the client's own goroutine.
type atomWait struct {
	element, id []byte // of the command
	acked       bool
	timeout     int64           // the present one, in ms: for the acknowledgement, and then for the response
	stream      *streams.Stream // the last stream that was read
	last        streams.ID      // its last entry at that time
}

// try reads the new entries of the response stream, the newest first: usually one, and finding the end of a stream
// is fast even for many calls. A stream that has replaced another may have the same IDs again, so it is read from
// its beginning.
func (w *atomWait) try(c *command.Ctx, key []byte) (done bool) {
	s := peekStream(c, key)
	if s != w.stream {
		w.stream, w.last = s, streams.ID{}
	}
	if s == nil || !w.last.Less(s.LastID()) {
		return false
	}
	start, _ := w.last.Next() // always exists: a later entry was added
	w.last = s.LastID()
	var ack []byte // the timeout of the first acknowledgement
	s.Range(start, streams.MaxID, true, func(e streams.Entry) bool {
		timeout, isResponse := w.read(e)
		switch {
		case isResponse: // even without an acknowledgement, as the specification has it for unsupported commands
			w.reply(c.W, e)
			done = true
		case timeout != nil:
			ack = timeout
		}
		return !done
	})
	if done || ack == nil || w.acked {
		return done
	}
	ms, ok := resp.ParseInt(ack)
	if !ok || ms < 0 {
		c.Err(errAckTimeout)
		return true
	}
	w.acked, w.timeout = true, ms
	c.SetTimeout(ms)
	return false
}

// read classifies an entry of the response stream for this call: isResponse for its response; a timeout that is not
// nil for its acknowledgement.
func (w *atomWait) read(e streams.Entry) (timeout []byte, isResponse bool) {
	var byElement, forCommand bool
	for field, value := range e.Fields() {
		switch string(field) {
		case "cmd_id":
			if !bytes.Equal(value, w.id) {
				return nil, false
			}
			forCommand = true
		case "element":
			if !bytes.Equal(value, w.element) {
				return nil, false
			}
			byElement = true
		case "err_code":
			isResponse = true
		case "timeout":
			timeout = value
		}
	}
	if !byElement || !forCommand {
		return nil, false
	}
	return timeout, isResponse
}

// atomReplyFields are the fields of a response that every reply has, in order; other fields follow as the element
// sent them.
var atomReplyFields = [...]string{"err_code", "err_str", "data"}

// reply writes the response e as a map. Missing fields are null.
func (w *atomWait) reply(out *resp.Writer, e streams.Entry) {
	mark, n := out.Defer(), 1+len(atomReplyFields)
	out.BulkString("cmd_id")
	out.Bulk(w.id)
	for _, name := range atomReplyFields {
		out.BulkString(name)
		value, ok := fieldOf(e, name)
		code, isNumber := resp.ParseInt(value)
		switch {
		case !ok:
			out.Null()
		case name == "err_code" && isNumber:
			out.Int(code)
		default:
			out.Bulk(value)
		}
	}
	for field, value := range e.Fields() {
		switch string(field) {
		case "cmd_id", "err_code", "err_str", "data":
		default:
			out.Bulk(field)
			out.Bulk(value)
			n++
		}
	}
	out.EndMap(mark, n)
}

// fieldOf returns the value of an entry's first field of a name.
func fieldOf(e streams.Entry, name string) (value []byte, ok bool) {
	for field, value := range e.Fields() {
		if string(field) == name {
			return value, true
		}
	}
	return nil, false
}

// missing writes the error of a call that has timed out.
func (w *atomWait) missing(out *resp.Writer) {
	if w.acked {
		out.Error(fmt.Sprintf("NORESPONSE no response to command %s within %d ms of its acknowledgement", w.id, w.timeout))
		return
	}
	out.Error(fmt.Sprintf("NOACK command %s was not acknowledged within %d ms", w.id, w.timeout))
}
