// Package console is the web console of the HTTP door. It shows replies of commands that the server executes as the
// logged-in user, so the ACL decides what the user sees. docs/console.md describes it.
package console

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/atomredis/atomredis/doors/door"
	"github.com/atomredis/atomredis/internal/buffers"
	"github.com/atomredis/atomredis/resp"
)

// Path is the path of the console.
const Path = "/console/"

//go:embed assets
var embedded embed.FS

const (
	maxBody     = 16 << 20 // bytes of a request
	maxLogin    = 4 << 10  // bytes of a login request, which is not authenticated yet
	maxReplies  = 8 << 20  // bytes of the replies to a request
	maxCommands = 1000     // commands of a request
	maxWords    = 1 << 17  // words of all commands of a request
	maxAsked    = 64       // commands in a request about permissions

	// execution limits the time of a request's commands, including waits. answer limits the time to execute and to send
	// the answer.
	execution, answer = 30 * time.Second, 40 * time.Second
)

// policy is the Content-Security-Policy: only files of the console itself.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"manifest-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Options configure a console.
type Options struct {
	Host door.Host
	// Peer returns the addresses of a request's connection.
	Peer func(r *http.Request) door.Peer
}

// Console is an http.Handler for Path and the paths below it.
type Console struct {
	Options
	mux      *http.ServeMux
	origin   *http.CrossOriginProtection
	sessions sessions
	hub      hub
	ending   context.Context // ends when the console closes
	end      context.CancelFunc

	mu     sync.Mutex // protects what follows
	closed bool
	wg     sync.WaitGroup // running requests; none is added once closed
}

// New returns a console.
func New(o Options) *Console {
	c := &Console{Options: o, mux: http.NewServeMux(), origin: http.NewCrossOriginProtection()}
	c.ending, c.end = context.WithCancel(context.Background())
	c.sessions.init()
	c.hub.feeds = map[feedKey]*feed{}
	assets, err := fs.Sub(embedded, "assets")
	if err != nil {
		panic(err) // the folder is embedded
	}
	files := http.StripPrefix(Path, http.FileServerFS(assets))
	c.mux.HandleFunc("GET "+Path, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-cache")
		files.ServeHTTP(w, r)
	})
	c.mux.HandleFunc("POST "+Path+"session", c.login)
	c.mux.HandleFunc("POST "+Path+"logout", c.logout)
	c.mux.HandleFunc("POST "+Path+"leave", c.pageClosed)
	c.mux.HandleFunc("POST "+Path+"do", c.as(c.do))
	c.mux.HandleFunc("POST "+Path+"may", c.as(c.may))
	c.mux.HandleFunc("POST "+Path+"tree", c.as(c.tree))
	c.mux.HandleFunc("GET "+Path+"events", c.as(c.events))
	return c
}

// Close ends all sessions and streams, and returns when no request is running.
func (c *Console) Close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.end()
	c.sessions.closeAll()
	c.wg.Wait()
}

// begins adds a request to wg, unless the console is closed. The caller must call wg.Done.
func (c *Console) begins() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.wg.Add(1)
	}
	return !c.closed
}

// ServeHTTP implements http.Handler. Pages of other origins cannot use it: the browser sends their origin, and requests
// that change something must be JSON. The door itself checks the Host of requests.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !c.begins() {
		return
	}
	defer c.wg.Done()
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(c.ending, cancel)()
	r = r.WithContext(ctx)
	switch site := r.Header.Get("Sec-Fetch-Site"); {
	case c.Host.Setting("console") == "no":
		http.NotFound(w, r)
	case c.origin.Check(r) != nil, r.URL.Path == Path+"events" && site != "" && site != "same-origin":
		http.Error(w, "The request comes from another origin.", http.StatusForbidden)
	case r.Method == http.MethodPost && r.Header.Get("Content-Type") != "application/json":
		http.Error(w, "The request is not JSON.", http.StatusUnsupportedMediaType)
	default:
		c.mux.ServeHTTP(w, r)
	}
}

// handler answers a request of a session. A returned error is sent as the answer if nothing was written.
type handler func(w http.ResponseWriter, r *http.Request, s *session) error

// as calls a handler with the session of a request.
func (c *Console) as(h handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s := c.sessions.of(r)
		if s == nil {
			refuse(w, errNoSession)
			return
		}
		if err := h(w, r, s); err != nil {
			refuse(w, err)
		}
	}
}

var (
	errNoSession = resp.Error("NOAUTH There is no session.")
	errRequest   = resp.Error("ERR the request is malformed")
	errTooMuch   = resp.Error("ERR the request has too many commands")
)

// refuse answers with an error.
func refuse(w http.ResponseWriter, err error) {
	code := http.StatusServiceUnavailable
	switch word, _, _ := strings.Cut(err.Error(), " "); word {
	case "NOAUTH", "WRONGPASS":
		code = http.StatusUnauthorized
	case "NOPERM":
		code = http.StatusForbidden
	case "ERR":
		code = http.StatusBadRequest
	}
	if errors.Is(err, door.ErrKilled) && !errors.Is(err, door.ErrUndone) {
		code = http.StatusUnauthorized
	}
	respond(w, code, map[string]string{"error": err.Error()})
}

// respond answers with JSON.
func respond(w http.ResponseWriter, code int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	json.NewEncoder(w).Encode(value) // an error means that the peer is gone
}

// read decodes the body of a request, which may have at most so many bytes. Memory grows with the bytes that arrive.
// The door limits the time until the body has arrived; after that the limit does not apply.
func read(w http.ResponseWriter, r *http.Request, most int64, into any) error {
	if r.ContentLength < 1 || r.ContentLength > most {
		return errRequest
	}
	var in buffers.Incoming
	in.Begin(int(r.ContentLength), 0)
	for in.Arrived() < int(r.ContentLength) {
		n, err := r.Body.Read(in.Room())
		if in.Received(n); err != nil && in.Arrived() < int(r.ContentLength) {
			in.Drop()
			return errRequest
		}
	}
	body := in.Whole()
	defer buffers.Put(body)
	if err := http.NewResponseController(w).SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	switch err := json.Unmarshal(body, into); {
	case errors.Is(err, errTooMuch):
		return errTooMuch
	case err != nil:
		return errRequest
	}
	return nil
}

// commands is a request with commands for a database.
type commands struct {
	DB       int         `json:"db"`
	Commands commandList `json:"commands"`
}

// commandList has commands. It is decoded only if it has not too many commands and words.
type commandList [][]binary

// UnmarshalJSON implements json.Unmarshaler.
func (l *commandList) UnmarshalJSON(from []byte) error {
	if lists, words := countLists(from); lists > maxCommands || words > maxWords {
		return errTooMuch
	}
	return json.Unmarshal(from, (*[][]binary)(l))
}

// countLists returns upper bounds of the number of elements of a JSON list, and of the elements of the lists in it.
func countLists(text []byte) (lists, elements int) {
	depth, quoted := 0, false
	lists = 1
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '[':
			depth++
			elements++
		case c == ']':
			depth--
		case c == ',' && depth == 1:
			lists++
		case c == ',':
			elements++
		}
	}
	return lists, elements
}

// do executes commands one after the other and answers with their replies.
func (c *Console) do(w http.ResponseWriter, r *http.Request, s *session) error {
	var q commands
	if err := read(w, r, maxBody, &q); err != nil {
		return err
	}
	var b door.Batch
	for _, command := range q.Commands {
		if err := b.Add(arguments(command)...); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(r.Context(), execution)
	defer cancel()
	if err := http.NewResponseController(w).SetWriteDeadline(time.Now().Add(answer)); err != nil {
		return err
	}
	out := []byte(`{"replies":[`)
	err := s.with(ctx, q.DB, func(client *door.Client) error {
		replies, err := client.Pipeline(ctx, &b)
		size := 0
		for i := range b.Len() {
			if i > 0 {
				out = append(out, ',')
			}
			switch {
			case i >= len(replies):
				out = appendError(out, reason(err))
			case size+len(replies[i].Encoded()) > maxReplies:
				out = appendError(out, "the reply is larger than what the console shows")
			default:
				size += len(replies[i].Encoded())
				out = appendReply(out, replies[i])
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Write(append(out, "]}"...)) // an error means that the peer is gone
	return nil
}

// reason returns the text for a command that was not executed.
func reason(err error) string {
	switch {
	case err == nil:
		return "the command was not executed"
	case errors.Is(err, context.DeadlineExceeded):
		return "the command has waited for too long"
	}
	return err.Error()
}

// may answers which commands the user may call. It asks ACL DRYRUN with the door's own client, because the user may
// lack permission for ACL.
func (c *Console) may(w http.ResponseWriter, r *http.Request, s *session) error {
	var q commands
	if err := read(w, r, maxBody, &q); err != nil {
		return err
	}
	if len(q.Commands) > maxAsked {
		return errTooMuch
	}
	own, err := c.Host.OwnClient()
	if err != nil {
		return err
	}
	defer own.Close()
	if q.DB != 0 {
		if err := own.Select(r.Context(), q.DB); err != nil {
			return err
		}
	}
	may := make([]bool, len(q.Commands))
	for i, command := range q.Commands {
		reply, err := own.Do(r.Context(), append([]any{"ACL", "DRYRUN", s.user}, arguments(command)...)...)
		if err == nil {
			text, err := reply.Text()
			may[i] = err == nil && text == "OK"
		}
	}
	respond(w, http.StatusOK, map[string]any{"may": may})
	return nil
}

// arguments returns the words of a command as arguments.
func arguments(words []binary) []any {
	args := make([]any, len(words))
	for i, word := range words {
		args[i] = []byte(word)
	}
	return args
}
