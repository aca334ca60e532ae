package http

import (
	"fmt"
	"iter"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"

	"github.com/atomredis/atomredis/doors/door"
	"github.com/atomredis/atomredis/resp"
)

// metrics answers with all fields of INFO, latencies of commands, and figures of the process. Metrics whose cost grows
// with the data must be requested with parameters: stream (a pattern of keys, repeatable), collect (pressure, atom or
// spiderq), and db.
func (d *server) metrics(w http.ResponseWriter, r *http.Request, c *door.Client) error {
	s := scrape{r: r, client: c, named: map[string]*dto.MetricFamily{}}
	for _, step := range []func() error{s.info, s.latency, s.slowLog, s.streams, s.systems} {
		if err := step(); err != nil {
			return err
		}
	}
	of, err := d.process.Gather()
	if err != nil {
		return err
	}
	gather := prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) { return s.families(of), nil })
	promhttp.HandlerFor(gather, promhttp.HandlerOpts{EnableOpenMetrics: true}).ServeHTTP(w, r)
	return nil
}

// scrape collects the metrics of one request. It uses no registry: valid names and unique labels are guaranteed by
// construction, and a registry would check them for each of many metrics.
type scrape struct {
	r      *http.Request
	client *door.Client
	named  map[string]*dto.MetricFamily
	nanos  map[string]float64 // by command: total seconds of its calls
}

// families returns the metrics together with others, in the order of their names.
func (s *scrape) families(others []*dto.MetricFamily) []*dto.MetricFamily {
	return slices.SortedFunc(func(yield func(*dto.MetricFamily) bool) {
		for _, list := range [2]iter.Seq[*dto.MetricFamily]{maps.Values(s.named), slices.Values(others)} {
			for f := range list {
				if !yield(f) {
					return
				}
			}
		}
	}, func(a, b *dto.MetricFamily) int { return strings.Compare(a.GetName(), b.GetName()) })
}

// family returns the family of a metric.
func (s *scrape) family(name, help string, kind dto.MetricType) *dto.MetricFamily {
	f := s.named[name]
	if f == nil {
		f = &dto.MetricFamily{Name: &name, Help: &help, Type: &kind}
		s.named[name] = f
	}
	return f
}

// do executes a command.
func (s *scrape) do(args ...any) (resp.Reply, error) { return s.client.Do(s.r.Context(), args...) }

// add adds a metric. labels are names and values in turn.
func (s *scrape) add(m metric, value float64, labels ...string) {
	value *= m.scale
	f, told := s.family(m.name, m.help, m.kind), &dto.Metric{}
	switch m.kind {
	case dto.MetricType_COUNTER:
		told.Counter = &dto.Counter{Value: &value}
	case dto.MetricType_GAUGE:
		told.Gauge = &dto.Gauge{Value: &value}
	default:
		told.Untyped = &dto.Untyped{Value: &value}
	}
	pairs := make([]dto.LabelPair, len(labels)/2)
	for i := range pairs {
		pairs[i].Name, pairs[i].Value = &labels[2*i], new(strings.ToValidUTF8(labels[2*i+1], "\uFFFD"))
		told.Label = append(told.Label, &pairs[i])
	}
	slices.SortFunc(told.Label, func(a, b *dto.LabelPair) int { return strings.Compare(a.GetName(), b.GetName()) })
	f.Metric = append(f.Metric, told)
}

// info adds the metrics of INFO.
func (s *scrape) info() error {
	text, err := ask(s.r.Context(), s.client, "INFO", "everything")
	if err != nil {
		return err
	}
	s.nanos = map[string]float64{}
	about := map[string]string{}
	for _, f := range fieldsOf(text) {
		about[f.name] = f.value
		s.field(f)
	}
	labels := []string{}
	for _, name := range []string{"redis_version", "atomredis_version", "redis_build_id", "redis_mode", "os", "role", "tcp_port", "run_id",
		"maxmemory_policy", "process_id"} {
		labels = append(labels, name, about[name])
	}
	s.add(gauge("redis_instance_info", "Facts about the server."), 1, labels...)
	s.add(gauge("redis_up", "The server answers."), 1)
	return nil
}

// field adds the metric of a field of INFO, if the value is a number.
func (s *scrape) field(f field) {
	switch prefix, rest, _ := strings.Cut(f.name, "_"); {
	case prefix == "cmdstat":
		s.command(rest, parts(f.value))
		return
	case prefix == "errorstat":
		n, _ := strconv.ParseFloat(parts(f.value)["count"], 64)
		s.add(counter("redis_errors_total", "Error replies by their first word."), n, "err", rest)
		return
	case prefix == "latency": // latency_percentiles_usec: histograms replace them
		return
	case strings.HasPrefix(f.section, "Door_"):
		s.door(strings.ToLower(strings.TrimPrefix(f.section, "Door_")), f)
		return
	case strings.HasPrefix(f.name, "db") && strings.HasPrefix(f.value, "keys="):
		s.database(f)
		return
	case strings.HasPrefix(f.name, "slave") && strings.HasPrefix(f.value, "ip="):
		s.follower(f)
		return
	case strings.HasPrefix(f.name, "raft_member") && strings.HasPrefix(f.value, "addr="):
		s.member(f)
		return
	}
	if m, ok := flags[f.name]; ok {
		value := 0.0
		if f.value == m.value {
			value = 1
		}
		s.add(m.metric, value)
		return
	}
	m, ok := fields[f.name]
	if !ok || m.name == "" {
		return
	}
	if value, err := strconv.ParseFloat(f.value, 64); err == nil {
		s.add(m, value)
	}
}

// command adds the counters of a command.
func (s *scrape) command(name string, stats map[string]string) {
	number := func(key string) float64 {
		n, _ := strconv.ParseFloat(stats[key], 64)
		return n
	}
	s.nanos[name] = number("usec") / 1e6
	s.add(counter("redis_commands_total", "Calls of a command that were executed."), number("calls"), "cmd", name)
	s.add(counter("redis_commands_duration_seconds_total", "The duration of the calls of a command."), s.nanos[name], "cmd", name)
	s.add(counter("redis_commands_rejected_calls_total", "Calls of a command that were not executed."), number("rejected_calls"), "cmd", name)
	s.add(counter("redis_commands_failed_calls_total", "Calls of a command that replied with an error."), number("failed_calls"), "cmd", name)
}

// door adds a counter of a door: common counters are labelled with the door's name, others are named after the door.
func (s *scrape) door(name string, f field) {
	value, err := strconv.ParseFloat(f.value, 64)
	if err != nil {
		return
	}
	if common, ok := strings.CutPrefix(f.name, "door_"+name+"_"); ok {
		if m, ok := doorFields[common]; ok {
			s.add(m, value, "door", name)
		}
		return
	}
	s.add(metric{"atomredis_door_" + f.name, "What a door says of itself in INFO.", dto.MetricType_UNTYPED, 1}, value)
}

// database adds the metrics of a database.
func (s *scrape) database(f field) {
	for k, m := range databaseFields {
		if n, err := strconv.ParseFloat(parts(f.value)[k], 64); err == nil {
			s.add(m, n, "db", f.name)
		}
	}
}

// follower adds the position of a follower.
func (s *scrape) follower(f field) {
	p := parts(f.value)
	for k, m := range followerFields {
		if n, err := strconv.ParseFloat(p[k], 64); err == nil {
			s.add(m, n, "slave_ip", p["ip"], "slave_port", p["port"], "slave_state", p["state"])
		}
	}
}

// member adds what is known of a server of the group.
func (s *scrape) member(f field) {
	p := parts(f.value)
	for k, m := range memberFields {
		if n, err := strconv.ParseFloat(p[k], 64); err == nil {
			s.add(m, n, "member", p["addr"])
		}
	}
}

// latency adds histograms of commands. A user may be allowed INFO but not LATENCY.
func (s *scrape) latency() error {
	reply, err := s.do("LATENCY", "HISTOGRAM")
	if err != nil {
		return allowed(err)
	}
	commands, err := reply.Map()
	if err != nil {
		return err
	}
	f := s.family("redis_commands_latency_seconds", "How long calls of a command took.", dto.MetricType_HISTOGRAM)
	for name, of := range commands {
		calls, counts, err := histogram(of)
		if err != nil {
			return fmt.Errorf("LATENCY HISTOGRAM of %s: %w", name, err)
		}
		h := &dto.Histogram{SampleCount: &calls, SampleSum: new(s.nanos[name])}
		for _, limit := range slices.Sorted(maps.Keys(counts)) {
			h.Bucket = append(h.Bucket, &dto.Bucket{UpperBound: &limit, CumulativeCount: new(counts[limit])})
		}
		f.Metric = append(f.Metric, &dto.Metric{Histogram: h, Label: []*dto.LabelPair{{Name: new("cmd"), Value: &name}}})
	}
	return nil
}

// histogram reads the reply of LATENCY HISTOGRAM for a command: the number of calls, and cumulative counts by seconds.
func histogram(reply resp.Reply) (calls uint64, counts map[float64]uint64, err error) {
	fields, err := reply.Map()
	if err != nil {
		return 0, nil, err
	}
	n, err := fields["calls"].Int()
	if err != nil {
		return 0, nil, err
	}
	buckets, err := fields["histogram_usec"].Map()
	if err != nil {
		return 0, nil, err
	}
	counts = map[float64]uint64{}
	for usec, count := range buckets {
		limit, err := strconv.ParseFloat(usec, 64)
		if err != nil {
			return 0, nil, err
		}
		upTo, err := count.Int()
		if err != nil {
			return 0, nil, err
		}
		counts[limit/1e6] = uint64(upTo)
	}
	return uint64(n), counts, nil
}

func (s *scrape) slowLog() error {
	reply, err := s.do("SLOWLOG", "LEN")
	if err != nil {
		return allowed(err)
	}
	n, err := reply.Int()
	if err != nil {
		return err
	}
	s.add(gauge("redis_slowlog_length", "Entries of the slow log."), float64(n))
	return nil
}

// allowed returns nil for NOPERM: without the permission for a command, its metrics are left out.
func allowed(err error) error {
	if strings.HasPrefix(err.Error(), "NOPERM ") {
		return nil
	}
	return err
}
