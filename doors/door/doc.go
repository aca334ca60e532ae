// Package door is the seam between the server and foreign protocols. It knows no server.
//
// A [Door] translates a foreign protocol into commands and holds no data. Its package registers a [Kind] in an init
// function; everything else follows from that: directives, a section of INFO, its start, its moves to other
// addresses, and its end. The first configuration closes the registry. docs/contributing.md shows how to write one.
//
// # Sessions and clients
//
// A [Session] is one client of the server without a transport, run by the goroutines that call it. What comes through
// it is seen like any other client: by CLIENT LIST and CLIENT KILL, the ACL and its log, MONITOR, SLOWLOG,
// maxclients. It goes on after every error: a command that was given up has left no reply, a transaction that was not
// executed is discarded, and a client that did not wait for the end of CLIENT PAUSE is forgotten there. Done is
// closed when the session was killed or released, or the server closes. A kill may come under any lock; the goroutine that
// uses the session then closes it.
//
// A [Client] executes commands in a session: Do, Pipeline, Watch, Transact, Subscribe. DB.Do, DB.Tx and DB.Subscribe
// use it with pooled sessions that may do everything. A client of a door has a session of its own, with its peer's
// address and the user of door-<name>-user or the default one.
//
// [Peers] is what doors have in common that own their connections: a client and goroutines for each, which end
// together. [Pool] has several clients for a peer with several requests in flight.
package door
