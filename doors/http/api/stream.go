package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/atomredis/atomredis/doors/door"
)

// streamAllowed is the list of the methods for streams.
const streamAllowed = http.MethodGet + ", " + http.MethodPost + ", " + http.MethodPut

var errStreamMethod = &failure{http.StatusMethodNotAllowed, "ERR the method for a stream must be one of " + streamAllowed}

// isStream reports whether a command's replies are a stream. CHANGES is one without a sub-command.
func isStream(words [][]byte) bool {
	switch strings.ToLower(string(words[0])) {
	case "subscribe", "psubscribe", "monitor":
		return true
	case "changes":
		return len(words) == 1 || strings.EqualFold(string(words[1]), "from")
	}
	return false
}

// event is what a stream sends. A peer that connects again names the last ID that it has got, if there is one.
type event struct{ id, text string }

// source is what a stream shows: its first events, and how to wait for the next one.
type source struct {
	first []event
	next  func(ctx context.Context) (event, error)
	close func()
	last  func() (id string) // what a peer that connects again names, also if there was no event; may be nil
}

// stream sends events until the peer disconnects, its client or the server ends, or http-api is off. ctx is for opening
// it.
func (x *exchange) stream(ctx context.Context, words [][]byte) error {
	if x.r.Method == http.MethodHead {
		x.w.Header().Set("Allow", streamAllowed)
		return errStreamMethod
	}
	s, err := x.open(ctx, words)
	if err != nil {
		return err
	}
	defer s.close()
	x.a.streams.Add(1)
	defer x.a.streams.Add(-1)
	x.w.Header().Set("Content-Type", "text/event-stream")
	x.w.Header().Set("X-Accel-Buffering", "no") // proxies must pass events on at once
	for _, e := range s.first {
		if x.event(e) != nil {
			return nil
		}
	}
	for {
		ctx, cancel := context.WithTimeout(x.r.Context(), idleTime)
		e, err := s.next(ctx)
		cancel()
		switch {
		case !x.a.Enabled():
			return nil
		case err == nil:
			err = x.event(e)
		case errors.Is(err, context.DeadlineExceeded) && x.r.Context().Err() == nil:
			id := ""
			if s.last != nil {
				id = "id: " + s.last() + "\n"
			}
			err = x.part(id + ":\n\n") // a comment, which shows whether the peer is there
		}
		if err != nil {
			return nil // the peer or the client is gone
		}
	}
}

// open begins to listen.
func (x *exchange) open(ctx context.Context, words [][]byte) (source, error) {
	name := strings.ToLower(string(words[0]))
	switch name {
	case "changes":
		return x.changes(ctx, words)
	case "monitor":
		m, err := x.client.Monitor(ctx)
		if err != nil {
			return source{}, err
		}
		return source{[]event{{text: `"OK"`}}, func(ctx context.Context) (event, error) {
			text, err := m.Next(ctx)
			return event{text: text}, err
		}, m.Close, nil}, nil
	}
	names := make([]string, len(words)-1)
	for i, word := range words[1:] {
		names[i] = string(word)
	}
	subscribe := x.client.Subscribe
	if name == "psubscribe" {
		subscribe = x.client.PSubscribe
	}
	s, err := subscribe(ctx, names...)
	if err != nil {
		return source{}, err
	}
	var first []event
	seen := map[string]bool{}
	for _, n := range names {
		seen[n] = true
		first = append(first, event{text: fmt.Sprintf("%s,%s,%d", name, n, len(seen))})
	}
	return source{first, func(ctx context.Context) (event, error) {
		m, err := s.Next(ctx)
		return eventOf(m), err
	}, s.Close, nil}, nil
}

// eventOf returns the event for a message.
func eventOf(m door.Message) event {
	if m.Pattern != "" {
		return event{text: "pmessage," + m.Pattern + "," + m.Channel + "," + m.Payload}
	}
	return event{text: "message," + m.Channel + "," + m.Payload}
}

// ends are the ends of lines in events.
var ends = strings.NewReplacer("\r\n", "\ndata: ", "\r", "\ndata: ", "\n", "\ndata: ")

// event sends an event. Each line of the text is a line of the event; bytes that are not UTF-8 become U+FFFD.
func (x *exchange) event(e event) error {
	id := ""
	if e.id != "" {
		id = "id: " + e.id + "\n"
	}
	return x.part(id + "data: " + ends.Replace(strings.ToValidUTF8(e.text, "\uFFFD")) + "\n\n")
}

// part sends a part of a stream at once.
func (x *exchange) part(text string) error {
	if _, err := (peer{x.w, x.to}).Write([]byte(text)); err != nil {
		return err
	}
	return x.to.Flush()
}
