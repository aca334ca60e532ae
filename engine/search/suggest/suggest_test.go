package suggest

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/atomredis/atomredis/engine/delta"
	"github.com/atomredis/atomredis/internal/testing/testseed"
)

func add(d *Dict, text string, score float64, incr bool, payload string) int {
	d.Add([]byte(text), score, incr, []byte(payload))
	return d.Len()
}

// find returns the texts, the scores as the server writes them, and the payloads.
func find(t *testing.T, d *Dict, q Query) (texts, scores, payloads []string) {
	t.Helper()
	if q.Max == 0 {
		q.Max = 5
	}
	found, ok := d.Find(q)
	require.True(t, ok)
	for _, s := range found {
		texts = append(texts, s.Text)
		scores = append(scores, strconv.FormatFloat(float64(s.Score), 'g', 17, 64))
		payloads = append(payloads, s.Payload)
	}
	return texts, scores, payloads
}

// The replies in search_suggest.txt.
func TestSuggestionsAreThoseOfTheTranscript(t *testing.T) {
	d := New()
	for i, s := range []struct {
		text  string
		score float64
	}{
		{"hello", 1}, {"hello world", 2}, {"help", 3}, {"HELLO-there", 1.5}, {"held", 0.5}, {"yellow", 10}, {"über", 4}, {"Übung", 5},
	} {
		require.Equal(t, i+1, add(d, s.text, s.score, false, ""))
	}
	check := func(q Query, want ...string) {
		t.Helper()
		texts, _, _ := find(t, d, q)
		require.Equal(t, want, texts)
	}
	// scored takes texts and patterns of their scores in turn.
	scored := func(q Query, want ...string) {
		t.Helper()
		texts, scores, _ := find(t, d, q)
		require.Len(t, texts, len(want)/2)
		for i := range texts {
			require.Equal(t, want[2*i], texts[i])
			require.Regexp(t, regexp.MustCompile("^(?:"+want[2*i+1]+")$"), scores[i])
		}
	}
	hel := []string{"help", `2\.12132024\d*`, "hello world", `0\.666666686\d*`, "hello", `0\.577350258\d*`, "HELLO-there", `0\.5`,
		"held", `0\.353553384\d*`}
	check(Query{Prefix: "hel"}, "help", "hello world", "hello", "HELLO-there", "held")
	check(Query{Prefix: "hel", Max: 2}, "help", "hello world")
	scored(Query{Prefix: "hel"}, hel...)
	scored(Query{Prefix: "hel", Max: 10}, hel...)
	scored(Query{Prefix: "hello"}, "hello", "2147483648", "hello world", `0\.755928933\d*`, "HELLO-there", `0\.566946685\d*`)
	check(Query{Prefix: "HEL", Max: 3}, "help", "hello world", "hello")
	check(Query{Prefix: "h"}, "help", "hello world", "HELLO-there", "hello", "held")
	check(Query{Prefix: "ye"}, "yellow")
	check(Query{Prefix: "zz"})
	check(Query{Prefix: "hellp"})
	check(Query{Prefix: "hellp", Fuzzy: true}, "hello", "help", "hello world", "HELLO-there")
	scored(Query{Prefix: "hallo", Fuzzy: true}, "hello", `0\.135335281\d*`, "hello world", `0\.102303855\d*`, "HELLO-there", `0\.0767278969\d*`)
	scored(Query{Prefix: "hal", Fuzzy: true, Max: 10}, "help", `0\.287089496\d*`, "hello world", `0\.0902235209\d*`, "hello",
		`0\.0781358629\d*`, "HELLO-there", `0\.0676676407\d*`, "held", `0\.0478482469\d*`)
	check(Query{Prefix: "elp", Fuzzy: true}, "help")
	scored(Query{Prefix: "yallow", Fuzzy: true}, "yellow", `1\.35335278\d*`)
	check(Query{Prefix: "hello "}, "hello world")
	scored(Query{Prefix: "üb"}, "Übung", `2\.88675141\d*`, "über", `2\.82842707\d*`)
	scored(Query{Prefix: "Ü"}, "Übung", `2\.5`, "über", `2\.30940103\d*`)
	check(Query{Prefix: "nope", Fuzzy: true})
	check(Query{Prefix: "hel", Trim: true}, "help", "hello world", "hello", "HELLO-there", "held")
	scored(Query{Prefix: "hel", Trim: true, Max: 10}, hel...)

	payload := func(prefix string, want ...string) {
		t.Helper()
		_, _, payloads := find(t, d, Query{Prefix: prefix})
		require.Equal(t, want, payloads)
	}
	require.Equal(t, 9, add(d, "payday", 2, false, "some data"))
	require.Equal(t, 10, add(d, "pays", 1, false, ""))
	check(Query{Prefix: "pay"}, "payday", "pays")
	payload("pay", "some data", "")
	scored(Query{Prefix: "pay"}, "payday", "1", "pays", `0\.707106769\d*`)
	scored(Query{Prefix: "pay", Fuzzy: true, Max: 1}, "payday", "1")
	require.Equal(t, 10, add(d, "payday", 3, false, "other"))
	scored(Query{Prefix: "payd"}, "payday", `1\.73205077\d*`)
	payload("payd", "other")
	require.Equal(t, 10, add(d, "payday", 4, false, ""))
	scored(Query{Prefix: "payd"}, "payday", `2\.30940103\d*`)
	payload("payd", "other")
	require.Equal(t, 11, add(d, "paybin", 1, false, "\x00\x01\xff"))
	payload("paybi", "\x00\x01\xff")
	require.Equal(t, 12, add(d, "payempty", 1, false, ""))
	payload("payem", "")

	require.Equal(t, 12, add(d, "help", 10, false, ""))
	scored(Query{Prefix: "hel", Max: 1}, "help", `7\.07106781\d*`)
	require.Equal(t, 12, add(d, "help", 5, true, ""))
	scored(Query{Prefix: "hel", Max: 1}, "help", `10\.6066017\d*`)
	require.Equal(t, 13, add(d, "brandnew", 5, true, ""))
	scored(Query{Prefix: "bran"}, "brandnew", `2\.23606801\d*`)
	require.Equal(t, 13, add(d, "help", 1, true, "pp"))
	scored(Query{Prefix: "hel", Max: 1}, "help", `11\.3137083\d*`)
	payload("help", "pp")
	scored(Query{Prefix: "help", Max: 1}, "help", "2147483648")

	require.True(t, d.Delete([]byte("payday")))
	require.False(t, d.Delete([]byte("payday")))
	require.False(t, d.Delete([]byte("nosuch")))
	require.True(t, d.Delete([]byte("hello world")))
	check(Query{Prefix: "hello"}, "hello", "HELLO-there")
	require.Equal(t, 11, d.Len())
	require.False(t, d.Delete([]byte("HELLO-THERE")))

	d = New()
	require.Equal(t, 1, add(d, "zero", 0, false, ""))
	require.Equal(t, 1, add(d, "zero", 0, true, ""))
	scored(Query{Prefix: "ze"}, "zero", "0")
	require.True(t, d.Delete([]byte("zero")))
	require.Equal(t, 1, add(d, "neg", -1, false, ""))
	scored(Query{Prefix: "neg"}, "neg", "2147483648")
	require.Equal(t, 2, add(d, "tiny", 0.001, false, ""))
	require.Equal(t, 3, add(d, "big", 1e10, false, ""))
	require.Equal(t, 3, add(d, "", 1, false, ""))
	require.Equal(t, 4, add(d, "x", 1, false, ""))
	scored(Query{Prefix: "x"}, "x", "2147483648")
	scored(Query{Prefix: "b"}, "big", "5773502464")
	scored(Query{Prefix: "ti"}, "tiny", `0\.00057735\d*`)
	check(Query{}, "big", "x", "tiny", "neg")
	_, ok := d.Find(Query{Prefix: strings.Repeat("a", 101), Max: 5})
	require.False(t, ok)
	_, ok = d.Find(Query{Prefix: strings.Repeat("a", 100), Max: 5})
	require.True(t, ok)

	d = New()
	add(d, "one", 1, false, "")
	add(d, "onetwo", 2, false, "")
	scored(Query{Prefix: "on"}, "onetwo", `0\.894427180\d*`, "one", `0\.707106769\d*`)
}

func TestTrimLeavesOutWhatIsFarFromTheBest(t *testing.T) {
	d := New()
	for i := range 5 {
		add(d, fmt.Sprint("word", i), []float64{100, 11, 9, 50, -1}[i], false, "")
	}
	texts, _, _ := find(t, d, Query{Prefix: "word", Trim: true})
	require.Equal(t, []string{"word0", "word3", "word1"}, texts)
}

func TestTextsThatAreTooLongAreLeftOut(t *testing.T) {
	d := New()
	for _, text := range []string{strings.Repeat("a", 256), strings.Repeat("日", 200)} {
		require.Equal(t, 0, add(d, text, 1, false, ""))
		require.Error(t, d.Restore([]byte(text), 1, nil))
	}
	require.Equal(t, 1, add(d, strings.Repeat("a", 255), 1, false, ""))
	require.Error(t, d.Restore([]byte(strings.Repeat("a", 255)), 1, nil))
}

func all(d *Dict) (list []Suggestion) {
	d.Each(func(s Suggestion) bool { list = append(list, s); return true })
	return list
}

// A dictionary equals a map, through all its stored forms.
func TestDictionaryIsKept(t *testing.T) {
	testseed.Check(t, func(rt *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 7))
		d, model := New(), map[string]Suggestion{}
		for range 600 {
			text := []string{"a", "B", "ß", "\xff", "日"}[r.IntN(5)] + fmt.Sprint(r.IntN(100))
			switch r.IntN(10) {
			case 0, 1:
				_, there := model[text]
				require.Equal(rt, there, d.Delete([]byte(text)))
				delete(model, text)
			case 2:
				if r.IntN(20) == 0 {
					copied, err := DecodeBlob(d.AppendBlob(nil))
					require.NoError(rt, err)
					require.Equal(rt, d.AppendBlob(nil), copied.AppendBlob(nil))
					require.Equal(rt, all(d), all(copied))
					clone := copied.Clone()
					require.Equal(rt, copied.MemoryUsage(), clone.MemoryUsage())
					clone.Add([]byte("other"), 1, false, nil)
					require.Equal(rt, all(d), all(copied))
					d = copied
				}
			default:
				score, incr, payload := float64(r.IntN(5)), r.IntN(2) == 0, strings.Repeat("p", r.IntN(3))
				was, there := model[text]
				added, changed := d.Add([]byte(text), score, incr, []byte(payload))
				require.True(rt, changed)
				require.Equal(rt, !there, added)
				s := Suggestion{text, was.Payload, float32(score)}
				if incr {
					s.Score += was.Score
				}
				if payload != "" {
					s.Payload = payload
				}
				model[text] = s
			}
		}
		var want []Suggestion
		for _, s := range model {
			want = append(want, s)
		}
		slices.SortFunc(want, func(a, b Suggestion) int { return strings.Compare(a.Text, b.Text) })
		require.Equal(rt, want, all(d))
		prefix := []string{"a", "b", "S", "\xff1", "日1", ""}[r.IntN(6)]
		found, ok := d.Find(Query{Prefix: prefix, Max: 1 << 30})
		require.True(rt, ok)
		n := 0
		for _, s := range want {
			if strings.HasPrefix(fold(s.Text), fold(prefix)) {
				n++
			}
		}
		require.Len(rt, found, n)
		for _, q := range []Query{{Prefix: prefix}, {Prefix: prefix, Fuzzy: true}, {Prefix: prefix, Trim: true}} {
			q.Max = 1 << 30
			found, _ := d.Find(q)
			require.True(rt, slices.IsSortedFunc(found, func(a, b Suggestion) int { return cmp.Compare(b.Score, a.Score) }))
			q.Max = 1 + r.IntN(5)
			few, _ := d.Find(q)
			require.Equal(rt, append([]Suggestion(nil), found[:min(q.Max, len(found))]...), append([]Suggestion(nil), few...))
		}
	})
}

// The parts that checkpoints write add up to the dictionary.
func TestPartsThatChangeAreNoted(t *testing.T) {
	r := testseed.Rand(t)
	d := New()
	epochs := &delta.Epochs{Current: 1}
	d.Track(delta.NewLog(1, epochs))
	stored := map[string][]byte{}
	for range 30 {
		for range r.IntN(100) {
			text := fmt.Sprint("text", r.IntN(200))
			if r.IntN(3) == 0 {
				d.Delete([]byte(text))
			} else {
				add(d, text, r.Float64(), r.IntN(2) == 0, []string{"", "p"}[r.IntN(2)])
			}
		}
		epochs.Current++
		before := d.AppendBlob(nil)
		add(d, "between", 1, true, "") // belongs to the next checkpoint
		for _, name := range d.Log().Frozen().Sorted() {
			data, ok := d.Log().AppendFrozen(nil, name, d)
			if stored[name] = data; !ok {
				delete(stored, name)
			}
		}
		d.Log().Done()
		load := NewLoader()
		for _, name := range slices.Sorted(maps.Keys(stored)) {
			require.NoError(t, load.Add([]byte(name), stored[name]))
		}
		got, err := load.Finish(nil)
		require.NoError(t, err)
		require.Equal(t, before, got.AppendBlob(nil))
	}
	require.True(t, d.Large())
}

func FuzzDecodeBlob(f *testing.F) {
	d := New()
	add(d, "Text", 1, false, "payload")
	f.Add(d.AppendBlob(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := DecodeBlob(b)
		if err != nil {
			return
		}
		again, err := DecodeBlob(d.AppendBlob(nil))
		require.NoError(t, err)
		require.Equal(t, fmt.Sprint(all(d)), fmt.Sprint(all(again)))
		d.Find(Query{Prefix: "t", Fuzzy: true, Max: 5})
	})
}

func BenchmarkFind(b *testing.B) {
	d := New()
	r := rand.New(rand.NewPCG(1, 2))
	for range 100_000 {
		text := make([]byte, 4+r.IntN(12))
		for i := range text {
			text[i] = 'a' + byte(r.IntN(26))
		}
		d.Add(text, 1+float64(r.IntN(100)), false, nil)
	}
	b.ReportMetric(float64(d.MemoryUsage())/float64(d.Len()), "B/text")
	for _, fuzzy := range []bool{false, true} {
		for _, prefix := range []string{"a", "ab", "abc"} {
			b.Run(fmt.Sprintf("%s/%v", prefix, fuzzy), func(b *testing.B) {
				for b.Loop() {
					d.Find(Query{Prefix: prefix, Fuzzy: fuzzy, Max: 5})
				}
			})
		}
	}
}
