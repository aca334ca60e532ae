//go:build !linux

package server

import (
	"errors"

	"github.com/atomredis/atomredis/internal/config"
)

// applyOOMScore can do nothing where there is no such score.
func applyOOMScore(set *config.Settings, _ bool) error {
	if set.OOMScoreAdj == config.OOMScoreNo {
		return nil
	}
	return errors.New("only Linux has a score by which processes are killed when memory runs out")
}
