// Package atom has the commands that speak the atom protocol on behalf of a client. This file has the table, and the
// commands that list elements and streams, make references and write to the log. They use the keys of the protocol
// as any element does, so that they work together with programs that do not use these commands. ATOM.CALL, ATOM.NEXT
// with ATOM.RESPOND, and ATOM.INFO are in files of their own.
//
// ATOM.CALL waits as a reader of the caller's response stream, and reads only entries that are new to it.
package atom

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/streams"
	"github.com/atomredis/atomredis/internal/command"
	streamcommands "github.com/atomredis/atomredis/internal/commands/streams"
	stringcommands "github.com/atomredis/atomredis/internal/commands/strings"
	"github.com/atomredis/atomredis/internal/protocols/atom/keys"
	"github.com/atomredis/atomredis/internal/version"
	"github.com/atomredis/atomredis/resp"
)

func init() { command.Register(atomCommands) }

var atomCommands = []*command.Command{
	{Name: "atom.call", Group: "atom", Since: version.Number, Arity: -3,
		Flags: command.Write | command.DenyOOM | command.Blocking | command.TouchesArbitraryKeys, ACL: command.CatStream,
		DerivedKeys: atomCallKeys,
		Summary:     "Sends a command to an element and waits for its response",
		Syntax:      "element command [DATA data] [FROM caller] [TIMEOUT milliseconds] [NOWAIT]",
		Complexity:  "O(1) to send, O(N) for each entry in the caller's response stream, where N is the number of calls that wait there", Do: cmdAtomCall},
	{Name: "atom.elements", Group: "atom", Since: version.Number, Arity: 1,
		Flags:      command.ReadOnly | command.TouchesArbitraryKeys | command.WholeKeyspace | command.AllKeys,
		ACL:        command.CatStream,
		Summary:    "Lists the elements",
		Complexity: "O(N), where N is the number of keys in the database", Do: cmdAtomElements},
	{Name: "atom.info", Group: "atom", Since: version.Number, Arity: 2,
		Flags: command.ReadOnly | command.TouchesArbitraryKeys | command.WholeKeyspace | command.AllKeys,
		ACL:   command.CatStream,
		DerivedKeys: func(args [][]byte, fn func(key []byte)) {
			fn(atomKey(keys.Command, args[1]))
			fn(atomKey(keys.Response, args[1]))
		},
		Summary: "Describes an element", Syntax: "element",
		Complexity: "O(N), where N is the number of keys in the database", Do: cmdAtomInfo},
	{Name: "atom.log", Group: "atom", Since: version.Number, Arity: -4,
		Flags: command.Write | command.DenyOOM | command.TouchesArbitraryKeys, ACL: command.CatStream,
		DerivedKeys: func(_ [][]byte, fn func(key []byte)) { fn(atomLogKey) },
		Summary:     "Writes to the log of all elements", Syntax: "level element msg [host]",
		Complexity: "O(1)", Do: cmdAtomLog},
	{Name: "atom.next", Group: "atom", Since: version.Number, Arity: -2,
		Flags:      command.Write | command.DenyOOM | command.Blocking | command.TouchesArbitraryKeys | command.WholeKeyspace,
		ACL:        command.CatStream,
		Summary:    "Takes and acknowledges the next command of an element, and can wait for one",
		Syntax:     "element [CONSUMER name] [TIMEOUT milliseconds] [NOMKSTREAM] [ACK <milliseconds | NO>] [ACKFOR command milliseconds [command milliseconds ...]]",
		Complexity: "O(1)", Do: cmdAtomNext},
	{Name: "atom.respond", Group: "atom", Since: version.Number, Arity: -4,
		Flags: command.Write | command.DenyOOM | command.TouchesArbitraryKeys, ACL: command.CatStream,
		DerivedKeys: atomRespondKeys,
		Summary:     "Responds to a command of an element",
		Syntax:      "element cmd_id caller [CMD command] [ERR code text] [DATA data] [SER serialization]",
		Complexity:  "O(1)", Do: cmdAtomRespond},
	{Name: "atom.streamref", Group: "atom", Since: version.Number, Arity: 5,
		Flags:   command.Write | command.DenyOOM | command.TouchesArbitraryKeys | command.WholeKeyspace,
		ACL:     command.CatStream | command.CatString,
		Summary: "Makes references to the fields of an entry of a stream", Syntax: "stream id reference milliseconds",
		Complexity: "O(N), where N is the size of the entry", Do: cmdAtomStreamref},
	{Name: "atom.streams", Group: "atom", Since: version.Number, Arity: -1,
		Flags:   command.ReadOnly | command.TouchesArbitraryKeys | command.WholeKeyspace | command.AllKeys,
		ACL:     command.CatStream,
		Summary: "Lists the data streams of an element, or of all elements", Syntax: "[element]",
		Complexity: "O(N log N), where N is the number of keys in the database", Do: cmdAtomStreams},
}

var (
	atomLogKey = []byte(keys.Log)
	// atomMaxLen is the approximate length to which streams of commands, responses and the log are trimmed.
	atomMaxLen = []byte("1024")
)

const (
	errNoElement   command.Error = "NOELEMENT no such element"
	errElementName command.Error = "ERR the name of an element must not be empty"
	errLogLevel    command.Error = "ERR the level must be an integer from 0 to 7"
)

func atomKey(prefix string, name []byte) []byte {
	return append(append(make([]byte, 0, len(prefix)+len(name)), prefix...), name...)
}

// A part is another command that is executed under the guard as a part of a command, with the memory that it needs.
type part struct {
	ctx   command.Ctx
	w     resp.Writer
	args  [][]byte // filled before perform; the name first
	text  []byte   // see join
	first [24][]byte
}

var parts = sync.Pool{New: func() any {
	p := &part{text: make([]byte, 0, 256), w: resp.Writer{Buf: make([]byte, 0, 256)}}
	p.args = p.first[:0]
	return p
}}

// newPart returns a part without arguments. It must be freed after its last use.
func newPart() *part { return parts.Get().(*part) }

// perform executes the command of p and returns its reply. What it journals counts as journalled by the command of
// c.
func perform(c *command.Ctx, do func(*command.Ctx), p *part) (reply []byte) {
	p.ctx = *c
	p.w.Buf, p.w.Proto = p.w.Buf[:0], c.W.Proto
	p.ctx.Args, p.ctx.W = p.args, &p.w
	do(&p.ctx)
	c.Journalled = c.Journalled || p.ctx.Journalled
	return p.w.Buf
}

// join returns prefix and name in one slice, which is valid as long as p is.
func (p *part) join(prefix string, name []byte) []byte {
	start := len(p.text)
	p.text = append(append(p.text, prefix...), name...)
	return p.text[start:len(p.text):len(p.text)]
}

// id returns the text of a stream ID, which is valid as long as p is.
func (p *part) id(id streams.ID) []byte {
	start := len(p.text)
	p.text = id.Append(p.text)
	return p.text[start:len(p.text):len(p.text)]
}

// maxPart limits the memory that is kept for a later part, in bytes.
const maxPart = 64 << 10

func (p *part) free() {
	if cap(p.text) > maxPart || cap(p.w.Buf) > maxPart {
		return
	}
	clear(p.args)
	p.ctx, p.args, p.text = command.Ctx{}, p.args[:0], p.text[:0]
	parts.Put(p)
}

// addAtomEntry adds an entry to a stream as all elements do. It returns the reply of XADD, the entry's ID or an
// error, which is valid as long as p is.
func addAtomEntry(c *command.Ctx, p *part, key []byte, fields ...[]byte) (reply []byte) {
	p.args = append(append(p.args[:0], streamcommands.XaddWord, key, streamcommands.MaxLenWord,
		streamcommands.ApproxWord, atomMaxLen,
		streamcommands.AnyIDWord), fields...)
	return perform(c, streamcommands.Add, p)
}

// peekStream returns the stream at a key, or nil.
func peekStream(c *command.Ctx, key []byte) *streams.Stream {
	if e := c.G.Peek(c.DB, key); e != nil && e.Type() == engine.Stream {
		return e.Stream()
	}
	return nil
}

// atomNames returns the parts after prefix of the keys of streams, in byte order.
func atomNames(c *command.Ctx, prefix string) []string {
	var names []string
	c.G.Each(c.DB, func(e *engine.Entry) bool {
		if name, ok := strings.CutPrefix(e.Key(), prefix); ok && e.Type() == engine.Stream {
			names = append(names, name)
		}
		return true
	})
	slices.Sort(names)
	return names
}

// atomElements returns the names of all elements, in byte order.
func atomElements(c *command.Ctx) []string {
	return slices.DeleteFunc(atomNames(c, keys.Response), func(name string) bool {
		e := c.G.PeekString(c.DB, keys.Command+name)
		return e == nil || e.Type() != engine.Stream
	})
}

func writeNamesAsBulk(w *resp.Writer, names []string) {
	w.Array(len(names))
	for _, name := range names {
		w.BulkString(name)
	}
}

func cmdAtomElements(c *command.Ctx) { writeNamesAsBulk(c.W, atomElements(c)) }

func cmdAtomStreams(c *command.Ctx) {
	switch len(c.Args) {
	case 1:
		allAtomStreams(c)
	case 2:
		writeNamesAsBulk(c.W, atomNames(c, keys.Stream+string(c.Args[1])+":"))
	default:
		c.Err(command.WrongArity(c.Cmd))
	}
}

// allAtomStreams writes the pair of element and stream for each data stream.
func allAtomStreams(c *command.Ctx) {
	elements, names := atomElements(c), atomNames(c, keys.Stream)
	pairs := make([][2]string, len(names))
	for i, name := range names {
		pairs[i] = splitAtomStream(name, elements)
	}
	slices.SortFunc(pairs, func(a, b [2]string) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) })
	c.W.Array(len(pairs))
	for i := range pairs {
		writeNamesAsBulk(c.W, pairs[i][:])
	}
}

// splitAtomStream splits "<element>:<stream>". Both may contain colons: it takes the longest existing element's
// name, and otherwise splits at the first colon. Without a colon the name is that of a stream without an element.
func splitAtomStream(name string, elements []string) (pair [2]string) {
	at := -1
	for i := range len(name) {
		if name[i] != ':' {
			continue
		}
		if _, exists := slices.BinarySearch(elements, name[:i]); exists || at < 0 {
			at = i
		}
	}
	if at < 0 {
		return [2]string{"", name}
	}
	return [2]string{name[:at], name[at+1:]}
}

func cmdAtomLog(c *command.Ctx) {
	level := c.Args[1]
	switch {
	case len(c.Args) > 5:
		c.Err(command.WrongArity(c.Cmd))
		return
	case len(level) != 1 || level[0] < '0' || level[0] > '7':
		c.Err(errLogLevel)
		return
	}
	var host []byte
	if len(c.Args) == 5 {
		host = c.Args[4]
	} else {
		host = []byte(c.Client.(interface{ HostName() string }).HostName())
	}
	p := newPart()
	defer p.free()
	c.W.Raw(addAtomEntry(c, p, atomLogKey, []byte("level"), level, []byte("element"), c.Args[2], []byte("msg"), c.Args[3],
		[]byte("host"), host))
}

func cmdAtomStreamref(c *command.Ctx) {
	key, reference := c.Args[1], string(c.Args[3])
	timeout, ok := c.Int(c.Args[4])
	if !ok {
		return
	}
	if timeout < 0 || timeout > math.MaxInt64-c.Now() {
		c.Err(c.BadExpireTime())
		return
	}
	entry, ok := entryToRefer(c, key, c.Args[2])
	if !ok {
		return
	}
	ser := "none"
	for field, value := range entry.Fields() {
		if string(field) == "ser" {
			ser = string(value)
		}
	}
	var references, values [][]byte
	for field, value := range entry.Fields() {
		if string(field) != "ser" {
			references = append(references, []byte(reference+":ser:"+ser+":"+string(field)))
			values = append(values, value)
		}
	}
	// The values are views of the stream until they are stored.
	if slices.ContainsFunc(references, func(r []byte) bool { return string(r) == string(key) }) {
		c.Err(command.ErrSameObject)
		return
	}
	p := newPart()
	defer p.free()
	for i := range references {
		p.args = append(p.args[:0], []byte("SET"), references[i], values[i])
		if timeout > 0 {
			p.args = append(p.args, []byte("PX"), c.Args[4])
		}
		if reply := perform(c, stringcommands.Set, p); reply[0] == '-' {
			c.W.Raw(reply)
			return
		}
		if timeout == 0 { // otherwise SET journals its deadline
			c.Journal(p.args...)
		}
	}
	c.W.Array(len(references))
	for _, r := range references {
		c.W.Bulk(r)
	}
}

// entryToRefer returns an entry of a stream, the newest if id is empty. If it does not exist, the entry has no
// fields. On an error it writes the reply and ok is false.
func entryToRefer(c *command.Ctx, key, id []byte) (entry streams.Entry, ok bool) {
	start, end := streams.MinID, streams.MaxID
	if len(id) > 0 {
		if start, end, ok = streamcommands.Interval(c, id, id); !ok {
			return entry, false
		}
	}
	e, ok := c.ReadAs(key, engine.Stream)
	if !ok || e == nil {
		return entry, ok
	}
	e.Stream().Range(start, end, len(id) == 0, func(found streams.Entry) bool {
		entry = found
		return false
	})
	return entry, true
}
