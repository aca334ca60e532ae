//go:build linux

// The documents and the vectors.

package main

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

const (
	vocabulary = 20_000
	tags       = 500
	dimensions = 128
	clusters   = 200 // centres of the vectors
)

// corpus is the data that both servers get, and facts about it.
type corpus struct {
	documents [][]string
	vectors   [][]float32
	queries   [][]float32
	nearest   []map[string]bool // for each query, the names of the ten nearest vectors
	in        map[string][]int  // the documents that contain a word, ascending
}

// word returns the word with a rank: syllables of a consonant and a vowel.
func word(rank int) string {
	const consonants, vowels = "bdfgklmnprstvz", "aeiou"
	var b []byte
	for n := rank + 70; n > 0; n /= 70 {
		b = append(b, consonants[n%70/5], vowels[n%70%5])
	}
	return string(b)
}

// newCorpus makes the data from a seed.
func newCorpus(documents, vectors int) *corpus {
	rnd := rand.New(rand.NewPCG(1, 2))
	zipf := rand.NewZipf(rnd, 1.1, 4, vocabulary-1)
	c := &corpus{in: map[string][]int{}}
	for i := range documents {
		text := func(n int) string {
			words := make([]string, n)
			for j := range words {
				words[j] = word(int(zipf.Uint64()))
				if in := c.in[words[j]]; len(in) == 0 || in[len(in)-1] != i {
					c.in[words[j]] = append(in, i)
				}
			}
			return strings.Join(words, " ")
		}
		c.documents = append(c.documents, []string{"HSET", fmt.Sprintf("doc:%d", i), "title", text(5), "body", text(40),
			"tag", fmt.Sprintf("t%d", rnd.IntN(tags)), "price", strconv.Itoa(rnd.IntN(10_000)),
			"place", fmt.Sprintf("%.4f,%.4f", 5+10*rnd.Float64(), 45+10*rnd.Float64())})
	}
	centres := make([][]float32, clusters)
	for i := range centres {
		centres[i] = around(rnd, make([]float32, dimensions), 1)
	}
	for range vectors {
		c.vectors = append(c.vectors, around(rnd, centres[rnd.IntN(clusters)], 0.5))
	}
	for range 200 {
		q := around(rnd, centres[rnd.IntN(clusters)], 0.5)
		c.queries = append(c.queries, q)
		c.nearest = append(c.nearest, c.exact(q))
	}
	return c
}

// around returns a vector near another one.
func around(rnd *rand.Rand, centre []float32, distance float64) []float32 {
	v := make([]float32, dimensions)
	for i := range v {
		v[i] = centre[i] + float32(rnd.NormFloat64()*distance)
	}
	return v
}

// exact returns the names of the ten vectors nearest to q.
func (c *corpus) exact(q []float32) map[string]bool {
	distances := make([]float64, len(c.vectors))
	order := make([]int, len(c.vectors))
	for i, v := range c.vectors {
		order[i] = i
		for j := range v {
			d := float64(v[j] - q[j])
			distances[i] += d * d
		}
	}
	slices.SortFunc(order, func(a, b int) int {
		if distances[a] < distances[b] {
			return -1
		}
		return 1
	})
	near := map[string]bool{}
	for _, i := range order[:min(10, len(order))] {
		near[fmt.Sprintf("vec:%d", i)] = true
	}
	return near
}

func blob(v []float32) string {
	var b []byte
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return string(b)
}

// words returns n words that are each in about that many documents.
func (c *corpus) words(n, documents int) []string {
	return closest(c.in, n, documents, func(in []int) int { return len(in) })
}

// closest returns the n keys whose values are nearest to size. Keys with equal values are in key order.
func closest[V any](m map[string]V, n, size int, of func(V) int) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	far := func(k string) int { d := of(m[k]) - size; return max(d, -d) }
	slices.SortFunc(keys, func(a, b string) int {
		if d := far(a) - far(b); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	return keys[:min(n, len(keys))]
}

// pairs returns n pairs of words that occur together in about that many documents.
func (c *corpus) pairs(n, documents int) []string {
	common := map[string]int{}
	frequent := c.words(60, len(c.documents)/20)
	for i, a := range frequent {
		for _, b := range frequent[:i] {
			common[a+" "+b] = together(c.in[a], c.in[b])
		}
	}
	return closest(common, n, documents, func(n int) int { return n })
}

// together counts the numbers that are in both of two ascending lists.
func together(a, b []int) (n int) {
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[0] < b[0]:
			a = a[1:]
		case a[0] > b[0]:
			b = b[1:]
		default:
			n++
			a, b = a[1:], b[1:]
		}
	}
	return n
}

// prefixes returns n prefixes of three letters that begin words of about that many documents.
func (c *corpus) prefixes(n, documents int) []string {
	in := map[string]map[int]bool{}
	for w, list := range c.in {
		p := w[:min(3, len(w))]
		if in[p] == nil {
			in[p] = map[int]bool{}
		}
		for _, d := range list {
			in[p][d] = true
		}
	}
	return closest(in, n, documents, func(d map[int]bool) int { return len(d) })
}
