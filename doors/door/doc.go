// Package door is the seam between the server and foreign protocols. It knows no server.
//
// A [Door] translates a foreign protocol into commands and holds no data. Its package registers a [Kind] in an init
// function. The server then provides its directives and its section of INFO, opens it, moves it to other addresses, and
// closes it. The first configuration closes the registry. docs/contributing.md shows how to write a door.
//
// # Sessions and clients
//
// A [Session] is one client of the server without a transport; the goroutines that call it run it. It counts as a
// client everywhere: in CLIENT LIST and CLIENT KILL, the ACL and its log, MONITOR, SLOWLOG, maxclients. It stays usable
// after every error: a cancelled command leaves no reply, a failed transaction is discarded, and a cancelled wait for
// the end of CLIENT PAUSE leaves nothing behind. Done is closed when the session was killed or released, or the server
// closes. A kill may come under any lock; the goroutine that uses the session then closes it.
//
// A [Client] executes commands in a session: Do, Pipeline, Watch, Transact, Subscribe. DB.Do, DB.Tx and DB.Subscribe
// use it with pooled sessions that have all permissions. A client of a door has a session of its own, with its peer's
// address and the user of door-<name>-user, or the default user.
//
// [Peers] serves doors that own their connections: it gives each connection a client and goroutines, which end
// together. [Pool] has several clients for a peer with several requests in flight.
package door
