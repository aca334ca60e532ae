package vectors

import (
	"encoding/binary"
	"math"
	"math/bits"

	"github.com/atomredis/atomredis/engine/prefetch"
)

// Quantisation says how the components of vectors are stored.
type Quantisation uint8

// The kinds of quantisation. Their numbers are stored.
const (
	// Q8 stores 8-bit integers, in units of a 127th of the largest component.
	Q8 Quantisation = iota
	// Bin stores the signs.
	Bin
	// None stores 32-bit floats.
	None
)

// String returns the name as in VINFO.
func (q Quantisation) String() string { return [...]string{"int8", "bin", "f32"}[q] }

// Vectors are stored normalised. Q8 has one word with the unit (low half) and the sum of the shifted components,
// followed by eight components per word, little-endian, shifted by 128 so that they are not negative. The last word is
// padded with zeros, stored as 128. Bin has one bit per component, set if it is above 0. None has the floats.

// shift8 is added to the components of Q8.
const shift8 = 128

// code returns the number of words, or of floats, of a vector with dim dimensions.
func (q Quantisation) code(dim int) (words, floats int) {
	switch q {
	case Q8:
		return 1 + (dim+7)/8, 0
	case Bin:
		return (dim + 63) / 64, 0
	}
	return 0, dim
}

// Normalise scales a vector to length 1 and returns its former length. Infinite components count as the largest finite
// ones; a zero vector does not change.
func Normalise(v []float32) (norm float32) {
	sum := float32(0)
	for _, x := range v {
		sum += float32(x * x)
	}
	if norm = float32(math.Sqrt(float64(sum))); sum > math.SmallestNonzeroFloat32*1e10 && sum <= math.MaxFloat32 {
		for i, x := range v {
			v[i] = x / norm
		}
		return norm
	}
	return normaliseExtreme(v)
}

// normaliseExtreme is Normalise for a vector whose length overflows or underflows a 32-bit float.
func normaliseExtreme(v []float32) (norm float32) {
	sum := 0.0
	for i, x := range v {
		x = min(max(x, -math.MaxFloat32), math.MaxFloat32)
		v[i] = x
		sum += float64(float64(x) * float64(x))
	}
	if sum == 0 {
		return 0
	}
	length := math.Sqrt(sum)
	for i, x := range v {
		v[i] = float32(float64(x) / length)
	}
	return float32(min(length, math.MaxFloat32))
}

// Finite reports whether no component is a NaN.
func Finite(v []float32) bool {
	for _, x := range v {
		if x != x {
			return false
		}
	}
	return true
}

// encode8 writes a normalised vector into words.
func encode8(words []uint64, v []float32) {
	largest := float32(0)
	for _, x := range v {
		largest = max(largest, float32(math.Abs(float64(x))))
	}
	sum := uint64(0)
	scale := 127 / largest // unused if all components are zero
	for w := range words[1:] {
		word := uint64(0)
		for k := range 8 {
			c := uint64(shift8)
			if i := 8*w + k; i < len(v) && largest > 0 {
				c = uint64(int64(math.Round(float64(float32(v[i]*scale)))) + shift8)
			}
			word |= c << (8 * k)
			sum += c
		}
		words[1+w] = word
	}
	words[0] = uint64(math.Float32bits(largest)) | sum<<32
}

// encodeBin writes the signs of a vector into words.
func encodeBin(words []uint64, v []float32) {
	clear(words)
	for i, x := range v {
		if x > 0 {
			words[i/64] |= 1 << (i % 64)
		}
	}
}

// range8 returns the largest absolute component of a Q8 vector.
func range8(words []uint64) float32 { return math.Float32frombits(uint32(words[0])) }

// component8 returns component i of a Q8 vector, from -127 to 127.
func component8(words []uint64, i int) int {
	return int(byte(words[1+i/8]>>(8*(i%8)))) - shift8
}

// valid8 reports whether words can be the output of encode8 for dim dimensions.
func valid8(words []uint64, dim int) bool {
	sum := uint64(0)
	for i := range 8 * (len(words) - 1) {
		c := component8(words, i)
		if c == -shift8 || i >= dim && c != 0 {
			return false
		}
		sum += uint64(c + shift8)
	}
	largest := range8(words)
	return sum == words[0]>>32 && largest >= 0 && largest <= 1.001
}

// query is a vector to compare others with, in a form that makes this fast.
type query struct {
	set     *Set
	words   []uint64 // like the set's vectors
	floats  []float32
	fetches prefetch.List

	// For Q8: each component plus 128 is 4*high+low. Two words hold eight components: the even ones of a vector's word
	// and the odd ones. The first component is in the highest 16 bits, so that the highest 16 bits of a product are the
	// sum of four products. The parts of components are small enough for that.
	high, low []uint64
	sum       int64 // of the components plus 128
	rough     int64 // twice the sum of the components according to high alone
	unit      float32
}

// evenBytes selects every other byte of a word.
const evenBytes = 0x00ff00ff00ff00ff

// prepare8 sets high, low and the sums for the words of the query.
func (q *query) prepare8() {
	n := len(q.words) - 1
	if cap(q.high) < 2*n {
		q.high, q.low = make([]uint64, 2*n), make([]uint64, 2*n)
	}
	q.high, q.low = q.high[:2*n], q.low[:2*n]
	highs := uint64(0)
	for i, w := range q.words[1:] {
		for odd := range 2 {
			c := w >> (8 * odd) & evenBytes
			high, low := c>>2&0x003f003f003f003f, c&0x0003000300030003
			q.high[2*i+odd], q.low[2*i+odd] = reverse16(high), reverse16(low)
			highs += high * 0x0001000100010001 >> 48
		}
	}
	q.sum = int64(q.words[0] >> 32)
	q.rough = 8*int64(highs) + 3*8*int64(n)
	q.unit = range8(q.words)
}

// reverse16 reverses the order of the four parts of a word.
func reverse16(w uint64) uint64 {
	w = bits.RotateLeft64(w, 32)
	return w>>16&0x0000ffff0000ffff | w&0x0000ffff0000ffff<<16
}

// products returns the sum of the products of stored components and parts of a query.
func products(words, parts []uint64) (sum uint64) {
	for len(words) >= 8 && len(parts) >= 16 {
		w, p := (*[8]uint64)(words), (*[16]uint64)(parts)
		s := (w[0] & evenBytes * p[0] >> 48) + (w[0] >> 8 & evenBytes * p[1] >> 48)
		t := (w[1] & evenBytes * p[2] >> 48) + (w[1] >> 8 & evenBytes * p[3] >> 48)
		s += (w[2] & evenBytes * p[4] >> 48) + (w[2] >> 8 & evenBytes * p[5] >> 48)
		t += (w[3] & evenBytes * p[6] >> 48) + (w[3] >> 8 & evenBytes * p[7] >> 48)
		s += (w[4] & evenBytes * p[8] >> 48) + (w[4] >> 8 & evenBytes * p[9] >> 48)
		t += (w[5] & evenBytes * p[10] >> 48) + (w[5] >> 8 & evenBytes * p[11] >> 48)
		s += (w[6] & evenBytes * p[12] >> 48) + (w[6] >> 8 & evenBytes * p[13] >> 48)
		t += (w[7] & evenBytes * p[14] >> 48) + (w[7] >> 8 & evenBytes * p[15] >> 48)
		sum += s + t
		words, parts = words[8:], parts[16:]
	}
	parts = parts[:2*len(words)]
	for i, w := range words {
		sum += (w & evenBytes * parts[2*i] >> 48) + (w >> 8 & evenBytes * parts[2*i+1] >> 48)
	}
	return sum
}

// rough8 returns the approximate cosine of the angle between a query and a Q8 vector.
func (q *query) rough8(words []uint64) float32 {
	head, body := words[0], words[1:]
	// Twice the query's components are approximated by 8*high+3, and shifted by 2*128.
	dot := 8*int64(products(body, q.high)) - 253*int64(head>>32) - shift8*q.rough + 2*shift8*shift8*8*int64(len(body))
	return float32(float32(dot)*q.unit) * (math.Float32frombits(uint32(head)) * (1. / (2 * 127 * 127)))
}

// dot8 returns the integer product of a query and a Q8 vector.
func (q *query) dot8(words []uint64) int64 {
	body := words[1:]
	return int64(4*products(body, q.high)+products(body, q.low)) - shift8*(int64(words[0]>>32)+q.sum) +
		shift8*shift8*8*int64(len(body))
}

// differing returns the number of bits in which two Bin vectors differ.
func differing(a, b []uint64) (n int) {
	b = b[:len(a)]
	for i, w := range a {
		n += bits.OnesCount64(w ^ b[i])
	}
	return n
}

// appendRaw appends the components of a vector as VEMB RAW returns them.
func (s *Set) appendRaw(dst []byte, id uint32) []byte {
	switch s.quant {
	case Q8:
		words := s.words.At(id)
		for i := range s.dim {
			dst = append(dst, byte(int8(component8(words, i))))
		}
	case Bin:
		for _, w := range s.words.At(id) {
			dst = binary.LittleEndian.AppendUint64(dst, w)
		}
	case None:
		for _, x := range s.floats.At(id) {
			dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(x))
		}
	}
	return dst
}
