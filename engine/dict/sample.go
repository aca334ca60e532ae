package dict

import "math/rand/v2"

// Sample calls fn with count different numbers from 0 to n-1, chosen at random, in time proportional to count, or with
// all n if count is larger. With At it picks random entries of a Table.
func Sample(n, count int, fn func(i int)) {
	if count > n/3 {
		// Most are wanted: visit all and take each with the remaining probability.
		for i := 0; i < n && count > 0; i++ {
			if rand.IntN(n-i) < count {
				fn(i)
				count--
			}
		}
		return
	}
	taken := make(map[int]struct{}, max(count, 0))
	for len(taken) < count {
		i := rand.IntN(n)
		if _, ok := taken[i]; !ok {
			taken[i] = struct{}{}
			fn(i)
		}
	}
}
