package perper

import (
	"errors"

	"github.com/atomredis/atomredis/internal/config"
	"github.com/atomredis/atomredis/internal/protocols/internal/effect"
	"github.com/atomredis/atomredis/internal/protocols/perper/binary"
	"github.com/atomredis/atomredis/internal/protocols/perper/keys"
	"github.com/atomredis/atomredis/resp"
)

// Agents do not remove all executions that they have called, so finished ones may pile up. With
// perper-finished-expiry they expire, and with perper-unreferenced-expiry those that nobody refers to (references.go).
// The items of streams are removed by the positions of listeners (listeners.go).

const (
	finishedExpiry     = "perper-finished-expiry"
	unreferencedExpiry = "perper-unreferenced-expiry"
)

func init() {
	for _, name := range []string{finishedExpiry, unreferencedExpiry} {
		config.Register(config.Directive{Name: name, Default: "0", Check: func(value string) error {
			if n, ok := resp.ParseInt([]byte(value)); !ok || n < 0 || n > longest {
				return errors.New("must be a number of milliseconds, 0 for none")
			}
			return nil
		}})
	}
}

// expireFinished lets an execution expire some time after it was finished, unless the cache has an expiry policy. One
// that is unfinished again does not expire.
func (ca *cache) expireFinished(k, v []byte) {
	if string(ca.name) != keys.Executions || ca.stays() != binary.NoExpiry {
		return
	}
	ms, _ := resp.ParseInt([]byte(ca.c.Host.Directive(finishedExpiry)))
	_, expires := ca.deadline(k)
	switch e := readExecution(ca.c, k, v); {
	case e.active() && expires:
		effect.ZRem(ca.c, ca.names[expiresKey], k)
	case e.agent != "" && e.finished && !expires && ms > 0:
		ca.stay(k, ms)
	}
}
