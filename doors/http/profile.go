package http

import (
	"context"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/atomredis/atomredis/doors/door"
	"github.com/atomredis/atomredis/resp"
)

// profiles serves the profiles of the Go runtime where enable-debug-command allows DEBUG, because they can reveal keys
// and values.
func (d *server) profiles() {
	for path, serve := range map[string]http.HandlerFunc{
		"": pprof.Index, "cmdline": pprof.Cmdline, "profile": pprof.Profile, "symbol": pprof.Symbol, "trace": pprof.Trace,
	} {
		d.mux.HandleFunc("GET /debug/pprof/"+path, d.as(func(w http.ResponseWriter, r *http.Request, c *door.Client) error {
			if err := d.mayDebug(r, c); err != nil {
				return err
			}
			// A profile over some seconds takes longer than other answers.
			if err := http.NewResponseController(w).SetWriteDeadline(time.Now().Add(10 * time.Minute)); err != nil {
				return err
			}
			serve(w, r)
			return nil
		}))
	}
}

var (
	errStranger  = resp.Error("NOAUTH Authentication required.")
	errNoProfile = resp.Error("NOPERM Profiles are served where enable-debug-command allows DEBUG.")
)

// mayDebug returns an error if a request may not get profiles. Its user must be authenticated, and needs no permission
// other than the directive.
func (d *server) mayDebug(r *http.Request, c *door.Client) error {
	if !c.Admitted() {
		return errStranger
	}
	allowed, err := d.debugAllowed(r.Context())
	if err != nil {
		return err
	}
	if allowed == "yes" || allowed == "local" && isLocal(connOf(r).RemoteAddr()) {
		return nil
	}
	return errNoProfile
}

// debugAllowed returns the value of enable-debug-command.
func (d *server) debugAllowed(ctx context.Context) (string, error) {
	own, err := d.host.OwnClient()
	if err != nil {
		return "", err
	}
	defer own.Close()
	reply, err := own.Do(ctx, "CONFIG", "GET", "enable-debug-command")
	if err != nil {
		return "", err
	}
	settings, err := reply.Map()
	if err != nil {
		return "", err
	}
	return settings["enable-debug-command"].Text()
}

// isLocal reports whether a peer is on the server's machine.
func isLocal(addr net.Addr) bool {
	if tcp, ok := addr.(*net.TCPAddr); ok {
		return tcp.IP.IsLoopback()
	}
	return true // a Unix socket
}
