//go:build !linux

package transport

import "errors"

// NewLoops returns errors.ErrUnsupported: there are no event loops on this system.
func NewLoops(Host, LoopOptions) (Loops, error) { return nil, errors.ErrUnsupported }
