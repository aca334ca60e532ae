package api_test

import (
	"bufio"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// page is what the tests read of an OpenAPI page.
type page struct {
	Paths      map[string]map[string]operation
	Components struct {
		SecuritySchemes map[string]any
		Parameters      map[string]parameter
		Responses       map[string]response
	}
}

type operation struct {
	OperationID string
	Security    *[]any
	Parameters  []parameter
	RequestBody struct{ Content map[string]content }
	Responses   map[string]response
}

type parameter struct {
	Name, In, Example string
	Schema            struct{ Enum []string }
}

type response struct {
	Ref     string `json:"$ref"`
	Content map[string]content
}

type content struct{ Example json.RawMessage }

// readPage returns the page that a server sends.
func readPage(a api) (p page) {
	answer := a.as("").send(a.t.Context(), "GET", "/openapi.json", nil)
	defer answer.Body.Close()
	require.Equal(a.t, "application/json", answer.Header.Get("Content-Type"))
	require.Equal(a.t, 200, answer.StatusCode)
	require.NoError(a.t, json.NewDecoder(answer.Body).Decode(&p))
	return p
}

var reference = regexp.MustCompile(`"\$ref":\s*"#/([^"]+)"`)

// Each operation of the OpenAPI page answers its example request with its example, and without a token with its error.
func TestOpenAPIExamplesAreTrue(t *testing.T) {
	a := open(t, t.TempDir(), nil)
	a.do("SET", "greeting", "hello")
	p := readPage(a)
	require.Len(t, p.Paths, 11)
	for path, operations := range p.Paths {
		for method, o := range operations {
			t.Run(o.OperationID, func(t *testing.T) {
				a.t = t
				checkOperation(a, p, path, strings.ToUpper(method), o)
			})
		}
	}
}

// changing matches positions and times of changes, which differ each time, behind their names.
var changing = regexp.MustCompile(`(id: |"position":|"time":)[^,\n]+`)

// readEvent returns the first event of a stream, with the empty line after it.
func readEvent(t *testing.T, stream io.Reader) (event string) {
	r := bufio.NewReader(stream)
	for !strings.HasSuffix(event, "\n\n") {
		line, err := r.ReadString('\n')
		require.NoError(t, err)
		event += line
	}
	return event
}

func checkOperation(a api, p page, path, method string, o operation) {
	query := url.Values{}
	for _, q := range o.Parameters {
		switch {
		case q.In == "path":
			path = strings.Replace(path, "{"+q.Name+"}", q.Example, 1)
		case q.In == "query" && q.Example != "":
			query.Set(q.Name, q.Example)
		}
	}
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	require.NotContains(a.t, path, "{")
	body := ""
	for kind, c := range o.RequestBody.Content {
		if body = string(c.Example); kind != "application/json" {
			require.NoError(a.t, json.Unmarshal(c.Example, &body))
		}
	}
	if o.Security != nil {
		require.Empty(a.t, *o.Security)
		return // the page itself, which was read without a token
	}
	for kind, c := range o.Responses["200"].Content {
		if kind == "text/event-stream" {
			var want string
			require.NoError(a.t, json.Unmarshal(c.Example, &want))
			answer := a.send(a.t.Context(), method, path, nil)
			require.Equal(a.t, kind, answer.Header.Get("Content-Type"))
			event := readEvent(a.t, answer.Body)
			answer.Body.Close()
			require.Equal(a.t, changing.ReplaceAllString(want, "$1"), changing.ReplaceAllString(event, "$1"))
			continue
		}
		code, text := a.ask(method, path, body)
		require.Equal(a.t, 200, code, text)
		require.JSONEq(a.t, string(c.Example), text)
	}
	name := strings.TrimPrefix(o.Responses["401"].Ref, "#/components/responses/")
	code, text := a.as("").ask(method, path, body)
	require.Equal(a.t, http.StatusUnauthorized, code)
	require.JSONEq(a.t, string(p.Components.Responses[name].Content["application/json"].Example), text)
}

// The page describes the errors and the parameters as they are, and refers only to what it has.
func TestOpenAPIComponentsAreTrue(t *testing.T) {
	a := open(t, "", nil)
	p := readPage(a)
	errors := p.Components.Responses
	for _, test := range []struct {
		name, method, path, body, origin string
		status                           int
	}{
		{"Failed", "POST", "/", `["GET"]`, "", 400},
		{"ForeignOrigin", "POST", "/", `["GET"]`, "https://example.org", 403},
		{"TooLarge", "POST", "/", strings.Repeat(" ", 16<<20+1), "", 413},
	} {
		code, text := a.ask(test.method, test.path, test.body, "Origin", test.origin)
		require.Equal(t, test.status, code)
		require.JSONEq(t, string(errors[test.name].Content["application/json"].Example), text)
	}
	require.ElementsMatch(t, []string{"Failed", "ForeignOrigin", "NotExecuted", "TooLarge", "Unauthenticated"},
		slices.Collect(maps.Keys(errors)))
	require.ElementsMatch(t, []string{"bearer", "token"}, slices.Collect(maps.Keys(p.Components.SecuritySchemes)))
	require.Equal(t, "_db", p.Components.Parameters["db"].Name)
	for _, name := range []string{"encoding", "format"} {
		q := p.Components.Parameters[name]
		require.NotEmpty(t, q.Schema.Enum)
		for _, value := range q.Schema.Enum {
			require.Equal(t, 200, first(a.ask("GET", "/ping", "", q.Name, value)))
		}
	}

	_, text := a.as("").ask("GET", "/openapi.json", "")
	var all any
	require.NoError(t, json.Unmarshal([]byte(text), &all))
	for _, match := range reference.FindAllStringSubmatch(text, -1) {
		found := all
		for part := range strings.SplitSeq(match[1], "/") {
			found = found.(map[string]any)[part]
		}
		require.NotNil(t, found, match[1])
	}
}
