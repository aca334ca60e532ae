package server

import (
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/atomredis/atomredis/internal/config"
)

// oomScoreFile has what the kernel adds to the process's score when it looks for one to kill.
const oomScoreFile = "/proc/self/oom_score_adj"

// maxOOMAdjustment is the greatest value that the kernel takes.
const maxOOMAdjustment = 1000

// oomScore is the process's adjustment as it was before the server changed it.
var oomScore struct {
	sync.Mutex
	read     bool
	original int
	changed  bool
}

// applyOOMScore gives the process the score that the settings have for a master, or a replica.
func applyOOMScore(set *config.Settings, isReplica bool) error {
	o := &oomScore
	o.Lock()
	defer o.Unlock()
	if set.OOMScoreAdj == config.OOMScoreNo && !o.changed {
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
	value := set.OOMScoreAdjValues[0]
	if isReplica {
		value = set.OOMScoreAdjValues[1]
	}
	switch set.OOMScoreAdj {
	case config.OOMScoreNo:
		value = o.original
	case config.OOMScoreYes, config.OOMScoreRelative:
		value += o.original
	}
	value = max(-maxOOMAdjustment, min(value, maxOOMAdjustment))
	if err := os.WriteFile(oomScoreFile, []byte(strconv.Itoa(value)), 0); err != nil {
		return err
	}
	o.changed = set.OOMScoreAdj != config.OOMScoreNo
	return nil
}
