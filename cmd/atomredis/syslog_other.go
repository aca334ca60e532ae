//go:build !unix

package main

import (
	"errors"

	"github.com/atomredis/atomredis/server"
)

var errNoSyslog = errors.New("syslog-enabled: this system has no syslog; use logfile")

func openSyslog(*server.Settings) (logOutput, error) { return nil, errNoSyslog }
