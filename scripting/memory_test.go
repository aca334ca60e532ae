package scripting

import (
	"runtime"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// The size of a virtual machine in INFO is what one really takes.
func TestVMBytesIsWhatAVirtualMachineTakes(t *testing.T) {
	inUse := func() int64 {
		runtime.GC()
		runtime.GC() // objects with finalizers are freed by the second collection
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	if strconv.IntSize < 64 {
		t.Skip("the figure is that of machines of 64 bits")
	}
	const n = 64
	var machines [n]*vm
	before := inUse()
	for i := range machines {
		machines[i] = newVM(&Options{})
	}
	each := float64(inUse()-before) / n
	runtime.KeepAlive(&machines)
	require.InEpsilon(t, VMBytes, each, 0.2)
}
