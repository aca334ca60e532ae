package search_test

import (
	"testing"

	"github.com/atomredis/atomredis/internal/testing/servertest"
)

func TestTranscripts(t *testing.T) { servertest.Transcripts(t, "search") }
