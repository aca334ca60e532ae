//go:build !linux

package background

// Work does nothing: threads have no priorities of their own here.
func Work() {}

// Pause does nothing either.
func (*Pacer) Pause() {}
