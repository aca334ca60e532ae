package shell

import (
	"context"
	"io"
	"time"

	"github.com/atomredis/atomredis/cmd/atomredis/internal/link"
)

// dumpTimeout is how long a server may be silent before it sends its data: it may have to finish other copies first.
const dumpTimeout = 10 * time.Minute

// Dump writes the server's data as an RDB file to out, and returns its size. It calls show with the bytes written so
// far and the size, 0 if unknown.
func (s *Shell) Dump(ctx context.Context, out io.Writer, show func(written, size int64)) (written int64, err error) {
	conn, err := s.Address.dial(ctx)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	defer func() {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
	}()
	l := link.New(conn, dumpTimeout)
	if err := l.Auth(s.Address.User, s.Address.Password); err != nil {
		return 0, err
	}
	file, size, err := l.RDB()
	if err != nil {
		return 0, err
	}
	buffer := make([]byte, 64<<10)
	for {
		n, err := file.Read(buffer)
		if n > 0 {
			if _, err := out.Write(buffer[:n]); err != nil {
				return written, err
			}
			written += int64(n)
			show(written, size)
		}
		if err == io.EOF {
			return written, nil
		}
		if err != nil {
			return written, err
		}
	}
}
