package timeseries

import (
	"bytes"
	"math"
	"strconv"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/labels"
	"github.com/atomredis/atomredis/engine/timeseries"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/resp"
)

const (
	errRetention command.Error = "ERR TSDB: Couldn't parse RETENTION"
	errChunkSize command.Error = "ERR TSDB: CHUNK_SIZE value must be a multiple of 8 in the range [48 .. 1048576]"
	errEncoding  command.Error = "ERR TSDB: unknown ENCODING parameter"
	errIgnore    command.Error = "ERR TSDB: Couldn't parse IGNORE"
	errLabels    command.Error = "ERR TSDB: Couldn't parse LABELS"
)

// options are the options of a new series.
type options struct {
	settings  timeseries.Settings
	labels    []labels.Label
	hasLabels bool
}

func validChunkSize(n int64) bool {
	return n >= timeseries.MinChunkSize && n <= timeseries.MaxChunkSize && n%8 == 0
}

// parseEncoding reads the name of an encoding, in any case.
func parseEncoding(word []byte) (plain, ok bool) {
	plain = command.EqualFold(word, "uncompressed")
	return plain, plain || command.EqualFold(word, "compressed")
}

// parseOptions reads the options from index from on into o.
func parseOptions(args [][]byte, from int, o *options) command.Error {
	s := &o.settings
	argument := func(i int) []byte {
		if i < len(args) {
			return args[i]
		}
		return nil
	}
	if i := find(args, from, "retention"); i > 0 {
		n, ok := resp.ParseInt(argument(i + 1))
		if !ok || n < 0 {
			return errRetention
		}
		s.Retention = n
	}
	if i := find(args, from, "chunk_size"); i > 0 {
		n, ok := resp.ParseInt(argument(i + 1))
		switch {
		case !ok:
			return "ERR TSDB: Couldn't parse CHUNK_SIZE"
		case !validChunkSize(n):
			return errChunkSize
		}
		s.ChunkSize = int(n)
	}
	at := find(args, from, "labels")
	if i := find(args, from, "encoding"); i > 0 {
		var ok bool
		if s.Plain, ok = parseEncoding(argument(i + 1)); !ok {
			return errEncoding
		}
	} else if i := find(args, from, "uncompressed"); i > 0 && (at == 0 || i < at) { // the form of old versions
		s.Plain = true
	}
	if i := find(args, from, "duplicate_policy"); i > 0 {
		if i+1 == len(args) {
			return "ERR TSDB: Couldn't parse DUPLICATE_POLICY"
		}
		var ok bool
		if s.Policy, ok = timeseries.ParsePolicy(command.Lower(args[i+1])); !ok {
			return errPolicy
		}
	}
	if i := find(args, from, "ignore"); i > 0 {
		n, ok := resp.ParseInt(argument(i + 1))
		f, err := strconv.ParseFloat(string(argument(i+2)), 64)
		switch {
		case !ok || err != nil || f != f || math.IsInf(f, 0):
			return errIgnore
		case n < 0 || f < 0:
			return "ERR TSDB: IGNORE arguments cannot be negative"
		}
		s.IgnoreTime, s.IgnoreValue = n, f
	}
	if at == 0 {
		return ""
	}
	o.hasLabels = true
	var ok bool
	if o.labels, ok = parseLabels(args[at+1:]); !ok {
		return errLabels
	}
	return ""
}

// parseLabels reads pairs of names and values; it ignores a single word at the end.
func parseLabels(words [][]byte) (l []labels.Label, ok bool) {
	for ; len(words) >= 2; words = words[2:] {
		if len(words[0]) == 0 || len(words[1]) == 0 || bytes.ContainsAny(words[1], "(),") {
			return nil, false
		}
		l = append(l, labels.Label{Name: string(words[0]), Value: string(words[1])})
	}
	return l, true
}

func cmdCreate(c *command.Ctx) {
	key := c.Args[1]
	o := options{settings: defaults(c.Host)}
	if err := parseOptions(c.Args, 2, &o); err != "" {
		c.Err(err)
		return
	}
	if c.G.Write(c.DB, key) != nil {
		c.Err(errExists)
		return
	}
	create(c, key, &o, "ts.create")
	c.Journal(appendOptions([][]byte{[]byte("TS.CREATE"), key}, &o)...)
	c.W.OK()
}

// create creates a series.
func create(c *command.Ctx, key []byte, o *options, event string) *engine.Entry {
	s := timeseries.New(o.settings)
	s.SetLabels(o.labels)
	e := c.G.Create(c.DB, key, s)
	if event != "" {
		c.G.Changed(e, engine.EventModule, event)
	}
	return e
}

// appendOptions appends all options of a series, for a command that does not depend on directives.
func appendOptions(args [][]byte, o *options) [][]byte {
	s := &o.settings
	encoding := "COMPRESSED"
	if s.Plain {
		encoding = "UNCOMPRESSED"
	}
	args = append(args, []byte("RETENTION"), integer(s.Retention), []byte("ENCODING"), []byte(encoding),
		[]byte("CHUNK_SIZE"), integer(int64(s.ChunkSize)))
	if s.Policy != timeseries.Unset {
		args = append(args, []byte("DUPLICATE_POLICY"), []byte(s.Policy.String()))
	}
	args = append(args, []byte("IGNORE"), integer(s.IgnoreTime), strconv.AppendFloat(nil, s.IgnoreValue, 'g', -1, 64))
	if len(o.labels) > 0 {
		args = append(args, []byte("LABELS"))
		for _, l := range o.labels {
			args = append(args, []byte(l.Name), []byte(l.Value))
		}
	}
	return args
}

// integer returns n as an argument.
func integer(n int64) []byte { return strconv.AppendInt(nil, n, 10) }

func cmdAlter(c *command.Ctx) {
	e, ok := writeSeries(c, c.Args[1])
	if !ok {
		return
	}
	s := e.Series()
	o := options{settings: s.Settings}
	if err := parseOptions(c.Args, 2, &o); err != "" {
		c.Err(err)
		return
	}
	o.settings.Plain = s.Plain
	s.Set(o.settings)
	if o.hasLabels {
		s.SetLabels(o.labels)
		c.G.Relabelled(e)
	}
	c.G.Changed(e, engine.EventModule, "ts.alter")
	c.W.OK()
}

// writeSeries returns the entry of a series to change; if there is none, it writes an error and ok is false.
func writeSeries(c *command.Ctx, key []byte) (e *engine.Entry, ok bool) {
	return series(c, c.G.Write(c.DB, key))
}

// readSeries is writeSeries for a series to read.
func readSeries(c *command.Ctx, key []byte) (e *engine.Entry, ok bool) {
	return series(c, c.G.Read(c.DB, key))
}

func series(c *command.Ctx, e *engine.Entry) (*engine.Entry, bool) {
	switch {
	case e == nil:
		c.Err(errNoKey)
	case e.Type() != engine.TimeSeries:
		c.Err(errWrongType)
	default:
		return e, true
	}
	return nil, false
}
