// Package fakes3 has a server in memory for tests that speaks as much of the protocol of Amazon S3 as archives need: PUT, GET,
// DELETE, uploads in parts, and lists in pages of three.
package fakes3

import (
	"bufio"
	"bytes"
	"crypto/md5"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

const (
	// Name is the bucket that exists.
	Name = "backups"
	// Key and Secret are the credentials that it accepts; the secret is not verified.
	Key, Secret = "AKIDTEST", "secret"
	// Region is its region.
	Region = "eu-test-1"

	pageSize = 3
)

// Server is a running server.
type Server struct {
	*httptest.Server
	Away atomic.Bool // all requests fail

	mu      sync.Mutex
	objects map[string][]byte
	uploads map[string]map[int][]byte // parts by number, by name and upload
	multi   int                       // completed uploads in parts
}

// Start starts a server, which ends with the test, and sets the environment variables with its credentials.
func Start(t *testing.T) *Server {
	s := &Server{objects: map[string][]byte{}, uploads: map[string]map[int][]byte{}}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.Server.Close)
	t.Setenv("AWS_ACCESS_KEY_ID", Key)
	t.Setenv("AWS_SECRET_ACCESS_KEY", Secret)
	return s
}

// ArchiveURL returns the URL of an archive in the bucket.
func (s *Server) ArchiveURL(prefix string) string {
	return "s3://" + Name + "/" + prefix + "?endpoint=" + s.Server.URL + "&region=" + Region + "&path-style=yes"
}

// Names returns the names of all objects.
func (s *Server) Names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.objects))
}

// Multiparts returns how many objects were uploaded in parts.
func (s *Server) Multiparts() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.multi
}

func refuse(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	fmt.Fprintf(w, "<Error><Code>%s</Code><Message>%s</Message></Error>", code, code)
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	bucket, name, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	auth := r.Header.Get("Authorization")
	query := r.URL.Query()
	switch {
	case s.Away.Load():
		refuse(w, http.StatusServiceUnavailable, "ServiceUnavailable")
		return
	case !strings.HasPrefix(auth, "AWS4-HMAC-SHA256 Credential="+Key+"/") || !strings.Contains(auth, "/"+Region+"/s3/aws4_request"):
		refuse(w, http.StatusForbidden, "AccessDenied")
		return
	case bucket != Name:
		refuse(w, http.StatusNotFound, "NoSuchBucket")
		return
	}
	body, err := content(r)
	if err != nil {
		refuse(w, http.StatusBadRequest, "IncompleteBody")
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	upload := name + "\x00" + query.Get("uploadId")
	switch {
	case name == "" && r.Method == http.MethodGet:
		s.list(w, r)
	case r.Method == http.MethodPost && query.Has("uploads"):
		id := strconv.Itoa(len(s.uploads) + 1)
		s.uploads[name+"\x00"+id] = map[int][]byte{}
		fmt.Fprintf(w, "<InitiateMultipartUploadResult><UploadId>%s</UploadId></InitiateMultipartUploadResult>", id)
	case r.Method == http.MethodPut && query.Has("uploadId"):
		n, _ := strconv.Atoi(query.Get("partNumber"))
		s.uploads[upload][n] = body
		w.Header().Set("ETag", etag(body))
	case r.Method == http.MethodPost && query.Has("uploadId"):
		var all []byte
		for _, n := range slices.Sorted(maps.Keys(s.uploads[upload])) {
			all = append(all, s.uploads[upload][n]...)
		}
		s.objects[name] = all
		s.multi++
		fmt.Fprintf(w, "<CompleteMultipartUploadResult><Bucket>%s</Bucket><Key>%s</Key><ETag>%s</ETag></CompleteMultipartUploadResult>",
			Name, name, etag(all))
	case r.Method == http.MethodDelete && query.Has("uploadId"):
		delete(s.uploads, upload)
		w.WriteHeader(http.StatusNoContent)
	case r.Method == http.MethodPut:
		s.objects[name] = body
		w.Header().Set("ETag", etag(body))
	case r.Method == http.MethodDelete:
		delete(s.objects, name)
		w.WriteHeader(http.StatusNoContent)
	default:
		content, ok := s.objects[name]
		if !ok {
			refuse(w, http.StatusNotFound, "NoSuchKey")
			return
		}
		w.Header().Set("ETag", etag(content))
		w.Header().Set("Last-Modified", "Mon, 30 Nov 2026 12:00:00 GMT")
		w.Header().Set("Content-Length", strconv.Itoa(len(content)))
		if r.Method == http.MethodGet {
			w.Write(content)
		}
	}
}

func etag(content []byte) string {
	sum := md5.Sum(content)
	return `"` + hex.EncodeToString(sum[:]) + `"`
}

// content returns the body of a request, which may be in signed chunks.
func content(r *http.Request) ([]byte, error) {
	if !strings.HasPrefix(r.Header.Get("X-Amz-Content-Sha256"), "STREAMING-") {
		return io.ReadAll(r.Body)
	}
	in := bufio.NewReader(r.Body)
	var out bytes.Buffer
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return nil, err
		}
		size, _, _ := strings.Cut(strings.TrimSpace(line), ";")
		n, err := strconv.ParseInt(size, 16, 64)
		if err != nil {
			return nil, err
		}
		if n == 0 {
			_, err := io.Copy(io.Discard, in)
			return out.Bytes(), err
		}
		if _, err := io.CopyN(&out, in, n); err != nil {
			return nil, err
		}
		if _, err := in.Discard(len("\r\n")); err != nil {
			return nil, err
		}
	}
}

// listing is the answer to a list.
type listing struct {
	XMLName  xml.Name `xml:"ListBucketResult"`
	More     bool     `xml:"IsTruncated"`
	Next     string   `xml:"NextContinuationToken,omitempty"`
	Contents []struct {
		Key          string
		Size         int
		LastModified string
		ETag         string
	}
	CommonPrefixes []struct{ Prefix string }
}

func (s *Server) list(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	prefix, delimiter, after := query.Get("prefix"), query.Get("delimiter"), max(query.Get("start-after"), query.Get("continuation-token"))
	var l listing
	last := ""
	for _, name := range slices.Sorted(maps.Keys(s.objects)) {
		rest, ok := strings.CutPrefix(name, prefix)
		if !ok || name <= after {
			continue
		}
		folder := ""
		if i := strings.Index(rest, delimiter); delimiter != "" && i >= 0 {
			folder = prefix + rest[:i+1]
			if n := len(l.CommonPrefixes); n > 0 && l.CommonPrefixes[n-1].Prefix == folder || after != "" && strings.HasPrefix(after, folder) {
				last = name
				continue
			}
		}
		if len(l.Contents)+len(l.CommonPrefixes) == pageSize {
			l.More, l.Next = true, last
			break
		}
		last = name
		if folder != "" {
			l.CommonPrefixes = append(l.CommonPrefixes, struct{ Prefix string }{folder})
			continue
		}
		l.Contents = append(l.Contents, struct {
			Key          string
			Size         int
			LastModified string
			ETag         string
		}{name, len(s.objects[name]), "2026-11-30T12:00:00.000Z", etag(s.objects[name])})
	}
	w.Header().Set("Content-Type", "application/xml")
	_ = xml.NewEncoder(w).Encode(l)
}
