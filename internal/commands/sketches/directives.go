package sketches

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/atomredis/atomredis/engine/cuckoo"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/config"
	"github.com/atomredis/atomredis/resp"
)

// Defaults of filters that commands create implicitly.
func init() {
	config.Register(config.Directive{Name: "bf-error-rate", Default: "0.01", Check: checkRate})
	integer("bf-initial-size", 100, 1, maxCapacity)
	integer("bf-expansion-factor", 2, 0, maxExpansion)
	integer("cf-initial-size", 1024, 4, maxCapacity)
	integer("cf-bucket-size", 2, 1, cuckoo.MaxBucketSize)
	integer("cf-max-iterations", 20, 1, cuckoo.MaxIterations)
	integer("cf-expansion-factor", 1, 0, maxExpansion)
	integer("cf-max-expansions", 32, 1, 65536)
}

// integer registers an integer directive between min and max.
func integer(name string, initial, min, max int64) {
	config.Register(config.Directive{Name: name, Default: strconv.FormatInt(initial, 10), Check: func(value string) error {
		n, ok := resp.ParseInt([]byte(value))
		switch {
		case !ok:
			return fmt.Errorf("Invalid value for `%s`", name)
		case n < min || n > max:
			return fmt.Errorf("Value for `%s` must be in the range [%d, %d]", name, min, max)
		}
		return nil
	}})
}

func checkRate(value string) error {
	rate, ok := resp.ParseFloat([]byte(value))
	switch {
	case !ok:
		return errors.New("Invalid value for `bf-error-rate`")
	case rate <= 0 || rate >= 1:
		return errors.New("Value for `bf-error-rate` must be in the range (0.000000, 1.000000)")
	}
	return nil
}

// setting returns the value of a directive that is an integer.
func setting(c *command.Ctx, name string) uint64 {
	n, _ := resp.ParseInt([]byte(c.Host.Directive(name)))
	return uint64(n)
}
