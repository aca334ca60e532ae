// Package transport carries bytes between connections and sessions. It knows no protocol: a [Session] takes bytes and
// gives bytes, and a [Host] makes sessions and says what is best done once for many of them. lines_test.go has both for a
// protocol of lines.
//
// # Who owns what
//
// A transport owns its connections and decides when a session runs. A session belongs to one goroutine at a time: that
// of its loop, or one that holds the mutex of its connection. Others reach it through the function wake, which has its
// Advance called soon. wake may be called under any lock, because it takes a mutex that is held for a few instructions.
// The host owns listeners; a transport accepts from them until it is told to stop. The host closes listeners first,
// then transports.
//
// # Two transports
//
// Event loops ([NewLoops]) serve TCP and Unix sockets on Linux. [Goroutines] serve other systems, TLS, and connections
// that are no sockets: a reader and a writer for each, so that a client that does not read does not stop its own
// requests. They are slower, because each request wakes goroutines, and need nothing but a net.Conn.
//
// The loop is ours and no library's, because its speed comes from the order of work in a round and from system calls
// past the scheduler. Callbacks per connection give both away (measured against gnet, see bench/notes/tried.md).
//
// # The round of a loop
//
// A loop (loop_linux.go) has a thread and an epoll of its own. A round does this, with one look at the clock:
//
//   - It takes the events, accepts clients (loop_accept_linux.go), and notes who may have something to read.
//   - It reads from each of them and gives the sessions their input (loop_read_linux.go), for up to 16 clients at a
//     time. The host is told of these inputs first (Host.Prefetch), so that it can have their memory fetched.
//   - It reads its mail (loop_mail_linux.go): who was woken, what other loops have accepted, whether it must stop. It
//     calls the sessions whose deadlines have come (loop_timers_linux.go); one timer wakes the loop for the next.
//   - It calls Host.Commit, once for all replies, and then sends them (loop_write_linux.go), to up to 64 clients at a
//     time.
//   - Once a second it asks all sessions whether they have expired. It closes those that have gone.
//
// Reads and writes are raw system calls that never block, so they bypass the scheduler. Several are one system call
// through an io_uring, where there is one (package sockcalls); each thread has its own. Without it (before Linux 6.1,
// in containers that forbid it, without LoopOptions.IOUring) the same calls are made one after the other.
//
// Clients that send over 8 KB at once get a read of their own, and so does a session that wants to be read from alone
// (Session.ReadsAlone), into memory that it provides (Session.Room). epoll is edge-triggered except for Unix sockets,
// so a connection stays in loop.unread until a read has emptied it. What is lent (Session.Lend) is written with one
// writev from where it lies. Outputs of 96 to 256 KiB are written in pieces, one per round (writeSize).
//
// Each loop has its own descriptor of a listener. To stop shuts the socket down first, which frees the address at once;
// the loop closes its descriptor when it reads its mail.
//
// # Waiting
//
// An idle loop waits past the scheduler too, where the program gives each loop a processor of its own
// (LoopOptions.SpareProcessors). It hands the processor back for a moment after 6 ms, as soon as no client is ready:
// after 10 ms the scheduler would take it at any time. In other programs an idle loop sleeps in an ordinary blocking
// call. The thread asks the system for short slices, so that it runs at once when others keep the processors busy.
// With many clients a loop may delay its next round briefly, so that one wake-up serves several (loop_coalesce_linux.go).
//
// # Relief
//
// Input, Received, Advance and Close may wait for other sessions, and one that takes long would hold up all clients of
// its loop. The host sees that and calls Loops.Relieve, which takes the loop away from its goroutine and gives it to a
// new one (loop_relief_linux.go). The old one keeps the session and hands it back in the end. loop.using says which
// session a loop's goroutine is in, and whoever exchanges that word has the loop. What can wait (closing sessions,
// deadlines) is put off while Host.Stalled says so, until Loops.Resume.
package transport
