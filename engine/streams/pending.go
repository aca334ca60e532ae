// Pending entries: delivered to a consumer and not yet acknowledged.

package streams

// NACK is the record of a pending entry. Callers read it; the group changes it. It is valid until an entry begins or
// ceases to be pending in the group.
type NACK struct {
	ID            ID
	Consumer      *Consumer
	DeliveryTime  int64 // of the latest delivery
	DeliveryCount int64
}

func (n *NACK) key() ID { return n.ID }

// key makes the IDs of a consumer's pending entries a sorted set.
func (id *ID) key() ID { return *id }
