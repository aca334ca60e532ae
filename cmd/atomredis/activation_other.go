//go:build !linux

package main

import (
	"net"
	"time"

	"github.com/atomredis/atomredis/internal/config"
)

// inheritedSockets returns none: there is no systemd here.
func inheritedSockets(*config.Config) ([]net.Listener, error) { return nil, nil }

func monotonic() time.Duration { return 0 }
