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
	maxSessions = 64               // beyond it the least recently used one ends
	maxClients  = 8                // of a session: commands executed at the same time
	idleTime    = 30 * time.Minute // after it an unused session ends
	leaveTime   = 10 * time.Second // after it the session of a closed page ends, unless another page continues it
)

// session is a logged-in user in one browser.
type session struct {
	token, user string
	client      *door.Client  // only the origin of forks, never used otherwise
	pool        *door.Pool    // clients that act as the user
	slots       chan struct{} // one element for each client in use

	mu  sync.Mutex // protects what follows
	dbs map[*door.Client]int

	// Protected by the mutex of sessions.
	used    time.Time
	left    bool // its page was closed, and it was not used since
	streams int
	timer   *time.Timer
}

// with calls fn with a client for its exclusive use, in the database db. It waits until a client is free.
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
	defer s.put(c)
	s.mu.Lock()
	chosen := s.dbs[c] // 0 for a new client
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

// put gives a client back. One that has ended because the server lost the lead is replaced: the page shows the error and goes on.
func (s *session) put(c *door.Client) {
	if !c.Undone() {
		s.pool.Put(c)
		return
	}
	s.mu.Lock()
	delete(s.dbs, c)
	s.mu.Unlock()
	s.pool.Drop(c)
}

// sessions has all sessions of a console.
type sessions struct {
	idle, afterLeave time.Duration // see idleTime and leaveTime

	mu      sync.Mutex // protects what follows
	byToken map[string]*session
	closed  bool
	ends    sync.WaitGroup // goroutines that wait for the ends of clients
}

func (all *sessions) init() {
	all.idle, all.afterLeave, all.byToken = idleTime, leaveTime, map[string]*session{}
}

// cookie returns the name of the cookie. Browsers send a host's cookies to all of its ports, so the name contains the
// port.
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

// touch records the use of a session. all.mu is locked.
func (all *sessions) touch(s *session) {
	s.used, s.left = time.Now(), false
	s.timer.Reset(all.idle)
}

// leave records that the page of a session was closed.
func (all *sessions) leave(s *session) {
	all.mu.Lock()
	defer all.mu.Unlock()
	s.left = true
	s.timer.Reset(all.afterLeave)
}

// add adds a session of a client, and ends the session old unless it is nil. It returns nil when the console is closed.
func (all *sessions) add(client *door.Client, user string, old *session) *session {
	s := &session{token: rand.Text(), user: user, client: client, slots: make(chan struct{}, maxClients), dbs: map[*door.Client]int{}}
	s.pool = door.NewPool(client, maxClients+1)
	s.pool.Get() // the first client stays in database 0, because others are forked from it
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

// expire ends a session that was not used for some time, unless a page is open.
func (all *sessions) expire(s *session) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if s.streams > 0 || !s.left && time.Since(s.used) < all.idle {
		all.touch(s)
		return
	}
	all.drop(s)
}

// open records that a stream of a session begins (n = 1) or ends (n = -1).
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

// login answers with the user's name. With a name and a password it begins a session of that user. Without them it
// continues the present session, or begins one of the door's user, if that needs no password.
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
		// Only a missing login is an error here; a user without permission for ACL WHOAMI may log in.
		if _, err = client.Do(r.Context(), "ACL", "WHOAMI"); err != nil && strings.HasPrefix(err.Error(), "NOPERM ") {
			err = nil
		}
	}
	if err != nil {
		client.Close()
		return nil, err
	}
	client.SetName(r.Context(), "console") // fails if the user may not do that
	s := c.sessions.add(client, name, old)
	if s == nil {
		return nil, door.ErrClosed
	}
	return s, nil
}

// pageClosed answers the last request of a page that closes.
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
