package console

import (
	"context"
	"crypto/rand"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/atomredis/atomredis/doors/door"
)

const (
	maxSessions = 64               // the one that was used longest ago gives way
	maxClients  = 8                // of a session: commands that are executed at the same time
	idleTime    = 30 * time.Minute // after which a session ends
	leaveTime   = 10 * time.Second // after which one ends whose page was closed, unless another page goes on with it
)

// session is a user who has logged in, from one browser.
type session struct {
	token, user string
	client      *door.Client  // never used but as the one of which the others are forks
	pool        *door.Pool    // of clients that act as the user
	slots       chan struct{} // as many as clients of pool are in use

	mu  sync.Mutex // protects what follows
	dbs map[*door.Client]int

	// Protected by the mutex of sessions.
	used    time.Time
	left    bool // its page was closed, and nobody has used it since
	streams int
	timer   *time.Timer
}

// with calls fn with a client that nobody else uses meanwhile and that has chosen a database. It waits for one.
func (s *session) with(ctx context.Context, db int, fn func(c *door.Client) error) error {
	select {
	case s.slots <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-s.slots }()
	c, err := s.pool.Get()
	if err != nil {
		return err
	}
	defer s.pool.Put(c)
	s.mu.Lock()
	chosen := s.dbs[c] // 0 for a new one
	s.mu.Unlock()
	if db != chosen {
		if err := c.Select(ctx, db); err != nil {
			return err
		}
		s.mu.Lock()
		s.dbs[c] = db
		s.mu.Unlock()
	}
	return fn(c)
}

// sessions are all that there are.
type sessions struct {
	idle, afterLeave time.Duration // after which one ends

	mu      sync.Mutex // protects what follows
	byToken map[string]*session
	closed  bool
	ends    sync.WaitGroup // of goroutines that wait for the ends of clients
}

func (all *sessions) init() {
	all.idle, all.afterLeave, all.byToken = idleTime, leaveTime, map[string]*session{}
}

// cookie returns the name of the cookie. Browsers send the cookies of a host to all of its ports, so it has the port in it.
func cookie(r *http.Request) string {
	_, port, err := net.SplitHostPort(r.Host)
	if err != nil {
		return "atomredis"
	}
	return "atomredis-" + port
}

// of returns the session of a request, nil if there is none.
func (all *sessions) of(r *http.Request) *session {
	given, err := r.Cookie(cookie(r))
	if err != nil {
		return nil
	}
	all.mu.Lock()
	defer all.mu.Unlock()
	s := all.byToken[given.Value]
	if s != nil {
		all.touch(s)
	}
	return s
}

// touch notes that a session is used. all.mu is locked.
func (all *sessions) touch(s *session) {
	s.used, s.left = time.Now(), false
	s.timer.Reset(all.idle)
}

// leave notes that the page of a session was closed.
func (all *sessions) leave(s *session) {
	all.mu.Lock()
	defer all.mu.Unlock()
	s.left = true
	s.timer.Reset(all.afterLeave)
}

// add adds a session of a client, in the place of old if that is not nil. It returns nil when the console is closed.
func (all *sessions) add(client *door.Client, user string, old *session) *session {
	s := &session{token: rand.Text(), user: user, client: client, slots: make(chan struct{}, maxClients), dbs: map[*door.Client]int{}}
	s.pool = door.NewPool(client, maxClients+1)
	s.pool.Get() // the first one stays in database 0, for those that are forked from it
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.closed {
		client.Close()
		return nil
	}
	if old != nil {
		all.drop(old)
	}
	for len(all.byToken) >= maxSessions {
		oldest := (*session)(nil)
		for _, other := range all.byToken {
			if oldest == nil || other.used.Before(oldest.used) {
				oldest = other
			}
		}
		all.drop(oldest)
	}
	s.timer = time.AfterFunc(all.idle, func() { all.expire(s) })
	all.byToken[s.token] = s
	all.touch(s)
	all.ends.Go(func() {
		<-client.Done() // the server may end it
		all.remove(s)
	})
	return s
}

// expire ends a session that nobody has used for some time, unless a page is open.
func (all *sessions) expire(s *session) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if s.streams > 0 || !s.left && time.Since(s.used) < all.idle {
		all.touch(s)
		return
	}
	all.drop(s)
}

// open notes that a stream of a session begins, or with -1 that it ends.
func (all *sessions) open(s *session, n int) {
	all.mu.Lock()
	defer all.mu.Unlock()
	s.streams += n
	if all.byToken[s.token] == s && (n > 0 || !s.left) {
		all.touch(s)
	}
}

// remove ends a session.
func (all *sessions) remove(s *session) {
	all.mu.Lock()
	defer all.mu.Unlock()
	all.drop(s)
}

// drop ends a session. all.mu is locked.
func (all *sessions) drop(s *session) {
	if all.byToken[s.token] == s {
		delete(all.byToken, s.token)
	}
	s.timer.Stop()
	s.client.Close()
}

func (all *sessions) closeAll() {
	all.mu.Lock()
	all.closed = true
	for _, s := range all.byToken {
		all.drop(s)
	}
	all.mu.Unlock()
	all.ends.Wait()
}

// login answers who the user is. With a name and a password it begins a session of that user; without them it goes on with
// the one that there is, or begins one of the user as whom peers of the door act, if that needs no password.
func (c *Console) login(w http.ResponseWriter, r *http.Request) {
	var q struct {
		User     *string `json:"user"`
		Password string  `json:"password"`
	}
	err := read(w, r, maxLogin, &q)
	s := c.sessions.of(r)
	if err == nil && (s == nil || q.User != nil) {
		s, err = c.begin(r, q.User, q.Password, s)
	}
	if err != nil {
		refuse(w, err)
		return
	}
	http.SetCookie(w, &http.Cookie{Name: cookie(r), Value: s.token, Path: Path, HttpOnly: true, SameSite: http.SameSiteStrictMode,
		Secure: c.Host.Setting("door-http-tls") == "yes"})
	respond(w, http.StatusOK, map[string]string{"user": s.user})
}

// begin begins a session.
func (c *Console) begin(r *http.Request, user *string, password string, old *session) (*session, error) {
	made, err := c.Host.Client(c.Peer(r))
	if err != nil {
		return nil, err
	}
	client := &made
	name := "default"
	if user != nil {
		name = *user
		err = client.Auth(r.Context(), name, password)
	} else {
		if door := c.Host.Setting("door-http-user"); door != "" {
			name = door
		}
		// Only a missing login is an error here; a user without permission for ACL WHOAMI is logged in all the same.
		if _, err = client.Do(r.Context(), "ACL", "WHOAMI"); err != nil && strings.HasPrefix(err.Error(), "NOPERM ") {
			err = nil
		}
	}
	if err != nil {
		client.Close()
		return nil, err
	}
	client.SetName(r.Context(), "console") // unless the user may not
	s := c.sessions.add(client, name, old)
	if s == nil {
		return nil, door.ErrClosed
	}
	return s, nil
}

// pageClosed answers a page that is being closed.
func (c *Console) pageClosed(w http.ResponseWriter, r *http.Request) {
	if s := c.sessions.of(r); s != nil {
		c.sessions.leave(s)
	}
	respond(w, http.StatusOK, map[string]bool{"ok": true})
}

// logout ends the session of a request.
func (c *Console) logout(w http.ResponseWriter, r *http.Request) {
	if s := c.sessions.of(r); s != nil {
		c.sessions.remove(s)
	}
	http.SetCookie(w, &http.Cookie{Name: cookie(r), Path: Path, MaxAge: -1, HttpOnly: true, SameSite: http.SameSiteStrictMode})
	respond(w, http.StatusOK, map[string]bool{"ok": true})
}
