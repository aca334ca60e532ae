// Package clients has what may be known of clients, as CLIENT LIST shows it, how some of them are chosen, and what a
// client can choose for its connection.
package clients

import (
	"strconv"

	"github.com/atomredis/atomredis/acl"
	"github.com/atomredis/atomredis/command"
	"github.com/atomredis/atomredis/tracking"
)

// Info is what others may know of a client. Sizes are in bytes.
type Info struct {
	ID int64
	// Addr and Local are the two ends of the connection, FD is its file descriptor, 0 if it has none.
	Addr, Local string
	FD          int
	Unix        bool  // the connection is a Unix socket
	Started     int64 // ms since 1970
	// Account is the client's user; nil if it may do everything, because it is the program.
	Account *acl.Account

	DB, Protocol                  int
	Name, Library, LibraryVersion string
	LastCmd                       *command.Command // nil before the first
	LastActive                    int64            // ms since 1970
	Channels, Patterns            int
	ShardChannels, Watched        int
	Multi                         int // queued commands, in EXEC too, -1 outside of MULTI
	Input, InputFree              int
	Output                        int
	Buffer, Peak                  int   // of replies: what is kept for them, and most that was used of late
	Queued                        int64 // what waits for EXEC
	Memory                        int64 // as counted
	Blocked, Monitor, Paused      bool
	Tracking                      tracking.Flags
	Redirect                      int64
	Closing, Killed               bool
	NoEvict, NoTouch              bool
	ReadOnly, Follower            bool
}

// Subscriptions counts those of all kinds.
func (d *Info) Subscriptions() int { return d.Channels + d.Patterns + d.ShardChannels }

// User is the name of the client's user.
func (d *Info) User() string { return UserName(d.Account) }

// UserName is the name of the user of a client with that account, nil if it has none.
func UserName(a *acl.Account) string {
	if a != nil {
		return a.User().Name()
	}
	return "(superuser)"
}

// Type is what CLIENT LIST and CLIENT KILL tell clients apart by.
type Type uint8

// The types of clients.
const (
	Any Type = iota
	Normal
	PubSub
	Master // there are none: the link to a master is no client
	Replica
)

// ParseType reads a type; ok is false if it is none.
func ParseType(word []byte) (t Type, ok bool) {
	switch command.Lower(word) {
	case "normal":
		return Normal, true
	case "pubsub":
		return PubSub, true
	case "master":
		return Master, true
	case "replica", "slave":
		return Replica, true
	}
	return Any, false
}

// Type returns the client's type.
func (d *Info) Type() Type {
	switch {
	case d.Follower:
		return Replica
	case d.Subscriptions() > 0:
		return PubSub
	}
	return Normal
}

// Filter chooses clients.
type Filter struct {
	ID          int64 // 0 = whatever
	Type        Type
	Addr, Local []byte       // nil = whatever
	Account     *acl.Account // nil = whoever
	Except      int64        // the client with this number is spared; 0 = none
	MaxAge      int64        // seconds; 0 = whatever
	First       bool         // no more than one
}

// Matches reports whether a client is meant. now is in ms since 1970.
func (f *Filter) Matches(d *Info, now int64) bool {
	switch {
	case f.Except != 0 && d.ID == f.Except,
		f.ID != 0 && d.ID != f.ID,
		f.Type != Any && d.Type() != f.Type,
		f.Addr != nil && d.Addr != string(f.Addr),
		f.Local != nil && d.Local != string(f.Local),
		f.Account != nil && d.Account != f.Account,
		f.MaxAge != 0 && (now-d.Started)/1000 < f.MaxAge:
		return false
	}
	return true
}

// AppendLine appends a line on the client without its end, as CLIENT LIST shows it. now is in ms since 1970.
func (d *Info) AppendLine(dst []byte, now int64) []byte {
	number := func(name string, n int64) {
		dst = append(append(append(dst, ' '), name...), '=')
		dst = strconv.AppendInt(dst, n, 10)
	}
	text := func(name, value string) {
		dst = append(append(append(append(dst, ' '), name...), '='), value...)
	}
	dst = strconv.AppendInt(append(dst, "id="...), d.ID, 10)
	text("addr", d.Addr)
	text("laddr", d.Local)
	number("fd", int64(d.FD))
	text("name", d.Name)
	number("age", max(now-d.Started, 0)/1000)
	number("idle", max(now-d.LastActive, 0)/1000)
	text("flags", d.letters())
	number("db", int64(d.DB))
	number("sub", int64(d.Channels))
	number("psub", int64(d.Patterns))
	number("ssub", int64(d.ShardChannels))
	number("multi", int64(d.Multi))
	number("qbuf", int64(d.Input))
	number("qbuf-free", int64(d.InputFree))
	number("argv-mem", 0) // arguments are views into the input
	number("multi-mem", d.Queued)
	number("rbs", int64(d.Buffer))
	number("rbp", int64(d.Peak))
	number("obl", int64(d.Output))
	number("oll", 0)
	number("omem", int64(d.Output))
	number("tot-mem", d.Memory)
	events := "r"
	if d.Output > 0 {
		events = "rw"
	}
	text("events", events)
	cmd := "NULL"
	if d.LastCmd != nil {
		cmd = d.LastCmd.Name
	}
	text("cmd", cmd)
	text("user", d.User())
	redirect := int64(-1)
	if d.Tracking != 0 {
		redirect = d.Redirect
	}
	number("redir", redirect)
	number("resp", int64(d.Protocol))
	// which Redis 7.4 has behind multi; programs that were written for Redis 7.0 expect qbuf there
	number("watch", int64(d.Watched))
	text("lib-name", d.Library)
	text("lib-ver", d.LibraryVersion)
	return dst
}

// letters returns a letter for everything that is special about a client.
func (d *Info) letters() string {
	var letters []byte
	for _, f := range []struct {
		set    bool
		letter byte
	}{
		{d.Monitor, 'O'},
		{d.Follower, 'S'},
		{d.Subscriptions() > 0, 'P'},
		{d.Multi >= 0, 'x'},
		{d.Blocked || d.Paused, 'b'},
		{d.Tracking&tracking.On != 0, 't'},
		{d.Tracking&tracking.Broken != 0, 'R'},
		{d.Tracking&tracking.Bcast != 0, 'B'},
		{d.Closing, 'c'},
		{d.Killed, 'A'},
		{d.Unix, 'U'},
		{d.ReadOnly, 'r'},
		{d.NoEvict, 'e'},
		{d.NoTouch, 'T'},
	} {
		if f.set {
			letters = append(letters, f.letter)
		}
	}
	if len(letters) == 0 {
		return "N"
	}
	return string(letters)
}
