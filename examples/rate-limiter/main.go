// A reverse proxy that limits how many requests each client sends. The limits are keys of a Redis inside the program: a key
// expires when its client may send everything again. One command, CL.THROTTLE, decides and counts. Nothing is stored, so
// the program imports package memory, which links less than package atomredis.
//
//	go run ./examples/rate-limiter -backend https://example.com -burst 5 -rate 30 -redis 127.0.0.1:6380
//
//	for i in 1 2 3 4 5 6 7; do curl -sI http://127.0.0.1:8080 | grep -i -e HTTP -e limit -e retry; done
//	redis-cli -p 6380 CL.THROTTLE limit:127.0.0.1 4 30 60 0      # what is left
//	redis-cli -p 6380 DEL limit:127.0.0.1
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/atomredis/atomredis/memory"
)

func main() {
	if err := start(); err != nil {
		slog.Error("the proxy has failed", "error", err)
		os.Exit(1)
	}
}

// start runs the program that the flags describe, until a signal.
func start() (err error) {
	addr := flag.String("http", "127.0.0.1:8080", "`address` of the proxy")
	to := flag.String("backend", "http://127.0.0.1:8081", "`URL` of the server behind the proxy")
	redisAddr := flag.String("redis", "", "`address` for redis-cli; empty for none")
	burst := flag.Int("burst", 20, "requests that a client may send at once")
	rate := flag.Int("rate", 60, "requests that a client may send in a minute, after the burst")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	backend, err := url.Parse(*to)
	if err != nil {
		return err
	}
	// With more clients than there is memory for, those that were silent for the longest time begin anew.
	db, err := memory.Open(memory.Options{
		Addr: *redisAddr, Logger: slog.Default(),
		Config: map[string]string{"maxmemory": "32mb", "maxmemory-policy": "allkeys-lru"},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	ln, err := net.Listen("tcp", *addr)
	if err != nil {
		return err
	}
	return run(ctx, ln, backend, &limiter{db, *burst, *rate})
}

// run serves the proxy until ctx ends. Requests that are under way then have five seconds.
func run(ctx context.Context, ln net.Listener, backend *url.URL, l *limiter) error {
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(backend)
		r.SetXForwarded()
	}}
	server := &http.Server{Handler: l.limit(proxy), ReadHeaderTimeout: 5 * time.Second}
	stopped := make(chan error, 1)
	context.AfterFunc(ctx, func() {
		limit, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		stopped <- server.Shutdown(limit)
	})
	slog.Info("the proxy is ready", "url", "http://"+ln.Addr().String(), "backend", backend)
	if err := server.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-stopped
}

// limiter lets each client send burst requests at once, and rate requests a minute after that.
type limiter struct {
	db          *memory.DB
	burst, rate int
}

// limit passes the requests on to next that are within the limit of their client.
func (l *limiter) limit(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d, err := l.take(r.Context(), client(r))
		if err != nil {
			// A limiter that fails must not take the site with it.
			slog.Error("the limiter has failed", "error", err)
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Set("RateLimit-Limit", fmt.Sprint(d.limit))
		w.Header().Set("RateLimit-Remaining", fmt.Sprint(d.remaining))
		w.Header().Set("RateLimit-Reset", fmt.Sprint(d.reset))
		if d.refused {
			w.Header().Set("Retry-After", fmt.Sprint(d.retryAfter))
			http.Error(w, "Too many requests.", http.StatusTooManyRequests)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// decision is what CL.THROTTLE says about a request. Times are in seconds.
type decision struct {
	refused                             bool
	limit, remaining, retryAfter, reset int64
}

// take counts a request of a client.
func (l *limiter) take(ctx context.Context, client string) (decision, error) {
	reply, err := l.db.Do(ctx, "CL.THROTTLE", "limit:"+client, l.burst-1, l.rate, 60)
	if err != nil {
		return decision{}, err
	}
	var n [5]int64
	err = reply.Scan(&n)
	return decision{n[0] == 1, n[1], n[2], n[3], n[4]}, err
}

// client returns who sends a request: an address, or a network of IPv6, because one user has many addresses there.
func client(r *http.Request) string {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	ip := from.Addr().Unmap()
	if ip.Is6() {
		return netip.PrefixFrom(ip, 64).Masked().String()
	}
	return ip.String()
}
