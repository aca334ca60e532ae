package http

import (
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/atomredis/atomredis/door"
	"github.com/atomredis/atomredis/resp"
)

// profiles serves the profiles of the Go runtime to who may call DEBUG: they show keys and values that are on stacks.
func (d *server) profiles(mux *http.ServeMux) {
	for path, serve := range map[string]http.HandlerFunc{
		"": pprof.Index, "cmdline": pprof.Cmdline, "profile": pprof.Profile, "symbol": pprof.Symbol, "trace": pprof.Trace,
	} {
		mux.HandleFunc("GET /debug/pprof/"+path, d.as(func(w http.ResponseWriter, r *http.Request, c *door.Client) error {
			if err := d.mayDebug(r, c); err != nil {
				return err
			}
			// A profile of some seconds takes longer than other answers.
			if err := http.NewResponseController(w).SetWriteDeadline(time.Now().Add(10 * time.Minute)); err != nil {
				return err
			}
			serve(w, r)
			return nil
		}))
	}
}

// mayDebug returns an error if the user of a client may not call DEBUG.
func (d *server) mayDebug(r *http.Request, c *door.Client) error {
	// What a command replies to a user who may not call it is the ACL's business, and DEBUG itself may be disabled.
	user, err := ask(r.Context(), c, "ACL", "WHOAMI")
	if err != nil {
		return err
	}
	own, err := d.host.OwnClient()
	if err != nil {
		return err
	}
	defer own.Close()
	answer, err := ask(r.Context(), &own, "ACL", "DRYRUN", user, "DEBUG", "JMAP")
	if err != nil {
		return err
	}
	if answer != "OK" {
		return resp.Error("NOPERM " + answer)
	}
	return nil
}
