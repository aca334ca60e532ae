//go:build linux

package failover

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/atomredis/atomredis/atom"
)

// elements are two elements of atom that run through all rounds: one serves a command and writes entries, the other
// sends the command. Acknowledged entries remain, and after each fault the command is answered again.
type elements struct {
	clients []redis.UniversalClient
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu       sync.Mutex
	written  []string  // IDs of acknowledged entries
	answered time.Time // when the command was last answered
	answers  int
	wrong    error
}

const (
	serves, calls = "lamp{1}", "hand{1}" // their keys are in one slot
	command       = "echo"
	stream        = "ticks"
	mostEntries   = 1 << 20 // more than there will be
)

func newElements(ctx context.Context, g *group) (e *elements, err error) {
	e = &elements{clients: []redis.UniversalClient{g.client(), g.client()}}
	defer func() {
		if err != nil {
			e.close()
		}
	}()
	lamp, err := atom.New(ctx, e.clients[0], serves, atom.Options{})
	if err != nil {
		return e, err
	}
	hand, err := atom.New(ctx, e.clients[1], calls, atom.Options{})
	if err != nil {
		return e, err
	}
	err = lamp.CommandAdd(command, func(_ context.Context, r *atom.Request) (any, error) { return r.Data.Bytes, nil },
		atom.CommandOptions{})
	if err != nil {
		return e, err
	}
	ctx, e.cancel = context.WithCancel(ctx)
	again := func(do func() error) {
		for ctx.Err() == nil {
			if do() != nil {
				time.Sleep(10 * time.Millisecond)
			}
		}
	}
	e.running.Go(func() { again(func() error { return lamp.CommandLoop(ctx, atom.CommandLoopOptions{}) }) })
	e.running.Go(func() { again(func() error { return e.write(ctx, lamp) }) })
	e.running.Go(func() { again(func() error { return e.call(ctx, hand) }) })
	return e, nil
}

// write writes an entry.
func (e *elements) write(ctx context.Context, lamp *atom.Element) error {
	time.Sleep(2 * time.Millisecond)
	id, err := lamp.EntryWrite(ctx, stream, map[string]any{"on": "yes"}, atom.WriteOptions{MaxLen: mostEntries})
	if err == nil {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.written = append(e.written, id)
	}
	return err
}

// call sends the command.
func (e *elements) call(ctx context.Context, hand *atom.Element) error {
	time.Sleep(2 * time.Millisecond)
	said := strconv.FormatInt(time.Now().UnixNano(), 10)
	r, err := hand.CommandSend(ctx, serves, command, said, atom.SendOptions{})
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if got := string(r.Data.Bytes); got != said {
		e.wrong = errors.Join(e.wrong, fmt.Errorf("%s says %q, and was told %q", serves, got, said))
	}
	e.answered, e.answers = time.Now(), e.answers+1
	return nil
}

// goOn waits until the command is answered.
func (e *elements) goOn(ctx context.Context) error {
	from := time.Now()
	for time.Since(from) < 30*time.Second && ctx.Err() == nil {
		e.mu.Lock()
		answered, wrong := e.answered, e.wrong
		e.mu.Unlock()
		if wrong != nil || answered.After(from) {
			return wrong
		}
		time.Sleep(10 * time.Millisecond)
	}
	return fmt.Errorf("%s does not answer any more", serves)
}

func (e *elements) close() (err error) {
	for _, c := range e.clients {
		err = errors.Join(err, c.Close())
	}
	return err
}

// end ends the elements, and returns the numbers of entries acknowledged and found, and of commands answered.
func (e *elements) end(ctx context.Context) (entries, answers int, err error) {
	e.cancel()
	e.running.Wait()
	defer func() { err = errors.Join(err, e.close()) }()
	all, err := e.clients[0].XRange(ctx, "stream:"+serves+":"+stream, "-", "+").Result()
	if err != nil {
		return 0, 0, err
	}
	found := map[string]bool{}
	for _, m := range all {
		found[m.ID] = true
	}
	for _, id := range e.written {
		if !found[id] {
			return 0, 0, fmt.Errorf("the entry %s was acknowledged and is missing", id)
		}
	}
	return len(e.written), e.answers, e.wrong
}
