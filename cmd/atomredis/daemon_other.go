//go:build !unix

package main

import (
	"errors"
	"os"
)

var errNoDaemon = errors.New("this system has no daemons; run the server as a service")

func spawnDaemon([]string, []byte, *os.File) error { return errNoDaemon }

func stopForUpstart() error { return nil }
