//go:build !unix

package disk

import "syscall"

// Windows returns ERROR_HANDLE_DISK_FULL and ERROR_DISK_FULL.
var full = []error{syscall.ENOSPC, syscall.Errno(39), syscall.Errno(112)}
