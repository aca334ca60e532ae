package timeseries

import (
	"encoding/binary"
	"math"
	"math/bits"
	"slices"
	"sort"
	"sync"
	"unsafe"

	"github.com/atomredis/atomredis/engine/listpack"
)

// Sample is a value at a time in ms since 1970, which must not be negative.
type Sample struct {
	Time  int64
	Value float64
}

// chunk is a run of samples in ascending order of time; it is not empty. A compressed one has the bits described at
// appendCompressed, a plain one 16 bytes per sample: time and value, little-endian.
type chunk struct {
	base        int64  // identifies it in the store: at most first, and after all times of earlier chunks
	part        string // its part's name; "" until needed
	first, last int64  // the times of the first and the last sample
	value       uint64 // the bits of the last value
	delta       int64  // between the times of the last two samples, 0 if there is only one
	lead, width uint8  // the bit window of the last change of value
	plain       bool
	n           uint32 // samples
	used        uint32 // bits of buf
	buf         []byte // the whole allocation; zeros after the used bits
}

const (
	plainSize = 16 // bytes of a sample
	// maxSamples is the most samples of a chunk, so that reading one backwards needs little memory.
	maxSamples = 1 << 15
	// spare is the minimum number of unused bytes at the end, so that bits can be read and written eight bytes at a
	// time without checks for the end.
	spare = 9
	// minBuf is the size in bytes of a new chunk's buffer.
	minBuf = 64
)

// newChunk returns a chunk with one sample.
func newChunk(s Sample, plain bool) *chunk {
	c := &chunk{base: s.Time, first: s.Time, plain: plain, buf: takeBuf(minBuf)}
	c.append(s)
	return c
}

// append adds a sample that is later than all others.
func (c *chunk) append(s Sample) {
	if c.plain {
		c.grow(8 * plainSize)
		at := c.used / 8
		binary.LittleEndian.PutUint64(c.buf[at:], uint64(s.Time))
		binary.LittleEndian.PutUint64(c.buf[at+8:], math.Float64bits(s.Value))
		c.used += 8 * plainSize
		c.last, c.value = s.Time, math.Float64bits(s.Value)
		c.n++
		return
	}
	c.grow(maxBits)
	c.appendCompressed(s)
}

// grow makes room for more bits.
func (c *chunk) grow(more int) {
	need := (int(c.used)+more+7)/8 + spare
	if need <= len(c.buf) {
		return
	}
	buf := takeBuf(max(need, len(c.buf)+len(c.buf)/2))
	copy(buf, c.buf)
	leaveBuf(c.buf)
	c.buf = buf
}

// outgrown has outgrown buffers for reuse: the buffers that a chunk outgrows until it is full take twice its final
// size. It has pointers to their first byte, by size in units of bufUnit; they are cleared.
var outgrown [maxReused/bufUnit + 1]sync.Pool

const (
	bufUnit   = 16   // divides all the allocator's size classes from minBuf on
	maxReused = 8192 // chunks are usually smaller
)

// takeBuf returns a zeroed buffer of at least n and minBuf bytes.
func takeBuf(n int) []byte {
	n = listpack.Allocated(max(n, minBuf))
	if n <= maxReused {
		if p, ok := outgrown[n/bufUnit].Get().(*byte); ok {
			return unsafe.Slice(p, n)
		}
	}
	return make([]byte, n)
}

// leaveBuf offers an unused buffer to other chunks.
func leaveBuf(buf []byte) {
	if n := len(buf); n >= minBuf && n <= maxReused && n == listpack.Allocated(n) {
		clear(buf)
		outgrown[n/bufUnit].Put(unsafe.SliceData(buf))
	}
}

// full reports whether a chunk should take no further sample; size is its limit in bytes.
func (c *chunk) full(size int) bool {
	if c.n >= maxSamples {
		return true
	}
	if c.plain {
		return int(c.used)/8+plainSize > size
	}
	return int(c.used) >= 8*size
}

// over reports whether a chunk exceeds its limit of size bytes and must be split.
func (c *chunk) over(size int) bool {
	if c.plain {
		return int(c.used) > 8*size
	}
	return int(c.used) > 8*size+maxBits || c.n > maxSamples
}

// maxBits is the maximum size of a compressed sample.
const maxBits = 5 + 64 + 2 + 5 + 6 + 64

// appendCompressed adds a sample as Gorilla does (Pelkonen et al., 2015). The first has the 64 bits of its value; its
// time is in the chunk. Each further one begins with the difference between its time distance to the previous sample
// and the previous distance:
//
//	0               no difference
//	10    7 bits    -64 to 63
//	110   9 bits    -256 to 255
//	1110  12 bits   -2048 to 2047
//	11110 32 bits
//	11111 64 bits
//
// Then follow the bits in which its value differs from the previous one:
//
//	0                                         none
//	10                                        those in the window of the previous difference
//	11    5 bits lead, 6 bits width minus 1   those in a new window
func (c *chunk) appendCompressed(s Sample) {
	value := math.Float64bits(s.Value)
	if c.n == 0 {
		c.put(value, 64)
		c.last, c.value, c.n = s.Time, value, 1
		c.lead, c.width = 0, 0
		return
	}
	delta := s.Time - c.last
	switch d := delta - c.delta; {
	case d == 0:
		c.put(0, 1)
	case d >= -64 && d < 64:
		c.put(0b10<<7|uint64(d)&(1<<7-1), 9)
	case d >= -256 && d < 256:
		c.put(0b110<<9|uint64(d)&(1<<9-1), 12)
	case d >= -2048 && d < 2048:
		c.put(0b1110<<12|uint64(d)&(1<<12-1), 16)
	case d >= math.MinInt32 && d <= math.MaxInt32:
		c.put(0b11110<<32|uint64(d)&(1<<32-1), 37)
	default:
		c.put(0b11111, 5)
		c.put(uint64(d), 64)
	}
	if diff := value ^ c.value; diff == 0 {
		c.put(0, 1)
	} else {
		lead, trail := min(uint8(bits.LeadingZeros64(diff)), 31), uint8(bits.TrailingZeros64(diff))
		width := 64 - lead - trail
		if lead < c.lead || c.width == 0 || trail < 64-c.lead-c.width || width+13 < c.width+2 {
			c.lead, c.width = lead, width
			c.put(0b11<<11|uint64(lead)<<6|uint64(c.width-1), 13)
		} else {
			c.put(0b10, 2)
		}
		c.put(diff>>(64-c.lead-c.width), uint(c.width))
	}
	c.last, c.delta, c.value = s.Time, delta, value
	c.n++
}

// put writes the low n bits of v, whose other bits must be zero.
func (c *chunk) put(v uint64, n uint) {
	v <<= 64 - n
	shift := uint(c.used & 7)
	b := c.buf[c.used>>3 : c.used>>3+9]
	binary.BigEndian.PutUint64(b, binary.BigEndian.Uint64(b)|v>>shift)
	if shift+n > 64 {
		b[8] |= byte(v << (8 - shift))
	}
	c.used += uint32(n)
}

// reader reads the samples of a chunk in order.
type reader struct {
	c           *chunk
	i           uint32 // index of the next sample
	pos         uint   // the next bit
	time, delta int64  // of the previous sample
	value       uint64
	lead, width uint8
}

// peek returns the 64 bits that start at a position.
func peek(buf []byte, pos uint) uint64 {
	b := buf[pos>>3 : pos>>3+9]
	shift := pos & 7
	return binary.BigEndian.Uint64(b)<<shift | uint64(b[8])>>(8-shift)
}

// read fills dst with samples as far as there are any, and returns their number.
func (r *reader) read(dst []Sample) int {
	c := r.c
	n := min(len(dst), int(c.n-r.i))
	dst = dst[:n]
	if c.plain {
		for k := range dst {
			b := c.buf[(int(r.i)+k)*plainSize:][:plainSize]
			dst[k] = Sample{int64(binary.LittleEndian.Uint64(b)), math.Float64frombits(binary.LittleEndian.Uint64(b[8:]))}
		}
		r.i += uint32(n)
		return n
	}
	buf, pos, time, delta, value := c.buf, r.pos, r.time, r.delta, r.value
	lead, width := uint(r.lead), uint(r.width)
	k := 0
	if r.i == 0 && n > 0 {
		time, value, pos = c.first, peek(buf, 0), 64
		dst[0] = Sample{time, math.Float64frombits(value)}
		k = 1
	}
	for ; k < len(dst); k++ {
		w := peek(buf, pos)
		switch ones := bits.LeadingZeros64(^w); ones {
		case 0:
			w <<= 1
			pos++
		case 1:
			delta += int64(w<<2) >> (64 - 7)
			w <<= 9
			pos += 9
		case 2:
			delta += int64(w<<3) >> (64 - 9)
			w <<= 12
			pos += 12
		case 3:
			delta += int64(w<<4) >> (64 - 12)
			w <<= 16
			pos += 16
		case 4:
			delta += int64(w<<5) >> (64 - 32)
			w <<= 37
			pos += 37
		default:
			delta += int64(peek(buf, pos+5))
			pos += 69
			w = peek(buf, pos)
		}
		time += delta
		if w>>63 == 0 {
			pos++
		} else {
			if w>>62 == 3 {
				lead, width = uint(w>>57)&31, uint(w>>51)&63+1
				pos += 13
			} else {
				pos += 2
			}
			value ^= peek(buf, pos) >> (64 - width) << (64 - lead - width)
			pos += width
		}
		dst[k] = Sample{time, math.Float64frombits(value)}
	}
	r.i += uint32(n)
	r.pos, r.time, r.delta, r.value, r.lead, r.width = pos, time, delta, value, uint8(lead), uint8(width)
	return n
}

// samples appends all samples to dst.
func (c *chunk) samples(dst []Sample) []Sample {
	at := len(dst)
	dst = slices.Grow(dst, int(c.n))[:at+int(c.n)]
	r := reader{c: c}
	r.read(dst[at:])
	return dst
}

// plainFrom returns the number of samples before a time in a plain chunk.
func (c *chunk) plainFrom(time int64) int {
	return sort.Search(int(c.n), func(i int) bool {
		return int64(binary.LittleEndian.Uint64(c.buf[i*plainSize:])) >= time
	})
}

// fill replaces the chunk's samples, and keeps its base and part. There must be at least one.
func (c *chunk) fill(samples []Sample) {
	clear(c.buf[:min(int(c.used)/8+spare, len(c.buf))])
	c.n, c.used, c.delta = 0, 0, 0
	c.first = samples[0].Time
	for _, s := range samples {
		c.append(s)
	}
}

// trim frees memory of a chunk that will not be appended to.
func (c *chunk) trim() {
	if need := (int(c.used)+7)/8 + spare; len(c.buf)-need > need/16 {
		was := c.buf
		c.buf = append(make([]byte, 0, need), was[:need]...)
		leaveBuf(was)
	}
}

// clone returns a copy.
func (c *chunk) clone() *chunk {
	copied := *c
	copied.buf = make([]byte, min((int(c.used)+7)/8+spare+minBuf/2, len(c.buf)))
	copy(copied.buf, c.buf)
	return &copied
}

// stored forms

// appendStored appends the stored form of the chunk: the format, whether it is plain, the number of samples, the time
// of the first, the number of bits, and the bits.
func (c *chunk) appendStored(dst []byte) []byte {
	kind := byte(storedCompressed)
	if c.plain {
		kind = storedPlain
	}
	dst = append(dst, format, kind)
	dst = binary.AppendUvarint(dst, uint64(c.n))
	dst = binary.AppendUvarint(dst, uint64(c.first))
	dst = binary.AppendUvarint(dst, uint64(c.used))
	return append(dst, c.buf[:(c.used+7)/8]...)
}

const (
	storedCompressed = 0
	storedPlain      = 1
)

// decodeChunk reads the output of appendStored. It checks everything that the methods of chunks rely on.
func decodeChunk(base int64, b []byte) (*chunk, error) {
	if len(b) < 2 || b[0] != format || b[1] > storedPlain {
		return nil, errFormat
	}
	f := fields{b: b[2:]}
	n, first, used := f.uvarint(), f.uvarint(), f.uvarint()
	if f.bad || n == 0 || n > maxSamples || first > math.MaxInt64 || used > 8*maxStoredChunk ||
		uint64(len(f.b)) != (used+7)/8 || int64(first) < base {
		return nil, errChunk
	}
	c := &chunk{base: base, first: int64(first), plain: b[1] == storedPlain, n: uint32(n), used: uint32(used)}
	if c.plain && used != n*8*plainSize || !c.plain && (used < 64 || n > used-63) {
		return nil, errChunk
	}
	c.buf = make([]byte, len(f.b)+spare)
	copy(c.buf, f.b)
	return c, c.check()
}

// maxStoredChunk is above the size of any chunk, in bytes.
const maxStoredChunk = 2 * MaxChunkSize

// check validates the samples of a chunk from elsewhere, and sets the fields derived from them.
func (c *chunk) check() error {
	if c.used%8 != 0 && c.buf[c.used/8]<<(c.used%8) != 0 {
		return errChunk
	}
	r := reader{c: c}
	last := int64(-1)
	var one [1]Sample
	for r.i < c.n {
		if r.pos > uint(c.used) {
			return errChunk
		}
		was := r.pos
		if !c.plain && r.i > 0 && !c.wellFormed(was, r.width) {
			return errChunk
		}
		r.read(one[:])
		if one[0].Time <= last || r.i == 1 && one[0].Time != c.first {
			return errChunk
		}
		last = one[0].Time
	}
	if !c.plain && r.pos != uint(c.used) {
		return errChunk
	}
	c.last, c.value = last, math.Float64bits(one[0].Value)
	c.delta, c.lead, c.width = r.delta, r.lead, r.width
	return nil
}

// wellFormed reports whether the bits of a sample at a position can be read: they end within the chunk, and have an
// existing window.
func (c *chunk) wellFormed(pos uint, width uint8) bool {
	w := peek(c.buf, pos)
	size := [...]uint{1, 9, 12, 16, 37, 69}[min(bits.LeadingZeros64(^w), 5)]
	if pos+size >= uint(c.used) {
		return false
	}
	pos += size
	w = peek(c.buf, pos)
	switch {
	case w>>63 == 0:
		return true
	case w>>62 == 2:
		return width > 0 && pos+2+uint(width) <= uint(c.used)
	}
	if pos+13 > uint(c.used) {
		return false
	}
	lead, wide := uint(w>>57)&31, uint(w>>51)&63+1
	return lead+wide <= 64 && pos+13+wide <= uint(c.used)
}
