package distance

// dotFloats is dotEights in instructions that every amd64 has.
//
//go:noescape
func dotFloats(a, b []float32, sums *[4]float32)

// squaredFloats is squaredEights, likewise.
//
//go:noescape
func squaredFloats(a, b []float32, sums *[4]float32)
