package vectors

import (
	"math"

	"github.com/atomredis/atomredis/engine/vectors/graph"
)

// Projection reduces the dimensions of vectors by a matrix. The matrix of a new set has random numbers, uniform from -1
// to 1, and only their seed is stored. The matrix of another server's set is stored as a whole.
type Projection struct {
	Input  int // dimensions of the original vectors
	Output int
	seed   uint64
	matrix []float32 // Output rows of Input numbers, which never change; nil if they follow from the seed
}

// MaxProjection is the maximum of Input times Output.
const MaxProjection = 1 << 25

// scale returns the factor of the random numbers. It roughly preserves the lengths of vectors.
func (p *Projection) scale() float64 { return math.Sqrt(3/float64(p.Output)) / (1 << 15) }

// row returns a row of a stored matrix.
func (p *Projection) row(row int) []float32 { return p.matrix[row*p.Input : (row+1)*p.Input] }

// AppendRow appends a row of the matrix to dst.
func (p *Projection) AppendRow(dst []float32, row int) []float32 {
	if p.matrix != nil {
		return append(dst, p.row(row)...)
	}
	base, scale := p.seed+uint64(row)<<32, p.scale()
	for i := range p.Input {
		h := graph.Mix(base+uint64(i&^3)) >> (16 * (i & 3))
		dst = append(dst, float32(float64(int16(h))*scale))
	}
	return dst
}

// project returns the projection of a vector of p.Input dimensions.
func (p *Projection) project(v []float32) []float32 {
	out := make([]float32, p.Output)
	if p.matrix != nil {
		for row := range out {
			out[row] = product(p.row(row), v)
		}
		return out
	}
	scale := p.scale()
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

// product returns the product of two vectors as Redis computes it. It is never NaN.
func product(a, b []float32) float32 {
	sum := float32(0)
	for i, x := range a {
		sum += float32(x * b[i])
	}
	if sum != sum {
		return 0
	}
	return min(max(sum, -math.MaxFloat32), math.MaxFloat32)
}
