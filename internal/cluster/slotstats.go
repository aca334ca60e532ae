package cluster

import "sync/atomic"

// SlotStats counts the cost of commands by the slots of their keys.
type SlotStats [Slots]SlotCost

// SlotCost is the cost of a slot's commands: time in microseconds, and bytes of requests and replies.
type SlotCost struct{ Micros, In, Out atomic.Int64 }
