package http

import (
	"slices"
	"strconv"

	"github.com/atomredis/atomredis/resp"
)

// maxStreams limits the number of streams in one answer.
const maxStreams = 10_000

var (
	streamLength = gauge("redis_stream_length", "Entries of a stream.")
	streamGroups = gauge("redis_stream_groups", "Groups of a stream.")
)

// groupFields has the numeric fields of XINFO GROUPS.
var groupFields = map[string]metric{
	"consumers":    gauge("redis_stream_group_consumers", "Consumers of a group."),
	"pending":      gauge("redis_stream_group_messages_pending", "Entries that a group has delivered and no consumer has acknowledged."),
	"entries-read": gauge("redis_stream_group_entries_read", "Entries that a group has read."),
	"lag":          gauge("redis_stream_group_lag", "Entries that a group has not read yet."),
}

// streams adds metrics of the streams whose keys match the request's patterns.
func (s *scrape) streams() error {
	query := s.r.URL.Query()
	if db := query.Get("db"); db != "" {
		n, err := strconv.Atoi(db)
		if err != nil {
			return resp.Error("ERR invalid DB index")
		}
		if err := s.client.Select(s.r.Context(), n); err != nil {
			return err
		}
		defer s.client.Select(s.r.Context(), 0)
	}
	db := "db" + query.Get("db")
	if db == "db" {
		db = "db0"
	}
	told := map[string]bool{}
	for _, pattern := range query["stream"] {
		cursor := "0"
		for first := true; first || cursor != "0"; first = false {
			reply, err := s.do("SCAN", cursor, "MATCH", pattern, "TYPE", "stream", "COUNT", 1000)
			if err != nil {
				return err
			}
			page, err := reply.Slice()
			if err != nil {
				return err
			}
			keys, err := page[1].Texts()
			if err != nil {
				return err
			}
			for _, key := range keys {
				if told[key] {
					continue
				}
				if len(told) == maxStreams {
					return nil
				}
				told[key] = true
				if err := s.stream(db, key); err != nil {
					return err
				}
			}
			if cursor, err = page[0].Text(); err != nil {
				return err
			}
		}
	}
	return nil
}

// stream adds metrics of a stream, if the key still is one.
func (s *scrape) stream(db, key string) error {
	length, err := s.do("XLEN", key)
	if err != nil {
		return allowed(err)
	}
	n, err := length.Int()
	if err != nil {
		return err
	}
	reply, err := s.do("XINFO", "GROUPS", key)
	if err != nil {
		return nil // the key is gone
	}
	groups, err := reply.Slice()
	if err != nil {
		return err
	}
	s.add(streamLength, float64(n), "db", db, "stream", key)
	s.add(streamGroups, float64(len(groups)), "db", db, "stream", key)
	for _, g := range groups {
		of, err := g.Map()
		if err != nil {
			return err
		}
		name, err := of["name"].Text()
		if err != nil {
			return err
		}
		for field, m := range groupFields {
			if n, err := of[field].Int(); err == nil { // lag may be unknown
				s.add(m, float64(n), "db", db, "stream", key, "group", name)
			}
		}
	}
	return nil
}

// system is a coordination system, with the commands that list its objects and describe one of them.
type system struct {
	list, describe []any
	label          string
	fields         map[string]metric
}

var collected = map[string]system{
	"pressure": {[]any{"PRESSURE.LIST"}, []any{"PRESSURE.INFO"}, "queue", map[string]metric{
		"length":            gauge("atomredis_pressure_queue_length", "Messages of a queue."),
		"bound":             gauge("atomredis_pressure_queue_bound", "The bound of a queue in messages; 0 means none."),
		"closed":            gauge("atomredis_pressure_queue_closed", "A queue is closed."),
		"produced_messages": counter("atomredis_pressure_queue_produced_messages_total", "Messages that were put into a queue."),
		"produced_bytes":    counter("atomredis_pressure_queue_produced_bytes_total", "Bytes that were put into a queue."),
		"consumed_messages": counter("atomredis_pressure_queue_consumed_messages_total", "Messages that were taken from a queue."),
		"consumed_bytes":    counter("atomredis_pressure_queue_consumed_bytes_total", "Bytes that were taken from a queue."),
		"producer_free":     gauge("atomredis_pressure_queue_producer_free", "A queue has no producer."),
		"consumer_free":     gauge("atomredis_pressure_queue_consumer_free", "A queue has no consumer."),
		"blocked_producers": gauge("atomredis_pressure_queue_blocked_producers", "Clients that wait until they can put."),
		"blocked_consumers": gauge("atomredis_pressure_queue_blocked_consumers", "Clients that wait for messages."),
		"reserved":          gauge("atomredis_pressure_queue_reserved", "Reserved messages of a queue."),
		"redelivered":       counter("atomredis_pressure_queue_redelivered_total", "Reserved messages that returned unacknowledged."),
		"delayed":           gauge("atomredis_pressure_queue_delayed", "Messages of a queue that come due later."),
		"dead":              gauge("atomredis_pressure_queue_dead", "Messages of a queue that have failed for good."),
		"schedules":         gauge("atomredis_pressure_queue_schedules", "Schedules of a queue."),
	}},
	"atom": {[]any{"ATOM.ELEMENTS"}, []any{"ATOM.INFO"}, "element", map[string]metric{
		"connections": gauge("atomredis_atom_element_connections", "Connections of an element."),
		"backlog":     gauge("atomredis_atom_element_backlog", "Commands that an element has not taken."),
		"pending":     gauge("atomredis_atom_element_pending", "Commands that an element has taken and not finished."),
		"idle":        gauge("atomredis_atom_element_idle_seconds", "How long an element has been silent.").in(milli),
	}},
	"spiderq": {[]any{"SPIDERQ.LIST"}, []any{"SPIDERQ.INFO"}, "queue", map[string]metric{
		"keys":   gauge("atomredis_spiderq_queue_keys", "Keys of a queue."),
		"queued": gauge("atomredis_spiderq_queue_queued", "Keys of a queue that can be lent."),
		"lent":   gauge("atomredis_spiderq_queue_lent", "Keys of a queue that are lent."),
	}},
}

// elementUp is 1 for an element that serves commands.
var elementUp = gauge("atomredis_atom_element_up", "An element is alive.")

// systems adds metrics of the requested systems.
func (s *scrape) systems() error {
	names := s.r.URL.Query()["collect"]
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		of, ok := collected[name]
		if !ok {
			return resp.Error("ERR collect must be one of the following: atom, pressure, spiderq")
		}
		if err := s.system(of); err != nil {
			return err
		}
	}
	return nil
}

func (s *scrape) system(of system) error {
	reply, err := s.do(of.list...)
	if err != nil {
		return err
	}
	names, err := reply.Texts()
	if err != nil {
		return err
	}
	for _, name := range names {
		reply, err := s.do(append(slices.Clip(of.describe), name)...)
		if err != nil {
			continue // the object is gone
		}
		about, err := reply.Map()
		if err != nil {
			return err
		}
		for field, m := range of.fields {
			if n, err := about[field].Int(); err == nil { // null is unknown
				s.add(m, float64(n), of.label, name)
			}
		}
		if state, err := about["state"].Text(); err == nil {
			up := 0.0
			if state == "alive" {
				up = 1
			}
			s.add(elementUp, up, of.label, name)
		}
	}
	return nil
}
