package server

import (
	"github.com/atomredis/atomredis/internal/config"
)

// updateOOMScore gives the process the score of new settings.
func (srv *Server) updateOOMScore(old, set *config.Settings) error {
	if set.OOMScoreAdj == old.OOMScoreAdj && set.OOMScoreAdjValues == old.OOMScoreAdjValues {
		return nil
	}
	if err := applyOOMScore(set, srv.follows()); err != nil {
		srv.log.Warn("cannot change oom_score_adj", "error", err.Error())
		return config.ChangeError{"oom-score-adj": config.ErrOOMScore, "oom-score-adj-values": config.ErrOOMScore}
	}
	return nil
}

// scoreForRole gives the process the score of what the server is now.
func (srv *Server) scoreForRole() {
	if err := applyOOMScore(srv.config.Get(), srv.follows()); err != nil {
		srv.log.Warn("cannot change oom_score_adj", "error", err.Error())
	}
}
