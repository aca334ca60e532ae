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

// EmbeddedClient returns a client of a server inside the program, an *atomredis.DB, to be used with Create, Open and
// the others. Nothing goes through a port or a socket:
//
//	db, err := atomredis.Open(atomredis.Options{})
//	...
//	client := pressure.EmbeddedClient(db)
//	defer client.Close()
//	queue, err := pressure.Create(ctx, client, "jobs", 100, pressure.Options{})
//
// The caller closes it before the server. It is like any other client, and has as many connections as operations that
// wait.
func EmbeddedClient(db Embedded) *redis.Client {
	return redis.NewClient(&redis.Options{
		Addr:   "embedded", // for messages only
		Dialer: func(ctx context.Context, _, _ string) (net.Conn, error) { return db.Dial(ctx) },
	})
}
