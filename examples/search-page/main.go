// A search page for a folder of Markdown files. The index is in the program: a struct describes it, and functions build the
// queries, so that nothing that a user enters can change their meaning. The last word of a query may be unfinished.
//
//	go run ./examples/search-page -docs docs -redis 127.0.0.1:6380
//
// Open http://127.0.0.1:8080, or:
//
//	curl 'http://127.0.0.1:8080/?q=checkpoint+journ'
//	redis-cli -p 6380 FT.SEARCH pages 'followers @folder:{format}' RETURN 1 title DIALECT 2
//	redis-cli -p 6380 HSET pages:new title 'A page from elsewhere' text 'about zebras' folder .      # found at once
package main

import (
	"context"
	"errors"
	"flag"
	"html/template"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path"
	"strings"
	"syscall"
	"time"

	"github.com/atomredis/atomredis/memory"
	"github.com/atomredis/atomredis/search"
)

func main() {
	if err := start(); err != nil {
		slog.Error("the search page has failed", "error", err)
		os.Exit(1)
	}
}

// start runs the program that the flags describe, until a signal.
func start() (err error) {
	addr := flag.String("http", "127.0.0.1:8080", "`address` of the page")
	redisAddr := flag.String("redis", "", "`address` for redis-cli; empty for none")
	docs := flag.String("docs", ".", "`directory` of the Markdown files")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	db, err := memory.Open(memory.Options{Addr: *redisAddr, Logger: slog.Default()})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	ln, err := net.Listen("tcp", *addr)
	if err != nil {
		return err
	}
	return run(ctx, ln, db, os.DirFS(*docs))
}

// run indexes the files, and serves the page until ctx ends. Requests that are under way then have five seconds.
func run(ctx context.Context, ln net.Listener, db *memory.DB, docs fs.FS) error {
	pages, err := search.Open[document](ctx, db, "pages", search.Options{})
	if err == nil {
		err = addFiles(ctx, pages, docs)
	}
	if err != nil {
		return errors.Join(err, ln.Close())
	}
	mux := http.NewServeMux()
	mux.Handle("GET /{$}", &site{pages, template.Must(template.New("page").Funcs(template.FuncMap{"marked": marked}).Parse(page))})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	stopped := make(chan error, 1)
	context.AfterFunc(ctx, func() {
		limit, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		stopped <- server.Shutdown(limit)
	})
	slog.Info("the search page is ready", "url", "http://"+ln.Addr().String())
	if err := server.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-stopped
}

// document is a file. Its ID is its path.
type document struct {
	Title  string `search:"title,text,weight=3"`
	Text   string `search:"text,text"`
	Folder string `search:"folder,tag,sortable"`
}

func addFiles(ctx context.Context, pages *search.Index[document], docs fs.FS) error {
	return fs.WalkDir(docs, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path.Ext(name) != ".md" {
			return err
		}
		content, err := fs.ReadFile(docs, name)
		if err != nil {
			return err
		}
		title, text, _ := strings.Cut(string(content), "\n")
		text = strings.Join(strings.Fields(text), " ") // to the query engine, words on two lines are one word
		return pages.Put(ctx, name, document{strings.TrimLeft(title, "# "), text, path.Dir(name)})
	})
}

// site answers requests for the page.
type site struct {
	pages *search.Index[document]
	page  *template.Template
}

// result is what the page shows.
type result struct {
	Query, Folder string
	Folders       []folder
	Hits          []search.Hit[document]
}

// folder is a folder in which the query has found something.
type folder struct {
	Name  string `search:"folder"`
	Pages int    `search:"pages"`
}

const page = `<!doctype html><meta charset=utf-8><title>Search</title>
<form><input name=q value="{{.Query}}" autofocus><button>Search</button></form>
<p>{{range .Folders}}<a href="?q={{$.Query}}&amp;folder={{.Name}}">{{.Name}}</a> ({{.Pages}}) {{end}}</p>
{{range .Hits}}<h3>{{.Value.Title}}</h3><p>{{marked .Highlights.text}} <small>{{.ID}}</small></p>
{{else}}<p>Nothing was found.</p>{{end}}
`

// ServeHTTP shows the best ten pages for the words in q, in all folders or in one.
func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	res := result{Query: r.FormValue("q"), Folder: r.FormValue("folder")}
	q := search.All()
	if strings.TrimSpace(res.Query) != "" {
		q = search.Prefix(res.Query)
	}
	err := s.find(r.Context(), q, &res)
	if err == nil {
		err = s.page.Execute(w, res)
	}
	if err != nil {
		slog.Error("a search has failed", "query", res.Query, "error", err)
		http.Error(w, "Try again later.", http.StatusInternalServerError)
	}
}

func (s *site) find(ctx context.Context, q search.Query, res *result) (err error) {
	byFolder := search.GroupBy("folder").Count("pages")
	for f, err := range search.Aggregate[folder](ctx, s.pages, q, byFolder, search.OrderBy(search.Asc("folder"))) {
		if err != nil {
			return err
		}
		res.Folders = append(res.Folders, f)
	}
	if res.Folder != "" {
		q = q.And(search.Tag("folder", res.Folder))
	}
	res.Hits, err = s.pages.Hits(ctx, q, search.Limit(10), search.HighlightWith("\x01", "\x02", "text"), search.Summarize(2, 20))
	return err
}

// marked is a text of search.HighlightWith as HTML. The text itself is escaped, because it may contain anything.
func marked(text string) template.HTML {
	return template.HTML(strings.NewReplacer("\x01", "<b>", "\x02", "</b>").Replace(template.HTMLEscapeString(text)))
}
