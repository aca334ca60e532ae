package server

import (
	"github.com/atomredis/atomredis/internal/config"
	"github.com/atomredis/atomredis/internal/process"
)

// followOOMScore adjusts the process's score when the settings change.
func (srv *Server) followOOMScore() {
	srv.config.Apply(func(old, set *config.Settings) (func() error, error) {
		return func() error { return srv.setOOMScore(&old.Process) }, srv.setOOMScore(&set.Process)
	}, "oom-score-adj", "oom-score-adj-values")
}

// setOOMScore adjusts the process's score for the settings, and for the role of a master or a replica.
func (srv *Server) setOOMScore(set *config.ProcessSettings) error {
	value := set.OOMScoreAdjValues[0]
	if srv.follows() {
		value = set.OOMScoreAdjValues[1]
	}
	if err := process.AdjustOOMScore(set.OOMScoreAdj, value); err != nil {
		srv.log.Warn("cannot change oom_score_adj", "error", err.Error())
		return config.ChangeError{"oom-score-adj": config.ErrOOMScore, "oom-score-adj-values": config.ErrOOMScore}
	}
	return nil
}

// scoreForRole adjusts the process's score for the server's current role.
func (srv *Server) scoreForRole() { _ = srv.setOOMScore(&srv.config.Get().Process) } // it logs a failure
