//go:build !amd64

package distance

func dotFloats(a, b []float32, sums *[4]float32) { dotEights(a, b, sums) }

func squaredFloats(a, b []float32, sums *[4]float32) { squaredEights(a, b, sums) }
