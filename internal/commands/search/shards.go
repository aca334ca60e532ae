package search

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	trace "runtime/debug"
	"time"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/cluster"
	"github.com/atomredis/atomredis/internal/cluster/shards"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/search/catalog"
	"github.com/atomredis/atomredis/internal/search/fanout"
	"github.com/atomredis/atomredis/internal/wire/peer"
	"github.com/atomredis/atomredis/resp"
)

// In a cluster of several shards, the server that a client asks is the coordinator: it asks all shards and merges
// their answers (package fanout). This file has both ends: fan is the coordinator's, answer a shard's. The client
// waits while a goroutine does the work, so other clients continue. A shard computes its answer in the goroutine of
// the connection.

// Sharded is a server that may be one of several shards.
type Sharded interface {
	command.Host
	// ClusterShards returns the record of the cluster's shards; nil if the server is not a shard.
	ClusterShards() *shards.Shards
}

// shardsOf returns the record of shards of a server, nil if it has none.
func shardsOf(h command.Host) *shards.Shards {
	if s, ok := h.(Sharded); ok {
		return s.ClusterShards()
	}
	return nil
}

// others reports whether the server is one of several shards.
func (s *service) others() bool {
	sh := shardsOf(s.host)
	return sh != nil && len(sh.Now().Record.Others) > 0
}

// shardID returns the ID of this shard if the server is one of several.
func shardID(h command.Host) string {
	if sh := shardsOf(h); sh != nil && len(sh.Now().Record.Others) > 0 {
		return sh.Now().ID
	}
	return ""
}

// caller returns the Caller that asks the other shards.
func (s *service) caller() *fanout.Caller {
	s.calling.Do(func() { s.calls = fanout.NewCaller(shardsOf(s.host)) })
	return s.calls
}

// fan is a command to all shards, at the coordinator. c has no guard and no client.
type fan struct {
	c *command.Ctx
	s *service
	// partial is set if some shards have not answered, and the query accepts that.
	partial bool
}

// spread sends a client's command to all shards, if there are several: do runs on a goroutine and writes the reply.
// Otherwise spread returns false.
func spread(c *command.Ctx, do func(f *fan)) bool {
	s := c.Host.Service(serviceID).(*service)
	if c.Client == nil || c.Offload != nil || c.Origin.In(command.Accepted) || !s.others() {
		return false
	}
	if c.NoBlock {
		c.Err(cannotBlock(c))
		return true
	}
	own := &command.Ctx{Args: copyArgs(c.Args), W: &resp.Writer{Proto: c.W.Proto}, G: new(engine.Guard), DB: c.DB, Host: c.Host, Cmd: c.Cmd,
		Origin: c.Origin}
	s.await(c, own, func() { do(&fan{c: own, s: s}) })
	return true
}

// await makes the client wait while do runs on its own goroutine and writes the reply to own.
func (s *service) await(c, own *command.Ctx, do func()) {
	finish := c.Await(0, func(w *resp.Writer) { w.Error("UNBLOCKED the command was ended before all shards had answered") })
	s.asking.Go(func() {
		defer func() {
			if p := recover(); p != nil {
				s.host.Log().Error("a command of all shards failed", "command", own.Cmd.Name, "panic", p, "stack", string(trace.Stack()))
				own.W.Truncate(0)
				own.W.Error("ERR internal error")
			}
			finish(func(w *resp.Writer) { w.Raw(own.W.Buf) })
		}()
		do()
	})
}

// cannotBlock returns the error for a command to all shards where commands must not block.
func cannotBlock(c *command.Ctx) command.Error {
	return "Cannot perform `" + command.Error(bytes.ToUpper(c.Args[0])) + "`: Cannot block"
}

// The kinds of questions to shards.
const (
	askSearch    = "search"
	askAggregate = "aggregate"
	askHybrid    = "hybrid"
	askProfile   = "profile"
	askTags      = "tags"
	askSpelling  = "spelling"
	askInfo      = "info"
	askDocuments = "documents"
	askIdle      = "idle"   // for how long an index has been unused
	askItems     = "items"  // the definitions
	askDefine    = "define" // takes definitions
)

// asked are the directives whose values at the coordinator apply on all shards.
var asked = []string{"search-default-dialect", "search-max-search-results", "search-max-aggregate-results", "search-max-aggregate-groups",
	"search-bm25std-tanh-factor", "search-min-prefix", "search-max-prefix-expansions", "search-timeout", "search-on-timeout",
	"search-default-scorer", "search-_print-profile-clock", "search-_prioritize-intersect-union-children",
	"search-_max-foreground-timeout-limit", "search-workers"}

// askedHost is the server with the coordinator's directives.
type askedHost struct {
	command.Host
	directives map[string]string
}

// Directive implements command.Host.
func (h *askedHost) Directive(name string) string {
	if v, ok := h.directives[name]; ok {
		return v
	}
	return h.Host.Directive(name)
}

// longAnswer is how long a shard may take beyond the timeout of a query.
const longAnswer = 5 * time.Second

// noTimeout is how long a shard may take for a query without a timeout.
const noTimeout = 5 * time.Minute

// gather asks all shards the question what about the command. timeout is the query's own timeout, nil for the
// directive's.
func (f *fan) gather(what string, timeout *int64) ([]fanout.Answer, error) {
	limit, _ := timeoutOf(f.c.Host, timeout)
	wait := noTimeout
	if limit > 0 {
		wait = min(noTimeout, time.Duration(min(limit, int64(noTimeout/time.Millisecond)))*time.Millisecond+longAnswer)
	}
	ask := func() *fanout.Question {
		q := &fanout.Question{What: what, Args: f.c.Args, Proto: f.c.W.Proto, Directives: map[string]string{}}
		for _, name := range asked {
			q.Directives[name] = f.c.Host.Directive(name)
		}
		q.Body, _ = json.Marshal(f.s.stampOf(f.c.Args[1]))
		return q
	}
	partial := f.c.Host.Directive("cluster-require-full-coverage") == "no"
	answers, whole, err := f.s.caller().Gather(ask, f.s.answer, wait, partial)
	f.partial = f.partial || err == nil && !whole
	return answers, err
}

// fail replies with an error of a shard, or of its connection.
func (f *fan) fail(err error) { fail(f.c, err) }

// partialWarning is the warning for clients if shards have not answered.
const partialWarning = "Some shards did not answer: the results are incomplete"

// whole calls do with the answers of all shards. If slots move or a leader is lost before all is read, it asks
// again. do must read everything before it writes.
func (f *fan) whole(what string, timeout *int64, do func(answers []fanout.Answer) error) {
	for attempt := 1; ; attempt++ {
		answers, err := f.gather(what, timeout)
		if err != nil {
			f.fail(err)
			return
		}
		err = do(answers)
		fanout.CloseAll(answers)
		var lost *fanout.Unreachable
		switch {
		case err == nil:
			return
		case attempt < maxMoved && (errors.Is(err, peer.Again) || errors.As(err, &lost)):
			continue
		}
		f.fail(err)
		return
	}
}

// maxMoved is how often a query is repeated while slots move.
const maxMoved = 20

// only returns the only parts of answers.
func only(answers []fanout.Answer) (parts [][]byte, err error) {
	for _, a := range answers {
		if err := a.Want(); err != nil {
			return nil, err
		}
	}
	for _, a := range answers {
		part, _, err := a.Part()
		if err != nil {
			return nil, err
		}
		parts = append(parts, part)
	}
	return parts, nil
}

// ServePeer answers the questions of another shard's server.
func ServePeer(h command.Host, c *peer.Conn) {
	s := h.Service(serviceID).(*service)
	fanout.Serve(c, func(q *fanout.Question) (a fanout.Answer, err error) {
		defer func() {
			if p := recover(); p != nil {
				h.Log().Error("a question of another shard failed", "question", q.What, "panic", p, "stack", string(trace.Stack()))
				err = fanout.Refused("ERR internal error")
			}
		}()
		sh := shardsOf(h)
		switch {
		case sh == nil:
			return nil, shards.ErrNoCluster
		case !sh.Leads():
			return nil, notLeading
		}
		if a, err = s.answer(q); err != nil {
			return nil, err
		}
		if err = confirm(sh); err != nil {
			a.Close()
			return nil, err
		}
		return &confirmed{a, sh}, nil
	})
}

// confirm waits until everything that an answer shows is committed.
func confirm(sh *shards.Shards) error {
	ctx, cancel := context.WithTimeout(context.Background(), longAnswer)
	defer cancel()
	if err := sh.Confirm(ctx); err != nil {
		return &peer.Error{Code: peer.NotLeading, Text: err.Error()}
	}
	return nil
}

// confirmed is an answer for another server. Its parts show only committed data.
type confirmed struct {
	fanout.Answer
	sh *shards.Shards
}

// Part implements fanout.Answer.
func (a *confirmed) Part() (part []byte, more bool, err error) {
	if part, more, err = a.Answer.Part(); err == nil && confirm(a.sh) != nil {
		err = fanout.ErrAgain
	}
	return part, more, err
}

var notLeading = &peer.Error{Code: peer.NotLeading, Text: shards.ErrNotLeading.Error()}

// answer answers a question for the server's own shard.
func (s *service) answer(q *fanout.Question) (fanout.Answer, error) {
	switch q.What {
	case askItems:
		return s.giveItems()
	case askDefine:
		return s.takeItems(q)
	case askIdle:
		return s.answerIdle(q)
	}
	c := &command.Ctx{Args: q.Args, W: &resp.Writer{Proto: q.Proto}, G: new(engine.Guard), Host: &askedHost{s.host, q.Directives}}
	if len(q.Args) < 2 {
		return nil, peer.ErrFrame
	}
	x := s.Lookup(string(q.Args[1]))
	if x == nil {
		return nil, s.notDefined(q)
	}
	var want used
	if json.Unmarshal(q.Body, &want) != nil || want != s.stampOf(q.Args[1]) {
		return nil, s.notDefined(q)
	}
	x.Touch(s.host.Keyspace().Now())
	s.places <- struct{}{}
	defer func() { <-s.places }()
	a, err := s.part(q, c, x)
	if err != nil {
		return nil, err
	}
	return &placed{a, s}, nil
}

// part begins this shard's part of a query.
func (s *service) part(q *fanout.Question, c *command.Ctx, x *catalog.Index) (fanout.Answer, error) {
	settle(c)
	switch q.What {
	case askSearch:
		return s.answerSearch(c, x)
	case askAggregate:
		return s.answerAggregate(c, x)
	case askHybrid:
		return s.answerHybrid(c, x)
	case askProfile:
		return s.answerProfile(c, x)
	case askTags:
		return s.give(func() ([]byte, error) { return tagsPart(c, x) })
	case askSpelling:
		return s.give(func() ([]byte, error) { return spellingPart(c, x) })
	case askInfo:
		return s.give(func() ([]byte, error) { return json.Marshal(figuresOf(c, x)) })
	case askDocuments:
		return s.give(func() ([]byte, error) { return documentsPart(c, x), nil })
	}
	return nil, fanout.Refused(fmt.Sprintf("ERR a shard runs a version that does not know the question %q", q.What))
}

// placed is an answer that computes its parts only while it has a place, so that a processor is left for commands.
type placed struct {
	fanout.Answer
	s *service
}

// Part implements fanout.Answer.
func (a *placed) Part() (part []byte, more bool, err error) {
	a.s.places <- struct{}{}
	defer func() {
		<-a.s.places
		if p := recover(); p != nil {
			a.s.host.Log().Error("a part of a query failed", "panic", p, "stack", string(trace.Stack()))
			err = fanout.Refused("ERR internal error")
		}
	}()
	return a.Answer.Part()
}

// notDefined is the error for an index whose definition here differs from the coordinator's. It asks the other
// shards for news at once.
func (s *service) notDefined(q *fanout.Question) error {
	shardsOf(s.host).Kick()
	return &peer.Error{Code: peer.Again, Text: "ERR a shard has another definition of index " + string(q.Args[1])}
}

// steadily calls do until no slot has moved meanwhile, and returns the slots that the shard served. do must take one
// view of the index, and leave out hidden keys.
func (s *service) steadily(do func() error) (*fanout.View, error) {
	sh := shardsOf(s.host)
	for range 10 {
		st := sh.Now()
		if err := do(); err != nil {
			return nil, fanout.Refused(err.Error())
		}
		if sh.Now() == st {
			return &fanout.View{Shard: st.ID, Slots: st.Own.Ranges()}, nil
		}
	}
	return nil, fanout.ErrAgain
}

// given is an answer with one part.
type given struct {
	view fanout.View
	part []byte
}

func (a *given) View() *fanout.View                        { return &a.view }
func (a *given) Keep(int) error                            { return nil }
func (a *given) Want() error                               { return nil }
func (a *given) Part() (part []byte, more bool, err error) { return a.part, false, nil }
func (a *given) Close()                                    {}

// give returns an answer whose only part make returns.
func (s *service) give(make func() ([]byte, error)) (fanout.Answer, error) {
	a := &given{}
	view, err := s.steadily(func() (err error) {
		a.part, err = make()
		return err
	})
	if err != nil {
		return nil, err
	}
	a.view = *view
	return a, nil
}

// still reports whether the shard still serves the slots of the view.
func (s *service) still(v *fanout.View) bool {
	return cluster.SetOf(v.Slots...) == shardsOf(s.host).Now().Own
}

// newPart is the run of a shard's part of a query.
func (s *service) newPart(make func() (*run, error)) (r *run, v *fanout.View, err error) {
	v, err = s.steadily(func() error {
		r, err = make()
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	v.SetNear(r.plan.Nearest())
	return r, v, nil
}
