package search_test

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/memory"
	"github.com/atomredis/atomredis/search"
)

// BenchmarkSearch compares this package with DB.Do and the same commands.
func BenchmarkSearch(b *testing.B) {
	type item struct {
		Title string  `search:"title,text"`
		Price float64 `search:"price,numeric,sortable"`
	}
	db, err := memory.Open(memory.Options{})
	require.NoError(b, err)
	defer db.Close()
	x, err := search.Open[item](b.Context(), db, "x", search.Options{})
	require.NoError(b, err)
	for n := range 1000 {
		require.NoError(b, x.Put(b.Context(), strconv.Itoa(n), item{"title " + strconv.Itoa(n%100), float64(n)}))
	}
	b.Run("put", func(b *testing.B) {
		for b.Loop() {
			if err := x.Put(b.Context(), "1", item{"title", 1}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("put by hand", func(b *testing.B) {
		for b.Loop() {
			if _, err := db.Do(b.Context(), "HSET", "x:1", "title", "title", "price", 1.0); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("find", func(b *testing.B) {
		q := search.Text("title 7").And(search.Range("price", 100, 900))
		for b.Loop() {
			for _, err := range x.Find(b.Context(), q, search.SortBy("price"), search.Limit(5)) {
				if err != nil {
					b.Fatal(err)
				}
			}
		}
	})
	b.Run("find by hand", func(b *testing.B) {
		for b.Loop() {
			if _, err := db.Do(b.Context(), "FT.SEARCH", "x", "title 7 @price:[100 900]", "SORTBY", "price", "LIMIT", 0, 5, "DIALECT", 2); err != nil {
				b.Fatal(err)
			}
		}
	})
}
