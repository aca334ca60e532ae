//go:build !unix

package main

import (
	"errors"

	"github.com/atomredis/atomredis/internal/config"
)

var errNoSyslog = errors.New("syslog-enabled: this system has no syslog; use logfile")

func openSyslog(*config.LogSettings) (logOutput, error) { return nil, errNoSyslog }
