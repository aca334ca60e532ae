package process

import (
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/atomredis/atomredis/internal/config"
)

// oomScoreFile has the adjustment that the kernel adds to the process's score.
const oomScoreFile = "/proc/self/oom_score_adj"

// maxOOMAdjustment is the largest value that the kernel accepts.
const maxOOMAdjustment = 1000

// oomScore is the process's adjustment before a server changed it.
var oomScore struct {
	sync.Mutex
	read     bool
	original int
	changed  bool
}

// AdjustOOMScore sets the process's adjustment to a value, as configured by oom-score-adj. With config.OOMScoreNo it
// restores the original score.
func AdjustOOMScore(how config.OOMScore, value int) error {
	o := &oomScore
	o.Lock()
	defer o.Unlock()
	if how == config.OOMScoreNo && !o.changed {
		return nil
	}
	if !o.read {
		content, err := os.ReadFile(oomScoreFile)
		if err != nil {
			return err
		}
		if o.original, err = strconv.Atoi(strings.TrimSpace(string(content))); err != nil {
			return err
		}
		o.read = true
	}
	value = adjustment(how, value, o.original)
	if err := os.WriteFile(oomScoreFile, []byte(strconv.Itoa(value)), 0); err != nil {
		return err
	}
	o.changed = how != config.OOMScoreNo
	return nil
}

// adjustment returns the content of oomScoreFile for a value of oom-score-adj-values.
func adjustment(how config.OOMScore, value, original int) int {
	switch how {
	case config.OOMScoreNo:
		value = original
	case config.OOMScoreYes, config.OOMScoreRelative:
		value += original
	}
	return max(-maxOOMAdjustment, min(value, maxOOMAdjustment))
}
