package plan

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/atomredis/atomredis/engine/search/docs"
)

// corpus is the index of issue 45: 100,000 hashes with a title of 5 words and a body of 40 of 20,000 words, one of 500 tags, a
// price and a place.
var corpus = sync.OnceValue(func() *memory {
	m := newMemory(strings.Fields("SCHEMA title TEXT body TEXT tag TAG price NUMERIC SORTABLE loc GEO")...)
	r := rand.New(rand.NewPCG(1, 2))
	zipf := rand.NewZipf(r, 1.1, 20, 19_999)
	words := func(n int) string {
		list := make([]string, n)
		for i := range list {
			list[i] = fmt.Sprintf("w%05d", zipf.Uint64())
		}
		return strings.Join(list, " ")
	}
	for i := range 100_000 {
		m.hset(fmt.Sprint(i), "title", words(5), "body", words(40), "tag", fmt.Sprintf("tag%d", r.IntN(500)),
			"price", fmt.Sprint(r.IntN(100_000)), "loc", fmt.Sprintf("%f,%f", r.Float64()*20, 40+r.Float64()*10))
	}
	return m
})

// wordWith returns a word that about n documents have.
func (m *memory) wordWith(n int) string {
	found, best := "", math.MaxInt
	for name, list := range m.text.All() {
		if d := max(list.Len()-n, n-list.Len()); d < best {
			found, best = name, d
		}
	}
	return found
}

// BenchmarkQueries has the rows of the table in issue 45, as far as they are a plan's.
func BenchmarkQueries(b *testing.B) {
	m := corpus()
	frequent := m.wordWith(5400)
	price, _ := m.Field("price")
	byPrice := Order{Key: func(p *Plan) docs.Value { return p.Doc().Sort(0) }}
	for _, bm := range []struct {
		name, query string
		by          bool
	}{
		{"rare word", m.wordWith(32), false},
		{"frequent word", frequent, false},
		{"two words", m.wordWith(5400) + " " + m.wordWith(2000), false},
		{"phrase", `"` + m.wordWith(5400) + " " + m.wordWith(2000) + `"`, false},
		{"or of three", m.wordWith(5400) + "|" + m.wordWith(2000) + "|" + m.wordWith(4000), false},
		{"prefix", "w0920*", false},
		{"tag and range sorted", "@tag:{tag7} @price:[20000 60000]", true},
		{"range sorted", "@price:[20000 40000]", true},
		{"range sorted with word", "@price:[20000 40000] " + frequent, true},
		{"geo", "@loc:[10 45 100 km]", false},
		{"all", "*", false},
		{"all sorted", "*", true},
		{"not", "-" + frequent, false},
	} {
		b.Run(bm.name, func(b *testing.B) {
			b.ReportAllocs()
			total := 0
			r, _ := m.parse([]string{"DIALECT", "2"})
			for b.Loop() {
				n, err := m.tree(bm.query, r)
				if err != nil {
					b.Fatal(err)
				}
				p, err := New(n, m, Options{Slop: -1, SortBy: price})
				if err != nil {
					b.Fatal(err)
				}
				if bm.by {
					p.TopBy(10, byPrice)
				} else {
					p.Top(10)
				}
				total = p.Total()
			}
			b.ReportMetric(float64(total), "hits")
		})
	}
	b.Run("all of a frequent word", func(b *testing.B) { // what GROUPBY reads
		r, _ := m.parse([]string{"DIALECT", "2"})
		for b.Loop() {
			n, _ := m.tree(frequent, r)
			p, err := New(n, m, Options{Slop: -1})
			if err != nil {
				b.Fatal(err)
			}
			for p.Next() {
			}
		}
	})
}
