package s3

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/archive"
	"github.com/atomredis/atomredis/internal/archive/objects"
	"github.com/atomredis/atomredis/internal/testing/crashfs"
	"github.com/atomredis/atomredis/internal/testing/fakes3"
	"github.com/atomredis/atomredis/internal/testing/servertest"
	"github.com/atomredis/atomredis/persist/disk"
)

func TestABucketIsAStore(t *testing.T) {
	server := fakes3.Start(t)
	s, err := objects.Open(disk.System, server.ArchiveURL("db/one"))
	require.NoError(t, err)
	require.Equal(t, "s3://"+fakes3.Name+"/db/one", s.String())
	_, err = s.Get(t.Context(), "x")
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.NoError(t, s.Delete(t.Context(), "x"))
	var names []string
	for i := range 5 {
		for j := range 5 {
			name := fmt.Sprintf("c%d/v%d/x", i, j)
			names = append(names, name)
			require.NoError(t, s.Put(t.Context(), name, strings.NewReader("old"), -1))
			require.NoError(t, s.Put(t.Context(), name, strings.NewReader(name), int64(len(name))))
		}
	}
	require.Contains(t, server.Names(), "db/one/c0/v0/x")
	list := func(prefix, after string) (found []string) {
		for o, err := range s.List(t.Context(), prefix, after) {
			require.NoError(t, err)
			require.EqualValues(t, len(o.Name), o.Size)
			found = append(found, o.Name)
		}
		return found
	}
	require.Equal(t, names, list("", ""))
	require.Equal(t, names[5:10], list("c1/", ""))
	require.Equal(t, names[7:10], list("c1/", "c1/v1/x"))
	require.Equal(t, names[7:10], list("c1/", "c1/v2"))
	folders, err := s.Folders(t.Context(), "")
	require.NoError(t, err)
	require.Equal(t, []string{"c0", "c1", "c2", "c3", "c4"}, folders)
	folders, err = s.Folders(t.Context(), "c2")
	require.NoError(t, err)
	require.Equal(t, []string{"v0", "v1", "v2", "v3", "v4"}, folders)
	require.NoError(t, s.Delete(t.Context(), names[0]))
	require.Equal(t, names[1:], list("", ""))
}

// Objects that are longer than a part are uploaded in parts; one that cannot be read to its end is not stored.
func TestLongObjectsAreUploadedInParts(t *testing.T) {
	server := fakes3.Start(t)
	before := partSize
	partSize = 5 << 20
	defer func() { partSize = before }()
	s, err := objects.Open(disk.System, server.ArchiveURL(""))
	require.NoError(t, err)
	content := make([]byte, 12<<20)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range content {
		content[i] = byte(r.Uint32())
	}
	require.NoError(t, s.Put(t.Context(), "long", strings.NewReader(string(content)), -1))
	require.Equal(t, 1, server.Multiparts())
	in, err := s.Get(t.Context(), "long")
	require.NoError(t, err)
	got, err := io.ReadAll(in)
	require.NoError(t, err)
	require.NoError(t, in.Close())
	require.True(t, string(content) == string(got))
	failure := errors.New("failure")
	require.ErrorIs(t, s.Put(t.Context(), "cut", io.MultiReader(strings.NewReader(string(content)), failing{failure}), -1), failure)
	require.ErrorIs(t, s.Put(t.Context(), "cut", io.MultiReader(strings.NewReader("short"), failing{failure}), -1), failure)
	require.Equal(t, []string{"long"}, server.Names())
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestURLsOfBuckets(t *testing.T) {
	for name, problem := range map[string]string{
		"s3://b":                    "",
		"s3://b/p?region=eu-west-1": "",
		"s3://b?endpoint=host/path": "cannot have fully qualified paths",
		"s3:///p":                   "archive s3:///p: the name of the bucket is missing",
		"s3://key:secret@b":         "archive s3://key:xxxxx@b: credentials are no part of the URL",
		"s3://b?path-style=maybe":   "path-style must be yes or no",
		"s3://b?zone=1":             "unknown parameter zone: there are endpoint, region and path-style",
		"s3://b?endpoint=ftp://x":   "the endpoint must begin with http:// or https://",
		"s3://b?region=a&region=b":  "region is there twice",
	} {
		err := archive.Check(name)
		if problem == "" {
			require.NoError(t, err, name)
		} else {
			require.ErrorContains(t, err, problem)
		}
	}
}

// A server archives to a bucket, which cannot be reached for a while.
func TestAServerArchivesToABucket(t *testing.T) {
	server := fakes3.Start(t)
	url := server.ArchiveURL("db")
	d := servertest.OpenDurable(t, crashfs.Mem(), "archive", url, "archive-interval", "10ms")
	await := func(fields ...string) {
		t.Helper()
		require.Eventually(t, func() bool {
			info := d.Line("INFO persistence")
			for _, field := range fields {
				if !strings.Contains(info, "\r\n"+field+"\r\n") {
					return false
				}
			}
			return true
		}, time.Minute, 10*time.Millisecond, "%s", fields)
	}
	d.Lines("SET k 1")
	await("archive_state:running", "archive_lag:0")
	server.Away.Store(true)
	d.Lines("SET k 2")
	await("archive_state:failing")
	d.Lines("SET k 3")
	server.Away.Store(false)
	await("archive_state:running", "archive_lag:0", "archive_gaps:0")
	d.Lines("SET k 4")
	d.End() // uploads what is left
	s, err := objects.Open(disk.System, url)
	require.NoError(t, err)
	chains, err := objects.Check(context.Background(), s, nil)
	require.NoError(t, err)
	require.Len(t, chains, 1)
	require.Empty(t, chains[0].Problems)
	p, err := objects.Find(t.Context(), s, objects.Latest)
	require.NoError(t, err)
	last := ""
	require.NoError(t, p.Records(func(_ int64, commands []byte) error {
		last = string(commands)
		return nil
	}))
	require.Contains(t, last, "\r\n4\r\n")
}
