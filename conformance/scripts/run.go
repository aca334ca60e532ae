// Package scripts compares the libraries that Lua scripts use with Redis's: it makes random calls of them in both
// servers and compares the results and errors.
package scripts

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"github.com/atomredis/atomredis/internal/testing/transcript"
)

// Options configure a check.
type Options struct {
	// A is the address of the reference, B that of the server under test.
	A, B string
	// Seed is the seed of the calls.
	Seed uint64
	// Calls is the number of calls made.
	Calls int
	// KeepGoing is the number of differences after which the check ends.
	KeepGoing int
	// Log receives the report.
	Log io.Writer
}

const (
	// batch is the number of calls in one script.
	batch = 50
	// timeout is the most time that a server may take for a script.
	timeout = 20 * time.Second
	// attempts bounds the search for a smaller call with a difference.
	attempts = 3000
)

// runner is the script that makes the calls in ARGV and returns their results, in a form in which equal values look the
// same.
const runner = `
local function show(v, depth)
	local kind = type(v)
	if kind == 'string' then
		return string.format('%q', v)
	elseif kind == 'number' then
		return tostring(v) .. '=' .. string.format('%.17g', v)
	elseif v == cjson.null then
		return 'null'
	elseif kind == 'table' then
		if depth > 30 then
			return '...'
		end
		local list = {}
		for k, x in pairs(v) do
			list[#list + 1] = show(k, depth + 1) .. '=' .. show(x, depth + 1)
		end
		table.sort(list)
		return '{' .. table.concat(list, ', ') .. '}'
	elseif kind == 'boolean' or kind == 'nil' then
		return tostring(v)
	end
	return kind
end
local function showAll(...)
	local list = {}
	for i = 1, select('#', ...) do
		list[i] = show((select(i, ...)), 0)
	end
	return table.concat(list, ' ')
end
local helpers = 'local function collect(s, p) local r = {} for a, b in string.gmatch(s, p) do r[#r+1] = {a, b} end return r end '
local results = {}
for i = 1, #ARGV do
	local call, message = loadstring(helpers .. '\n return ' .. ARGV[i], '=call')
	results[i] = call and showAll(pcall(call)) or message
end
return results`

// Check makes random calls in both servers and returns the number that differed.
func Check(o Options) (int, error) {
	a, err := dial(o.A)
	if err != nil {
		return 0, err
	}
	defer a.Close()
	b, err := dial(o.B)
	if err != nil {
		return 0, err
	}
	defer b.Close()
	return pair{a, b}.check(o)
}

// Record makes random calls in server A and writes them and their results to w: on each line a quoted call and a quoted
// result.
func Record(o Options, w io.Writer) error {
	a, err := dial(o.A)
	if err != nil {
		return err
	}
	defer a.Close()
	g := newGenerator(o.Seed)
	var calls []string
	for range o.Calls {
		calls = append(calls, sourceOf(g.call()))
	}
	results, err := a.run(calls)
	if err != nil {
		return err
	}
	for i, c := range calls {
		if _, err := fmt.Fprintf(w, "%q\t%q\n", c, results[i]); err != nil {
			return err
		}
	}
	return nil
}

// server makes calls and returns their results.
type server interface {
	run(calls []string) ([]string, error)
}

// remote is a server behind a connection.
type remote struct{ *transcript.Conn }

func dial(addr string) (remote, error) {
	nc, err := transcript.Dial(addr)
	if err != nil {
		return remote{}, err
	}
	return remote{transcript.NewConn(nc)}, nil
}

func (r remote) run(calls []string) ([]string, error) {
	v, err := r.Do(timeout, append([]string{"EVAL", runner, "0"}, calls...)...)
	if err != nil {
		return nil, err
	}
	return texts(v, len(calls))
}

// addresses are the parts of the texts of tables and functions that differ from one to another.
var addresses = regexp.MustCompile(`((?:table|function|userdata|thread): )0x[0-9a-f]+`)

// texts returns the results in the runner's reply to n calls.
func texts(v transcript.Value, n int) ([]string, error) {
	if len(v.Elems) != n {
		return nil, fmt.Errorf("%d calls were answered by %v", n, v)
	}
	var results []string
	for _, e := range v.Elems {
		results = append(results, addresses.ReplaceAllString(e.Text, "$1"))
	}
	return results, nil
}

// pair are the reference and the server under test.
type pair [2]server

func (p pair) check(o Options) (int, error) {
	g := newGenerator(o.Seed)
	start := time.Now()
	found, calls := 0, 0
	for calls < o.Calls && found < o.KeepGoing {
		exprs := make([]expr, min(batch, o.Calls-calls))
		for i := range exprs {
			exprs[i] = g.call()
		}
		a, b, err := p.run(exprs...)
		if err != nil {
			return found, err
		}
		for i, e := range exprs {
			if a[i] == b[i] {
				continue
			}
			found++
			small, a, b, err := p.minimise(e, a[i], b[i])
			if err != nil {
				return found, err
			}
			fmt.Fprintf(o.Log, "%s\n  A: %s\n  B: %s\n", sourceOf(small), a, b)
		}
		calls += len(exprs)
	}
	fmt.Fprintf(o.Log, "%d calls from seed %d, %.0f calls/s, %d differences\n", calls, o.Seed,
		float64(calls)/time.Since(start).Seconds(), found)
	return found, nil
}

// run makes calls in both servers and returns their results.
func (p pair) run(exprs ...expr) (a, b []string, err error) {
	var calls []string
	for _, e := range exprs {
		calls = append(calls, sourceOf(e))
	}
	if a, err = p[0].run(calls); err == nil {
		b, err = p[1].run(calls)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%w; in one of these calls:\n%s", err, strings.Join(calls, "\n"))
	}
	return a, b, nil
}

// minimise returns the smallest call found with a difference, and both results. The call that it starts with gave a and
// b.
func (p pair) minimise(e expr, a, b string) (expr, string, string, error) {
	for tries := 0; tries < attempts; {
		better := false
		for _, candidate := range e.smaller() {
			tries++
			if len(sourceOf(candidate)) >= len(sourceOf(e)) {
				continue
			}
			as, bs, err := p.run(candidate)
			if err != nil {
				return nil, "", "", err
			}
			if as[0] != bs[0] {
				e, a, b, better = candidate, as[0], bs[0], true
				break
			}
		}
		if !better {
			break
		}
	}
	return e, a, b, nil
}
