package pressure

import (
	"context"
	"net"

	"github.com/redis/go-redis/v9"
)

// Embedded is a server inside the program, which is reached without a socket: an *atomredis.DB.
type Embedded interface {
	// Dial returns a connection to the server.
	Dial(ctx context.Context) (net.Conn, error)
}

// EmbeddedClient returns a client of an embedded server, to be used with Create, Open and the others. The caller closes it before the
// server.
func EmbeddedClient(db Embedded) *redis.Client {
	return redis.NewClient(&redis.Options{
		Addr:   "embedded", // for messages only
		Dialer: func(ctx context.Context, _, _ string) (net.Conn, error) { return db.Dial(ctx) },
	})
}
