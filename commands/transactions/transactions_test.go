package transactions_test

import (
	"testing"

	"github.com/atomredis/atomredis/internal/servertest"
)

func TestTranscripts(t *testing.T) { servertest.Transcripts(t, "transactions") }
