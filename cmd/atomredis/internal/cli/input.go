package cli

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"iter"
)

// batch has messages of the input, or the error of reading more.
type batch struct {
	messages [][]byte
	err      error
}

// The limits of a batch.
const (
	inputMessages = 1024
	inputBytes    = 1 << 20
)

// batches yields the messages: args, or without args those of the input, each of which ends with delim. A whole message
// does not wait for later ones. It ends early when ctx ends.
func (a *app) batches(ctx context.Context, args []string, delim byte) iter.Seq[batch] {
	return func(yield func(batch) bool) {
		if len(args) > 0 {
			messages := make([][]byte, len(args))
			for i, arg := range args {
				messages[i] = []byte(arg)
			}
			yield(batch{messages: messages})
			return
		}
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		input := make(chan batch)
		go readInput(ctx, a.in, delim, input) // a read cannot be interrupted, so batches does not wait for it
		for {
			select {
			case b, more := <-input:
				if !more || !yield(b) {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}
}

// readInput sends the messages of r to out, and closes out at the end.
func readInput(ctx context.Context, r io.Reader, delim byte, out chan<- batch) {
	defer close(out)
	buffered := bufio.NewReaderSize(r, 64<<10)
	var b batch
	size := 0
	for b.err == nil {
		var message []byte
		message, b.err = buffered.ReadBytes(delim)
		if b.err == nil {
			message = message[:len(message)-1]
		}
		if b.err == nil || len(message) > 0 { // the last message need not end with delim
			b.messages = append(b.messages, message)
			size += len(message)
		}
		waiting, _ := buffered.Peek(buffered.Buffered())
		if b.err == nil && len(b.messages) < inputMessages && size < inputBytes && bytes.IndexByte(waiting, delim) >= 0 {
			continue
		}
		failure := b.err
		if b.err = nil; len(b.messages) > 0 && !send(ctx, out, b) {
			return
		}
		b, size = batch{err: failure}, 0
	}
	if b.err != io.EOF {
		send(ctx, out, b)
	}
}

func send(ctx context.Context, out chan<- batch, b batch) bool {
	select {
	case out <- b:
		return true
	case <-ctx.Done():
		return false
	}
}
