package server

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/command"
)

// sizedTypes are the types for which INFO shows the numbers of keys by size.
var sizedTypes = [...]struct {
	engine.Type
	field string
}{
	{engine.String, "distrib_strings_sizes"}, {engine.List, "distrib_lists_items"}, {engine.Set, "distrib_sets_items"},
	{engine.ZSet, "distrib_zsets_items"}, {engine.Hash, "distrib_hashes_items"},
}

// WriteKeySizes writes a section of INFO: it goes through all keys, and counts for each type those of size 0, 1, from 2, from 4 and so on.
func WriteKeySizes(b *InfoText, c *command.Ctx) {
	for db := range c.G.Keyspace().Databases() {
		var sizes [engine.Hash + 1][64]int // by type and bit length
		c.G.Each(db, func(e *engine.Entry) bool {
			if e.Type() <= engine.Hash {
				sizes[e.Type()][bits.Len(uint(e.Size()))]++
			}
			return true
		})
		for _, t := range sizedTypes {
			var counts []string
			for power, n := range sizes[t.Type] {
				if n > 0 {
					counts = append(counts, powerName(power)+"="+strconv.Itoa(n))
				}
			}
			if len(counts) > 0 {
				b.Text(fmt.Sprintf("db%d_%s", db, t.field), strings.Join(counts, ","))
			}
		}
	}
}

// powerName returns the least size with the given number of bits, in units of 1024.
func powerName(power int) string {
	if power == 0 {
		return "0"
	}
	unit := (power - 1) / 10
	return strconv.Itoa(1<<((power-1)%10)) + strings.TrimSpace(" KMGTPE"[unit:unit+1])
}
