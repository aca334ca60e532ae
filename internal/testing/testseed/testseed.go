// Package testseed gives tests their random numbers. The seed is the same in every run unless the environment names another
// one; a failing test prints it.
package testseed

import (
	"flag"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

// Variable is the environment variable that names another seed, a number above 0.
const Variable = "ATOMREDIS_TEST_SEED"

const fixed = 20261121

// of returns the seed. It reads the environment while tests run, because only then does the cache of test results
// include the variable.
func of(t testing.TB) (seed uint64) {
	t.Helper()
	seed = fixed
	if text := os.Getenv(Variable); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 0, 64); err != nil || seed == 0 {
			t.Fatalf("%s=%s is not a number above 0", Variable, text)
		}
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("random numbers of %s=%d", Variable, seed)
		}
	})
	return seed
}

// Rand returns random numbers for a test, which depend on the seed and the name of the test. They are for one
// goroutine; Fork gives others their own.
func Rand(t testing.TB) *rand.Rand {
	t.Helper()
	name := fnv.New64a()
	name.Write([]byte(t.Name()))
	return rand.New(rand.NewPCG(of(t), name.Sum64()))
}

// Fork returns random numbers for another goroutine.
func Fork(r *rand.Rand) *rand.Rand { return rand.New(rand.NewPCG(r.Uint64(), r.Uint64())) }

var setFlag sync.Once

// Check is rapid.Check with the seed, unless -rapid.seed or RAPID_SEED gives another one.
func Check(t testing.TB, property func(*rapid.T)) {
	t.Helper()
	seed := of(t)
	setFlag.Do(func() {
		if f := flag.Lookup("rapid.seed"); f.Value.String() == "0" {
			_ = f.Value.Set(strconv.FormatUint(seed, 10))
		}
	})
	rapid.Check(t, property)
}
