//go:build !linux

package persist

// workInBackground does nothing: threads have no priorities of their own here.
func workInBackground() {}

// pacer does nothing either.
type pacer struct{}

func (*pacer) pause() {}
