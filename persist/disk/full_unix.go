//go:build unix

package disk

import "syscall"

var full = []error{syscall.ENOSPC, syscall.EDQUOT}
