package quorum

import "io"

// Machine is the server whose data the group shares, as its node sees it. The node calls one method at a time,
// except Told and Changed, which any goroutine may call.
type Machine interface {
	// Do executes a committed record, without journalling its changes. An error means that the data differs from that of the
	// other servers.
	Do(now int64, commands []byte) error
	// Lead makes the server accept commands that change data, and journal them. It calls at under a guard over
	// everything, at the instant from which on it does.
	Lead(at func())
	// Follow ends that: from the instant of at on, which is called likewise, only Do changes data.
	Follow(at func())
	// Unelected is called when the server was elected, and has lost that before Lead.
	Unelected()
	// Reset returns the data to its stored state and forgets later changes. It calls at likewise, with the group's state in the
	// store. The node then executes the missing records and calls Restored.
	Reset(at func(group []byte) error) error
	// Restored ends a Reset: clients may see the data again.
	Restored()
	// Copy writes the data of one instant. It calls at likewise, at that instant.
	Copy(w io.Writer, at func()) error
	// Replace replaces the data by the output of Copy, and stores it. It calls at when the data is replaced, before
	// it is stored.
	Replace(r io.Reader, at func()) error
	// Store stores the present data, with the group's state from the journal's Anchor.
	Store() error
	// Told is called when Durable, Told or Epoch of the journal may have changed.
	Told()
	// Acked is called when Node.Holders may have changed.
	Acked()
	// Changed is called when Status may have changed.
	Changed()
}
