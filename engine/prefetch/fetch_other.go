//go:build !amd64 && !arm64

package prefetch

// fetch does nothing: Go has no prefetch instruction on this platform.
func fetch(first *uintptr, n int) {}
