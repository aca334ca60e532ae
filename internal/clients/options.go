package clients

// Options are what a client has chosen for its connection.
type Options struct {
	// Name is that of CLIENT SETNAME.
	Name string
	// Library and LibraryVersion are those of CLIENT SETINFO.
	Library, LibraryVersion string
	// NoEvict keeps the client when clients are disconnected to save memory.
	NoEvict bool
	// ReadOnly says that the client has sent READONLY, in a cluster or to a replica with Redirect.
	ReadOnly bool
	// Redirect says that the client wants a redirection to the master when it uses keys of a replica.
	Redirect bool
	// Replies says which commands get a reply.
	Replies Replies
}

// Replies is what CLIENT REPLY chose.
type Replies uint8

// The choices of CLIENT REPLY.
const (
	ReplyOn Replies = iota
	ReplyOff
	SkipNext // the command after CLIENT REPLY SKIP gets no reply
	SkipThis // the present command gets no reply
)

// Begin reports whether the command that begins gets no reply.
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
