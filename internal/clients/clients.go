// Package clients describes clients as CLIENT LIST shows them, filters them, and holds the options that a client
// chooses.
package clients

import (
	"slices"
	"strconv"
	"strings"

	"github.com/atomredis/atomredis/internal/clients/acl"
	"github.com/atomredis/atomredis/internal/clients/tracking"
	"github.com/atomredis/atomredis/internal/command"
)

// Info is the visible state of a client. Sizes are in bytes.
type Info struct {
	ID int64
	// Addr and Local are the two ends of the connection, FD is its file descriptor, 0 if it has none.
	Addr, Local string
	FD          int
	Unix        bool  // the connection is a Unix socket
	Started     int64 // ms since 1970
	// Account is the client's user; nil for the embedding program, which may do everything.
	Account *acl.Account

	DB, Protocol                  int
	Name, Library, LibraryVersion string
	LastCmd                       *command.Command // nil before the first
	LastActive                    int64            // ms since 1970
	Channels, Patterns            int
	ShardChannels, Watched        int
	Multi                         int // queued commands, also during EXEC; -1 outside of MULTI
	Input, InputFree              int
	Output                        int
	Buffer, Peak                  int   // of replies: the buffer's size, and the most that was used recently
	Queued                        int64 // commands that wait for EXEC
	Memory                        int64 // total
	Received, Sent                int64 // bytes since the client has connected
	Calls                         int64 // completed commands, including those of scripts
	Blocked, Monitor, Paused      bool
	Tracking                      tracking.Flags
	Redirect                      int64
	Closing, Killed               bool
	NoEvict, NoTouch              bool
	ReadOnly, Follower            bool
	Capable                       bool // it has declared that it follows redirections
	ImportSource                  bool
}

// Subscriptions returns the number of subscriptions of all kinds.
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

// Type is the type of a client in CLIENT LIST and CLIENT KILL.
type Type uint8

// The types of clients.
const (
	Any Type = iota
	Normal
	PubSub
	Master // never set: the link to a master is no client
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
	// A client must meet all criteria of With and none of Without.
	With, Without Criteria
	Except        int64 // the client with this number does not match; 0 = none
	MaxAge        int64 // seconds since the client connected, at least; 0 = any
	Idle          int64 // seconds since the last command, at least; 0 = any
	First         bool  // the first match only
}

// Criteria are properties of clients. A property that is nil, empty or 0 is ignored.
type Criteria struct {
	IDs         []int64 // one of these
	Type        Type
	Addr, Local []byte // the ends of the connection
	IP          []byte // the address of the client without the port
	Account     *acl.Account
	Name        []byte
	Library     []byte
	Version     []byte // of the library
	Flags       string // all of these letters
	Capa        string // all of these capabilities
	DB          *int
}

// Matches reports whether the filter chooses a client. now is in ms since 1970.
func (f *Filter) Matches(d *Info, now int64) bool {
	switch {
	case f.Except != 0 && d.ID == f.Except,
		f.MaxAge != 0 && (now-d.Started)/1000 < f.MaxAge,
		f.Idle != 0 && (now-d.LastActive)/1000 < f.Idle:
		return false
	}
	asked, met := f.With.count(d)
	_, unwanted := f.Without.count(d)
	return met == asked && unwanted == 0
}

// count returns how many criteria are set, and how many of these the client meets.
func (k *Criteria) count(d *Info) (asked, met int) {
	check := func(ask, meets bool) {
		if ask {
			asked++
			if meets {
				met++
			}
		}
	}
	text := func(want []byte, have string) { check(want != nil, string(want) == have) }
	check(len(k.IDs) > 0, slices.Contains(k.IDs, d.ID))
	check(k.Type != Any, k.Type == d.Type())
	text(k.Addr, d.Addr)
	text(k.Local, d.Local)
	text(k.IP, d.IP())
	check(k.Account != nil, k.Account == d.Account)
	text(k.Name, d.Name)
	text(k.Library, d.Library)
	text(k.Version, d.LibraryVersion)
	check(k.Flags != "", containsAll(d.letters(), k.Flags))
	check(k.Capa != "", containsAll(d.capabilities(), k.Capa))
	check(k.DB != nil, k.DB != nil && *k.DB == d.DB)
	return asked, met
}

// containsAll reports whether all letters are in s.
func containsAll(s, letters string) bool {
	return !strings.ContainsFunc(letters, func(r rune) bool { return !strings.ContainsRune(s, r) })
}

// The letters of CLIENT LIST: flags of clients, some of them never set here, and capabilities.
const (
	flagLetters       = "AbBcdeiIMNOPrRStTuUx"
	capabilityLetters = "r"
)

// ValidFlags and ValidCapabilities report whether letters is a non-empty list of client flags or capabilities.
func ValidFlags(letters string) bool { return letters != "" && containsAll(flagLetters, letters) }

// ValidCapabilities is documented with ValidFlags.
func ValidCapabilities(letters string) bool {
	return letters != "" && containsAll(capabilityLetters, letters)
}

// IP is the client's address without the port; a path for a Unix socket.
func (d *Info) IP() string {
	host := d.Addr
	if i := strings.LastIndexByte(host, ':'); i >= 0 {
		host = host[:i]
	}
	return strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
}

// capabilities returns a letter for each capability that the client has declared.
func (d *Info) capabilities() string {
	if d.Capable {
		return "r"
	}
	return ""
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
	number("watch", int64(d.Watched))
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
	text("lib-name", d.Library)
	text("lib-ver", d.LibraryVersion)
	number("io-thread", 0) // the server has no I/O threads as Redis has
	number("tot-net-in", d.Received)
	number("tot-net-out", d.Sent)
	number("tot-cmds", d.Calls)
	if capa := d.capabilities(); capa != "" { // Redis has no such field
		text("capa", capa)
	}
	return dst
}

// letters returns the flags of a client, a letter each.
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
		{d.ImportSource, 'I'},
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
