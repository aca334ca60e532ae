//go:build amd64 || arm64

package prefetch

// fetch starts fetching the cache lines at n > 0 addresses; first points to the first address.
//
//go:noescape
func fetch(first *uintptr, n int)
