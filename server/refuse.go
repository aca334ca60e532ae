package server

// This file has the limits of clients and connections.

// refuseClient returns the error that refuses a new connection, "" if it is accepted.
func (srv *Server) refuseClient(loopback bool) string {
	open := srv.config.Get().Network.ProtectedMode && !srv.users.Default().User().NeedsPassword()
	return srv.refuse(srv.sessions.Clients.Len(), open && !loopback)
}

// refuse is refuseClient for count existing clients; protected tells whether protected-mode forbids this one.
func (srv *Server) refuse(count int64, protected bool) string {
	if count >= srv.MaxClients() {
		srv.stats.rejected.Add(1)
		return "ERR max number of clients reached"
	}
	srv.stats.connections.Add(1)
	if protected {
		srv.stats.rejected.Add(1)
		return protectedMode
	}
	return ""
}

// reservedFiles are the files that a server needs for itself.
const reservedFiles = 32

// MaxClients implements session.Host: it returns the setting maxclients, or fewer if the process may not open as many sockets.
func (srv *Server) MaxClients() int64 {
	n := int64(srv.config.Get().Network.MaxClients)
	if srv.maxFiles > 0 {
		reserved := int64(reservedFiles)
		if srv.shards != nil {
			reserved += srv.maxRaftConnections()
		}
		n = min(n, max(srv.maxFiles-reserved, 1))
	}
	return n
}

// raftConnections limits the connections of other servers to raft-addr, without those for clients. Each server of
// the group has fewer than ten.
const raftConnections = 512

// maxRaftConnections returns raftConnections, or a quarter of the files that the process may open.
func (srv *Server) maxRaftConnections() int64 {
	if srv.maxFiles > 0 {
		return min(raftConnections, max(srv.maxFiles/4, 1))
	}
	return raftConnections
}

const protectedMode = "DENIED Redis is running in protected mode because protected mode is enabled and no password is set for the default user. " +
	"Until one is set, or protected mode is switched off, only clients on the server's own machine are served: those that connect to a loopback address or to the Unix socket. " +
	"To let others in, give the server a password with the directive requirepass (the safe choice); or, if nobody who is not trusted can reach its port, " +
	"send CONFIG SET protected-mode no from the server's machine, start the server with --protected-mode no, or put protected-mode no into its configuration file."
