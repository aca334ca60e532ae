package crash

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"sync"

	"github.com/atomredis/atomredis/internal/transcript"
)

// This file has what workers have in common that come through doors.

// doorOptions are the options of the server that open the doors, by name; the first of each gets the address.
var doorOptions = map[string][]string{
	"spiderq": {"--door-spiderq", "--spiderq-protocol", "1.4"},
}

// inquirer is a worker that asks the server itself for what it checks, beside the snapshot, before each settle. Doors
// may change their keys at any time, as deadlines do.
type inquirer interface {
	inquire(c *transcript.Conn) error
}

// freePort returns a port of the loopback interface that is free.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// runDoorTasks runs each task with a connection of its own to a door until all have ended.
func runDoorTasks[C any](label string, dial func() (C, func(), error), r *rand.Rand,
	tasks []func(C, *rand.Rand) error) error {
	errs := make([]error, len(tasks))
	var wg sync.WaitGroup
	for i, task := range tasks {
		own := rand.New(rand.NewPCG(r.Uint64(), r.Uint64()))
		wg.Go(func() {
			c, hangUp, err := dial()
			if err != nil {
				errs[i] = ignoreNet(err)
				return
			}
			defer hangUp()
			if err := task(c, own); err != nil && !errors.Is(err, errEnded) {
				errs[i] = fmt.Errorf("%s: %w", label, err)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// ended makes every error of a connection errEnded, but for a reply that does not come.
func ended(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("no reply in %v", replyTimeout)
	}
	return errEnded
}
