package pressure

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/protocols/internal/effect"
)

// A schedule puts a message into its queue whenever a cron expression comes due. Its next time is stored with it, so
// that a server that was down at that time, or for many of them, runs it once when it is up again.

const (
	// maxSchedules is how many schedules a queue has.
	maxSchedules = 1000
	// maxExpression is the length of the longest cron expression.
	maxExpression = 256
	// fullPause is after how many ms a run is tried again that has found its queue full.
	fullPause = 1000
	// zonePause is after how many ms a run is tried again whose time zone the system does not have (any more).
	zonePause = 60_000
)

// schedule is a value of :schedules: "<next> <length of the expression> <expression><message>".
type schedule struct {
	next                int64 // ms since 1970
	expression, message []byte
}

func (s *schedule) append(dst []byte) []byte {
	dst = fmt.Appendf(dst, "%d %d ", s.next, len(s.expression))
	return append(append(dst, s.expression...), s.message...)
}

// parseSchedule reads such a value.
func parseSchedule(v []byte) (s schedule, ok bool) {
	next, rest, _ := bytes.Cut(v, []byte{' '})
	length, rest, _ := bytes.Cut(rest, []byte{' '})
	n, err := strconv.Atoi(string(length))
	if err != nil || n < 0 || n > len(rest) {
		return schedule{}, false
	}
	s.next, err = strconv.ParseInt(string(next), 10, 64)
	s.expression, s.message = rest[:n], rest[n:]
	return s, err == nil
}

// nextTime returns the first time of a cron expression after now, in ms since 1970, in UTC unless the expression
// begins with CRON_TZ=; ok is false if it is invalid or has no such time.
func nextTime(expression []byte, now int64) (at int64, ok bool) {
	zone, _, fields := bytes.Cut(expression, []byte{' '})
	if len(expression) > maxExpression || bytes.Contains(zone, []byte("TZ=")) && !fields {
		return 0, false // the parser takes for granted that fields follow a zone
	}
	parsed, err := cron.ParseStandard(string(expression))
	if err != nil {
		return 0, false
	}
	next := parsed.Next(time.UnixMilli(now).UTC())
	return next.UnixMilli(), !next.IsZero()
}

// loadZone loads the time zone of a cron expression that begins with one.
func loadZone(expression []byte) (zone string, err error) {
	first, _, _ := bytes.Cut(expression, []byte{' '})
	name, zone, ok := strings.Cut(string(first), "=")
	if !ok || name != "CRON_TZ" && name != "TZ" {
		return "", nil
	}
	_, err = time.LoadLocation(zone)
	return zone, err
}

// runSchedules puts the messages of the schedules that are due into the queue, each once, and returns the next time.
// A closed queue takes no messages any more, so its schedules end.
func (q *pressureQueue) runSchedules() (next int64) {
	next = math.MaxInt64
	h := effect.Hash(q.c, q.keys[qSchedules])
	if h == nil {
		return next
	}
	if q.has(qClosed) {
		q.remove(qSchedules)
		return next
	}
	now := q.c.Now()
	var dueNames []string
	for name, v := range h.All() {
		if s, ok := parseSchedule(v); ok && s.next > now {
			next = min(next, s.next)
		} else {
			dueNames = append(dueNames, string(name))
		}
	}
	slices.Sort(dueNames)
	for _, name := range dueNames {
		v, _ := effect.HGet(q.c, q.keys[qSchedules], []byte(name))
		s, ok := parseSchedule(bytes.Clone(v))
		var at int64
		if ok {
			if zone, err := loadZone(s.expression); err != nil {
				q.c.Host.Log().Warn("a schedule waits for its time zone", "queue", string(q.keys[qMessages]),
					"schedule", name, "zone", zone, "err", err)
				next = min(next, now+zonePause)
				continue
			}
			at, ok = nextTime(s.expression, now)
		}
		switch {
		case !ok:
			effect.HDel(q.c, q.keys[qSchedules], []byte(name))
		case q.room() == 0:
			next = min(next, now+fullPause)
		default:
			s.next = at
			effect.HSet(q.c, q.keys[qSchedules], []byte(name), s.append(nil))
			q.push(qMessages, s.message)
			q.count(qProducedMessages, qProducedBytes, 1, int64(len(s.message)))
			q.service().stats.count(q, now, statPut, 1)
			q.settleNotFull(false)
			next = min(next, at)
		}
	}
	return next
}

// cmdPressureSchedule adds or replaces a schedule.
func cmdPressureSchedule(c *command.Ctx) {
	a, ok := readPressureArgs(c, &pressureAck)
	if !ok {
		return
	}
	if len(a.values) != 3 {
		c.Err(command.ErrSyntax)
		return
	}
	name := a.values[0]
	s := schedule{expression: a.values[1], message: a.values[2]}
	if s.next, ok = nextTime(s.expression, c.Now()); !ok {
		c.Err(errCron)
		return
	}
	q := queueOf(c, a)
	if !q.open() {
		return
	}
	q.refresh()
	h := effect.Hash(c, q.keys[qSchedules])
	switch {
	case q.has(qClosed):
		c.Err(errQueueClosed)
		return
	case h != nil && h.Len() >= maxSchedules && !h.Has(name):
		c.Err(errSchedules)
		return
	}
	q.addTo()
	effect.HSet(c, q.keys[qSchedules], name, s.append(nil))
	q.service().reservations.Note(q.id(), s.next)
	c.W.Int(s.next)
}

// cmdPressureUnschedule removes schedules.
func cmdPressureUnschedule(c *command.Ctx) {
	a, ok := readPressureArgs(c, &pressureAck)
	if !ok {
		return
	}
	q := queueOf(c, a)
	if !q.open() {
		return
	}
	c.W.Int(int64(effect.HDel(c, q.keys[qSchedules], a.values...)))
}

// cmdPressureSchedules lists the schedules of a queue by name.
func cmdPressureSchedules(c *command.Ctx) {
	q, ok := openQueue(c, &pressureInfo)
	if !ok {
		return
	}
	h := effect.Hash(c, q.keys[qSchedules])
	if h == nil {
		c.W.Array(0)
		return
	}
	var names []string
	for name := range h.All() {
		names = append(names, string(name))
	}
	slices.Sort(names)
	c.W.Array(len(names))
	for _, name := range names {
		v, _ := h.Get([]byte(name))
		s, _ := parseSchedule(v)
		c.W.Map(4)
		c.W.BulkString("name")
		c.W.BulkString(name)
		c.W.BulkString("cron")
		c.W.Bulk(s.expression)
		c.W.BulkString("message")
		c.W.Bulk(s.message)
		c.W.BulkString("next")
		c.W.Int(s.next)
	}
}
