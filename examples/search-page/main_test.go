package main

import (
	"io"
	"net"
	"net/http"
	"net/url"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/atomredistest"
)

// runProgram runs the program until the test ends, with three files. It returns the URL of the page.
func runProgram(t *testing.T) (*atomredistest.Server, string) {
	docs := fstest.MapFS{
		"running.md":     {Data: []byte("# Running\nStart very\n<b>slowly</b>, and wear shoes & socks.")},
		"food/apples.md": {Data: []byte("# Apples\nAn apple a day. Runners eat two.")},
		"food/bread.md":  {Data: []byte("# Bread\nBaking takes a day.")},
		"food/bread.jpg": {Data: []byte("# Running\n")},
	}
	s := atomredistest.Run(t)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() { ended <- run(t.Context(), ln, s.DB, docs) }()
	t.Cleanup(func() { require.NoError(t, <-ended) }) // t.Context has ended by then
	return s, "http://" + ln.Addr().String()
}

func get(t *testing.T, site, query, folder string) string {
	r, err := http.Get(site + "/?" + url.Values{"q": {query}, "folder": {folder}}.Encode())
	require.NoError(t, err)
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, r.StatusCode, string(text))
	return string(text)
}

func TestThePageShowsWhatWasFound(t *testing.T) {
	_, site := runProgram(t)
	page := get(t, site, "bak", "")
	require.Contains(t, page, "<h3>Bread</h3>")
	require.Contains(t, page, "<b>Baking</b> takes a day")
	require.Contains(t, page, ">food</a> (1)")
	require.NotContains(t, page, "Apples")

	page = get(t, site, "day", "")
	require.Contains(t, page, "Apples")
	require.Contains(t, page, "Bread")
	require.Contains(t, page, ">food</a> (2)")

	require.Contains(t, get(t, site, "shoes", ""), "very &lt;b&gt;slowly&lt;/b&gt;, and wear <b>shoes</b> &amp; socks")
	require.Contains(t, get(t, site, "shoes", "food"), "Nothing was found.")
	require.Contains(t, get(t, site, "", "food"), "Apples")
}

func TestWordsOfUsersAreNoQueries(t *testing.T) {
	_, site := runProgram(t)
	for _, query := range []string{`*`, `@folder:{food}`, `"`, `-bread`, `(day|apple)`, `a=>[KNN 1 @x $y]`, "\x00", "the"} {
		get(t, site, query, "")
		get(t, site, "day", query)
	}
}

func TestPagesOfOtherClientsAreFound(t *testing.T) {
	s, site := runProgram(t)
	require.Contains(t, get(t, site, "zebras", ""), "Nothing was found.")
	s.MustDo(t, "HSET", "pages:new", "title", "Animals", "text", "a story about zebras", "folder", "zoo")
	require.Contains(t, get(t, site, "zebras", ""), "about <b>zebras</b>")
}
