package clients

// Options are what a client has chosen for its connection.
type Options struct {
	// Name is that of CLIENT SETNAME.
	Name string
	// Library and LibraryVersion are what the client has told with CLIENT SETINFO.
	Library, LibraryVersion string
	// NoEvict keeps the client when clients are disconnected to save memory.
	NoEvict bool
	// ReadOnly says that the client has sent READONLY, which clusters know, and replicas from clients with Redirect.
	ReadOnly bool
	// Redirect says that the client wants to be told of the master where it uses keys of a replica.
	Redirect bool
	// Replies says which commands are answered.
	Replies Replies
}

// Replies is what CLIENT REPLY chose.
type Replies uint8

// The choices of CLIENT REPLY.
const (
	ReplyOn Replies = iota
	ReplyOff
	SkipNext // the command that follows CLIENT REPLY SKIP is to have no reply
	SkipThis // the present command has no reply
)

// Begin reports whether the command that begins is to have no reply.
func (r *Replies) Begin() (skip bool) {
	if *r == SkipNext {
		*r = SkipThis
	}
	return *r != ReplyOn
}

// EndSkipped ends a command without a reply: the next one may have one again.
func (r *Replies) EndSkipped() {
	if *r == SkipThis {
		*r = ReplyOn
	}
}
