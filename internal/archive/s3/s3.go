// Package s3 lets archives be in buckets of Amazon S3, or of anything that speaks its protocol: s3://BUCKET/PREFIX. It registers
// itself with package archive/objects; only the program atomredis links it.
//
// Parameters of the URL, each with the environment variable that is used without it:
//
//   - endpoint: the server, as a host with or without a port, or as a URL (AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL); Amazon's by
//     default
//   - region: AWS_REGION, AWS_DEFAULT_REGION
//   - path-style: yes puts the bucket into the path and not into the host; the library decides by default
//
// The credentials come from AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, the file ~/.aws/credentials, or the
// role of the machine or the pod. They are no part of the URL, which CONFIG GET and logs show.
package s3

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/atomredis/atomredis/internal/archive/objects"
)

func init() { objects.Register("s3", open) }

// partSize is the length in bytes of the parts in which long objects are uploaded; the protocol allows 10,000 parts. A part is
// in memory while it is uploaded.
var partSize int64 = 32 << 20

// retries is how often a request is sent. The archiver repeats what fails.
const retries = 3

// roleTimeout limits the request for the credentials of a role, on machines that have none.
const roleTimeout = 5 * time.Second

// bucket is an objects.Store.
type bucket struct {
	client       minio.Core
	name, prefix string // prefix is "" or ends in a slash
}

// open returns the store of a URL.
func open(u *url.URL) (objects.Store, error) {
	fail := func(format string, args ...any) (objects.Store, error) {
		return nil, fmt.Errorf("archive %s: %w", u.Redacted(), fmt.Errorf(format, args...))
	}
	if u.User != nil {
		return fail("credentials are no part of the URL: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
	}
	if u.Host == "" {
		return fail("the name of the bucket is missing")
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return fail("%w", err)
	}
	o := minio.Options{Secure: true, MaxRetries: retries,
		Region: cmp.Or(query.Get("region"), os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION")),
		Creds: credentials.NewChainCredentials([]credentials.Provider{&credentials.EnvAWS{}, &credentials.FileAWSCredentials{},
			&credentials.IAM{Client: &http.Client{Timeout: roleTimeout}}})}
	for name, values := range query {
		switch {
		case len(values) > 1:
			return fail("%s is there twice", name)
		case name == "path-style" && values[0] == "yes":
			o.BucketLookup = minio.BucketLookupPath
		case name == "path-style" && values[0] == "no":
			o.BucketLookup = minio.BucketLookupDNS
		case name == "path-style":
			return fail("path-style must be yes or no")
		case name != "endpoint" && name != "region":
			return fail("unknown parameter %s: there are endpoint, region and path-style", name)
		}
	}
	endpoint := cmp.Or(query.Get("endpoint"), os.Getenv("AWS_ENDPOINT_URL_S3"), os.Getenv("AWS_ENDPOINT_URL"), "s3.amazonaws.com")
	if scheme, host, ok := strings.Cut(endpoint, "://"); ok {
		if scheme != "http" && scheme != "https" {
			return fail("the endpoint must begin with http:// or https://")
		}
		o.Secure, endpoint = scheme == "https", strings.TrimSuffix(host, "/")
	}
	client, err := minio.New(endpoint, &o)
	if err != nil {
		return fail("%w", err)
	}
	b := &bucket{client: minio.Core{Client: client}, name: u.Host, prefix: strings.Trim(u.Path, "/")}
	if b.prefix != "" {
		b.prefix += "/"
	}
	return b, nil
}

// String implements objects.Store.
func (b *bucket) String() string {
	return "s3://" + b.name + strings.TrimSuffix("/"+b.prefix, "/")
}

// failed returns the error for a request about an object.
func (b *bucket) failed(err error) error {
	if err == nil {
		return nil
	}
	switch minio.ToErrorResponse(err).Code {
	case "NoSuchKey", "NotFound":
		return fmt.Errorf("%w: %w", fs.ErrNotExist, err)
	}
	return fmt.Errorf("%s: %w", b, err)
}

// Put implements objects.Store.
func (b *bucket) Put(ctx context.Context, name string, r io.Reader, size int64) error {
	o := minio.PutObjectOptions{PartSize: uint64(partSize), ContentType: "application/octet-stream"}
	if size < 0 {
		// What fits into a part needs one request.
		var first bytes.Buffer
		n, err := io.CopyN(&first, r, partSize)
		switch {
		case errors.Is(err, io.EOF):
			r, size = bytes.NewReader(first.Bytes()), n
		case err != nil:
			return err
		default:
			r = io.MultiReader(&first, r)
		}
	}
	_, err := b.client.Client.PutObject(ctx, b.name, b.prefix+name, r, size, o)
	return b.failed(err)
}

// Get implements objects.Store.
func (b *bucket) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	r, _, _, err := b.client.GetObject(ctx, b.name, b.prefix+name, minio.GetObjectOptions{})
	if err != nil {
		return nil, b.failed(err)
	}
	return r, nil
}

// List implements objects.Store.
func (b *bucket) List(ctx context.Context, prefix, after string) iter.Seq2[objects.Object, error] {
	o := minio.ListObjectsOptions{Prefix: b.prefix + prefix, Recursive: true}
	if after != "" {
		o.StartAfter = b.prefix + after
	}
	return func(yield func(objects.Object, error) bool) {
		for found := range b.client.ListObjectsIter(ctx, b.name, o) {
			if found.Err != nil {
				yield(objects.Object{}, b.failed(found.Err))
				return
			}
			if !yield(objects.Object{Name: strings.TrimPrefix(found.Key, b.prefix), Size: found.Size}, nil) {
				return
			}
		}
	}
}

// Folders implements objects.Store.
func (b *bucket) Folders(ctx context.Context, folder string) (names []string, err error) {
	prefix := b.prefix
	if folder != "" {
		prefix += folder + "/"
	}
	for found := range b.client.ListObjectsIter(ctx, b.name, minio.ListObjectsOptions{Prefix: prefix}) {
		if found.Err != nil {
			return nil, b.failed(found.Err)
		}
		if name, ok := strings.CutSuffix(strings.TrimPrefix(found.Key, prefix), "/"); ok {
			names = append(names, name)
		}
	}
	return names, nil
}

// Delete implements objects.Store.
func (b *bucket) Delete(ctx context.Context, name string) error {
	return b.failed(b.client.Client.RemoveObject(ctx, b.name, b.prefix+name, minio.RemoveObjectOptions{}))
}
