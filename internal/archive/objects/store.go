package objects

import (
	"context"
	"fmt"
	"io"
	"iter"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/atomredis/atomredis/persist/disk"
)

// Store has objects with names in which slashes separate folders. Any goroutine may call its methods.
type Store interface {
	// Put stores an object, and replaces one of that name. It is never visible in part. size is the length of r, -1 if unknown.
	Put(ctx context.Context, name string, r io.Reader, size int64) error
	// Get returns the content of an object; the error is fs.ErrNotExist if there is none.
	Get(ctx context.Context, name string) (io.ReadCloser, error)
	// List returns the objects whose names begin with prefix and sort behind after, in the order of their names.
	List(ctx context.Context, prefix, after string) iter.Seq2[Object, error]
	// Folders returns the names, without slashes, of the folders in a folder, in order; "" is the outermost one.
	Folders(ctx context.Context, folder string) ([]string, error)
	// Delete removes an object. It is no error if there is none.
	Delete(ctx context.Context, name string) error
	// String returns the store's URL, without secrets.
	String() string
}

// Object is an entry of a list.
type Object struct {
	Name string
	Size int64
}

var (
	schemesMu sync.Mutex
	schemes   = map[string]func(u *url.URL) (Store, error){}
)

// Register makes the URLs with a scheme known. open returns the store; it does no I/O.
func Register(scheme string, open func(u *url.URL) (Store, error)) {
	schemesMu.Lock()
	defer schemesMu.Unlock()
	schemes[scheme] = open
}

// fileScheme is the scheme of directories, which may also be named by their path alone.
const fileScheme = "file"

// Open returns the store that a URL or a path names. A directory is on fs. Open does no I/O.
func Open(fs disk.FS, name string) (Store, error) {
	scheme, rest, found := strings.Cut(name, ":")
	if !found || strings.ContainsAny(scheme, `/\.`) || len(scheme) == 1 { // a path, perhaps with the letter of a drive
		return directory(fs, name)
	}
	if scheme == fileScheme {
		return directory(fs, strings.TrimPrefix(rest, "//"))
	}
	schemesMu.Lock()
	open, known := schemes[scheme], slices.Sorted(maps.Keys(schemes))
	schemesMu.Unlock()
	if open == nil {
		return nil, fmt.Errorf("archive %s: unknown scheme %s: this program knows %s", name, scheme,
			strings.Join(append([]string{fileScheme}, known...), ", "))
	}
	u, err := url.Parse(name)
	if err != nil {
		return nil, fmt.Errorf("archive: %w", err)
	}
	return open(u)
}
