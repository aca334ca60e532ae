package resp

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// parseWith parses all commands in input as a session does: with a Template where it helps, unless form is nil. It also
// returns how often the template helped.
func parseWith(form *Template, input []byte) (commands [][]string, helped int, err error) {
	p := Parser{MaxBulk: 1 << 20}
	for len(input) > 0 {
		var args [][]byte
		var n int
		alike := false
		if form != nil {
			args, n, alike = form.Next(input, nil)
		}
		if alike {
			helped++
		} else if args, n, err = p.Next(input, nil); err != nil || n == 0 {
			return commands, helped, err
		} else if form != nil {
			form.Learn(input, n, args)
		}
		command := []string{}
		for _, a := range args {
			command = append(command, string(a))
		}
		commands = append(commands, command)
		input = input[n:]
	}
	return commands, helped, nil
}

// requireSame parses input with a Template and without, and returns how often the template helped.
func requireSame(t *testing.T, input []byte) (helped int) {
	want, _, wantErr := parseWith(nil, input)
	got, helped, err := parseWith(&Template{}, input)
	require.Equal(t, want, got, "%.100q", input)
	require.Equal(t, wantErr, err, "%.100q", input)
	return helped
}

func encoded(args ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, a := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(a), a)
	}
	return b.String()
}

func TestTemplateFindsCommandsOfOneForm(t *testing.T) {
	long := strings.Repeat("x", 70000)
	many := make([]string, maxTemplateArgs)
	for i := range many {
		many[i] = "arg"
	}
	for _, c := range []struct {
		name   string
		input  string
		helped int
	}{
		{"equal", strings.Repeat(encoded("PING"), 4), 3},
		{"short name", strings.Repeat(encoded("A"), 3), 2},
		{"other arguments", encoded("SET", "k1", "v1") + encoded("SET", "k2", "v2") + encoded("SET", "\r\n", "$9"), 2},
		{"long arguments", strings.Repeat(encoded("SET", "key", long), 3), 2},
		{"long name", strings.Repeat(encoded(long[:300], "key"), 2), 1},
		{"too long name", strings.Repeat(encoded(long, "key"), 2), 0},
		{"as many arguments as there may be", strings.Repeat(encoded(many...), 2), 1},
		{"too many arguments", strings.Repeat(encoded(append(many, "arg")...), 3), 0},
		{"empty argument", strings.Repeat(encoded("SET", "key", ""), 3), 0},
		{"no arguments", strings.Repeat("*0\r\n", 3), 0},
		{"inline", strings.Repeat("SET key value\r\n", 3), 0},
		{"numbers with zeros", strings.Repeat("*02\r\n$003\r\nGET\r\n$01\r\nk\r\n", 3), 0},
		{"other end of line", encoded("GET", "k") + encoded("GET", "l") + "*2\r\n$3\r\nGET\r\n$1\r\nkXY", 1},
		{"other name", encoded("GET", "k") + encoded("GET", "k") + encoded("DEL", "k") + encoded("DEL", "k"), 2},
		{"other case", encoded("GET", "k") + encoded("GET", "k") + encoded("get", "k"), 1},
		{"longer key", encoded("GET", "k") + encoded("GET", "k") + encoded("GET", "key"), 1},
		{"incomplete", encoded("GET", "k") + encoded("GET", "k") + encoded("GET", "k")[:19], 1},
		{"two forms", strings.Repeat(encoded("GET", "k"), 3) + strings.Repeat(encoded("GET", "key"), 3), 4},
		{"too many forms", strings.Repeat(encoded("A", "k"), 3) + strings.Repeat(encoded("B", "k"), 3) +
			strings.Repeat(encoded("C", "k"), 3), 4},
		{"violation", encoded("GET", "k") + encoded("GET", "k") + "*2\r\n$3\r\nGET\r\n$x\r\nk\r\n", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, c.helped, requireSame(t, []byte(c.input)))
		})
	}
}

func TestTemplateForgets(t *testing.T) {
	input := []byte(strings.Repeat(encoded("GET", "k"), 2))
	args, n, err := (&Parser{MaxBulk: 1000}).Next(input, nil)
	require.NoError(t, err)
	var form Template
	form.Learn(input, n, args)
	_, _, ok := form.Next(input, nil)
	require.True(t, ok)
	form.Forget()
	_, _, ok = form.Next(input, nil)
	require.False(t, ok)
}

// TestTemplateFindsWhatTheParserFinds compares both for pipelines of few forms, with single bytes changed.
func TestTemplateFindsWhatTheParserFinds(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	helped := 0
	for range 20000 {
		var b strings.Builder
		forms := make([][]int, 1+rnd.IntN(3))
		for i := range forms {
			forms[i] = make([]int, 1+rnd.IntN(5))
			for k := range forms[i] {
				forms[i][k] = rnd.IntN(12)
			}
		}
		for range 1 + rnd.IntN(8) {
			var args []string
			for i, size := range forms[rnd.IntN(len(forms))] {
				args = append(args, strings.Repeat(string(rune('a'+min(i, 1)*rnd.IntN(3))), size))
			}
			b.WriteString(encoded(args...))
		}
		input := []byte(b.String())
		if rnd.IntN(2) == 0 {
			input[rnd.IntN(len(input))] = "0123456789\r\n$*-x\x00"[rnd.IntN(17)]
		}
		helped += requireSame(t, input)
	}
	require.NotZero(t, helped)
}

func FuzzTemplate(f *testing.F) {
	for _, seed := range []string{"*1\r\n$4\r\nPING\r\n*1\r\n$4\r\nPING\r\n",
		"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n*2\r\n$3\r\nGET\r\n$1\r\n\r\r\n", "*1\r\n$1\r\nAxy*1\r\n$1\r\nAxx*1\r\n$1\r\nAyy"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, input []byte) { requireSame(t, input) })
}

func BenchmarkTemplate(b *testing.B) {
	var form Template
	input := []byte(strings.Repeat(encoded("SET", "key:000000012345", strings.Repeat("v", 64)), 2))
	args, n, _ := (&Parser{MaxBulk: 1 << 20}).Next(input, nil)
	form.Learn(input, n, args)
	for b.Loop() {
		if _, _, ok := form.Next(input, args); !ok {
			b.Fatal("another form")
		}
	}
}
