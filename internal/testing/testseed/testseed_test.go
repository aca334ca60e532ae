package testseed

import (
	"os"
	"os/exec"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// failing is set for a process whose tests fail on purpose to show their random numbers.
const failing = "ATOMREDIS_TEST_FAILING"

var drawn = regexp.MustCompile(`drew (.*) end`)

func TestNumbersAreTheSameUnlessTheEnvironmentSaysOtherwise(t *testing.T) {
	output := func(test, seed string, args ...string) string {
		cmd := exec.Command(os.Args[0], append(args, "-test.run=^"+test+"$", "-rapid.nofailfile", "-rapid.shrinktime=1ms")...)
		cmd.Env = append(os.Environ(), failing+"=1", Variable+"="+seed)
		out, err := cmd.CombinedOutput()
		require.Error(t, err, "the test fails")
		return string(out)
	}
	for _, test := range []string{"TestFailingRand", "TestFailingCheck"} {
		usual := drawn.FindString(output(test, ""))
		require.NotEmpty(t, usual)
		require.Equal(t, usual, drawn.FindString(output(test, "20261121")))
		other := output(test, "5")
		require.NotEqual(t, usual, drawn.FindString(other))
		require.Contains(t, other, "random numbers of ATOMREDIS_TEST_SEED=5")
		require.Contains(t, output(test, "0"), "ATOMREDIS_TEST_SEED=0 is not a number above 0")
		require.Contains(t, output(test, "x"), "ATOMREDIS_TEST_SEED=x is not a number above 0")
	}
	require.Equal(t, drawn.FindString(output("TestFailingCheck", "5")), drawn.FindString(output("TestFailingCheck", "", "-rapid.seed=5")))
}

func TestFailingRand(t *testing.T) {
	if os.Getenv(failing) == "" {
		t.Skip("it fails on purpose")
	}
	r := Rand(t)
	t.Fatal("drew", r.Uint64(), Fork(r).Uint64(), "end")
}

func TestFailingCheck(t *testing.T) {
	if os.Getenv(failing) == "" {
		t.Skip("it fails on purpose")
	}
	first := true
	Check(t, func(rt *rapid.T) {
		if n := rapid.Uint64().Draw(rt, "n"); first {
			first = false
			t.Log("drew", n, "end")
		}
		rt.Fatal()
	})
}
