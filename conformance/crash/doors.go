package crash

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/atomredis/atomredis/internal/testing/transcript"
)

// This file has what workers have in common that come through doors.

// doors are the doors of the server that is tested: where they listen, and what opens them.
type doors struct {
	addrs   map[string]string // by name
	options []string          // of the server
	secrets *tls.Config       // of clients of Skein
}

// newDoors chooses addresses. Files go to a directory.
func newDoors(dir string) (d doors, err error) {
	d.addrs = map[string]string{}
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	if d.secrets, err = skeinFiles(cert, key); err != nil {
		return doors{}, err
	}
	for name, options := range map[string][]string{
		"spiderq":       {"--spiderq-protocol", "1.4"},
		"skein":         {"--skein-cert", cert, "--skein-key", key, "--skein-services", skeinService + "=0"},
		"perper-ignite": nil,
		"perper-grpc":   nil,
	} {
		port, err := freePort()
		if err != nil {
			return doors{}, err
		}
		d.addrs[name] = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		d.options = append(append(d.options, "--door-"+name, d.addrs[name]), options...)
	}
	return d, nil
}

// doorChange is what one request does to keys, all of it or nothing: their new values, or "" if they are removed.
type doorChange map[string]string

// doorHistory is what the keys of one client hold that waits for each reply: what they held after the last restart, and
// what was sent since. So they hold what some first part of that leaves.
type doorHistory struct {
	base map[string]string
	sent []doorSent
}

type doorSent struct {
	change doorChange
	acked  time.Time
}

func newDoorHistory() *doorHistory { return &doorHistory{base: map[string]string{}} }

// send notes a change that will be sent, and returns its number.
func (h *doorHistory) send(c doorChange) int {
	h.sent = append(h.sent, doorSent{change: c})
	return len(h.sent) - 1
}

// answered notes that a change was acknowledged, unless there is an error.
func (h *doorHistory) answered(n int, err error) {
	if err == nil {
		h.sent[n].acked = time.Now()
	}
}

// settle checks what the keys hold, takes it for the truth from then on, and returns how many changes were
// acknowledged.
func (h *doorHistory) settle(found map[string]string, e ending) (acked int, err error) {
	sure := 0
	for i, s := range h.sent {
		if !s.acked.IsZero() {
			acked++
		}
		if e.survives(s.acked) {
			sure = i + 1
		}
	}
	state, n := maps.Clone(h.base), 0
	for ; n < sure; n++ {
		h.sent[n].change.apply(state)
	}
	report := differences(state, found)
	for ; !maps.Equal(state, found); n++ {
		if n == len(h.sent) {
			return 0, fmt.Errorf("%d changes were sent, of which %d were acknowledged in time; what is there is no state after"+
				" any of the others:%s", len(h.sent), sure, report)
		}
		h.sent[n].change.apply(state)
	}
	h.base, h.sent = state, nil
	return acked, nil
}

func (c doorChange) apply(state map[string]string) {
	for k, v := range c {
		if v == "" {
			delete(state, k)
		} else {
			state[k] = v
		}
	}
}

// differences describes a few keys that are not as they should be.
func differences(want, found map[string]string) string {
	var b strings.Builder
	shown := 0
	for _, k := range slices.Sorted(maps.Keys(want)) {
		if v := found[k]; v != want[k] && shown < 3 {
			fmt.Fprintf(&b, "\n  %q is %s, not %s", k, short(v), short(want[k]))
			shown++
		}
	}
	for _, k := range slices.Sorted(maps.Keys(found)) {
		if _, ok := want[k]; !ok && shown < 5 {
			fmt.Fprintf(&b, "\n  %q is %s, and should not be there", k, short(found[k]))
			shown++
		}
	}
	return b.String()
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

// callRPC makes a call. That the server is gone is errEnded.
func callRPC[Request, Reply any](method func(context.Context, Request, ...grpc.CallOption) (Reply, error), request Request) (
	reply Reply, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), replyTimeout)
	defer cancel()
	reply, err = method(ctx, request)
	switch status.Code(err) {
	case codes.OK:
		return reply, nil
	case codes.Unavailable, codes.Canceled:
		return reply, errEnded
	default:
		return reply, fmt.Errorf("%T: %w", request, err)
	}
}
