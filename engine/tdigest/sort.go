package tdigest

import (
	"cmp"
	"math/bits"
	"slices"
)

// sortNodes sorts nodes by their means. The order of nodes with equal means affects how they merge, so sortNodes
// partitions like the module. With many equal means that would take quadratic time: after stepsPerNode * n log n steps
// a stable sort takes over.
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
