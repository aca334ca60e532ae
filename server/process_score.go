package server

import (
	"github.com/atomredis/atomredis/internal/config"
)

// followOOMScore has the process change its score with the settings.
func (srv *Server) followOOMScore() {
	srv.config.Apply(func(old, set *config.Settings) (func() error, error) {
		return func() error { return srv.setOOMScore(old) }, srv.setOOMScore(set)
	}, "oom-score-adj", "oom-score-adj-values")
}

// setOOMScore gives the process the score of the settings.
func (srv *Server) setOOMScore(set *config.Settings) error {
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
