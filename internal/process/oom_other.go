//go:build !linux

package process

import (
	"errors"

	"github.com/atomredis/atomredis/internal/config"
)

// AdjustOOMScore fails unless no change is requested: only Linux has such a score.
func AdjustOOMScore(how config.OOMScore, _ int) error {
	if how == config.OOMScoreNo {
		return nil
	}
	return errors.New("only Linux has a score by which processes are killed when memory runs out")
}
