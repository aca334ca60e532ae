package raft

import (
	"reflect"

	consensus "github.com/hashicorp/raft"
)

// outcome waits for the result of a future, at most until the node closes. Raft v1.8.0 never answers a future whose entry is
// committed and not executed when it shuts down: the goroutine that executes entries ends, and leaves those that wait for it.
func (n *Node) outcome(f consensus.Future) error {
	endWith(f, n.stop)
	return f.Error()
}

// endWith makes the Error of a future of Raft return when a channel is closed. Futures have a channel for that, which Raft sets
// for some of them only.
func endWith(f consensus.Future, end chan struct{}) {
	v := reflect.ValueOf(f)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		return // an error, which needs no wait
	}
	if field := v.Elem().FieldByName("ShutdownCh"); field.IsValid() && field.CanSet() {
		field.Set(reflect.ValueOf(end))
	}
}
