package server

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/scripting"
)

func TestInfoTellsWhatScriptsTake(t *testing.T) {
	b := newHarness(t)
	s := b.session()
	numbers := func(names ...string) (list []int64) {
		for _, name := range names {
			list = append(list, infoNumber(t, b, s, name))
		}
		return list
	}
	eval := []string{"used_memory_vm_eval", "used_memory_lua", "used_memory_scripts_eval", "number_of_cached_scripts"}
	functions := []string{"used_memory_vm_functions", "used_memory_functions", "number_of_functions",
		"number_of_libraries"}
	both := []string{"used_memory_vm_total", "used_memory_scripts"}
	require.Equal(t, []int64{0, 0, 0, 0}, numbers(eval...))
	require.Equal(t, []int64{0, 0, 0, 0}, numbers(functions...))

	b.feed(s, request("EVAL", "return 1", "0"))
	require.Equal(t, []int64{scripting.VMBytes, scripting.VMBytes, 8, 1}, numbers(eval...))
	const library = "#!lua name=l\nredis.register_function('f', function() return 1 end)"
	b.feed(s, request("FUNCTION", "LOAD", library))
	require.Equal(t, []int64{scripting.VMBytes, int64(len(library)), 1, 1}, numbers(functions...))
	require.Equal(t, []int64{2 * scripting.VMBytes, 8 + int64(len(library))}, numbers(both...))

	b.feed(s, request("SCRIPT", "FLUSH"))
	b.feed(s, request("FUNCTION", "FLUSH"))
	require.Equal(t, []int64{0, 0, 0, 0}, numbers(eval...))
	require.Equal(t, []int64{0, 0, 0, 0}, numbers(functions...))
}

func TestClientListCountsWatchedKeys(t *testing.T) {
	b := newHarness(t)
	s := b.session()
	require.Contains(t, b.feed(s, request("CLIENT", "INFO")), " lib-name= lib-ver= io-thread=0 tot-net-in=")
	b.feed(s, request("WATCH", "a", "b"))
	require.Contains(t, b.feed(s, request("CLIENT", "INFO")), " watch=2 ")
}
