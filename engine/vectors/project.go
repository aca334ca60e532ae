package vectors

import (
	"math"

	"github.com/atomredis/atomredis/engine/vectors/graph"
)

// Projection reduces the dimensions of vectors by a matrix of random numbers, uniform from -1 to 1. Only its seed is
// stored.
type Projection struct {
	Input  int // dimensions of the original vectors
	Output int
	seed   uint64
}

// MaxProjection is the maximum of Input times Output.
const MaxProjection = 1 << 25

// project returns the projection of a vector of p.Input dimensions.
func (p *Projection) project(v []float32) []float32 {
	out := make([]float32, p.Output)
	scale := math.Sqrt(3/float64(p.Output)) / (1 << 15) // roughly preserves lengths
	for row := range out {
		sum := 0.0
		base := p.seed + uint64(row)<<32
		for i := 0; i < len(v); i += 4 {
			h := graph.Mix(base + uint64(i))
			for k := i; k < min(i+4, len(v)); k++ {
				x := float64(min(max(v[k], -math.MaxFloat32), math.MaxFloat32))
				sum += float64(x * float64(int16(h)))
				h >>= 16
			}
		}
		out[row] = float32(min(max(float64(sum*scale), -math.MaxFloat32), math.MaxFloat32))
	}
	return out
}
