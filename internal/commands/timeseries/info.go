package timeseries

import (
	"strings"

	"github.com/atomredis/atomredis/engine/timeseries"
	"github.com/atomredis/atomredis/internal/command"
)

func cmdInfo(c *command.Ctx) {
	if len(c.Args) > 3 {
		c.Err(wrongArguments(c))
		return
	}
	e, ok := readSeries(c, c.Args[1])
	if !ok || !holdsLinks(c, e.Series()) {
		return
	}
	s, w := e.Series(), c.W
	debug := len(c.Args) == 3 && command.EqualFold(c.Args[2], "debug")
	n := 14
	if debug {
		n += 2
	}
	w.Map(n)
	number := func(name string, n int64) {
		w.Simple(name)
		w.Int(n)
	}
	samples, first := s.Visible()
	last, _ := s.Newest()
	number("totalSamples", int64(samples))
	number("memoryUsage", int64(e.MemoryUsage()))
	number("firstTimestamp", first)
	number("lastTimestamp", last.Time)
	number("retentionTime", s.Retention)
	number("chunkCount", int64(s.Chunks()))
	number("chunkSize", int64(s.ChunkSize))
	w.Simple("chunkType")
	if s.Plain {
		w.Simple("uncompressed")
	} else {
		w.Simple("compressed")
	}
	w.Simple("duplicatePolicy")
	if s.Policy == timeseries.Unset {
		w.Null()
	} else {
		w.Simple(s.Policy.String())
	}
	w.Simple("labels")
	show := shown{all: true}
	show.write(w, s.Labels())
	w.Simple("sourceKey")
	if source, _ := sourceRule(c, e.Key(), s); source != nil {
		w.BulkString(s.Source())
	} else {
		w.Null()
	}
	w.Simple("rules")
	live := rules(c, e.Key(), s)
	begin(w, len(live))
	for _, r := range live {
		if w.Proto != 3 {
			w.Array(4)
		}
		w.BulkString(r.Destination)
		if w.Proto == 3 {
			w.Array(3)
		}
		w.Int(r.Bucket)
		w.Simple(strings.ToUpper(r.Aggregator.String()))
		w.Int(r.Align)
	}
	number("ignoreMaxTimeDiff", s.IgnoreTime)
	w.Simple("ignoreMaxValDiff")
	w.Double(s.IgnoreValue)
	if !debug {
		return
	}
	w.Simple("keySelfName")
	w.BulkString(e.Key())
	w.Simple("Chunks")
	mark, chunks := w.Defer(), 0
	chunk := func(k timeseries.Chunk) {
		w.Map(5)
		number("startTimestamp", k.First)
		number("endTimestamp", k.Last)
		number("samples", int64(k.Samples))
		number("size", int64(k.Size))
		w.Simple("bytesPerSample")
		if k.Samples > 0 {
			w.Double(float64(float32(k.Size) / float32(k.Samples)))
		} else {
			w.Double(0)
		}
		chunks++
	}
	s.EachChunk(chunk)
	if chunks == 0 { // the chunk for the first sample
		chunk(timeseries.Chunk{First: -1, Last: -1, Size: s.ChunkSize})
	}
	w.EndArray(mark, chunks)
}
