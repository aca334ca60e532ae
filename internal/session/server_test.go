package session_test

import (
	"log/slog"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/config"
	_ "github.com/atomredis/atomredis/internal/durable" // storage
	"github.com/atomredis/atomredis/internal/session"
	"github.com/atomredis/atomredis/persist/disk"
	"github.com/atomredis/atomredis/server"
)

func init() {
	session.NewTestServer = func(conf *config.Config, log *slog.Logger, clock engine.Clock, fs disk.FS) (
		*session.Shared, func() error, error) {
		srv, err := server.New(conf, log, server.Options{Clock: clock, Goroutines: true, FS: fs})
		if err == nil && fs != nil {
			err = srv.Start()
		}
		if err != nil {
			return nil, nil, err
		}
		return srv.Sessions(), srv.Close, nil
	}
}
