package hyperloglog_test

import (
	"testing"

	"github.com/atomredis/atomredis/internal/servertest"
)

func TestTranscripts(t *testing.T) { servertest.Transcripts(t, "hyperloglog") }
