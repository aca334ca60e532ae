package atomredistest_test

import (
	"testing"

	"github.com/atomredis/atomredis"
)

// BenchmarkOpenAndClose measures the cost of a server for each test.
func BenchmarkOpenAndClose(b *testing.B) {
	for b.Loop() {
		db, err := atomredis.Open(atomredis.Options{Addr: "127.0.0.1:0"})
		if err != nil {
			b.Fatal(err)
		}
		if err := db.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
