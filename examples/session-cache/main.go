// A web app that keeps the sessions of its users in a Redis inside the program. A session ends half an hour after its last
// use. When memory is short, the sessions that were not used for the longest time go first. With -dir they survive a
// restart.
//
//	go run ./examples/session-cache -dir /tmp/sessions -redis 127.0.0.1:6380
//
// Open http://127.0.0.1:8080, or:
//
//	curl -c jar -b jar -L -d user=ada http://127.0.0.1:8080/login
//	curl -c jar -b jar http://127.0.0.1:8080/
//	redis-cli -p 6380 KEYS 'session:*'
//	redis-cli -p 6380 FLUSHALL        # logs everybody out
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"html/template"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/atomredis/atomredis"
)

func main() {
	if err := start(); err != nil {
		slog.Error("the web app has failed", "error", err)
		os.Exit(1)
	}
}

// start runs the program that the flags describe, until a signal.
func start() (err error) {
	addr := flag.String("http", "127.0.0.1:8080", "`address` of the web app")
	redisAddr := flag.String("redis", "", "`address` for redis-cli; empty for none")
	dir := flag.String("dir", "", "`directory` of the sessions; empty keeps them in memory")
	idle := flag.Duration("idle", 30*time.Minute, "how long a session lasts after its last use")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	db, err := atomredis.Open(atomredis.Options{
		Addr: *redisAddr, Dir: *dir, Logger: slog.Default(),
		Config: map[string]string{"maxmemory": "64mb", "maxmemory-policy": "allkeys-lru"},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	ln, err := net.Listen("tcp", *addr)
	if err != nil {
		return err
	}
	return run(ctx, ln, &sessions{db, *idle})
}

// run serves the web app until ctx ends. Requests that are under way then have five seconds.
func run(ctx context.Context, ln net.Listener, s *sessions) error {
	a := &app{sessions: s, page: template.Must(template.New("page").Parse(page))}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", a.show)
	mux.HandleFunc("POST /login", a.login)
	mux.HandleFunc("POST /logout", a.logout)
	// Other sites cannot log anybody in or out.
	server := &http.Server{Handler: http.NewCrossOriginProtection().Handler(mux), ReadHeaderTimeout: 5 * time.Second}
	stopped := make(chan error, 1)
	context.AfterFunc(ctx, func() {
		limit, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		stopped <- server.Shutdown(limit)
	})
	slog.Info("the web app is ready", "url", "http://"+ln.Addr().String())
	if err := server.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-stopped
}

// session is what the app knows of a user who has logged in: a hash.
type session struct {
	User  string    `redis:"user"`
	Since time.Time `redis:"since"`
}

// sessions are the sessions of all users.
type sessions struct {
	db   *atomredis.DB
	idle time.Duration
}

// create returns the ID of a new session. A crash between the two commands cannot leave a session that lasts for ever.
func (s *sessions) create(ctx context.Context, user string) (id string, err error) {
	id = rand.Text()
	return id, s.db.Tx(ctx, func(tx *atomredis.Tx) error {
		tx.Do("HSET", "session:"+id, session{user, time.Now()})
		tx.Do("PEXPIRE", "session:"+id, s.idle.Milliseconds())
		return nil
	})
}

// find returns a session and begins its time anew. Without the session, the result has no user.
func (s *sessions) find(ctx context.Context, id string) (found session, err error) {
	replies, err := s.db.DoMany(ctx,
		atomredis.Args{"PEXPIRE", "session:" + id, s.idle.Milliseconds()},
		atomredis.Args{"HGETALL", "session:" + id})
	if err != nil {
		return session{}, err
	}
	return found, replies[1].Scan(&found)
}

func (s *sessions) remove(ctx context.Context, id string) error {
	_, err := s.db.Do(ctx, "DEL", "session:"+id)
	return err
}

// app has the pages of the web app.
type app struct {
	sessions *sessions
	page     *template.Template
}

const page = `<!doctype html><title>Sessions</title>
{{if .User}}<p>Hello {{.User}}, here since {{.Since.Format "15:04:05"}}.</p><form method=post action=/logout><button>Log out</button></form>
{{else}}<form method=post action=/login><input name=user placeholder="Your name"><button>Log in</button></form>{{end}}
`

func (a *app) show(w http.ResponseWriter, r *http.Request) {
	var s session
	if c, err := r.Cookie("session"); err == nil {
		if s, err = a.sessions.find(r.Context(), c.Value); err != nil {
			fail(w, err)
			return
		}
	}
	if err := a.page.Execute(w, s); err != nil {
		slog.Warn("a page was not sent", "error", err)
	}
}

func (a *app) login(w http.ResponseWriter, r *http.Request) {
	user := strings.TrimSpace(r.FormValue("user"))
	if user == "" || len(user) > 100 {
		http.Error(w, "A name has 1 to 100 letters.", http.StatusBadRequest)
		return
	}
	id, err := a.sessions.create(r.Context(), user)
	if err != nil {
		fail(w, err)
		return
	}
	http.SetCookie(w, &http.Cookie{Name: "session", Value: id, Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode})
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

func (a *app) logout(w http.ResponseWriter, r *http.Request) {
	if c, err := r.Cookie("session"); err == nil {
		if err := a.sessions.remove(r.Context(), c.Value); err != nil {
			fail(w, err)
			return
		}
	}
	http.SetCookie(w, &http.Cookie{Name: "session", Path: "/", MaxAge: -1})
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

func fail(w http.ResponseWriter, err error) {
	slog.Error("a request has failed", "error", err)
	http.Error(w, "Try again later.", http.StatusServiceUnavailable)
}
