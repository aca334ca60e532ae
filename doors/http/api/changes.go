package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/atomredis/atomredis/resp"
)

// changes returns the changes of the data after a position (CHANGES READ) as events, whose IDs are the positions after them. The
// words are CHANGES, FROM with a position, and further options. A peer that connects again goes on after the event that it names
// as the last one.
func (x *exchange) changes(ctx context.Context, words [][]byte) (source, error) {
	at, options := "$", [][]byte(nil)
	if len(words) > 2 {
		at, options = string(words[2]), words[3:]
	}
	if last := x.r.Header.Get("Last-Event-ID"); last != "" {
		at = last
	}
	read := func(ctx context.Context, more ...any) (list []event, err error) {
		args := []any{"CHANGES", "READ", "FROM", at}
		for _, o := range options {
			args = append(args, o)
		}
		reply, err := x.client.Do(ctx, append(args, more...)...)
		if err != nil {
			return nil, err
		}
		next, list, err := changesOf(reply)
		if err == nil {
			at = next
		}
		return list, err
	}
	var first []any
	if at == "0" {
		first = []any{"BLOCK", 1} // a snapshot may take longer than a request
	}
	waiting, err := read(ctx, first...) // an error is the answer to the request
	if err != nil {
		return source{}, err
	}
	return source{nil, func(ctx context.Context) (e event, err error) {
		for len(waiting) == 0 {
			if waiting, err = read(ctx, "BLOCK", readTime.Milliseconds()); err == nil {
				err = ctx.Err()
			}
			if err != nil && len(waiting) == 0 {
				return e, err
			}
		}
		e, waiting = waiting[0], waiting[1:]
		return e, nil
	}, func() {}, func() string { return at }}, nil
}

// readTime is how long a read waits. Its end, before that of the stream's own wait, tells the position up to which nothing is for
// the peer.
const readTime = idleTime / 4

// change is an event of changes. The strings of its commands are as JSON has them.
type change struct {
	Position string    `json:"position"`
	Time     int64     `json:"time"` // ms since 1970
	Commands []changed `json:"commands"`
}

type changed struct {
	DB   int64    `json:"db"`
	Args []string `json:"args"`
}

// changesOf reads the reply to CHANGES READ.
func changesOf(reply resp.Reply) (next string, list []event, err error) {
	page, err := reply.Slice()
	if err != nil || len(page) != 2 {
		return "", nil, fmt.Errorf("an unexpected reply to CHANGES READ: %w", err)
	}
	if next, err = page[0].Text(); err != nil {
		return "", nil, err
	}
	all, err := page[1].Slice()
	if err != nil {
		return "", nil, err
	}
	for _, r := range all {
		c, err := changeOf(r)
		if err != nil {
			return "", nil, err
		}
		var text bytes.Buffer
		j := json.NewEncoder(&text)
		j.SetEscapeHTML(false)
		if err := j.Encode(c); err != nil {
			return "", nil, err
		}
		list = append(list, event{c.Position, string(bytes.TrimRight(text.Bytes(), "\n"))})
	}
	return next, list, nil
}

func changeOf(reply resp.Reply) (c change, err error) {
	parts, err := reply.Slice()
	if err != nil {
		return c, err
	}
	if c.Position, err = parts[0].Text(); err == nil {
		c.Time, err = parts[1].Int()
	}
	if err != nil {
		return c, err
	}
	commands, err := parts[2].Slice()
	for _, r := range commands {
		words, err := r.Slice()
		if err != nil {
			return c, err
		}
		one := changed{}
		if one.DB, err = words[0].Int(); err != nil {
			return c, err
		}
		for _, w := range words[1:] {
			text, err := w.Text()
			if err != nil {
				return c, err
			}
			one.Args = append(one.Args, text)
		}
		c.Commands = append(c.Commands, one)
	}
	return c, err
}
