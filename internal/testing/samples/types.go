package samples

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/atomredis/atomredis/engine/hashes"
	"github.com/atomredis/atomredis/engine/lists"
	"github.com/atomredis/atomredis/engine/sets"
	"github.com/atomredis/atomredis/engine/streams"
	"github.com/atomredis/atomredis/engine/zsets"
)

// The limits of the small forms. They are low so that values become large soon.
var (
	HashLimits   = hashes.Limits{Entries: 8, Value: 64}
	SetLimits    = sets.Limits{IntsetEntries: 8, ListpackEntries: 8, ListpackValue: 64}
	ZSetLimits   = zsets.Limits{Entries: 8, Value: 64}
	StreamLimits = streams.Limits{Entries: 4}
)

// ListLimit is the size of the nodes of lists.
const ListLimit lists.Limit = 4

var long = strings.Repeat("longer than what is kept in a packed form ", 3)

var text = Type{
	Name: "string",
	Values: func() map[string]any {
		values := map[string]any{"empty": []byte{}, "number": []byte("-12345"), "binary": []byte("\x00\r\n\xff")}
		// Strings stored after the key, stored separately, lent to replies, and stored in pieces.
		for _, n := range []int{1, 256, 257, 1024, 1025, 32<<10 - 1, 32 << 10, 1 << 20, 1<<20 + 1, 1<<20 + 200<<10} {
			values[fmt.Sprint(n)] = bytes.Repeat([]byte("0123456789abcde"), n/15+1)[:n]
		}
		return values
	},
	Change: func(v any, rnd *rand.Rand, _ int64) any {
		b := bytes.Clone(v.([]byte))
		switch rnd.IntN(12) {
		case 0:
			return b[:rnd.IntN(len(b)+1)]
		case 1:
			return word(rnd, 1000)
		case 2, 3, 4, 5:
			return append(b, word(rnd, 1000)...)
		}
		if len(b) > 0 {
			b[rnd.IntN(len(b))] ^= 1
		}
		return b
	},
	Empty:    func(any) bool { return false },
	describe: func(v any) []string { return []string{quoted(v.([]byte))} },
}

var list = Type{
	Name: "list",
	Values: func() map[string]any {
		values := map[string]any{}
		for name, n := range map[string]int{"one": 1, "small": 3, "two nodes": 5, "large": many} {
			l := lists.New(ListLimit)
			for i := range n {
				l.PushBack(number(i))
			}
			values[name] = l
		}
		l := lists.New(ListLimit)
		for i := range 10 {
			l.PushBack(bytes.Repeat(number(i), 1+i*1000))
			l.PushFront(nil)
		}
		values["long elements"] = l
		return values
	},
	New: func() any { return lists.New(ListLimit) },
	Change: func(v any, rnd *rand.Rand, _ int64) any {
		l := v.(*lists.List)
		l.SetLimit(ListLimit)
		switch rnd.IntN(4) {
		case 0:
			l.PushFront(word(rnd, 1000))
		case 1, 2:
			l.PushBack(word(rnd, 1000))
		case 3:
			if l.Len() > 0 {
				l.DropFront()
			}
		}
		return l
	},
	Empty: func(v any) bool { return v.(*lists.List).Len() == 0 },
	describe: func(v any) (words []string) {
		l := v.(*lists.List)
		l.Range(0, l.Len()-1, func(e []byte) bool {
			words = append(words, quoted(e))
			return true
		})
		return words
	},
}

var set = Type{
	Name: "set",
	Values: func() map[string]any {
		values := map[string]any{}
		add := func(name string, members ...string) {
			s := new(sets.Set)
			for _, m := range members {
				s.Add([]byte(m), SetLimits)
			}
			values[name] = s
		}
		var large, integers []string
		for i := range many {
			large = append(large, string(number(i)))
			integers = append(integers, strconv.Itoa(i*i*1000))
		}
		add("integers", "3", "-1", "70000")
		add("wide integers", "1", "9223372036854775807", "-9223372036854775808")
		add("small", "a", "", "12")
		add("long member", "a", long)
		add("large", large...)
		add("many integers", integers...)
		add("small with deadlines", "a", "", "12")
		add("large with deadlines", large...)
		for _, m := range []string{"a", "12"} {
			values["small with deadlines"].(*sets.Set).SetDeadline([]byte(m), Never, SetLimits)
		}
		for i := 0; i < many; i += 3 {
			values["large with deadlines"].(*sets.Set).SetDeadline(number(i), Never+int64(i), SetLimits)
		}
		return values
	},
	New: func() any { return new(sets.Set) },
	Change: func(v any, rnd *rand.Rand, now int64) any {
		s := v.(*sets.Set)
		switch rnd.IntN(7) {
		case 0:
			s.Remove(word(rnd, 40))
		case 1:
			s.Remove(number(rnd.IntN(many)))
		case 2:
			member := word(rnd, 40)
			s.Add(member, SetLimits)
			s.SetDeadline(member, now+1+int64(rnd.IntN(100)), SetLimits)
		case 3:
			s.SetDeadline(word(rnd, 40), int64(rnd.IntN(2))*(now+1+int64(rnd.IntN(1000))), SetLimits)
		case 4:
			s.SetDeadline(number(rnd.IntN(many)), int64(rnd.IntN(2))*(Never-1), SetLimits)
		default:
			s.Add(word(rnd, 40), SetLimits)
		}
		return s
	},
	Empty: func(v any) bool { return v.(*sets.Set).Len() == 0 },
	describe: func(v any) (words []string) {
		s := v.(*sets.Set)
		for m := range s.All() {
			at, _ := s.Deadline(m)
			words = append(words, fmt.Sprintf("%s@%d", quoted(m), at))
		}
		slices.Sort(words)
		return words
	},
}

var zset = Type{
	Name: "zset",
	Values: func() map[string]any {
		small, large, extreme := zsets.New(), zsets.New(), zsets.New()
		for i := range many {
			large.Set(number(i), float64(i%7)+0.1, ZSetLimits)
		}
		small.Set([]byte("a"), 1.5, ZSetLimits)
		small.Set([]byte("b"), -3, ZSetLimits)
		for i, score := range []float64{
			math.Inf(1), math.Inf(-1), 0, math.MaxFloat64, math.SmallestNonzeroFloat64, 1 << 60, 1.0 / 3,
		} {
			extreme.Set(number(i), score, ZSetLimits)
		}
		long2 := zsets.New()
		long2.Set([]byte(long), 1, ZSetLimits)
		return map[string]any{"small": small, "large": large, "extreme scores": extreme, "long member": long2}
	},
	New: func() any { return zsets.New() },
	Change: func(v any, rnd *rand.Rand, _ int64) any {
		z := v.(*zsets.ZSet)
		switch rnd.IntN(6) {
		case 0, 1:
			z.Remove(word(rnd, 40))
		case 2:
			z.Remove(number(rnd.IntN(many)))
		case 3:
			z.Set(number(rnd.IntN(many)), float64(rnd.IntN(50)), ZSetLimits)
		default:
			z.Set(word(rnd, 40), float64(rnd.IntN(50)), ZSetLimits)
		}
		return z
	},
	Empty: func(v any) bool { return v.(*zsets.ZSet).Len() == 0 },
	describe: func(v any) (words []string) {
		z := v.(*zsets.ZSet)
		z.RangeByRank(0, z.Len()-1, false, func(m []byte, score float64) bool {
			words = append(words, fmt.Sprintf("%q=%v", m, score))
			return true
		})
		return words
	},
}

var hash = Type{
	Name: "hash",
	Values: func() map[string]any {
		fields := func(n int, value string, expires func(i int) bool) *hashes.Hash {
			h := new(hashes.Hash)
			for i := range n {
				h.Set(number(i), []byte(value+strconv.Itoa(i)), HashLimits)
				if expires(i) {
					h.SetDeadline(number(i), Never+int64(i))
				}
			}
			return h
		}
		none := func(int) bool { return false }
		all := func(int) bool { return true }
		some := func(i int) bool { return i%3 == 1 }
		return map[string]any{
			"small": fields(3, "", none), "long value": fields(3, long, none), "large": fields(many, "v", none),
			"small with a deadline": fields(3, "", some), "small with deadlines": fields(3, "", all),
			"large with deadlines": fields(many, "v", all), "large with some deadlines": fields(many, "v", some),
		}
	},
	New: func() any { return new(hashes.Hash) },
	Change: func(v any, rnd *rand.Rand, now int64) any {
		h := v.(*hashes.Hash)
		switch rnd.IntN(8) {
		case 0, 1:
			h.Delete(word(rnd, 40))
		case 2, 3:
			h.Set(word(rnd, 40), word(rnd, 1000), HashLimits)
		case 4:
			field := word(rnd, 40)
			h.Update(field, word(rnd, 1000), HashLimits)
			h.SetDeadline(field, now+1+int64(rnd.IntN(100)))
		case 5:
			h.SetDeadline(word(rnd, 40), int64(rnd.IntN(2))*(now+1+int64(rnd.IntN(1000))))
		case 6:
			h.Delete(number(rnd.IntN(many)))
		case 7:
			h.SetDeadline(number(rnd.IntN(many)), int64(rnd.IntN(2))*(Never-1))
		}
		return h
	},
	Empty: func(v any) bool { return v.(*hashes.Hash).Len() == 0 },
	describe: func(v any) (words []string) {
		h := v.(*hashes.Hash)
		for f, value := range h.All() {
			at, _ := h.Deadline(f)
			words = append(words, fmt.Sprintf("%q=%q@%d", f, value, at))
		}
		slices.Sort(words)
		return words
	},
}

var stream = Type{
	Name: "stream",
	Values: func() map[string]any {
		entries := func(n, groups int) *streams.Stream {
			s := streams.New()
			for i := range n {
				fields := [][]byte{[]byte("field"), number(i)}
				if i%5 == 4 {
					fields = append(fields, []byte("another"), number(i))
				}
				appendEntry(s, streams.ID{Ms: uint64(1000 + i/2), Seq: uint64(i % 2)}, fields)
			}
			for i := range n / 4 {
				s.Delete(streams.ID{Ms: uint64(1000 + 2*i), Seq: 1})
			}
			for i := range groups {
				g, _ := s.CreateGroup(number(i), streams.MinID, 0)
				for j := range 3 {
					c, _ := g.CreateConsumer(number(j), int64(100+j))
					g.ReadNew(s, c, n/5, false, int64(200+j), func(streams.Entry) {})
				}
			}
			return s
		}
		produced := entries(many, 2)
		produced.SetIdempotence(streams.Idempotence{Duration: 1000, MaxSize: 2 * many})
		for i := range many {
			produced.Produce(number(i%5), number(i), streams.ID{Ms: uint64(1000 + i)})
		}
		produced.Duplicate()
		produced.Groups()[0].Pending(streams.MinID, streams.MaxID, func(n *streams.NACK) bool {
			produced.Groups()[0].Release(n, 5)
			return n.ID.Ms%7 > 0
		})
		emptied := entries(2, 0)
		emptied.Delete(streams.ID{Ms: 1000})
		emptied.Delete(streams.ID{Ms: 1000, Seq: 1})
		return map[string]any{
			"never filled": streams.New(), "emptied": emptied, "small": entries(3, 0), "small with a group": entries(3, 1),
			"many groups": entries(2, 40), "large": entries(many, 0), "large with groups": entries(many, 2),
			"large with producers": produced,
		}
	},
	New: func() any { return streams.New() },
	Change: func(v any, rnd *rand.Rand, now int64) any {
		s := v.(*streams.Stream)
		last := streams.ID{Ms: s.LastID().Ms + 1}
		appendEntry(s, last, [][]byte{[]byte("f"), word(rnd, 1000)})
		before := func() streams.ID { return streams.ID{Ms: last.Ms - uint64(rnd.IntN(20))} }
		if rnd.IntN(3) == 0 {
			s.Delete(before())
		}
		if g, _ := s.CreateGroup([]byte("g"), streams.MinID, 0); rnd.IntN(2) == 0 {
			c, _ := g.CreateConsumer(word(rnd, 3), now)
			g.ReadNew(s, c, 2, false, now, func(streams.Entry) {})
			g.Ack(before())
			if n := g.FindPending(before()); n != nil {
				g.Release(n, 1)
			}
		}
		if rnd.IntN(2) == 0 {
			s.SetIdempotence(streams.Idempotence{Duration: 9, MaxSize: 3})
			if err := s.Record(word(rnd, 3), word(rnd, 9), last); err != nil {
				s.Duplicate()
			}
		}
		return s
	},
	Empty: func(any) bool { return false },
	describe: func(v any) []string {
		s := v.(*streams.Stream)
		words := []string{fmt.Sprintf("last %s deleted %s added %d", s.LastID(), s.MaxDeletedID(), s.EntriesAdded())}
		s.Range(streams.MinID, streams.MaxID, false, func(e streams.Entry) bool {
			words = append(words, e.ID.String())
			for f, value := range e.Fields() {
				words = append(words, fmt.Sprintf("%q=%q", f, value))
			}
			return true
		})
		for _, g := range s.Groups() {
			words = append(words, fmt.Sprintf("group %q last %s read %d", g.Name, g.LastID, g.EntriesRead))
			for _, c := range g.Consumers() {
				words = append(words, fmt.Sprintf("consumer %q seen %d pending %d", c.Name, c.SeenTime, c.PendingLen()))
			}
			g.Pending(streams.MinID, streams.MaxID, func(n *streams.NACK) bool {
				words = append(words, fmt.Sprintf("%s for %q at %d, %d times", n.ID, n.Owner(), n.DeliveryTime(),
					n.DeliveryCount))
				return true
			})
			g.EachReleased(func(n *streams.NACK) { words = append(words, "released "+n.ID.String()) })
		}
		if s.Idempotence() == (streams.Idempotence{}) {
			return words
		}
		words = append(words, fmt.Sprintf("producers %v %v", s.Idempotence(), s.ProducerCounts(streams.Always)))
		s.Productions(func(producer, iid []byte, entry streams.ID) {
			words = append(words, fmt.Sprintf("%q of %q is %s", iid, producer, entry))
		})
		return words
	},
	hidden: func(v any) (words []string) { // the written version of RDB files has only one time for each consumer
		for _, g := range v.(*streams.Stream).Groups() {
			for _, c := range g.Consumers() {
				words = append(words, fmt.Sprintf("active %d", c.ActiveTime))
			}
		}
		return words
	},
}

func appendEntry(s *streams.Stream, id streams.ID, fields [][]byte) {
	if err := s.Append(id, fields, StreamLimits); err != nil {
		panic(err)
	}
}
