// Package geo has the parts of geographical indices: positions as scores of a sorted set, distances, and the ranges of
// scores for a search.
//
// A score has 52 bits: 26 of the longitude and 26 of the latitude, interleaved, each the number of a cell. Cells in an
// area whose side is a power of two have consecutive scores.
//
// Sines are rounded as in C libraries, because stored distances show the last digit. Package math rounds differently.
package geo

// Position is a place on the earth, in degrees.
type Position struct{ Lon, Lat float64 }

// The limits of positions. The Mercator projection is infinite at the poles.
const (
	MaxLon = 180
	MaxLat = 85.05112878
)

const (
	maxStep   = 26 // bits of each coordinate
	scoreBits = 2 * maxStep
)

// Valid reports whether the position is within the limits.
func (p Position) Valid() bool {
	return p.Lon >= -MaxLon && p.Lon <= MaxLon && p.Lat >= -MaxLat && p.Lat <= MaxLat
}

// Score returns the score of a valid position.
func (p Position) Score() uint64 { return encode(p, MaxLat, maxStep).bits }

// FromScore returns the position in the middle of a score's cell. Any double may be a score.
func FromScore(score float64) Position {
	a := cell{wrap(score), maxStep}.area()
	return Position{
		Lon: min(max((a.minLon+a.maxLon)/2, -MaxLon), MaxLon),
		Lat: min(max((a.minLat+a.maxLat)/2, -MaxLat), MaxLat),
	}
}

// wrap converts a double to an unsigned integer as processors with SSE2 do. For numbers out of range it gives the same
// result as Redis.
func wrap(f float64) uint64 {
	const limit = 1 << 63
	switch {
	case f >= -limit && f < limit:
		return uint64(int64(f))
	case f >= limit && f < 2*limit:
		return uint64(int64(f-limit)) ^ limit
	case f < 0:
		return limit
	}
	return 0
}

const geohashAlphabet = "0123456789bcdefghjkmnpqrstuvwxyz"

// AppendHash appends the position as a standard geohash of 11 characters. The last one is always 0: there are not
// enough bits for it.
func (p Position) AppendHash(dst []byte) []byte {
	bits := encode(p, 90, maxStep).bits // a standard geohash extends to the poles
	for i := 1; i <= 10; i++ {
		dst = append(dst, geohashAlphabet[bits>>(scoreBits-5*i)&31])
	}
	return append(dst, '0')
}

// cell is an area with step bits of each coordinate.
type cell struct {
	bits uint64
	step uint
}

// encode returns the cell of a position; latitudes range from -maxLat to maxLat.
func encode(p Position, maxLat float64, step uint) cell {
	lat := (p.Lat + maxLat) / (2 * maxLat) * float64(uint64(1)<<step)
	lon := (p.Lon + MaxLon) / (2 * MaxLon) * float64(uint64(1)<<step)
	return cell{spread(uint32(lat)) | spread(uint32(lon))<<1, step}
}

// area has the limits of a cell.
type area struct{ minLon, maxLon, minLat, maxLat float64 }

func (c cell) area() area {
	lat, lon := gather(c.bits), gather(c.bits>>1)
	// The products are rounded before the addition, even if the processor can fuse both.
	at := func(n uint32, max float64) float64 {
		return -max + float64(float64(n)/float64(uint64(1)<<c.step)*(2*max))
	}
	return area{at(lon, MaxLon), at(lon+1, MaxLon), at(lat, MaxLat), at(lat+1, MaxLat)}
}

// scores returns the range of scores in the cell.
func (c cell) scores() Range {
	shift := scoreBits - 2*c.step
	return Range{float64(c.bits << shift), float64((c.bits + 1) << shift)}
}

// spread moves the bits of n to the even positions.
func spread(n uint32) uint64 {
	v := uint64(n)
	v = (v | v<<16) & 0x0000ffff0000ffff
	v = (v | v<<8) & 0x00ff00ff00ff00ff
	v = (v | v<<4) & 0x0f0f0f0f0f0f0f0f
	v = (v | v<<2) & 0x3333333333333333
	return (v | v<<1) & 0x5555555555555555
}

// gather reverses spread; it ignores the odd positions.
func gather(v uint64) uint32 {
	v &= 0x5555555555555555
	v = (v | v>>1) & 0x3333333333333333
	v = (v | v>>2) & 0x0f0f0f0f0f0f0f0f
	v = (v | v>>4) & 0x00ff00ff00ff00ff
	v = (v | v>>8) & 0x0000ffff0000ffff
	return uint32(v | v>>16)
}

// neighbour returns the cell dx cells to the east and dy to the north; cell numbers wrap around. A position at the
// eastern or northern limit has a cell past the last one; its number is only corrected in the direction of a step.
func (c cell) neighbour(dx, dy int) cell {
	mask := uint32(1)<<c.step - 1
	lat, lon := gather(c.bits), gather(c.bits>>1)
	if dy != 0 {
		lat = (lat + uint32(dy)) & mask
	}
	if dx != 0 {
		lon = (lon + uint32(dx)) & mask
	}
	return cell{spread(lat) | spread(lon)<<1, c.step}
}
