// A poll on three servers that share their data, without another service: each is this program, with a member of a group
// inside. A vote counts once it is on two of the three disks. When a server fails, the others continue. Votes may be sent
// to any of them: the members forward them to the one that leads.
//
// All three in one process, or one in each of three terminals (or machines, with their addresses) with -node 1, 2 and 3:
//
//	go run ./examples/embedded-group -dir /tmp/poll
//
//	curl -X POST http://127.0.0.1:8082/votes/tea
//	curl http://127.0.0.1:8083/votes
//	curl http://127.0.0.1:8081/role
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/atomredis/atomredis"
)

func main() {
	if err := start(); err != nil {
		slog.Error("the poll has failed", "error", err)
		os.Exit(1)
	}
}

// start runs the nodes that the flags describe, until a signal or until one of them fails.
func start() error {
	addrs := flag.String("http", "127.0.0.1:8081,127.0.0.1:8082,127.0.0.1:8083", "`addresses` for voters, one for each node")
	raft := flag.String("raft", "127.0.0.1:7081,127.0.0.1:7082,127.0.0.1:7083", "`addresses` for the other nodes")
	dir := flag.String("dir", "poll", "`directory` of the data; each node has a directory below it")
	only := flag.Int("node", 0, "the `number` of the node to run; 0 for all of them")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	peers, listen := strings.Split(*raft, ","), strings.Split(*addrs, ",")
	if len(peers) != len(listen) || *only < 0 || *only > len(peers) {
		return errors.New("each node needs an address in -http and in -raft")
	}
	failures := make(chan error, len(peers))
	nodes := 0
	for i, addr := range listen {
		if *only != 0 && *only != i+1 {
			continue
		}
		nodes++
		go func() {
			defer stop() // of the others
			ln, err := net.Listen("tcp", addr)
			if err == nil {
				err = run(ctx, ln, atomredis.Options{
					Dir:    filepath.Join(*dir, strconv.Itoa(i+1)),
					Raft:   &atomredis.Raft{Addr: peers[i], Peers: peers},
					Logger: slog.With("node", i+1),
				})
			}
			failures <- err
		}()
	}
	var err error
	for range nodes {
		err = errors.Join(err, <-failures)
	}
	return err
}

// run is one node: it takes part in the group and serves voters until ctx ends.
func run(ctx context.Context, ln net.Listener, o atomredis.Options) (err error) {
	// A member that does not lead sends the commands of its clients to the leader. These are the clients of connections:
	// DB.Do is always for this member. So the program has a client, with connections in memory.
	o.Config = map[string]string{"replicated-proxy": "yes"}
	db, err := atomredis.Open(o)
	if err != nil {
		return errors.Join(err, ln.Close())
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	client := redis.NewClient(&redis.Options{
		Dialer:      func(ctx context.Context, _, _ string) (net.Conn, error) { return db.Dial(ctx) },
		ReadTimeout: 10 * time.Second, // a command waits for the next leader
		MaxRetries:  -1,               // a vote whose reply was lost may have counted
	})
	defer client.Close()
	p := &poll{db, client}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /votes/{choice}", p.vote)
	mux.HandleFunc("GET /votes", p.votes)
	mux.HandleFunc("GET /role", p.role)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	stopped := make(chan error, 1)
	context.AfterFunc(ctx, func() {
		limit, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		stopped <- server.Shutdown(limit)
	})
	slog.Info("the node is ready", "url", "http://"+ln.Addr().String()+"/votes")
	if err := server.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-stopped
}

// poll answers the requests of voters. The votes are a sorted set of the choices.
type poll struct {
	db     *atomredis.DB
	client *redis.Client
}

func (p *poll) vote(w http.ResponseWriter, r *http.Request) {
	choice := r.PathValue("choice")
	if len(choice) > 50 {
		http.Error(w, "The choice is too long.", http.StatusBadRequest)
		return
	}
	n, err := p.client.ZIncrBy(r.Context(), "votes", 1, choice).Result()
	answer(w, err, fmt.Sprintf("%s: %.0f\n", choice, n))
}

func (p *poll) votes(w http.ResponseWriter, r *http.Request) {
	choices, err := p.client.ZRevRangeWithScores(r.Context(), "votes", 0, 9).Result()
	var text strings.Builder
	for _, c := range choices {
		fmt.Fprintf(&text, "%s: %.0f\n", c.Member, c.Score)
	}
	answer(w, err, text.String())
}

// role says whether this node leads. That is a fact about this member, so it asks without the client.
func (p *poll) role(w http.ResponseWriter, r *http.Request) {
	var status struct {
		State string `redis:"state"`
	}
	reply, err := p.db.Do(r.Context(), "RAFT.STATUS")
	if err == nil {
		err = reply.Scan(&status)
	}
	answer(w, err, status.State+"\n")
}

func answer(w http.ResponseWriter, err error, text string) {
	switch {
	case err == nil:
		fmt.Fprint(w, text)
	case strings.HasPrefix(err.Error(), "CLUSTERDOWN"): // two of three nodes are down; nothing was executed
		http.Error(w, "Vote again later.", http.StatusServiceUnavailable)
	default:
		slog.Error("a request has failed", "error", err)
		http.Error(w, "It is unknown whether the vote counts.", http.StatusInternalServerError)
	}
}
