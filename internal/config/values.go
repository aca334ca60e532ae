package config

// This file reads and shows the values of single directives.

import (
	"fmt"
	"math"
	"math/bits"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/persist"
	"github.com/atomredis/atomredis/resp"
)

// parseMaxMemoryClients reads a size in bytes or a percentage, which is kept as a negative number.
func parseMaxMemoryClients(s *Settings, words []string) error {
	digits, percent := strings.CutSuffix(words[0], "%")
	if !percent {
		n, ok := ParseMemory(words[0])
		if !ok {
			return errNotMemoryOrPercent
		}
		s.Memory.MaxClients = command.AsInt(n)
		return nil
	}
	n, err := strconv.ParseUint(digits, 10, 63)
	if err != nil {
		return errNotMemoryOrPercent
	}
	if n > 100 {
		return errPercentage
	}
	s.Memory.MaxClients = -int(n)
	return nil
}

func showMaxMemoryClients(s *Settings) string {
	if s.Memory.MaxClients < 0 {
		return strconv.Itoa(-s.Memory.MaxClients) + "%"
	}
	return strconv.Itoa(s.Memory.MaxClients)
}

// maxBind is the largest number of addresses of bind.
const maxBind = 16

func parseBind(s *Settings, words []string) error {
	addresses := strings.Fields(strings.Join(words, " "))
	if len(addresses) > maxBind {
		return errTooManyBind
	}
	s.Network.Bind = addresses
	return nil
}

func parseDir(s *Settings, words []string) error {
	dir, err := filepath.Abs(words[0])
	if err != nil {
		return err
	}
	s.Files.Dir = dir
	return nil
}

// parseSave reads pairs of seconds and changes. No words, or one empty word, mean no save points.
func parseSave(s *Settings, words []string) error {
	if len(words) == 1 {
		words = strings.Fields(words[0])
	}
	if len(words)%2 != 0 {
		return errSave
	}
	var points []persist.SavePoint
	for pair := range slices.Chunk(words, 2) {
		seconds, ok1 := resp.ParseInt([]byte(pair[0]))
		changes, ok2 := resp.ParseInt([]byte(pair[1]))
		if !ok1 || !ok2 || seconds < 1 || changes < 0 || seconds > math.MaxInt32 || changes > math.MaxInt32 {
			return errSave
		}
		points = append(points, persist.SavePoint{Seconds: int(seconds), Changes: int(changes)})
	}
	s.Persistence.Save = points
	return nil
}

func showSave(s *Settings) string {
	words := make([]string, len(s.Persistence.Save))
	for i, p := range s.Persistence.Save {
		words[i] = fmt.Sprintf("%d %d", p.Seconds, p.Changes)
	}
	return strings.Join(words, " ")
}

func parsePercentiles(s *Settings, words []string) error {
	var percentiles []float64
	for _, w := range words {
		if w == "" && len(words) == 1 {
			break
		}
		p, ok := resp.ParseFloat([]byte(w))
		if !ok {
			return errPercentile
		}
		if p < 0 || p > 100 {
			return errPercentileRange
		}
		percentiles = append(percentiles, p)
	}
	s.Monitoring.LatencyPercentiles = percentiles
	return nil
}

func showPercentiles(s *Settings) string {
	words := make([]string, len(s.Monitoring.LatencyPercentiles))
	for i, p := range s.Monitoring.LatencyPercentiles {
		words[i] = PercentileText(p)
	}
	return strings.Join(words, " ")
}

// PercentileText returns a percentile with at most six decimals.
func PercentileText(p float64) string {
	text := strings.TrimRight(strconv.FormatFloat(p, 'f', 6, 64), "0")
	return strings.TrimSuffix(text, ".")
}

func parsePerm(s *Settings, words []string) error {
	perm, err := strconv.ParseUint(words[0], 8, 32)
	if err != nil {
		return errNotOctal
	}
	if perm > 0o777 {
		return fmt.Errorf("argument must be between %o and %o inclusive", 0, 0o777)
	}
	s.Network.UnixSocketPerm = os.FileMode(perm)
	return nil
}

func parseShards(s *Settings, words []string) error {
	n, ok := resp.ParseInt([]byte(words[0]))
	if !ok {
		return errNotNumber
	}
	if n < 0 || n > engine.MaxShards || bits.OnesCount64(uint64(n)) > 1 {
		return errShards
	}
	s.Threads.Shards = int(n)
	return nil
}

func parseEvents(s *Settings, words []string) error {
	classes, ok := engine.ParseEventClasses(words[0])
	if !ok {
		return errEventClass
	}
	s.Clients.NotifyKeyspaceEvents = classes
	return nil
}

// parseOutputLimits reads groups of class, hard limit, soft limit and soft seconds. Other classes keep their limits.
func parseOutputLimits(s *Settings, words []string) error {
	if len(words)%4 != 0 {
		return errOutputWords
	}
	limits := s.Clients.OutputLimits
	for group := range slices.Chunk(words, 4) {
		limit := limits.class(strings.ToLower(group[0]))
		if limit == nil {
			return errOutputClass
		}
		hard, ok1 := ParseMemory(group[1])
		soft, ok2 := ParseMemory(group[2])
		seconds, err := strconv.ParseUint(group[3], 10, 31)
		if !ok1 || !ok2 || err != nil {
			return errOutputLimit
		}
		*limit = OutputLimit{Hard: hard, Soft: soft, SoftSeconds: int(seconds)}
	}
	s.Clients.OutputLimits = limits
	return nil
}

// class returns the limit of a class, nil if there is no such class.
func (l *OutputLimits) class(name string) *OutputLimit {
	switch name {
	case "normal":
		return &l.Normal
	case "replica", "slave":
		return &l.Replica
	case "pubsub":
		return &l.PubSub
	}
	return nil
}

func showOutputLimits(s *Settings) string {
	l := &s.Clients.OutputLimits
	return fmt.Sprintf("normal %d %d %d slave %d %d %d pubsub %d %d %d", l.Normal.Hard, l.Normal.Soft,
		l.Normal.SoftSeconds,
		l.Replica.Hard, l.Replica.Soft, l.Replica.SoftSeconds, l.PubSub.Hard, l.PubSub.Soft, l.PubSub.SoftSeconds)
}
