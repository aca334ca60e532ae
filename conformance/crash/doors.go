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

// This file is shared by the workers that use doors.

// doors are the doors of the tested server: their addresses, and what opens them.
type doors struct {
	addrs   map[string]string // by name
	options []string          // of the server
	secrets *tls.Config       // of clients of Skein
}

// newDoors chooses addresses. Files go to dir.
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

// doorChange is the effect of one request on keys, all of it or nothing: their new values, or "" if they are removed.
type doorChange map[string]string

// doorHistory is the state of the keys of one client that waits for each reply: their values after the last restart,
// and the changes sent since. So their values now are the result of some first part of these changes.
type doorHistory struct {
	base map[string]string
	sent []doorSent
}

type doorSent struct {
	change doorChange
	acked  time.Time
}

func newDoorHistory() *doorHistory { return &doorHistory{base: map[string]string{}} }

// send records a change that will be sent, and returns its number.
func (h *doorHistory) send(c doorChange) int {
	h.sent = append(h.sent, doorSent{change: c})
	return len(h.sent) - 1
}

// answered records that a change was acknowledged, unless there is an error.
func (h *doorHistory) answered(n int, err error) {
	if err == nil {
		h.sent[n].acked = time.Now()
	}
}

// settle checks the values of the keys, accepts them as the state from then on, and returns the number of acknowledged
// changes.
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

// differences describes a few keys that have wrong values.
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

// inquirer is a worker that queries the server itself, besides the snapshot, before each settle. Doors may change their
// keys at any time, for example by deadlines.
type inquirer interface {
	inquire(c *transcript.Conn) error
}

// freePort returns a free port of the loopback interface.
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

// ended turns every error of a connection into errEnded, except for a missing reply.
func ended(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("no reply in %v", replyTimeout)
	}
	return errEnded
}

// callRPC makes a call. If the server is gone it returns errEnded.
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
