//go:build !unix

package disk

import "syscall"

// ERROR_HANDLE_DISK_FULL and ERROR_DISK_FULL are what Windows says.
var full = []error{syscall.ENOSPC, syscall.Errno(39), syscall.Errno(112)}
