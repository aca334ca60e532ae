package tdigest

import (
	"cmp"
	"math/bits"
	"slices"
)

// sortNodes sorts nodes by their means. Which of two nodes with equal means comes first decides how they are merged, so they are
// partitioned as the module does. That takes a number of steps that grows with the square where many are equal; those left once
// there were stepsPerNode for each node and bit of their number are sorted otherwise.
func sortNodes(nodes []node) {
	steps := stepsPerNode * len(nodes) * bits.Len(uint(len(nodes)))
	quicksort(nodes, &steps)
}

const stepsPerNode = 64

func quicksort(nodes []node, steps *int) {
	for len(nodes) > 1 {
		last := len(nodes) - 1
		if len(nodes) == 2 {
			if nodes[0].mean > nodes[1].mean {
				nodes[0], nodes[1] = nodes[1], nodes[0]
			}
			return
		}
		if *steps -= len(nodes); *steps < 0 {
			slices.SortStableFunc(nodes, func(a, b node) int { return cmp.Compare(a.mean, b.mean) })
			return
		}
		middle := last / 2
		pivot := nodes[middle].mean
		nodes[middle], nodes[last] = nodes[last], nodes[middle]
		less := 0
		for i := range nodes[:last] {
			if nodes[i].mean < pivot {
				nodes[less], nodes[i] = nodes[i], nodes[less]
				less++
			}
		}
		nodes[less], nodes[last] = nodes[last], nodes[less]
		quicksort(nodes[:less], steps)
		nodes = nodes[less+1:]
	}
}
