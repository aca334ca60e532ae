//go:build unix

package disk

import (
	"os"
	"syscall"
)

// onlyName reports whether a file has no other name that would keep it after removal.
func onlyName(info os.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Nlink == 1
}
