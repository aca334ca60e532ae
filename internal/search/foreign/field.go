package foreign

import (
	"math"
	"strconv"
)

// The types of fields.
const (
	text = 1 << iota
	numeric
	geo
	tag
	vector
	shape
)

// The options of a field.
const (
	sortable = 1 << iota
	noStem
	noIndex
	phonetic
	dynamic
	unfolded
	suffixes
	hasNoOrder // only for JSON, follows from the path
	indexesEmpty
	indexesMissing
)

// The flags of a TAG field: the one that can be set, and those that always are.
const (
	caseSensitive = 1
	usualTagFlags = 2 | 4
)

// The algorithms of vectors. The module always puts a list before a graph.
const (
	flat = iota
	hnsw
	tiered
	svs
)

// usualSize is the default of INITIAL_CAP and BLOCK_SIZE.
const usualSize = 1024

var (
	vectorTypes   = []string{"FLOAT32", "FLOAT64", "BFLOAT16", "FLOAT16", "INT8", "UINT8"}
	vectorMetrics = []string{"L2", "IP", "COSINE"}
	// compressions are those of SVS-VAMANA by the bits that they use. The first is for processors without support
	// for the others.
	compressions = map[uint64]string{1: "LVQ8", 4: "LVQ4", 8: "LVQ8", 4 | 4<<8: "LVQ4x4", 4 | 8<<8: "LVQ4x8",
		4 | 8<<8 | 1<<16: "LeanVec4x8", 8 | 8<<8 | 1<<16: "LeanVec8x8"}
)

// fields reads the fields as arguments of FT.CREATE.
func (r *reader) fields() (list []string) {
	n := r.Uint()
	if n > maxFields {
		r.Corrupt("index %q has %d fields", r.name, n)
	}
	for ; n > 0 && r.Err() == nil; n-- {
		list = append(list, r.field()...)
	}
	return list
}

// field reads a field.
func (r *reader) field() []string {
	name := r.text()
	list := []string{name}
	if r.Version >= versionPaths && r.Uint() == 1 {
		list = []string{r.text(), "AS", name}
	}
	kind, options := r.Uint(), r.Uint()
	r.Uint() // its index among the sortable fields
	weight, flags, separator := 1.0, uint64(0), ""
	if kind&text != 0 || options&dynamic != 0 {
		r.Uint() // its index among the TEXT fields
		weight = r.Double()
	}
	if kind&tag != 0 || options&dynamic != 0 {
		flags, separator = r.Uint(), r.Text()
	}
	var arguments []string
	if kind&vector != 0 {
		arguments = r.vector(name)
	}
	sphere := false
	if kind&shape != 0 || options&dynamic != 0 {
		sphere = r.Version >= versionShapes && r.Uint() != 0
	}
	switch kind {
	case text:
		list = append(list, "TEXT")
		list = append(list, chosen(options, noStem, "NOSTEM")...)
		if weight != 1 {
			list = append(list, "WEIGHT", number(weight))
		}
		list = append(list, chosen(options, phonetic, "PHONETIC", "dm:en")...)
	case tag:
		list = append(list, "TAG")
		if separator != "" && separator != "\x00" {
			list = append(list, "SEPARATOR", separator)
		}
		list = append(list, chosen(flags, caseSensitive, "CASESENSITIVE")...)
	case numeric:
		list = append(list, "NUMERIC")
		options &^= unfolded // it has no meaning here
	case geo:
		list = append(list, "GEO")
	case shape:
		list = append(append(list, "GEOSHAPE"), map[bool]string{false: "FLAT", true: "SPHERICAL"}[sphere])
	case vector:
		list = append(append(list, "VECTOR"), arguments...)
	default:
		r.refuse("field %q has the type %d", name, kind)
	}
	list = append(list, chosen(options, suffixes, "WITHSUFFIXTRIE")...)
	list = append(list, chosen(options, indexesEmpty, "INDEXEMPTY")...)
	list = append(list, chosen(options, indexesMissing, "INDEXMISSING")...)
	if kind == vector {
		return list
	}
	if options&sortable != 0 {
		list = append(append(list, "SORTABLE"), chosen(options, unfolded, "UNF")...)
	}
	return append(list, chosen(options, noIndex, "NOINDEX")...)
}

// chosen returns words if an option is set.
func chosen(options, option uint64, words ...string) []string {
	if options&option == 0 {
		return nil
	}
	return words
}

// vector reads the options of a vector index, as arguments after VECTOR.
func (r *reader) vector(name string) []string {
	if r.Version >= versionBlobs {
		r.Uint() // the size of a vector
	}
	algorithm := r.Uint()
	if algorithm == tiered && r.Version >= versionTiered {
		algorithm = r.Uint()
	} else if algorithm != flat && (algorithm != hnsw || r.Version >= versionTiered) {
		// The rest depends on the algorithm, so it cannot be read.
		r.Corrupt("index %q: field %q has the algorithm %d", r.name, name, algorithm)
	}
	var list []string
	parameter := func(name string, value uint64) {
		list = append(list, name, strconv.FormatUint(min(value, math.MaxInt32), 10))
	}
	size := func(name string) {
		if n := r.Uint(); n != usualSize && n != 0 {
			parameter(name, n)
		}
	}
	threshold := uint64(0)
	if algorithm != flat && r.Version >= versionTiered {
		threshold = r.Uint() // for SVS the number of vectors that it waits for; for HNSW of deletions
	}
	kind, dim, metric := r.Uint(), r.Uint(), r.Uint()
	if kind >= uint64(len(vectorTypes)) || metric >= uint64(len(vectorMetrics)) {
		r.refuse("field %q has vectors of the type %d and the metric %d", name, kind, metric)
		kind, metric = 0, 0
	}
	list = append(list, "TYPE", vectorTypes[kind])
	parameter("DIM", dim)
	list = append(list, "DISTANCE_METRIC", vectorMetrics[metric])
	if r.Version >= versionMulti {
		r.Uint() // whether a document may have several
	}
	if r.Version < versionSVS {
		size("INITIAL_CAP")
	}
	word := ""
	switch algorithm {
	case flat:
		word = "FLAT"
		if r.Version < versionSVS {
			size("BLOCK_SIZE")
		}
	case hnsw:
		word = "HNSW"
		parameter("M", r.Uint())
		parameter("EF_CONSTRUCTION", r.Uint())
		parameter("EF_RUNTIME", r.Uint())
		if r.Version >= versionSVS {
			list = append(list, "EPSILON", number(r.Double()))
		}
		if r.Version >= versionRerank {
			r.Uint() // of vectors on disk
		}
	case svs:
		word = "SVS-VAMANA"
		bits := r.Uint()
		parameter("GRAPH_MAX_DEGREE", r.Uint())
		parameter("CONSTRUCTION_WINDOW_SIZE", r.Uint())
		reduced := r.Uint()
		parameter("SEARCH_WINDOW_SIZE", r.Uint())
		list = append(list, "EPSILON", number(r.Double()))
		if bits == 0 {
			break
		}
		compression, ok := compressions[bits]
		if !ok {
			r.refuse("field %q has vectors of %d bits", name, bits)
		}
		list = append(list, "COMPRESSION", compression)
		parameter("TRAINING_THRESHOLD", threshold)
		if bits&(1<<16) != 0 && reduced > 0 {
			parameter("REDUCE", reduced)
		}
	default:
		r.Corrupt("index %q: field %q has the algorithm %d", r.name, name, algorithm)
	}
	return append([]string{word, strconv.Itoa(len(list))}, list...)
}
