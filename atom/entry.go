package atom

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/redis/go-redis/v9"
)

// Entry is one piece of data on a stream.
type Entry struct {
	ID      string
	Element string // empty for a stream without an element, such as the log
	Stream  string
	Fields  map[string]Value
}

// WriteOptions configure EntryWrite.
type WriteOptions struct {
	// MaxLen is the least number of entries that the stream keeps. 0 means DefaultMaxLen, a negative number keeps all.
	MaxLen int64
	// Serialization is applied to each field. Empty means None.
	Serialization string
}

// EntryWrite publishes data on a stream of this element and returns the entry's ID. The field "ser" is reserved.
func (e *Element) EntryWrite(ctx context.Context, stream string, data map[string]any, o WriteOptions) (id string,
	err error) {
	op := fmt.Sprintf("write an entry to %q", stream)
	if len(data) == 0 {
		return "", misuse(op, "an entry needs a field")
	}
	if stream == "" {
		return "", misuse(op, "a stream needs a name")
	}
	fields := make([]any, 0, 2*len(data)+2)
	for _, name := range sortedKeys(data) {
		if name == serField {
			return "", misuse(op, "the field %q is reserved", name)
		}
		value, _, err := e.codecs.encode(op, o.Serialization, data[name])
		if err != nil {
			return "", err
		}
		fields = append(fields, name, value)
	}
	fields = append(fields, serField, orNone(o.Serialization))
	maxLen := o.MaxLen
	if maxLen == 0 {
		maxLen = DefaultMaxLen
	}
	if err := e.ownStream(stream); err != nil {
		return "", failed(ctx, op, err)
	}
	id, err = e.protocol.add(ctx, e.protocol.client, streamKey(e.name, stream), max(maxLen, 0), fields...).Result()
	return id, failed(ctx, op, err)
}

// ownStream records a stream that Close must remove.
func (e *Element) ownStream(stream string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return ErrClosed
	}
	e.streams[stream] = true
	return nil
}

// EntryReadN returns up to n newest entries of a stream, the newest first.
func (e *Element) EntryReadN(ctx context.Context, element, stream string, n int, d Decoding) ([]Entry, error) {
	op := fmt.Sprintf("read entries of %q %q", element, stream)
	if n < 0 {
		return nil, misuse(op, "%d entries", n)
	}
	if n == 0 {
		return nil, nil
	}
	found, err := e.protocol.client.XRevRangeN(ctx, streamKey(element, stream), "+", "-", int64(n)).Result()
	if err != nil {
		return nil, failed(ctx, op, err)
	}
	return e.entries(element, stream, found, d), nil
}

// ReadOptions select the entries of a read.
type ReadOptions struct {
	// After is the ID after which reading begins; "0" begins with the oldest entry. Empty begins with the next entry
	// that is written, and needs Block.
	After string
	// Count limits the number of entries. 0 means no limit.
	Count int
	// Block is how long to wait for an entry if there is none. 0 does not wait; a negative time waits until the context
	// ends.
	Block time.Duration
	Decoding
}

// EntryReadSince returns entries in the order in which they were written. It returns no entries and no error if none
// came in time.
func (e *Element) EntryReadSince(ctx context.Context, element, stream string, o ReadOptions) ([]Entry, error) {
	op := fmt.Sprintf("read entries of %q %q", element, stream)
	if o.After == "" && o.Block == 0 {
		return nil, misuse(op, "without After the read must wait for new entries: set After or Block")
	}
	ctx, cancel := e.within(ctx)
	defer cancel()
	key := streamKey(element, stream)
	if o.After == "" {
		newest, err := e.protocol.newest(ctx, key)
		if err != nil {
			return nil, failed(ctx, op, err)
		}
		o.After = newest[0]
	}
	found, err := e.protocol.read(ctx, []string{key}, []string{o.After}, o.Count, o.Block)
	if err != nil {
		return nil, failed(ctx, op, err)
	}
	if len(found) == 0 {
		return nil, nil
	}
	return e.entries(element, stream, found[0].Messages, o.Decoding), nil
}

// Entries iterates over the entries of a stream after o.After, and then waits for further ones. The end of the context,
// or another error, comes as the last step. o.Count is how many entries are fetched at a time. If no entry comes within
// o.Block, the iteration ends without an error; 0 means no limit.
func (e *Element) Entries(ctx context.Context, element, stream string, o ReadOptions) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		if o.Block == 0 {
			o.Block = forever
		}
		if o.Count == 0 {
			o.Count = loopCount
		}
		if o.After == "" {
			newest, err := e.protocol.newest(ctx, streamKey(element, stream))
			if err != nil {
				yield(Entry{}, failed(ctx, fmt.Sprintf("read entries of %q %q", element, stream), err))
				return
			}
			o.After = newest[0]
		}
		for {
			entries, err := e.EntryReadSince(ctx, element, stream, o)
			if err != nil {
				yield(Entry{}, err)
				return
			}
			if len(entries) == 0 {
				return
			}
			for _, entry := range entries {
				if !yield(entry, nil) {
					return
				}
			}
			o.After = entries[len(entries)-1].ID
		}
	}
}

// StreamHandler is a stream and the function that handles its entries.
type StreamHandler struct {
	Element, Stream string
	// After is the ID after which reading begins; "0" begins with the oldest entry, empty with the first that is
	// written after the loop has begun.
	After string
	// Handle is called for each entry, one at a time. An error ends the loop, and so does a panic.
	Handle func(ctx context.Context, entry Entry) error
}

// ReadLoopOptions configure EntryReadLoop.
type ReadLoopOptions struct {
	// Loops is the number of successful reads after which the loop returns; one read may return several entries. 0
	// means no limit.
	Loops int
	// Timeout limits each wait for data; then the loop ends with ErrTimeout. 0 means no limit.
	Timeout time.Duration
	// Count limits the entries of each stream in one read. 0 means 100.
	Count int
	Decoding
}

// loopCount is the default of ReadLoopOptions.Count; it bounds the memory of one read.
const loopCount = 100

// EntryReadLoop passes new entries of all the streams to their handlers, until the context ends, a handler fails, or a
// limit of the options is reached. Entries of one stream come in order, each once.
func (e *Element) EntryReadLoop(ctx context.Context, handlers []StreamHandler, o ReadLoopOptions) error {
	const op = "read loop"
	loop, err := newReadLoop(handlers)
	if err != nil {
		return err
	}
	ctx, cancel := e.within(ctx)
	defer cancel()
	if err := loop.begin(ctx, e.protocol); err != nil {
		return failed(ctx, op, err)
	}
	limit := o.Timeout
	if limit <= 0 {
		limit = forever
	}
	if o.Count == 0 {
		o.Count = loopCount
	}
	for n := 0; o.Loops == 0 || n < o.Loops; n++ {
		found, err := e.protocol.read(ctx, loop.keys, loop.ids, o.Count, limit)
		if err != nil {
			return failed(ctx, op, err)
		}
		if len(found) == 0 {
			return &Error{Code: InternalError, Op: op, Err: ErrTimeout}
		}
		for _, stream := range found {
			i := loop.index[stream.Stream]
			for _, msg := range stream.Messages {
				loop.ids[i] = msg.ID
				for _, h := range loop.handlers[i] {
					if err := context.Cause(ctx); err != nil {
						return failed(ctx, op, err)
					}
					if err := h.call(ctx, e.entry(h.Element, h.Stream, msg, o.Decoding)); err != nil {
						return &Error{Code: CallbackFailed, Op: fmt.Sprintf("%s: entry %s of %q %q", op, msg.ID, h.Element, h.Stream),
							Err: err}
					}
				}
			}
		}
	}
	return nil
}

// call turns a panic into an error, so that the loop ends normally.
func (h StreamHandler) call(ctx context.Context, entry Entry) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v", v)
		}
	}()
	return h.Handle(ctx, entry)
}

// readLoop is the state of a loop: for each stream its key, the last ID and the handlers.
type readLoop struct {
	keys, ids []string
	handlers  [][]StreamHandler
	index     map[string]int // index of each key
}

func newReadLoop(handlers []StreamHandler) (*readLoop, error) {
	const op = "read loop"
	if len(handlers) == 0 {
		return nil, misuse(op, "no streams to read")
	}
	loop := &readLoop{index: map[string]int{}}
	for _, h := range handlers {
		if h.Handle == nil {
			return nil, misuse(op, "%q %q has no handler", h.Element, h.Stream)
		}
		key := streamKey(h.Element, h.Stream)
		i, known := loop.index[key]
		if !known {
			loop.index[key] = len(loop.keys)
			loop.keys, loop.ids = append(loop.keys, key), append(loop.ids, h.After)
			loop.handlers = append(loop.handlers, []StreamHandler{h})
			continue
		}
		if loop.ids[i] != h.After {
			return nil, misuse(op, "the handlers of %q %q begin at different entries", h.Element, h.Stream)
		}
		loop.handlers[i] = append(loop.handlers[i], h)
	}
	return loop, nil
}

// begin looks up the last IDs of the streams that are read from their end.
func (l *readLoop) begin(ctx context.Context, p *protocol) error {
	var keys []string
	for i, key := range l.keys {
		if l.ids[i] == "" {
			keys = append(keys, key)
		}
	}
	if len(keys) == 0 {
		return nil
	}
	newest, err := p.newest(ctx, keys...)
	if err != nil {
		return err
	}
	for i := range l.ids {
		if l.ids[i] == "" {
			l.ids[i], newest = newest[0], newest[1:]
		}
	}
	return nil
}

func (e *Element) entries(element, stream string, found []redis.XMessage, d Decoding) []Entry {
	entries := make([]Entry, len(found))
	for i, msg := range found {
		entries[i] = e.entry(element, stream, msg, d)
	}
	return entries
}

// entry converts an entry of the server. The field that names the serialization is left out.
func (e *Element) entry(element, stream string, msg redis.XMessage, d Decoding) Entry {
	ser, _ := msg.Values[serField].(string)
	entry := Entry{ID: msg.ID, Element: element, Stream: stream, Fields: make(map[string]Value, len(msg.Values))}
	for name, value := range msg.Values {
		if text, ok := value.(string); ok && name != serField {
			entry.Fields[name] = e.codecs.value([]byte(text), ser, d)
		}
	}
	return entry
}
