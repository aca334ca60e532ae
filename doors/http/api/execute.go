package api

import (
	"bufio"
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/atomredis/atomredis/doors/door"
	"github.com/atomredis/atomredis/resp"
)

// execute executes the commands of a request and answers with their replies.
func (x *exchange) execute() error {
	ctx, cancel := x.a.limited(x.r)
	defer cancel()
	if x.db != "" {
		if _, err := x.client.Control(ctx, "SELECT", x.db); err != nil {
			return err
		}
	}
	switch x.r.URL.Path {
	case "/pipeline":
		return x.pipeline(ctx)
	case "/multi-exec":
		return x.transaction(ctx)
	}
	words, err := x.command()
	if err != nil {
		return err
	}
	if isStream(words) {
		return x.stream(ctx, words)
	}
	var reply resp.Reply
	if ownState(words) {
		reply, err = x.client.Control(ctx, words)
	} else {
		reply, err = x.client.Do(ctx, words)
	}
	if err != nil {
		return err
	}
	out := x.begin()
	x.writeReply(out, reply)
	out.Flush() // an error means that the peer is gone
	return nil
}

// ownState reports whether a command changes only the state of the request's own client.
func ownState(words [][]byte) bool {
	name := strings.ToLower(string(words[0]))
	if name == "client" && len(words) > 1 {
		name += " " + strings.ToLower(string(words[1]))
	}
	return name == "select" || name == "client setinfo" || name == "client setname"
}

// outcome is the result of a command of a pipeline: its reply, or an error if it has no reply.
type outcome struct {
	reply resp.Reply
	err   error
}

// pipeline executes commands one after the other. It waits for the disk and for the peer when so many replies have
// come that they are sent; a peer that does not read delays the commands that follow.
func (x *exchange) pipeline(ctx context.Context) error {
	commands, err := newParser(x.body).commands()
	if err != nil {
		return err
	}
	out := x.begin()
	var held []outcome
	size, sent, position := 0, 0, uint64(0)
	for i, words := range commands {
		var o outcome
		if ownState(words) {
			o.reply, o.err = x.client.Control(ctx, words)
		} else {
			var at uint64
			o.reply, at, o.err = x.client.DoAhead(ctx, words)
			position = max(position, at)
		}
		held = append(held, o)
		if size += len(o.reply.Encoded()); size < maxHeld && i < len(commands)-1 {
			continue
		}
		_, lost := x.client.Settle(position)
		for _, o := range held {
			if lost != nil {
				o = outcome{err: lost}
			}
			x.writeOutcome(out, sent, o)
			sent++
		}
		held, size = held[:0], 0
		if out.Flush() != nil {
			return nil // the peer is gone; the writer keeps the error of an earlier part
		}
	}
	x.endList(out, sent)
	return nil
}

// transaction executes commands as one atomic step. It knows no format but JSON.
func (x *exchange) transaction(ctx context.Context) error {
	x.resp2 = false
	commands, err := newParser(x.body).commands()
	if err != nil {
		return err
	}
	var b door.Batch
	for _, words := range commands {
		if err := b.Add(words); err != nil {
			return err
		}
	}
	replies, err := x.client.Transact(ctx, &b)
	if err != nil {
		return err
	}
	out := x.begin()
	for i, reply := range replies {
		x.writeOutcome(out, i, outcome{reply, reply.Err()})
	}
	x.endList(out, len(replies))
	return nil
}

// writeOutcome writes the n-th element of a list.
func (x *exchange) writeOutcome(out *bufio.Writer, n int, o outcome) {
	switch {
	case x.resp2 && o.err != nil:
		out.WriteString("-" + x.a.textOf(o.err) + "\r\n")
		return
	case x.resp2:
	case n == 0:
		out.WriteByte('[')
	default:
		out.WriteByte(',')
	}
	if o.err != nil {
		writeError(out, x.a.textOf(o.err))
		return
	}
	x.writeReply(out, o.reply)
}

// endList ends a list of n elements, and the answer.
func (x *exchange) endList(out *bufio.Writer, n int) {
	switch {
	case x.resp2:
	case n == 0:
		out.WriteString("[]")
	default:
		out.WriteByte(']')
	}
	out.Flush() // an error means that the peer is gone
}

// begin begins a successful answer.
func (x *exchange) begin() *bufio.Writer {
	kind := "application/json"
	if x.resp2 {
		kind = "application/octet-stream"
	}
	x.w.Header().Set("Content-Type", kind)
	return bufio.NewWriterSize(peer{x.w, x.to}, 16<<10)
}

// maxPart is the number of bytes for which a peer has sendTime.
const maxPart = 64 << 10

// peer limits the time for each part of an answer.
type peer struct {
	w  http.ResponseWriter
	to *http.ResponseController
}

// Write implements io.Writer.
func (p peer) Write(b []byte) (written int, err error) {
	for part := range slices.Chunk(b, maxPart) {
		if err := p.to.SetWriteDeadline(time.Now().Add(sendTime)); err != nil {
			return written, err
		}
		n, err := p.w.Write(part)
		if written += n; err != nil {
			return written, err
		}
	}
	return written, nil
}
