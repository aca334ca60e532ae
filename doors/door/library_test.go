package door_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/doors/door"
)

// A door on a library (net/http) that accepts connections itself: GET /SET/k/v executes a command.

func init() {
	door.Register(door.Kind{Name: "http", New: func(h door.Host) (door.Door, error) {
		d := &web{peers: door.Peers{Host: h}}
		d.server.Handler = d
		return d, nil
	}})
}

type web struct {
	peers  door.Peers
	server http.Server
}

// Serve implements door.Door.
func (d *web) Serve(l net.Listener) error { return d.server.Serve(d.peers.Listener(l)) }

// Close implements door.Door.
func (d *web) Close() error {
	err := d.server.Close()
	d.peers.Close()
	return err
}

// Info implements door.Door.
func (d *web) Info(func(field, value string)) {}

// ServeHTTP implements http.Handler.
func (d *web) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := d.peers.Find(r.RemoteAddr)
	if c == nil {
		return // the connection has just ended
	}
	reply, err := c.Client.Do(r.Context(), strings.Split(r.URL.Path[1:], "/"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	fmt.Fprint(w, text(reply))
}

func TestLibrariesThatAcceptConnectionsHaveClientsForThem(t *testing.T) {
	for _, network := range []string{"tcp", "unix"} {
		t.Run(network, func(t *testing.T) {
			address := "127.0.0.1:0"
			if network == "unix" {
				address = t.TempDir() + "/http.sock"
			}
			srv := run(t, "door-http", address)
			admin := clientOf(t, srv)
			a := srv.DoorAddr("http")
			browser := func() *http.Client {
				c := &http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
					return net.Dial(a.Network(), a.String())
				}}}
				t.Cleanup(c.CloseIdleConnections)
				return c
			}
			get := func(c *http.Client, path string) string {
				r, err := c.Get("http://door/" + path)
				require.NoError(t, err)
				defer r.Body.Close()
				body, err := io.ReadAll(r.Body)
				require.NoError(t, err)
				return string(body)
			}
			one, two := browser(), browser()
			require.Equal(t, "OK", get(one, "SET/k/v"))
			require.Equal(t, "v", get(two, "GET/k"))
			id := get(one, "CLIENT/ID")
			require.Equal(t, id, get(one, "CLIENT/ID"), "a connection has one client")
			require.NotEqual(t, id, get(two, "CLIENT/ID"))
			require.Equal(t, "1", do(t, admin, "CLIENT", "KILL", "ID", id))
			eventually(t, admin, "door_http_connections:1\r\n", "INFO", "door_http")
			require.NotEqual(t, id, get(one, "CLIENT/ID"), "it has connected again")
			one.CloseIdleConnections()
			two.CloseIdleConnections()
			eventually(t, admin, "door_http_clients:0\r\n", "INFO", "door_http")
		})
	}
}
