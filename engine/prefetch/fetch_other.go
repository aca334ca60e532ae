//go:build !amd64 && !arm64

package prefetch

// fetch does nothing: Go has no way to do it here.
func fetch(first *uintptr, n int) {}
