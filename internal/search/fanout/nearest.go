package fanout

import (
	"encoding/binary"
	"math"

	"github.com/atomredis/atomredis/internal/wire/peer"
)

// SetNear sets the distances of the nearest vectors, ascending. The query needs most of them.
func (v *View) SetNear(distances []float64, most int) {
	for _, d := range distances {
		v.Near = binary.LittleEndian.AppendUint64(v.Near, math.Float64bits(d))
	}
	v.Most = most
}

// near returns how many distances there are.
func (v *View) near() int { return len(v.Near) / 8 }

// at returns a distance.
func (v *View) at(i int) float64 {
	return math.Float64frombits(binary.LittleEndian.Uint64(v.Near[8*i:]))
}

// KeepNearest selects the nearest vectors of all shards, as many as the query needs. Of equally near ones it takes
// those of earlier answers.
func KeepNearest(answers []Answer) error {
	counts := make([]int, len(answers))
	most := 0
	for _, a := range answers {
		v := a.View()
		if len(v.Near)%8 != 0 {
			return peer.ErrFrame
		}
		most = max(most, v.Most)
	}
	for ; most > 0; most-- {
		best := -1
		for i, a := range answers {
			v := a.View()
			if n := counts[i]; n < v.near() && (best < 0 || v.at(n) < answers[best].View().at(counts[best])) {
				best = i
			}
		}
		if best < 0 {
			break
		}
		counts[best]++
	}
	for i, a := range answers {
		if a.View().near() > 0 {
			if err := a.Keep(counts[i]); err != nil {
				return err
			}
		}
	}
	return nil
}
