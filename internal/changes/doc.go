// Package changes reads what happened to the data, in order, from the journal: the feed behind the command CHANGES.
//
// A change is a record of the journal: the commands of one guard, in the form that repeats their effect independently of time
// and chance. A [Position] is a place between two changes. It names what precedes it (journal.Place), so a position of another
// history is refused.
//
// Only durable records are read, so nothing that a consumer got is ever taken back. A few workers read files, by turns for all
// readers. They hold locks that writers wait for only to look at the journal's state, and never while they read. A reader that
// waits is a goroutine, which is woken when more of the journal has become durable.
package changes
