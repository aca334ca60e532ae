package hyperloglog

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// Registers are the unpacked registers of a HyperLogLog, or of the union of several.
type Registers [registers]byte

// Of reads the registers of a string.
func (r *Registers) Of(b []byte) error {
	clear(r[:])
	return r.Merge(b)
}

// Merge raises every register to at least its value in a string.
func (r *Registers) Merge(b []byte) error {
	if !IsDense(b) {
		return eachRun(b, func(first int, run run) {
			if run.rank > 0 {
				for i := first; i < first+run.length; i++ {
					r[i] = max(r[i], run.rank)
				}
			}
		})
	}
	b = b[headerSize:]
	for i := 0; i < registers; i += 8 {
		ranks := eight(b[i*rankBits/8:])
		for j := range 8 {
			r[i+j] = max(r[i+j], byte(ranks>>(8*j)))
		}
	}
	return nil
}

// Add adds an element.
func (r *Registers) Add(element []byte) {
	i, rank := locate(element)
	r[i] = max(r[i], rank)
}

// Count returns the estimated number of elements.
func (r *Registers) Count() uint64 {
	var h histogram
	for i := 0; i < registers; i += 4 {
		h[0][r[i]%ranks]++
		h[1][r[i+1]%ranks]++
		h[2][r[i+2]%ranks]++
		h[3][r[i+3]%ranks]++
	}
	return h.estimate()
}

// Count returns the estimated number of elements of a HyperLogLog. It ignores the stored estimate.
func Count(b []byte) (uint64, error) {
	var h histogram
	if !IsDense(b) {
		if err := eachRun(b, func(_ int, r run) { h[0][r.rank] += int32(r.length) }); err != nil {
			return 0, err
		}
		return h.estimate(), nil
	}
	b = b[headerSize:]
	for len(b) >= 6 {
		v := eight(b)
		h[0][v%ranks]++
		h[1][v>>8%ranks]++
		h[2][v>>16%ranks]++
		h[3][v>>24%ranks]++
		h[0][v>>32%ranks]++
		h[1][v>>40%ranks]++
		h[2][v>>48%ranks]++
		h[3][v>>56%ranks]++
		b = b[6:]
	}
	return h.estimate(), nil
}

// ranks is the number of possible values of a register.
const ranks = 1 << rankBits

// histogram counts the registers of each rank in four parts, so that equal neighbours do not wait for each other.
type histogram [4][ranks]int32

// estimate returns the number of elements by Otmar Ertl's estimator ("New cardinality estimation algorithms for
// HyperLogLog sketches", 2017). The order of operations, and the rounding of every product, determine the last digits.
func (h *histogram) estimate() uint64 {
	const m = float64(registers)
	count := func(rank int) float64 { return float64(h[0][rank] + h[1][rank] + h[2][rank] + h[3][rank]) }
	z := float64(m * tau((m-count(maxRank))/m))
	for rank := maxRank - 1; rank >= 1; rank-- {
		z += count(rank)
		z *= 0.5
	}
	z += float64(m * sigma(count(0)/m))
	const alpha = 0.5 / math.Ln2
	n := math.Round(alpha * m * m / z)
	if n >= 1<<63 { // all registers at their maximum, which no number of elements reaches
		return 1 << 63
	}
	return uint64(n)
}

// sigma corrects for registers that are still 0.
func sigma(x float64) float64 {
	if x == 1 {
		return math.Inf(1)
	}
	y, z := 1.0, x
	for {
		x = float64(x * x)
		before := z
		z += float64(x * y)
		y += y
		if z == before {
			return z
		}
	}
}

// tau corrects for registers at their maximum.
func tau(x float64) float64 {
	if x == 0 || x == 1 {
		return 0
	}
	y, z := 1.0, 1-x
	for {
		x = math.Sqrt(x)
		before := z
		y *= 0.5
		d := 1 - x
		z -= float64(float64(d*d) * y)
		if z == before {
			return z / 3
		}
	}
}

// SelfTest checks that dense registers keep their values, and that estimates are as accurate as specified.
func SelfTest() error {
	rnd := rand.New(rand.NewPCG(1, 2))
	packed := make([]byte, denseSize-headerSize)
	var want Registers
	for range 100 {
		for i := range want {
			want[i] = byte(rnd.IntN(ranks))
			setRegister(packed, i, want[i])
		}
		for i, rank := range want {
			if got := register(packed, i); got != rank {
				return fmt.Errorf("register %d should be %d but is %d", i, rank, got)
			}
		}
	}
	// Five standard errors: about one in a million sets of random elements has a worse estimate.
	const tolerance = 5 * 1.04 / 128
	e := Edit(Append(nil), 3000)
	var element [8]byte
	for n, next := 1, 1; n <= 1e6; n++ {
		for i, bits := 0, rnd.Uint64(); i < len(element); i, bits = i+1, bits>>8 {
			element[i] = byte(bits)
		}
		if err := e.Add(element[:]); err != nil {
			return err
		}
		if n < next {
			continue
		}
		next *= 10
		got, err := Count(e.Bytes())
		if err != nil {
			return err
		}
		if math.Abs(float64(got)-float64(n)) > max(1, tolerance*float64(n)) {
			return fmt.Errorf("%d elements are estimated to be %d", n, got)
		}
	}
	return nil
}
