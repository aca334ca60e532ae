// Package scripts compares the libraries that Lua scripts use with Redis's: it makes random calls of them in both servers and compares
// what they return and the errors that they raise.
package scripts

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"github.com/atomredis/atomredis/conformance"
)

// Options say what a check does.
type Options struct {
	// A is the address of the reference, B that of the server under test.
	A, B string
	// Seed is the seed of the calls.
	Seed uint64
	// Calls is how many calls are made.
	Calls int
	// KeepGoing is how many differences may be found before the check ends.
	KeepGoing int
	// Log gets the report.
	Log io.Writer
}

const (
	// batch is how many calls one script makes.
	batch = 50
	// timeout is how long a server may take for a script.
	timeout = 20 * time.Second
	// attempts bounds the search for a smaller call with a difference.
	attempts = 3000
)

// runner is the script that makes the calls in ARGV and returns what they return, in a form in which equal values look the same.
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

// Check makes random calls in both servers and returns how many of them differed.
func Check(o Options) (int, error) {
	p := pair{}
	for i, addr := range []string{o.A, o.B} {
		nc, err := conformance.Dial(addr)
		if err != nil {
			return 0, err
		}
		p[i] = conformance.NewConn(nc)
		defer p[i].Close()
	}
	g := newGenerator(o.Seed)
	start := time.Now()
	found, calls := 0, 0
	for calls < o.Calls && found < o.KeepGoing {
		exprs := make([]expr, min(batch, o.Calls-calls))
		for i := range exprs {
			exprs[i] = g.call()
		}
		results, err := p.run(exprs)
		if err != nil {
			return found, fmt.Errorf("%w, in one of these calls:\n%s", err, list(exprs))
		}
		for i, e := range exprs {
			if results[0][i] == results[1][i] {
				continue
			}
			found++
			small, a, b, err := p.minimise(e)
			if err != nil {
				return found, err
			}
			fmt.Fprintf(o.Log, "%s\n  A: %s\n  B: %s\n", sourceOf(small), a, b)
		}
		calls += len(exprs)
	}
	fmt.Fprintf(o.Log, "%d calls from seed %d, %.0f calls/s, %d differences\n", calls, o.Seed, float64(calls)/time.Since(start).Seconds(), found)
	return found, nil
}

// addresses are what tells one table or function from another in its text.
var addresses = regexp.MustCompile(`((?:table|function|userdata|thread): )0x[0-9a-f]+`)

// list returns expressions line by line.
func list(exprs []expr) string {
	var b strings.Builder
	for _, e := range exprs {
		e.source(&b)
		b.WriteByte('\n')
	}
	return b.String()
}

// pair are connections to the reference and to the server under test.
type pair [2]*conformance.Conn

// run makes calls in both servers and returns their results.
func (p pair) run(exprs []expr) (results [2][]string, err error) {
	args := []string{"EVAL", runner, "0"}
	for _, e := range exprs {
		args = append(args, sourceOf(e))
	}
	for _, c := range p {
		c.Append(args...)
		if err := c.Flush(); err != nil {
			return results, err
		}
	}
	for i, c := range p {
		v, err := c.Read(timeout)
		if err != nil {
			return results, fmt.Errorf("server %c: %w", 'A'+i, err)
		}
		if len(v.Elems) != len(exprs) {
			return results, fmt.Errorf("server %c: %v", 'A'+i, v)
		}
		for _, e := range v.Elems {
			results[i] = append(results[i], addresses.ReplaceAllString(e.Text, "$1"))
		}
	}
	return results, nil
}

// minimise returns the smallest call that it finds with a difference, and both results.
func (p pair) minimise(e expr) (small expr, a, b string, err error) {
	results, err := p.run([]expr{e})
	if err != nil {
		return nil, "", "", err
	}
	a, b = results[0][0], results[1][0]
	if a == b {
		return e, "a difference that did not come again", "", nil
	}
	for tries := 0; tries < attempts; {
		better := false
		for _, candidate := range e.smaller() {
			tries++
			if len(sourceOf(candidate)) > len(sourceOf(e)) {
				continue
			}
			results, err := p.run([]expr{candidate})
			if err != nil {
				return nil, "", "", err
			}
			if results[0][0] != results[1][0] {
				e, a, b, better = candidate, results[0][0], results[1][0], true
				break
			}
		}
		if !better {
			break
		}
	}
	return e, a, b, nil
}
