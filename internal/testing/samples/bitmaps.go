package samples

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/atomredis/atomredis/engine/roaring"
)

var compressedBitmap = Type{
	Name: "bitmap",
	Values: func() map[string]any {
		sparse, far := roaring.New(), roaring.New()
		for i := range int64(many) {
			sparse.Set(i*i*1000, 1)
			far.Set(i<<40, 1)
		}
		zeros := roaring.New()
		zeros.Extend(7)
		return map[string]any{
			"small": roaring.FromBytes([]byte("bits")), "empty": roaring.New(), "zeros": zeros, "sparse": sparse, "far": far,
			"runs":  roaring.FromBytes([]byte(strings.Repeat("\xff", 300_000))),
			"dense": roaring.FromBytes([]byte(strings.Repeat("dense bits", 20_000))),
		}
	},
	New: func() any { return roaring.New() },
	Change: func(v any, rnd *rand.Rand, _ int64) any {
		r := v.(*roaring.Bitmap)
		switch at := rnd.Int64N(1 << 22); rnd.IntN(5) {
		case 0:
			r.Extend(uint64(at))
		case 1:
			r.SetField(at, 64, rnd.Uint64())
		case 2:
			r.Set(at<<30, rnd.IntN(2))
		default:
			r.Set(at, rnd.IntN(2))
		}
		return r
	},
	Empty: func(any) bool { return false },
	describe: func(v any) []string {
		r := v.(*roaring.Bitmap)
		return []string{fmt.Sprintf("%d bytes with the sum %x", r.Len(), sha256.Sum256(r.AppendPortable(nil)))}
	},
}
