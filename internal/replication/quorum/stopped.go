package quorum

import (
	"net"
	"time"

	"github.com/atomredis/atomredis/persist/disk"
)

// Stopped is where a stopped server of a group has what it knows of it.
type Stopped struct {
	FS  disk.FS
	Dir string
	// State is the group's state in the store, as in Options.
	State []byte
}

// Found describes what a stopped server has of its group.
type Found struct {
	Members []Member // the last that it knows, with Addr and Role
	// Index and Term are those of the last entry, and Appended is when the leader appended it; zero if that is unknown.
	Index, Term uint64
	Appended    time.Time
	// Committed is an index up to which the group has certainly agreed. It may have agreed on more.
	Committed uint64
	// Stored is the index up to which the store has everything.
	Stored   uint64
	Removed  bool // the server was removed from the group
	Witness  bool // the server is a witness: it has no data
	Segments int
	Bytes    int64
	// Torn is the length of an unfinished end, which the next start cuts off, in bytes.
	Torn int64
	// NotReached says which of the other servers Recover has not reached, and why.
	NotReached []error
}

// Recovery makes a new group of what one server has: see Recover.
type Recovery struct {
	Stopped
	// Addr is the address of the server, and its name in the new group. It may be another one than before.
	Addr string
	// Peers are addresses to ask beside those of the members. Dial connects to one, and Secret is Options.Secret.
	Peers  []string
	Dial   func(addr string, timeout time.Duration) (net.Conn, error)
	Secret string
	// Force lets Recover go on without servers whose machines do not answer, which may run nevertheless.
	Force bool
}

// Read reads what a stopped server has of its group, and changes nothing. It calls do with the records that the store
// lacks, those of all entries: it is unknown which of the last ones the group has agreed on. do may be nil.
func (s Stopped) Read(do func(now int64, commands []byte) error) (Found, error) {
	if registered.Read == nil {
		return Found{}, ErrNone
	}
	return registered.Read(s, do)
}

// Recover makes the server the only member of its group, with all entries that it has, for a group whose majority is
// lost. It refuses while another server answers that has data of the group, or a machine does not say that no server runs there;
// it returns what it has kept.
func (r Recovery) Recover() (Found, error) {
	if registered.Recover == nil {
		return Found{}, ErrNone
	}
	return registered.Recover(r)
}
