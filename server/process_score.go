package server

// updateOOMScore gives the process the score of new settings.
func (srv *Server) updateOOMScore(old, set *Settings) error {
	if set.OOMScoreAdj == old.OOMScoreAdj && set.OOMScoreAdjValues == old.OOMScoreAdjValues {
		return nil
	}
	if err := applyOOMScore(set, srv.replica.link() != nil); err != nil {
		srv.log.Warn("cannot change the score by which the system kills processes", "error", err.Error())
		return changeError{"oom-score-adj": errOOMScore, "oom-score-adj-values": errOOMScore}
	}
	return nil
}

// scoreForRole gives the process the score of what the server is now.
func (srv *Server) scoreForRole() {
	if err := applyOOMScore(srv.config.Get(), srv.replica.link() != nil); err != nil {
		srv.log.Warn("cannot change the score by which the system kills processes", "error", err.Error())
	}
}
