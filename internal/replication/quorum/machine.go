package quorum

import "io"

// Machine is the server whose data the group shares, as its node sees it. The node calls one method at a time, but for
// Told and Changed, which any goroutine may call.
type Machine interface {
	// Do repeats a record that is committed. What changes by that is not journalled. An error means that the data is not
	// what the others have.
	Do(now int64, commands []byte) error
	// Lead has the server take commands that change data, and journal them. at is called under a guard over everything,
	// at the instant from which on it does.
	Lead(at func())
	// Follow ends that: only Do changes anything from the instant on in which at is called, likewise.
	Follow(at func())
	// Reset makes the data what is stored, and forgets what has changed since; at is called likewise, with what the store
	// has of the group. The node does what is missing afterwards, and says with Restored that it has.
	Reset(at func(group []byte) error) error
	// Restored ends a Reset: clients may see the data again.
	Restored()
	// Copy writes the data as it is at one instant. at is called likewise, at that instant.
	Copy(w io.Writer, at func()) error
	// Replace makes what Copy wrote the data, and stores it. at is called when the data is the new one, before it is
	// stored.
	Replace(r io.Reader, at func()) error
	// Store stores the data as it is, with what the journal's Anchor says of the group.
	Store() error
	// Told is called when Durable, Told or Epoch of the journal may have changed.
	Told()
	// Changed is called when Status may have changed.
	Changed()
}
