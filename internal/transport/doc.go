// Package transport moves bytes between connections and sessions. It is independent of the protocol: a [Session]
// takes and returns bytes, and a [Host] makes sessions and does work that is best done once for many of them.
// lines_test.go implements both for a protocol of lines.
//
// # Who owns what
//
// A transport owns its connections and decides when a session runs. A session belongs to one goroutine at a time:
// the goroutine of its loop, or one that holds the mutex of its connection. Other goroutines reach it through the
// function wake, which makes the transport call Advance soon. wake may be called under any lock, because it takes a
// mutex that is held for a few instructions. The host owns listeners; a transport accepts from them until it is told
// to stop. The host closes listeners first, then transports.
//
// # Two transports
//
// Event loops ([NewLoops]) serve TCP and Unix sockets on Linux. [Goroutines] serve other systems, TLS, and
// connections that are not sockets: a reader and a writer for each, so that a client that does not read does not
// stop its own requests. They are slower, because each request wakes goroutines, but need only a net.Conn.
//
// We do not use a library for the loop, because its speed comes from the order of work in a round and from system
// calls that bypass the scheduler. A library with callbacks for each connection allows neither (measured against
// gnet, see bench/notes/tried.md).
//
// # The round of a loop
//
// A loop (loop_linux.go) has a thread and an epoll of its own. A round does this, with one look at the clock:
//
//   - It takes the events, accepts clients (loop_accept_linux.go), and notes which connections may be readable.
//   - It reads from each of them and gives the sessions their input (loop_read_linux.go), for up to 16 clients at a
//     time. The host is told of these inputs first (Host.Prefetch), so that it can fetch the memory that they need.
//   - It reads its mail (loop_mail_linux.go): woken sessions, connections accepted by other loops, the request to
//     stop. It calls the sessions whose deadlines have come (loop_timers_linux.go); one timer wakes the loop for the
//     next.
//   - It calls Host.Commit, once for all replies, and then sends them (loop_write_linux.go), to up to 64 clients at a
//     time.
//   - Once a second it asks all sessions whether they have expired. It closes those of disconnected clients.
//
// Reads and writes are raw system calls that never block, so they bypass the scheduler. Several are one system call
// through an io_uring, where there is one (package sockcalls); each thread has its own. Without it (before Linux 6.1,
// in containers that forbid it, without LoopOptions.IOUring) the same calls are made one after the other.
//
// A client that sends over 8 KB at once gets a read of its own. So does a session that requests it
// (Session.ReadsAlone), into memory that it provides (Session.Room). epoll is edge-triggered except for Unix
// sockets, so a connection stays in loop.unread until a read has emptied it. Lent strings (Session.Lend) are written
// with one writev, without copying. Outputs of 96 to 256 KiB are written in pieces, one per round (writeSize).
//
// Each loop has its own descriptor of a listener. Stopping shuts the socket down first, which frees the address at
// once; the loop closes its descriptor when it reads its mail.
//
// # Waiting
//
// If the program gives each loop a processor of its own (LoopOptions.SpareProcessors), an idle loop also waits
// without the scheduler. After 6 ms it returns the processor for a moment as soon as no client is ready, because
// after 10 ms the scheduler would take it at any time. In other programs an idle loop sleeps in an ordinary blocking
// call. The thread requests short time slices, so that it runs at once when other threads keep the processors busy.
// With many clients a loop may delay its next round briefly, so that one wake-up serves several
// (loop_coalesce_linux.go).
//
// # Relief
//
// Input, Received, Advance and Close may wait for other sessions, and a long call would delay all clients of its
// loop. The host detects that and calls Loops.Relieve, which takes the loop away from its goroutine and gives it to
// a new one (loop_relief_linux.go). The old goroutine keeps the session and returns it to the loop at the end.
// loop.using is the session that a loop's goroutine is in; the goroutine that exchanges this word owns the loop.
// Work that can wait (closing sessions, deadlines) is delayed from Host.Stalled until Loops.Resume.
package transport
