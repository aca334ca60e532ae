// A feature store: the facts that a model needs about each customer, ready in microseconds, with a vector by which similar
// customers are found. A struct describes a customer; the index is over hashes, which programs in any language read and
// write. A customer without news for a day is forgotten.
//
//	go run ./examples/feature-store -dir /tmp/features -redis 127.0.0.1:6380
//
//	url=http://127.0.0.1:8080/customers
//	curl -X PUT $url/ada -d '{"country":"uk","orders":12,"spent":99.5,"taste":[0.9,0.1,0,0]}'
//	curl -X PUT $url/bob -d '{"country":"uk","orders":2,"spent":10,"taste":[0.8,0.3,0,0]}'
//	curl -X PUT $url/eve -d '{"country":"fr","orders":7,"spent":70,"taste":[0,0,1,0]}'
//	curl $url/ada
//	curl "$url/ada/similar?country=uk&n=5"
//	redis-cli -p 6380 HGETALL customer:ada
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/atomredis/atomredis"
	"github.com/atomredis/atomredis/search"
)

func main() {
	if err := start(); err != nil {
		slog.Error("the feature store has failed", "error", err)
		os.Exit(1)
	}
}

// start runs the program that the flags describe, until a signal.
func start() (err error) {
	addr := flag.String("http", "127.0.0.1:8080", "`address` of the API")
	redisAddr := flag.String("redis", "", "`address` for Redis clients; empty for none")
	dir := flag.String("dir", "", "`directory` of the features; empty keeps them in memory")
	keep := flag.Duration("keep", 24*time.Hour, "how long a customer without news is remembered")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	db, err := atomredis.Open(atomredis.Options{Addr: *redisAddr, Dir: *dir, Logger: slog.Default()})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	ln, err := net.Listen("tcp", *addr)
	if err != nil {
		return err
	}
	return run(ctx, ln, db, *keep)
}

// run serves the API until ctx ends. Requests that are under way then have five seconds.
func run(ctx context.Context, ln net.Listener, db *atomredis.DB, keep time.Duration) error {
	customers, err := search.Open[customer](ctx, db, "customers", search.Options{Prefix: "customer:"})
	if err != nil {
		return errors.Join(err, ln.Close())
	}
	s := &store{db, customers, keep}
	mux := http.NewServeMux()
	mux.HandleFunc("PUT /customers/{id}", s.put)
	mux.HandleFunc("GET /customers/{id}", s.get)
	mux.HandleFunc("GET /customers/{id}/similar", s.similar)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	stopped := make(chan error, 1)
	context.AfterFunc(ctx, func() {
		limit, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		stopped <- server.Shutdown(limit)
	})
	slog.Info("the feature store is ready", "url", "http://"+ln.Addr().String()+"/customers")
	if err := server.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-stopped
}

// customer has the features of a customer: its JSON is that of the API, and its search tags make the index.
type customer struct {
	Country string    `json:"country" search:"country,tag"`
	Orders  int       `json:"orders" search:"orders,numeric"`
	Spent   float64   `json:"spent" search:"spent,numeric,sortable"`
	Taste   []float32 `json:"taste" search:"taste,vector,hnsw,dim=4,metric=cosine"`
}

// store answers requests for features.
type store struct {
	db        *atomredis.DB
	customers *search.Index[customer]
	keep      time.Duration
}

// put stores a customer and begins its time anew, in one step.
func (s *store) put(w http.ResponseWriter, r *http.Request) {
	var c customer
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<16)).Decode(&c)
	if err == nil {
		id := r.PathValue("id")
		err = s.db.Tx(r.Context(), func(tx *atomredis.Tx) error {
			if err := s.customers.In(tx).Put(id, c); err != nil {
				return err
			}
			tx.Do("PEXPIRE", s.customers.Key(id), s.keep.Milliseconds())
			return nil
		})
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func (s *store) get(w http.ResponseWriter, r *http.Request) {
	c, err := s.customers.Get(r.Context(), r.PathValue("id"))
	answer(w, c, err)
}

// neighbour is a customer with a taste like that of another.
type neighbour struct {
	ID       string  `json:"id"`
	Distance float64 `json:"distance"`
	customer
}

// similar finds the customers whose taste is nearest to that of one, in a country if one is named.
func (s *store) similar(w http.ResponseWriter, r *http.Request) {
	n := 10
	if text := r.FormValue("n"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil || n < 1 || n > 1000 {
			http.Error(w, "n is a number from 1 to 1000", http.StatusBadRequest)
			return
		}
	}
	found, err := s.nearest(r.Context(), r.PathValue("id"), n, r.FormValue("country"))
	answer(w, found, err)
}

func (s *store) nearest(ctx context.Context, id string, n int, country string) ([]neighbour, error) {
	c, err := s.customers.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	var filters []search.Query
	if country != "" {
		filters = append(filters, search.Tag("country", country))
	}
	found := []neighbour{}
	for hit, err := range s.customers.Find(ctx, search.KNN("taste", n+1, c.Taste, filters...)) {
		if err != nil {
			return nil, err
		}
		if hit.ID != id && len(found) < n { // a customer is nearest to itself
			found = append(found, neighbour{hit.ID, hit.Distance, hit.Value})
		}
	}
	return found, nil
}

func answer(w http.ResponseWriter, v any, err error) {
	switch {
	case errors.Is(err, search.ErrNotFound):
		http.Error(w, "there is no such customer", http.StatusNotFound)
	case err != nil:
		slog.Error("a request has failed", "error", err)
		http.Error(w, "try again later", http.StatusInternalServerError)
	default:
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(v); err != nil {
			slog.Warn("an answer was not sent", "error", err)
		}
	}
}
