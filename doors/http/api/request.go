package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/atomredis/atomredis/doors/door"
)

// exchange is a request and its answer.
type exchange struct {
	a      *API
	w      http.ResponseWriter
	r      *http.Request
	to     *http.ResponseController
	client *door.Client // of the user in the token

	token   string
	inQuery bool     // the token is in the query
	db      string   // the database; "" is the user's first one
	path    [][]byte // the parts of the path
	options [][]byte // the names and values of the query
	body    []byte

	base64, resp2 bool // how replies are sent
}

// readHead reads the path, the query and the headers.
func (x *exchange) readHead() error {
	x.token = bearer(x.r.Header)
	for pair := range strings.SplitSeq(x.r.URL.RawQuery, "&") {
		name, value, _ := strings.Cut(pair, "=")
		name, err := url.QueryUnescape(name)
		if err != nil {
			return errPath
		}
		if value, err = url.QueryUnescape(value); err != nil {
			return errPath
		}
		switch {
		case name == "_token" && x.token == "":
			x.token, x.inQuery = value, true
		case name == "_token", name == "":
		case name == "_db":
			x.db = value
		case value == "":
			x.options = append(x.options, []byte(name))
		default:
			x.options = append(x.options, []byte(name), []byte(value))
		}
	}
	for part := range strings.SplitSeq(strings.TrimPrefix(x.r.URL.EscapedPath(), "/"), "/") {
		text, err := url.PathUnescape(part)
		if err != nil {
			return errPath
		}
		x.path = append(x.path, []byte(text))
	}
	x.base64 = strings.EqualFold(x.r.Header.Get("Upstash-Encoding"), "base64")
	switch strings.ToLower(x.r.Header.Get("Upstash-Response-Format")) {
	case "", "json":
	case "resp2":
		x.resp2 = true
		if x.base64 {
			return errBoth
		}
	default:
		return errFormat
	}
	return nil
}

// bearer returns the token of the header Authorization, or "" without one.
func bearer(h http.Header) string {
	scheme, token, _ := strings.Cut(h.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// credentials returns the user and the password of a token: user:password, or the password of the default user.
func credentials(token string) (user, password string) {
	if user, password, ok := strings.Cut(token, ":"); ok {
		return user, password
	}
	return "default", token
}

// authenticate makes the client act as the user in the token. A browser does not always send the origin of a page, and any
// page can send a token in the query. Such a token is refused if the user needs no password, which a foreign page would
// have to know.
func (x *exchange) authenticate() error {
	ctx, cancel := x.a.limited(x.r)
	defer cancel()
	user, password := credentials(x.token)
	if err := x.client.Auth(ctx, user, password); err != nil {
		return err
	}
	if x.inQuery {
		secret, err := x.a.needsPassword(ctx, user)
		if err != nil {
			return err
		}
		if !secret {
			return errNoToken
		}
	}
	return x.client.UseRESP2(ctx)
}

// needsPassword reports whether a user needs a password.
func (a *API) needsPassword(ctx context.Context, user string) (bool, error) {
	c, err := a.Host.OwnClient()
	if err != nil {
		return false, err
	}
	defer c.Close()
	c.SetUnobserved(true)
	reply, err := c.Do(ctx, "ACL", "GETUSER", user)
	if err != nil {
		return false, err
	}
	fields, err := reply.Map()
	if err != nil {
		return false, err
	}
	flags, err := fields["flags"].Texts()
	return !slices.Contains(flags, "nopass"), err
}

// readBody reads the body of a request whose peer is authenticated. Memory grows with the bytes that arrive. The door
// limits the time until the body has arrived; after that the limit does not apply.
func (x *exchange) readBody() error {
	if x.r.ContentLength == 0 {
		return nil
	}
	if x.r.ContentLength > maxBody {
		return errSize
	}
	body, err := io.ReadAll(http.MaxBytesReader(x.w, x.r.Body, maxBody))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return errSize
	case err != nil:
		return errPeer
	}
	x.body = body
	return x.to.SetReadDeadline(time.Time{})
}

// command returns the command of a request: a JSON array in the body, or the parts of the path, the body unless it is
// empty, and the names and values of the query. The body of a stream is ignored: clients send an empty array there.
func (x *exchange) command() ([][]byte, error) {
	if len(x.path) == 1 && len(x.path[0]) == 0 {
		p := newParser(x.body)
		words, err := p.command()
		if err == nil {
			err = p.end()
		}
		return words, err
	}
	words := x.path
	if len(x.body) > 0 && !isStream(words) {
		words = append(words, x.body)
	}
	return append(words, x.options...), nil
}

// parser reads commands in JSON.
type parser struct {
	d     *json.Decoder
	words int
}

func newParser(body []byte) *parser {
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	return &parser{d: d}
}

var (
	errCommand  = &failure{http.StatusBadRequest, "ERR a command must be a JSON array of strings, numbers and booleans"}
	errCommands = &failure{http.StatusBadRequest, "ERR the commands must be a JSON array of arrays of strings, numbers and booleans"}
	errWords    = &failure{http.StatusBadRequest, "ERR the request has more than " + strconv.Itoa(maxWords) + " words"}
)

// commands reads a list of commands.
func (p *parser) commands() (list [][][]byte, err error) {
	if t, err := p.d.Token(); err != nil || t != json.Delim('[') {
		return nil, errCommands
	}
	for p.d.More() {
		words, err := p.command()
		if err == errCommand {
			err = errCommands
		}
		if err != nil {
			return nil, err
		}
		list = append(list, words)
	}
	if _, err := p.d.Token(); err != nil || p.end() != nil {
		return nil, errCommands
	}
	return list, nil
}

// command reads a command. Numbers keep their digits.
func (p *parser) command() (words [][]byte, err error) {
	if t, err := p.d.Token(); err != nil || t != json.Delim('[') {
		return nil, errCommand
	}
	for p.d.More() {
		if p.words++; p.words > maxWords {
			return nil, errWords
		}
		t, err := p.d.Token()
		if err != nil {
			return nil, errCommand
		}
		switch v := t.(type) {
		case string:
			words = append(words, []byte(v))
		case json.Number:
			words = append(words, []byte(v))
		case bool:
			words = append(words, strconv.AppendBool(nil, v))
		default:
			return nil, errCommand
		}
	}
	if _, err := p.d.Token(); err != nil || len(words) == 0 {
		return nil, errCommand
	}
	return words, nil
}

// end returns an error if there is anything behind what was read.
func (p *parser) end() error {
	if _, err := p.d.Token(); err != io.EOF {
		return errCommand
	}
	return nil
}
