package tdigest

import "math"

// Conversions round each product before an addition, so that no processor fuses the two.

// Quantile returns the approximate q-quantile, with q from 0 to 1; NaN without numbers.
func (d *Digest) Quantile(q float64) float64 {
	switch nodes := d.sorted(); len(nodes) {
	case 0:
		return math.NaN()
	case 1:
		return nodes[0].mean
	}
	return d.value(q * float64(d.Weight()))
}

// ByRank returns the approximate number with rank lower numbers: +Inf if there are too few, NaN without numbers.
func (d *Digest) ByRank(rank int64) float64 {
	switch {
	case d.Weight() == 0:
		return math.NaN()
	case rank == 0:
		return d.min
	case rank >= d.Weight():
		return math.Inf(1)
	}
	return d.atRank(float64(rank))
}

// ByReverseRank returns the approximate number with rank higher numbers: -Inf if there are too few, NaN without
// numbers.
func (d *Digest) ByReverseRank(rank int64) float64 {
	switch {
	case d.Weight() == 0:
		return math.NaN()
	case rank == 0:
		return d.max
	case rank >= d.Weight():
		return math.Inf(-1)
	}
	return d.atRank(float64(d.Weight()) - float64(rank) - 1)
}

// atRank returns the number at a rank. Like the module it first converts the rank to a fraction.
func (d *Digest) atRank(rank float64) float64 {
	total := float64(d.Weight())
	part := rank / total
	if place := part * total; place < 1 && len(d.sorted()) > 1 {
		return d.min
	}
	return d.Quantile(part)
}

// value returns the number at a place in the sorted numbers. There must be at least two nodes. A node of weight 1
// stands for its number; between the middles of larger nodes value interpolates.
func (d *Digest) value(place float64) float64 {
	nodes, total := d.sorted(), float64(d.Weight())
	first, last := nodes[0], nodes[len(nodes)-1]
	half := float64(first.weight) / 2
	if first.weight > 1 && place <= min(1, half) { // below, the module returns less than the least number, or NaN
		return d.min
	}
	if first.weight > 1 && place < half {
		return d.min + float64((place-1)/(half-1)*(first.mean-d.min))
	}
	if place >= total-1 {
		return d.max
	}
	lastHalf := float64(last.weight) / 2
	if last.weight > 1 && total-place <= lastHalf {
		return d.max - float64((total-place-1)/(lastHalf-1)*(d.max-last.mean))
	}
	middle := half // of the node
	for i, n := range nodes[:len(nodes)-1] {
		next := nodes[i+1]
		step := (float64(n.weight) + float64(next.weight)) / 2
		if !(middle+step > place) {
			middle += step
			continue
		}
		left, right := 0.0, 0.0 // a node of weight 1 takes half of its width
		if n.weight == 1 {
			if place-middle < 0.5 {
				return n.mean
			}
			left = 0.5
		}
		if next.weight == 1 {
			if middle+step-place <= 0.5 {
				return next.mean
			}
			right = 0.5
		}
		return weighted(n.mean, middle+step-place-right, next.mean, place-middle-left)
	}
	way := place - total - lastHalf
	return weighted(last.mean, way, d.max, lastHalf-way)
}

// weighted returns the weighted mean of two numbers, limited to the range between them.
func weighted(x1, w1, x2, w2 float64) float64 {
	if x1 > x2 {
		x1, w1, x2, w2 = x2, w2, x1, w1
	}
	x := (float64(x1*w1) + float64(x2*w2)) / (w1 + w2)
	if !(x < x2) {
		x = x2
	}
	if x1 > x {
		return x1
	}
	return x
}

// CDF returns the fraction of numbers less than x, plus half of those equal to x; NaN without numbers.
func (d *Digest) CDF(x float64) float64 {
	nodes, total := d.sorted(), float64(d.Weight())
	switch {
	case len(nodes) == 0:
		return math.NaN()
	case x < d.min:
		return 0
	case x > d.max:
		return 1
	case len(nodes) == 1:
		return 0.5
	}
	first, last := nodes[0], nodes[len(nodes)-1]
	switch width := first.mean - d.min; {
	case !(x < first.mean):
	case !(width > 0):
		return 0
	case x == d.min:
		return 0.5 / total
	default:
		return (1 + float64(share(x, d.min, first.mean)*(float64(first.weight)/2-1))) / total
	}
	switch width := d.max - last.mean; {
	case !(x > last.mean):
	case !(width > 0):
		return 1
	case x == d.max:
		return 1 - 0.5/total
	default:
		return 1 - (1+float64(share(x, d.max, last.mean)*(float64(last.weight)/2-1)))/total
	}
	before := 0.0
	for i, n := range nodes[:len(nodes)-1] {
		next, weight := nodes[i+1], float64(n.weight)
		switch {
		case n.mean == x:
			equal := 0.0
			for ; i < len(nodes) && nodes[i].mean == x; i++ {
				equal += float64(nodes[i].weight)
			}
			return (before + equal/2) / total
		case n.mean <= x && x < next.mean:
			step := (weight + float64(next.weight)) / 2
			width := next.mean - n.mean
			if !(width > 0) {
				return (before + step) / total
			}
			left, right := 0.0, 0.0 // a node of weight 1 lies at one end
			switch {
			case n.weight == 1 && next.weight == 1:
				return (before + 1) / total
			case n.weight == 1:
				left = 0.5
			case next.weight == 1:
				right = 0.5
			}
			start, way := before+weight/2+left, step-left-right
			part := way * (x - n.mean) / width
			if math.IsInf(part, 0) || math.IsNaN(part) { // the numbers are too large
				part = float64(way * share(x, n.mean, next.mean))
			}
			return (start + part) / total
		}
		before += weight
	}
	return 1 - 0.5/total
}

// share returns the position of x between two numbers: 0 at from, 1 at to.
func share(x, from, to float64) float64 {
	if part := (x - from) / (to - from); !math.IsInf(to-from, 0) {
		return part
	}
	return (x/2 - from/2) / (to/2 - from/2)
}

// Rank returns the approximate number of numbers less than x, plus half of those equal to x: -1 if x is below all, -2
// without numbers.
func (d *Digest) Rank(x float64) int64 {
	switch {
	case d.Weight() == 0:
		return -2
	case x < d.min:
		return -1
	case x > d.max:
		return d.Weight()
	}
	rank := d.CDF(x) * float64(d.Weight())
	whole := math.Floor(rank)
	if rank-whole > 0.5 {
		whole++
	}
	return int64(whole)
}

// ReverseRank returns the approximate number of numbers greater than x, plus half of those equal to x: -1 if x is above
// all, -2 without numbers.
func (d *Digest) ReverseRank(x float64) int64 {
	switch {
	case d.Weight() == 0:
		return -2
	case x < d.min:
		return d.Weight()
	case x > d.max:
		return -1
	}
	total := float64(d.Weight())
	return int64(math.Round(total - math.Round(d.CDF(x)*total)))
}

// TrimmedMean returns the mean of the numbers between two quantiles; NaN without numbers.
func (d *Digest) TrimmedMean(low, high float64) float64 {
	nodes, total := d.sorted(), float64(d.Weight())
	switch len(nodes) {
	case 0:
		return math.NaN()
	case 1:
		return nodes[0].mean
	}
	from, to := math.Floor(total*low), math.Ceil(total*high)
	part := func(n node, before float64) float64 {
		weight := float64(n.weight)
		weight -= min(max(0, from-before), weight)
		return min(max(0, to-before), weight)
	}
	sum, weight, before := 0.0, 0.0, 0.0
	for _, n := range nodes {
		w := part(n, before)
		before += float64(n.weight)
		sum += float64(n.mean * w)
		weight += w
		if before >= to {
			break
		}
	}
	if mean := sum / weight; !math.IsInf(mean, 0) && !math.IsNaN(mean) || weight == 0 {
		return mean
	}
	mean, seen, before := 0.0, 0.0, 0.0 // the sum overflows
	for _, n := range nodes {
		if w := part(n, before); w > 0 {
			seen += w
			mean = float64(mean*(1-w/seen)) + float64(n.mean*(w/seen))
		}
		before += float64(n.weight)
	}
	return mean
}
