//go:build !linux

package server

import "errors"

// applyOOMScore can do nothing where there is no such score.
func applyOOMScore(set *Settings, _ bool) error {
	if set.OOMScoreAdj == OOMScoreNo {
		return nil
	}
	return errors.New("only Linux has a score by which processes are killed when memory runs out")
}
