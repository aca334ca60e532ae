package commandtest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/documents"
	"github.com/atomredis/atomredis/engine/search/suggest"
	"github.com/atomredis/atomredis/engine/streams"
)

// Dump returns all stored data, a line for each key.
func Dump(ks *engine.Keyspace, now int64) []string {
	var g engine.Guard
	g.Lock(ks, engine.AllShards, now)
	defer g.Unlock()
	var out []string
	for db := range ks.Databases() {
		g.Each(db, func(e *engine.Entry) bool {
			blessed := ""
			if e.Blessed() {
				blessed = " blessed"
			}
			out = append(out, fmt.Sprintf("%d %q %s expires %d%s: %s", db, e.Key(), e.Type(), e.Deadline(), blessed, dumpValue(e)))
			return true
		})
	}
	slices.Sort(out)
	return out
}

// dumpValue describes a value, with its elements in an order that does not depend on the process.
func dumpValue(e *engine.Entry) string {
	var words []string
	switch e.Type() {
	case engine.String:
		return strconv.Quote(string(e.Bytes()))
	case engine.List:
		e.List().Range(0, e.List().Len()-1, func(v []byte) bool {
			words = append(words, strconv.Quote(string(v)))
			return true
		})
	case engine.Set:
		for member := range e.Set().All() {
			words = append(words, strconv.Quote(string(member)))
		}
		for member, at := range e.Set().Deadlines() {
			words = append(words, fmt.Sprintf("%q expires %d", member, at))
		}
		slices.Sort(words)
		words = append(words, e.Set().Encoding())
	case engine.ZSet:
		e.ZSet().RangeByRank(0, e.ZSet().Len()-1, false, func(member []byte, score float64) bool {
			words = append(words, fmt.Sprintf("%q=%v", member, score))
			return true
		})
		words = append(words, e.ZSet().Encoding())
	case engine.Hash:
		for field, value := range e.Hash().All() {
			words = append(words, fmt.Sprintf("%q=%q", field, value))
		}
		for field, at := range e.Hash().Deadlines() {
			words = append(words, fmt.Sprintf("%q expires %d", field, at))
		}
		slices.Sort(words)
		words = append(words, e.Hash().Encoding())
	case engine.Stream:
		words = dumpStream(e.Stream())
	case engine.Bloom:
		words = dumpSketch(e.Bloom())
	case engine.JSON:
		words = append(words, string(e.JSON().Root().AppendJSON(nil, documents.Layout{})))
	case engine.Cuckoo:
		words = dumpSketch(e.Cuckoo())
	case engine.CountMin:
		words = dumpSketch(e.CountMin())
	case engine.TopK:
		words = dumpSketch(e.TopK())
	case engine.TDigest:
		words = dumpSketch(e.TDigest())
	case engine.TimeSeries:
		words = dumpSketch(e.Series())
	case engine.Array:
		words = dumpSketch(e.Array())
	case engine.VectorSet:
		words = dumpSketch(e.Vectors())
	case engine.PathHash:
		words = dumpSketch(e.PathHash())
	case engine.Bitmap:
		words = dumpSketch(e.Bitmap())
	case engine.Suggestions:
		e.Suggestions().Each(func(s suggest.Suggestion) bool {
			words = append(words, fmt.Sprintf("%q %v %q", s.Text, s.Score, s.Payload))
			return true
		})
	}
	return strings.Join(words, " ")
}

func dumpStream(s *streams.Stream) []string {
	id := func(id streams.ID) string { return string(id.Append(nil)) }
	words := []string{fmt.Sprintf("last %s deleted %s added %d", id(s.LastID()), id(s.MaxDeletedID()), s.EntriesAdded())}
	s.Range(streams.MinID, streams.MaxID, false, func(e streams.Entry) bool {
		words = append(words, id(e.ID))
		for field, value := range e.Fields() {
			words = append(words, fmt.Sprintf("%q=%q", field, value))
		}
		return true
	})
	for _, g := range s.Groups() {
		words = append(words, fmt.Sprintf("\n group %q last %s read %d", g.Name, id(g.LastID), g.EntriesRead))
		for _, c := range g.Consumers() {
			words = append(words, fmt.Sprintf("\n  consumer %q seen %d active %d", c.Name, c.SeenTime, c.ActiveTime))
		}
		g.Pending(streams.MinID, streams.MaxID, func(n *streams.NACK) bool {
			words = append(words, fmt.Sprintf("\n  pending %s for %q at %d, %d times", id(n.ID), n.Owner(),
				n.DeliveryTime(), n.DeliveryCount))
			return true
		})
		g.EachReleased(func(n *streams.NACK) { words = append(words, "\n  released "+id(n.ID)) })
	}
	if s.Idempotence() == (streams.Idempotence{}) {
		return words
	}
	words = append(words, fmt.Sprintf("\n producers %v %v", s.Idempotence(), s.ProducerCounts(streams.Always)))
	s.Productions(func(producer, iid []byte, entry streams.ID) {
		words = append(words, fmt.Sprintf("\n  %q of %q is %s", iid, producer, id(entry)))
	})
	return words
}

func dumpSketch(sketch interface{ AppendBlob(dst []byte) []byte }) []string {
	return []string{fmt.Sprintf("%x", sketch.AppendBlob(nil))}
}
