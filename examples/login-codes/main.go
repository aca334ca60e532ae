// Login codes: a user gets a code of six digits and logs in with it within five minutes. Three wrong codes end it, and
// there is a new one only once a minute. The program is an ordinary client of a Redis. The example is its test, main_test.go:
// each test has a server of its own and a clock that it moves, so that minutes pass at once, and it lets commands fail.
//
//	go run ./cmd/atomredis --port 6380 --dir /tmp/codes      # or any Redis
//	go run ./examples/login-codes -redis 127.0.0.1:6380
//
//	curl -d user=ada http://127.0.0.1:8080/codes             # the code is in the program's log
//	curl -d user=ada -d code=123456 http://127.0.0.1:8080/login
//	go test -v ./examples/login-codes
package main

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

func main() {
	if err := start(); err != nil {
		slog.Error("the login has failed", "error", err)
		os.Exit(1)
	}
}

// start runs the program that the flags describe, until a signal.
func start() error {
	addr := flag.String("http", "127.0.0.1:8080", "`address` of the API")
	redisAddr := flag.String("redis", "127.0.0.1:6379", "`address` of the Redis")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	client := redis.NewClient(&redis.Options{Addr: *redisAddr})
	defer client.Close()
	ln, err := net.Listen("tcp", *addr)
	if err != nil {
		return err
	}
	return run(ctx, ln, &codes{client, func(user, code string) { slog.Info("a code for a user", "user", user, "code", code) }})
}

// run serves the API until ctx ends. Requests that are under way then have five seconds.
func run(ctx context.Context, ln net.Listener, c *codes) error {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /codes", func(w http.ResponseWriter, r *http.Request) {
		answer(w, c.issue(r.Context(), r.FormValue("user")))
	})
	mux.HandleFunc("POST /login", func(w http.ResponseWriter, r *http.Request) {
		answer(w, c.check(r.Context(), r.FormValue("user"), r.FormValue("code")))
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	stopped := make(chan error, 1)
	context.AfterFunc(ctx, func() {
		limit, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		stopped <- server.Shutdown(limit)
	})
	slog.Info("the login is ready", "url", "http://"+ln.Addr().String())
	if err := server.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-stopped
}

func answer(w http.ResponseWriter, err error) {
	var refused refusal
	switch {
	case err == nil:
		fmt.Fprintln(w, "ok")
	case errors.As(err, &refused):
		http.Error(w, string(refused), http.StatusForbidden)
	default:
		slog.Error("a request has failed", "error", err)
		http.Error(w, "try again later", http.StatusServiceUnavailable)
	}
}

// refusal is why a user does not get a code, or does not get in.
type refusal string

func (r refusal) Error() string { return string(r) }

const (
	errTooSoon = refusal("there is a new code only once a minute")
	errNoCode  = refusal("there is no code for this user, or it is too old")
	errWrong   = refusal("this is not the code")

	codeLife  = 5 * time.Minute
	codePause = time.Minute
	maxTries  = 3
)

// codes has the codes of all users. A user has the keys code:<user>, tries:<user> and pause:<user>, which expire.
type codes struct {
	client *redis.Client
	send   func(user, code string)
}

// issue sends a user a code, in place of the one before.
func (c *codes) issue(ctx context.Context, user string) error {
	first, err := c.client.SetNX(ctx, "pause:"+user, 1, codePause).Result()
	if err != nil {
		return err
	}
	if !first {
		return errTooSoon
	}
	n, err := rand.Int(rand.Reader, big.NewInt(1e6))
	if err != nil {
		return err
	}
	code := fmt.Sprintf("%06d", n)
	_, err = c.client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.Set(ctx, "code:"+user, code, codeLife)
		p.Del(ctx, "tries:"+user)
		return nil
	})
	if err == nil {
		c.send(user, code)
	}
	return err
}

// check returns nil once for each code.
func (c *codes) check(ctx context.Context, user, code string) error {
	var want *redis.StringCmd
	var tries *redis.IntCmd
	_, err := c.client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		want = p.Get(ctx, "code:"+user)
		tries = p.Incr(ctx, "tries:"+user)
		p.Expire(ctx, "tries:"+user, codeLife)
		return nil
	})
	switch {
	case errors.Is(err, redis.Nil) || err == nil && tries.Val() > maxTries:
		return errNoCode
	case err != nil:
		return err
	case subtle.ConstantTimeCompare([]byte(want.Val()), []byte(code)) == 0:
		return errWrong
	}
	// Of two requests with the same code only one deletes it.
	n, err := c.client.Del(ctx, "code:"+user).Result()
	if err == nil && n == 0 {
		return errNoCode
	}
	return err
}
