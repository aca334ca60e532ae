package rdb

import (
	"encoding/binary"
	"math"
	"math/bits"

	"github.com/atomredis/atomredis/engine/timeseries"
)

// The compressed chunks of RedisTimeSeries. The first sample is stored separately; the others are a sequence of bits,
// the lowest of each byte and number first. A sample begins with the change of its distance in time: up to six ones, a
// zero after fewer than six, and the change. The number of ones is the index of its width in gorillaWidths. Then follow
// the bits in which the value differs from the previous one:
//
//	0                                         none
//	1 0                                       those in the window of the last difference
//	1 1  5 bits lead, 6 bits width minus 1    those in a new window

// gorillaWidths has the width of a change by the number of ones before it.
var gorillaWidths = [...]uint{0, 5, 8, 11, 15, 32, 64}

const (
	gorillaLead  = 5
	gorillaWidth = 6
	// gorillaNone is the lead and the trail of a chunk before the first window.
	gorillaNone = 32
	// gorillaMaxLead is the largest number of gorillaLead bits.
	gorillaMaxLead = 1<<gorillaLead - 1
	// gorillaNaN has the bits of NaN.
	gorillaNaN = 0x7ff8 << 48
)

// gorillaReader reads bits.
type gorillaReader struct {
	data []byte
	pos  uint // the next bit
	end  uint // number of bits, all of them in data
	over bool // a read went beyond the end
}

// read returns the next n bits, at most 64.
func (r *gorillaReader) read(n uint) uint64 {
	if n > r.end-r.pos {
		r.over = true
		return 0
	}
	var tail [9]byte
	at, shift := r.pos>>3, r.pos&7
	b := r.data[at:]
	if len(b) < len(tail) {
		copy(tail[:], b)
		b = tail[:]
	}
	v := binary.LittleEndian.Uint64(b)>>shift | uint64(b[8])<<(64-shift)
	r.pos += n
	return v & (math.MaxUint64 >> (64 - n))
}

// samples calls fn with the count samples of a chunk. r has the bits of all but the first.
func (r *gorillaReader) samples(count uint64, first timeseries.Sample, fn func(timeseries.Sample) error) error {
	if count == 0 {
		return nil
	}
	time, value, delta := uint64(first.Time), math.Float64bits(first.Value), uint64(0)
	lead, width := uint64(0), uint64(0)
	if err := fn(first); err != nil {
		return err
	}
	for count--; count > 0; count-- {
		ones := 0
		for ones < len(gorillaWidths)-1 && r.read(1) == 1 {
			ones++
		}
		size := gorillaWidths[ones]
		delta += uint64(int64(r.read(size)<<(64-size)) >> (64 - size))
		time += delta
		if r.read(1) == 1 {
			if r.read(1) == 1 {
				lead, width = r.read(gorillaLead), r.read(gorillaWidth)+1
			}
			if width == 0 || lead+width > 64 {
				return corrupt("a chunk with a window of %d bits behind %d", width, lead)
			}
			value ^= r.read(uint(width)) << (64 - lead - width)
		}
		if r.over {
			return corrupt("a chunk that ends before its last sample")
		}
		if err := fn(timeseries.Sample{Time: int64(time), Value: math.Float64frombits(value)}); err != nil {
			return err
		}
	}
	return nil
}

// gorillaChunk is a chunk being written.
type gorillaChunk struct {
	bits        []byte
	used        uint // bits
	first, last timeseries.Sample
	value       uint64 // the bits of the last value
	delta       int64  // between the times of the last two samples
	lead, trail uint
}

// gorillaOf returns a chunk with samples. Its bits are in buf if they fit.
func gorillaOf(samples []timeseries.Sample, buf []byte) *gorillaChunk {
	c := &gorillaChunk{bits: buf[:0], lead: gorillaNone, trail: gorillaNone}
	for i, x := range samples {
		value := math.Float64bits(x.Value)
		if x.Value != x.Value {
			value = gorillaNaN
		}
		if i == 0 {
			c.first, c.value = x, value
			c.first.Value = math.Float64frombits(value)
		} else {
			c.appendTime(x.Time)
			c.appendValue(value)
		}
		c.last = x
	}
	return c
}

// put writes the low n bits of v, whose other bits must be zero.
func (c *gorillaChunk) put(v uint64, n uint) {
	for n > 0 {
		if c.used&7 == 0 {
			c.bits = append(c.bits, 0)
		}
		shift := c.used & 7
		c.bits[len(c.bits)-1] |= byte(v << shift)
		k := min(8-shift, n)
		v >>= k
		n -= k
		c.used += k
	}
}

func (c *gorillaChunk) appendTime(time int64) {
	delta := time - c.last.Time
	change, ones, most := delta-c.delta, uint(0), uint(len(gorillaWidths)-1)
	for ones < most && !fits(change, gorillaWidths[ones]) {
		ones++
	}
	c.put(1<<ones-1, min(ones+1, most))
	width := gorillaWidths[ones]
	c.put(uint64(change)&(math.MaxUint64>>(64-width)), width)
	c.delta = delta
}

// fits reports whether a number fits into width bits, including its sign.
func fits(n int64, width uint) bool { return n<<(64-width)>>(64-width) == n }

func (c *gorillaChunk) appendValue(value uint64) {
	diff := value ^ c.value
	if diff == 0 {
		c.put(0, 1)
		return
	}
	c.value = value
	lead, trail := min(uint(bits.LeadingZeros64(diff)), gorillaMaxLead), uint(bits.TrailingZeros64(diff))
	width, was := 64-lead-trail, 64-c.lead-c.trail
	if lead >= c.lead && trail >= c.trail && gorillaLead+gorillaWidth+width > was {
		c.put(0b01, 2)
		c.put(diff>>c.trail, was)
		return
	}
	c.put(0b11, 2)
	c.put(uint64(lead), gorillaLead)
	c.put(uint64(width-1), gorillaWidth)
	c.put(diff>>trail, width)
	c.lead, c.trail = lead, trail
}
