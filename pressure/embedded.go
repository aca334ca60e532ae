package pressure

import (
	"context"
	"net"

	"github.com/redis/go-redis/v9"
)

// Embedded is a server inside the program, such as an *atomredis.DB.
type Embedded interface {
	// Dial returns a connection to the server.
	Dial(ctx context.Context) (net.Conn, error)
}

// EmbeddedClient returns a client for a server inside the program, for use with Create, Open and the other functions.
// It uses no port or socket:
//
//	db, err := atomredis.Open(atomredis.Options{})
//	...
//	client := pressure.EmbeddedClient(db)
//	defer client.Close()
//	queue, err := pressure.Create(ctx, client, "jobs", 100, pressure.Options{})
//
// The caller closes the client before the server. It opens a connection for each operation that waits.
func EmbeddedClient(db Embedded) *redis.Client {
	return redis.NewClient(&redis.Options{
		Addr:   "embedded", // appears only in errors
		Dialer: func(ctx context.Context, _, _ string) (net.Conn, error) { return db.Dial(ctx) },
	})
}
