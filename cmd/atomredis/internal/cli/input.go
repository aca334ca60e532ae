package cli

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"iter"
)

// batch is some messages of the input, or the failure to read more.
type batch struct {
	messages [][]byte
	err      error
}

// How much of the input makes a batch.
const (
	inputMessages = 1024
	inputBytes    = 1 << 20
)

// batches returns the messages: args, or if there are none those of the input, which end with delim. Whole messages
// do not wait for those that have not arrived yet. It ends early if ctx does.
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
		go readInput(ctx, a.in, delim, input) // reading cannot be interrupted, so it is left alone if it takes too long
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

// readInput sends the messages of r to out, which it closes at the end.
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
		if b.err == nil || len(message) > 0 { // the last one need not end with delim
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
