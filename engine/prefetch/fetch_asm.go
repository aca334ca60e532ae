//go:build amd64 || arm64

package prefetch

// fetch begins to fetch the lines at n > 0 addresses, of which first is the first.
//
//go:noescape
func fetch(first *uintptr, n int)
