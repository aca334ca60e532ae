package schema

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/atomredis/atomredis/internal/search/args"
	"github.com/atomredis/atomredis/internal/search/query"
)

// Algorithm is the algorithm of a vector index.
type Algorithm uint8

// The algorithms. SVS is SVS-VAMANA.
const (
	Flat Algorithm = iota
	HNSW
	SVS
)

// VectorType is the type of a vector's numbers.
type VectorType uint8

// The types.
const (
	Float32 VectorType = iota
	Float64
	Float16
	BFloat16
	Int8
	Uint8
)

// Metric is how the distance of vectors is measured.
type Metric uint8

// The metrics. L2 is the square of the distance; IP is 1 minus the inner product; Cosine is 1 minus the cosine.
const (
	L2 Metric = iota
	IP
	Cosine
)

// Vector says how a VECTOR field is indexed.
type Vector struct {
	Algorithm Algorithm
	Type      VectorType
	Dim       int
	Metric    Metric

	InitialCap int // accepted and shown, without effect: memory grows with the vectors
	BlockSize  int // FLAT: likewise

	M              int // HNSW: links of a vector; on the lowest layer twice as many
	EfConstruction int
	EfRuntime      int
	Epsilon        float64 // HNSW and SVS: how far beyond the radius a range search goes

	Compression       string // SVS: the name that FT.CREATE gave; "" is none
	GraphMaxDegree    int
	ConstructionWidth int
	SearchWidth       int
	TrainingThreshold int
	Reduce            int
}

// The words of FT.CREATE and FT.INFO, by value.
var (
	algorithmNames = []string{Flat: "FLAT", HNSW: "HNSW", SVS: "SVS-VAMANA"}
	vectorTypes    = []string{Float32: "FLOAT32", Float64: "FLOAT64", Float16: "FLOAT16", BFloat16: "BFLOAT16", Int8: "INT8", Uint8: "UINT8"}
	metricNames    = []string{L2: "L2", IP: "IP", Cosine: "COSINE"}
	vectorSizes    = []int{Float32: 4, Float64: 8, Float16: 2, BFloat16: 2, Int8: 1, Uint8: 1}
)

// String returns the word of FT.CREATE.
func (a Algorithm) String() string { return algorithmNames[a] }

// String returns the word of FT.CREATE.
func (t VectorType) String() string { return vectorTypes[t] }

// Size returns how many bytes a number has.
func (t VectorType) Size() int { return vectorSizes[t] }

// String returns the word of FT.CREATE.
func (m Metric) String() string { return metricNames[m] }

// Bytes returns how many bytes a vector has.
func (v *Vector) Bytes() int { return v.Dim * v.Type.Size() }

// Limits of the arguments of FT.CREATE.
const (
	maxDim        = 32768
	minTraining   = 1024
	maxParameters = 1 << 20
)

// parseVector reads the arguments after VECTOR.
func parseVector(r *reader) (*Vector, error) {
	v := &Vector{M: 16, EfConstruction: 200, EfRuntime: 10, Epsilon: 0.01, BlockSize: 1024, GraphMaxDegree: 32,
		ConstructionWidth: 200, SearchWidth: 10}
	const algorithm, parameters = "vector similarity algorithm", "vector similarity number of parameters"
	i, _, err := r.choice(algorithm, algorithmNames...)
	if err != nil {
		return nil, err
	}
	if i < 0 {
		return nil, unknown(algorithm)
	}
	v.Algorithm = Algorithm(i)
	n, problem := r.Int(0, maxParameters)
	if problem != args.None {
		return nil, problem.For(parameters)
	}
	if v.Algorithm == HNSW && int(n) > r.Len() {
		return nil, args.Errorf(query.BadArguments, "Bad arguments for vector similarity: not enough arguments")
	}
	if n%2 != 0 {
		return nil, args.Errorf(query.BadArguments, "Bad number of arguments for vector similarity index: got %d but expected even number as algorithm "+
			"parameters (should be submitted as named arguments)", n)
	}
	seen := map[string]bool{}
	for i := range n / 2 {
		if r.Done() {
			return nil, args.Errorf(query.BadArguments, "Expected %d parameters but got %d", n, 2*i)
		}
		name := strings.ToUpper(r.next())
		switch {
		case !v.has(name):
			return nil, v.noParameter(name)
		case r.Done():
			return nil, args.Missing.For(v.option(name))
		}
		if err := v.parameter(name, r.next()); err != nil {
			return nil, err
		}
		seen[name] = true
	}
	for _, name := range []string{"TYPE", "DIM", "DISTANCE_METRIC"} {
		if !seen[name] {
			return nil, args.Errorf(query.BadArguments, "Missing mandatory parameter: cannot create %s index without specifying %s argument", v.Algorithm, name)
		}
	}
	return v, v.checkSVS(seen)
}

// unknown returns the error for an invalid argument of an option.
func unknown(option string) error {
	return args.Errorf(query.BadArguments, "Bad arguments for %s: Unknown argument", option)
}

// option is the name of a parameter in errors.
func (v *Vector) option(name string) string {
	return fmt.Sprintf("vector similarity %s index `%s`", v.Algorithm, name)
}

// has reports whether the algorithm has a parameter.
func (v *Vector) has(name string) bool {
	of := *v
	err := of.parameter(name, "")
	return err == nil || err.Error() != of.noParameter(name).Error()
}

// noParameter is the error for a parameter that the algorithm does not have.
func (v *Vector) noParameter(name string) error {
	return args.Errorf(query.BadArguments, "Bad arguments for algorithm %s: %s", v.Algorithm, name)
}

// parameter sets one parameter.
func (v *Vector) parameter(name, value string) error {
	option := v.option(name)
	argument := args.New(value)
	whole := func(to *int, least int64) error {
		n, problem := argument.Int(least, math.MaxInt32)
		if problem != args.None {
			return problem.For(option)
		}
		*to = int(n)
		return nil
	}
	is := func(algorithms ...Algorithm) bool { return slices.Contains(algorithms, v.Algorithm) }
	switch {
	case name == "TYPE":
		i := indexFold(vectorTypes, value)
		if i < 0 {
			return unknown(option)
		}
		if v.Type = VectorType(i); v.Algorithm == SVS && v.Type != Float16 && v.Type != Float32 {
			return args.Errorf(query.BadArguments, "Not supported data type is given. Expected: FLOAT16, FLOAT32")
		}
	case name == "DIM":
		if err := whole(&v.Dim, 1); err != nil {
			return err
		}
		if v.Dim > maxDim {
			return args.OutOfBounds.For(option)
		}
	case name == "DISTANCE_METRIC":
		i := indexFold(metricNames, value)
		if i < 0 {
			return unknown(option)
		}
		v.Metric = Metric(i)
	case name == "INITIAL_CAP" && is(Flat, HNSW):
		return whole(&v.InitialCap, 0)
	case name == "BLOCK_SIZE" && is(Flat):
		return whole(&v.BlockSize, 1)
	case name == "M" && is(HNSW):
		return whole(&v.M, 1)
	case name == "EF_CONSTRUCTION" && is(HNSW):
		return whole(&v.EfConstruction, 1)
	case name == "EF_RUNTIME" && is(HNSW):
		return whole(&v.EfRuntime, 1)
	case name == "RERANK" && is(HNSW):
		return args.Errorf(query.Invalid, "RERANK is only supported for disk-based vector indexes")
	case name == "EPSILON" && is(HNSW, SVS):
		f, problem := argument.Double()
		if problem == args.None && f <= 0 {
			problem = args.OutOfBounds
		}
		if problem != args.None {
			return problem.For(option)
		}
		v.Epsilon = f
	case name == "COMPRESSION" && is(SVS):
		i := indexFold(compressions, value)
		if i < 0 {
			return unknown(option)
		}
		v.Compression = compressions[i]
	case name == "GRAPH_MAX_DEGREE" && is(SVS):
		return whole(&v.GraphMaxDegree, 1)
	case name == "CONSTRUCTION_WINDOW_SIZE" && is(SVS):
		return whole(&v.ConstructionWidth, 1)
	case name == "SEARCH_WINDOW_SIZE" && is(SVS):
		return whole(&v.SearchWidth, 1)
	case name == "TRAINING_THRESHOLD" && is(SVS):
		if err := whole(&v.TrainingThreshold, 0); err != nil {
			return err
		}
		if v.TrainingThreshold < minTraining {
			return args.Errorf(query.BadArguments, "Invalid TRAINING_THRESHOLD: cannot be lower than DEFAULT_BLOCK_SIZE (%d)", minTraining)
		}
	case name == "REDUCE" && is(SVS):
		return whole(&v.Reduce, 1)
	default:
		return v.noParameter(name)
	}
	return nil
}

// compressions are those of SVS-VAMANA.
var compressions = []string{"LVQ4", "LVQ8", "LVQ4x4", "LVQ4x8", "LeanVec4x8", "LeanVec8x8"}

// checkSVS returns an error for parameters that need other ones.
func (v *Vector) checkSVS(seen map[string]bool) error {
	if v.Algorithm != SVS {
		return nil
	}
	if v.Compression == "" {
		if seen["TRAINING_THRESHOLD"] {
			return args.Errorf(query.BadArguments, "TRAINING_THRESHOLD is irrelevant when compression was not requested")
		}
	} else if !seen["TRAINING_THRESHOLD"] {
		v.TrainingThreshold = 10 * minTraining
	}
	lean := strings.HasPrefix(v.Compression, "LeanVec")
	if seen["REDUCE"] && !lean {
		return args.Errorf(query.BadArguments, "REDUCE is irrelevant when compression is not of type LeanVec")
	}
	if lean && !seen["REDUCE"] {
		v.Reduce = v.Dim / 2
	}
	return nil
}

// indexFold returns the index of a word in a list, in any case, or -1.
func indexFold(list []string, word string) int {
	return slices.IndexFunc(list, func(s string) bool { return strings.EqualFold(s, word) })
}
