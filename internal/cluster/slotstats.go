package cluster

import "sync/atomic"

// SlotStats counts what commands cost by the slots of their keys.
type SlotStats [Slots]SlotCost

// SlotCost is what the commands of a slot have cost: time in microseconds, and bytes of requests and replies.
type SlotCost struct{ Micros, In, Out atomic.Int64 }
