package psync

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/atomredis/atomredis/internal/replication"
	"github.com/atomredis/atomredis/persist/rdb"
)

// Full synchronization of a replica.

// copyData receives an RDB file and replaces the data by it; at is the position of its snapshot. It returns the reader of the
// stream behind the file.
func (l *link) copyData(in *bufio.Reader, at *Position) (*bufio.Reader, error) {
	l.update(func(st *replication.Link) { st.State, st.Size, st.Received = replication.LinkSync, -1, 0 })
	start := time.Now()
	head, err := line(in)
	if err != nil {
		return nil, err
	}
	size := int64(-1)
	mark, marked := strings.CutPrefix(head, "$EOF:")
	if !marked {
		size, err = strconv.ParseInt(strings.TrimPrefix(head, "$"), 10, 64)
	}
	if head[0] != '$' || err != nil || !marked && size < 0 || marked && len(mark) != markLength {
		return nil, fmt.Errorf("the master sends no data but %.200q", strings.TrimPrefix(head, "-"))
	}
	l.update(func(st *replication.Link) { st.Size = size })
	file, err := os.CreateTemp(l.r.host.SpoolDir(), "replica-*.rdb")
	if err != nil {
		return nil, err
	}
	defer os.Remove(file.Name())
	defer file.Close()
	os.Remove(file.Name()) // where the system allows it: nothing is left if the process is killed
	from := io.Reader(in)
	if !marked {
		from = io.LimitReader(in, size)
	}
	rest, err := l.receive(from, file, at)
	if err != nil {
		return nil, fmt.Errorf("the master's data: %w", err)
	}
	if marked {
		in = bufio.NewReaderSize(io.MultiReader(bytes.NewReader(rest), in), linkBuffer)
		end := make([]byte, markLength)
		if _, err := io.ReadFull(in, end); err != nil {
			return nil, err
		}
		if string(end) != mark {
			return nil, errors.New("the master's data does not end where it should")
		}
	} else if n, err := io.Copy(io.Discard, from); err != nil || n > 0 || len(rest) > 0 {
		return nil, errors.Join(errors.New("the master's data does not end where it should"), err)
	}
	if err := l.replace(file, at); err != nil {
		return nil, err
	}
	l.r.log.Info("full synchronization with the master succeeded", "bytes", l.status().Received, "duration",
		time.Since(start).Round(time.Millisecond))
	return in, nil
}

// receive writes the master's file to another one, and checks that it can be loaded, before the old data is lost. It returns
// the bytes that were read beyond the end of the file.
func (l *link) receive(from io.Reader, to *os.File, at *Position) (rest []byte, err error) {
	out := bufio.NewWriterSize(to, linkBuffer)
	counted := writerFunc(func(b []byte) (int, error) {
		l.update(func(st *replication.Link) { st.Received += int64(len(b)) })
		return out.Write(b)
	})
	r := rdb.NewReader(io.TeeReader(from, counted), *l.r.host.RDBLimits())
	for {
		item, err := r.Next()
		if err == io.EOF {
			return r.Rest(), out.Flush()
		}
		if err == io.ErrUnexpectedEOF {
			err = errors.New("it has broken off")
		}
		if err != nil {
			return nil, err
		}
		switch item := item.(type) {
		case rdb.Aux:
			if item.Name == "repl-stream-db" {
				if n, err := strconv.Atoi(item.Value); err == nil && n >= 0 && n < l.r.ks.Databases() {
					at.db = n
				}
			}
		case *rdb.Key:
			if n := l.r.ks.Databases(); item.DB >= n {
				return nil, fmt.Errorf("a key in database %d, and there are %d databases: see the directive databases",
					item.DB, n)
			}
		}
	}
}

// writerFunc is a function as an io.Writer.
type writerFunc func(b []byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// replace replaces the data by that of a file.
func (l *link) replace(file *os.File, at *Position) error {
	r := l.r
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	// If it fails the server remains loading, until another full synchronization succeeds: the old data is gone.
	r.SetLoading(true)
	var failed error
	fill := func() error {
		failed = l.executor.Replace(l.ctx, file, func() { r.followers.copied(at) })
		return failed
	}
	err := error(nil)
	if st := r.storage; st == nil {
		err = fill()
	} else {
		err = st.Replace(fill)
		for err != nil && failed == nil {
			// The data is in memory but not stored. The stored data is still the old one, so no record may be
			// journalled after it.
			r.log.Error("cannot store the full synchronization; retrying", "error", err.Error())
			select {
			case <-l.ctx.Done():
				return l.ctx.Err()
			case <-time.After(l.r.MaxPause):
			}
			err = st.Save()
		}
	}
	if err != nil {
		return err
	}
	l.update(func(st *replication.Link) { st.Offset = at.Offset })
	r.SetLoading(false)
	return nil
}
