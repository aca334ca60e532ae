package timeseries

import (
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/atomredis/atomredis/engine/timeseries"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/config"
	"github.com/atomredis/atomredis/resp"
)

// The directives: defaults of new series.
const (
	dirRetention   = "ts-retention-policy"
	dirChunkSize   = "ts-chunk-size-bytes"
	dirEncoding    = "ts-encoding"
	dirPolicy      = "ts-duplicate-policy"
	dirIgnoreTime  = "ts-ignore-max-time-diff"
	dirIgnoreValue = "ts-ignore-max-val-diff"
	dirCompaction  = "ts-compaction-policy"
)

func init() {
	config.Register(config.Directive{Name: dirRetention, Default: "0", Check: natural})
	config.Register(config.Directive{Name: dirChunkSize, Default: "4096", Check: func(value string) error {
		if n, ok := resp.ParseInt([]byte(value)); !ok || !validChunkSize(n) {
			return errors.New(strings.TrimPrefix(string(errChunkSize), "ERR "))
		}
		return nil
	}})
	config.Register(config.Directive{Name: dirEncoding, Default: "compressed", Check: func(value string) error {
		if _, ok := parseEncoding([]byte(value)); !ok {
			return errors.New("Invalid encoding: " + value)
		}
		return nil
	}})
	config.Register(config.Directive{Name: dirPolicy, Default: "block", Check: func(value string) error {
		if _, ok := timeseries.ParsePolicy(strings.ToLower(value)); !ok {
			return errors.New("Invalid duplicate policy: " + value)
		}
		return nil
	}})
	config.Register(config.Directive{Name: dirIgnoreTime, Default: "0", Check: natural})
	config.Register(config.Directive{Name: dirIgnoreValue, Default: "0", Check: func(value string) error {
		if f, err := strconv.ParseFloat(value, 64); err != nil || !(f >= 0) || math.IsInf(f, 0) {
			return errors.New("must be a number that is not negative")
		}
		return nil
	}})
	config.Register(config.Directive{Name: dirCompaction, Default: "", Check: func(value string) error {
		if _, ok := parseCompactions(value); !ok {
			return errors.New("Invalid compaction policy: " + value)
		}
		return nil
	}})
}

func natural(value string) error {
	if n, ok := resp.ParseInt([]byte(value)); !ok || n < 0 {
		return errors.New("must be an integer that is not negative")
	}
	return nil
}

// defaults returns the settings of a series that is created without any.
func defaults(h command.Host) timeseries.Settings {
	integer := func(name string) int64 {
		n, _ := resp.ParseInt([]byte(h.Directive(name)))
		return n
	}
	s := timeseries.Settings{Retention: integer(dirRetention), ChunkSize: int(integer(dirChunkSize)),
		IgnoreTime: integer(dirIgnoreTime)}
	s.Plain, _ = parseEncoding([]byte(h.Directive(dirEncoding)))
	s.Policy = defaultPolicy(h)
	s.IgnoreValue, _ = strconv.ParseFloat(h.Directive(dirIgnoreValue), 64)
	return s
}

func defaultPolicy(h command.Host) timeseries.Policy {
	p, _ := timeseries.ParsePolicy(strings.ToLower(h.Directive(dirPolicy)))
	return p
}

// policyOf returns the policy of a series, that of the server if it has none of its own.
func policyOf(h command.Host, s *timeseries.Series) timeseries.Policy {
	if s.Policy == timeseries.Unset {
		return defaultPolicy(h)
	}
	return s.Policy
}

// compaction is a rule of ts-compaction-policy for series that are created by adding a sample.
type compaction struct {
	aggregator    timeseries.Aggregator
	bucket, align int64  // ms
	retention     int64  // ms
	name          string // of the destination
}

// parseCompactions reads rules separated by semicolons: aggregator:bucket:retention, optionally with :align. Times
// have a unit: m (milliseconds), s, M (minutes), h or d; a retention of 0 needs none.
func parseCompactions(text string) (rules []compaction, ok bool) {
	for _, rule := range strings.FieldsFunc(text, func(r rune) bool { return r == ';' }) {
		parts := strings.Split(rule, ":")
		if len(parts) < 3 || len(parts) > 4 {
			return nil, false
		}
		a, known := timeseries.ParseAggregator(parts[0])
		r := compaction{aggregator: a}
		var ok1, ok2 bool
		r.bucket, ok1 = parseDuration(parts[1])
		r.retention, ok2 = parseDuration(parts[2])
		ok3 := true
		if len(parts) == 4 {
			r.align, ok3 = parseDuration(parts[3])
		}
		if !known || !ok1 || !ok2 || !ok3 || r.bucket == 0 {
			return nil, false
		}
		rules = append(rules, r)
	}
	return rules, true
}

func parseDuration(text string) (ms int64, ok bool) {
	if text == "0" {
		return 0, true
	}
	if text == "" {
		return 0, false
	}
	units := map[byte]int64{'m': 1, 's': 1000, 'M': 60_000, 'h': 3_600_000, 'd': 86_400_000}
	unit := units[text[len(text)-1]]
	n, ok := resp.ParseInt([]byte(text[:len(text)-1]))
	if !ok || unit == 0 || n < 0 || n > math.MaxInt64/unit {
		return 0, false
	}
	return n * unit, true
}
