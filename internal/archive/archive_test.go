package archive

import (
	"bytes"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAWitnessSaysThatItArchivesNothing(t *testing.T) {
	Register(Implementation{New: func(Options) Archiver { panic("a witness has no archiver") }})
	var log bytes.Buffer
	var set Settings
	a := New(Options{Witness: true, Settings: func() Settings { return set }, Log: slog.New(slog.NewTextHandler(&log, nil))})
	a.Start()
	require.Empty(t, log.String())
	require.Equal(t, Off, a.Status().State)
	set.URL = "/archive"
	a.Changed()
	require.Contains(t, log.String(), "a witness has no data to archive")
	require.Equal(t, Witness, a.Status().State)
	a.Stop()
	a.Close()
}
