package crash

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/atomredis/atomredis/internal/testing/transcript"
)

// changesFeed is a worker that follows all other ones by CHANGES READ. It executes the changes at a second server, the
// copy, in transactions that also store the position. The copy is killed at random, too, often in the middle of a
// transaction. After each start the copy must become equal to the server.
//
// In the copy, expired keys change by the server's commands only (import-mode). It has no part of the keys of doors and
// queues: their deadlines would come due there, too.
type changesFeed struct {
	launch *launcher
	dir    string
	copy   *server
	conn   *transcript.Conn // to the copy
	read   int              // changes since the last settle
}

const (
	changesName = "changes"
	// positionDB is a database that only the copy has, with the position in changesPosition.
	positionDB      = databases
	changesPosition = "position"
	// largestPage is the most changes of a page.
	largestPage = 300
	// equalTimeout is how long the copy may take to become equal.
	equalTimeout = 20 * time.Second
)

// newChanges makes a worker whose copy keeps its data in dir.
func newChanges(binary, fsync, logPath, dir string) (*changesFeed, error) {
	l, err := newBareLauncher(binary, fsync, logPath)
	return &changesFeed{launch: l, dir: dir}, err
}

func (w *changesFeed) name() string { return changesName }

// Close ends the copy.
func (w *changesFeed) Close() error {
	w.kill()
	return w.launch.log.Close()
}

// open starts the copy, if it does not run.
func (w *changesFeed) open() (err error) {
	if w.copy != nil {
		return nil
	}
	if w.copy, err = w.launch.startCopy(w.dir); err != nil {
		return err
	}
	if err = w.copy.ready(); err != nil {
		return err
	}
	if w.conn, err = w.copy.dial(); err != nil {
		return err
	}
	_, err = ask(w.conn, []string{"CLIENT", "IMPORT-SOURCE", "ON"})
	return err
}

// activeOwners own keys that change by deadlines of their own.
var activeOwners = []string{jobsName, "spiderq", "skein", "perper"}

// active reports whether a key has such an owner.
func active(key string) bool {
	owner, _, _ := strings.Cut(key, ":")
	return slices.Contains(activeOwners, owner)
}

// kill kills the copy.
func (w *changesFeed) kill() {
	if w.conn != nil {
		w.conn.Close()
	}
	if w.copy != nil {
		w.copy.kill()
	}
	w.copy, w.conn = nil, nil
}

// run reads until the server ends. The copy begins anew now and then.
func (w *changesFeed) run(dial dialer, r *rand.Rand) error {
	from, err := dial()
	if err != nil {
		return ignoreNet(err)
	}
	defer from.Close()
	if r.IntN(6) == 0 {
		err = w.restart()
	}
	for err == nil {
		err = w.follow(from, r)
	}
	if errors.Is(err, errEnded) {
		return nil
	}
	return fmt.Errorf("%s: %w", changesName, err)
}

// restart makes the copy begin with nothing.
func (w *changesFeed) restart() error {
	if err := w.open(); err != nil {
		return err
	}
	return w.execute([][]string{{"FLUSHALL"}, {"FUNCTION", "FLUSH"}}, "0", nil)
}

// follow reads a page and executes it. It may kill the copy meanwhile.
func (w *changesFeed) follow(from *transcript.Conn, r *rand.Rand) error {
	if err := w.open(); err != nil {
		return err
	}
	var death func()
	if r.IntN(5) == 0 {
		after := time.Duration(r.Int64N(int64(3 * time.Millisecond)))
		death = func() {
			time.Sleep(after)
			w.kill()
		}
	}
	_, err := w.page(from, death, "COUNT", strconv.Itoa(1+r.IntN(largestPage)), "BLOCK", "20")
	return err
}

// page reads a page and executes it. It reports whether there was one. With death the copy is killed during the
// execution.
func (w *changesFeed) page(from *transcript.Conn, death func(), options ...string) (more bool, err error) {
	at, err := w.position()
	if err != nil {
		return false, fmt.Errorf("the copy: %w", unexpected(err))
	}
	replies, err := do(from, append([]string{"CHANGES", "READ", "FROM", at}, options...))
	if err != nil {
		return false, err
	}
	reply := replies[0]
	switch {
	case reply.Kind == transcript.Error && strings.HasPrefix(reply.Text, "CHANGESGONE the snapshot"):
		return true, w.restart()
	case reply.Kind == transcript.Error && strings.HasPrefix(reply.Text, "LOADING"):
		return true, nil
	case reply.Kind == transcript.Error || len(reply.Elems) != 2:
		return false, fmt.Errorf("CHANGES READ FROM %s gave %s", at, reply)
	}
	var commands [][]string
	db := "0"
	for _, change := range reply.Elems[1].Elems {
		w.read++
		for _, command := range change.Elems[2].Elems {
			words := texts(command)
			if len(words) > 2 && active(words[2]) {
				continue
			}
			if words[0] != db {
				db = words[0]
				commands = append(commands, []string{"SELECT", db})
			}
			commands = append(commands, words[1:])
		}
	}
	next := reply.Elems[0].Text
	return next != at, w.execute(commands, next, death)
}

// unexpected turns the end of a connection into an error that is not expected.
func unexpected(err error) error {
	if errors.Is(err, errEnded) {
		return errors.New("the connection has ended")
	}
	return err
}

// position returns the position from which the copy goes on.
func (w *changesFeed) position() (string, error) {
	replies, err := ask(w.conn, []string{"SELECT", strconv.Itoa(positionDB)}, []string{"GET", changesPosition})
	if err != nil || replies[1].Null {
		return "0", err
	}
	return replies[1].Text, nil
}

// execute executes commands at the copy, and sets its position, in one transaction. With death, which kills the copy, all
// or nothing of it happens.
func (w *changesFeed) execute(commands [][]string, position string, death func()) error {
	wire := slices.Concat([][]string{{"MULTI"}, {"SELECT", "0"}}, commands,
		[][]string{{"SELECT", strconv.Itoa(positionDB)}, {"SET", changesPosition, position}, {"EXEC"}})
	for _, args := range wire {
		w.conn.Append(args...)
	}
	if death != nil {
		go w.conn.Flush() // until the end of the connection
		death()
		return nil
	}
	if err := w.conn.Flush(); err != nil {
		return fmt.Errorf("the copy: %w", err)
	}
	replies, err := receive(w.conn, len(wire))
	if err != nil {
		return fmt.Errorf("the copy: %w", unexpected(err))
	}
	for i, v := range slices.Concat(replies, replies[len(replies)-1].Elems) {
		if v.Kind == transcript.Error {
			at := i
			if at >= len(wire) {
				at = i - len(wire) + 1
			}
			return fmt.Errorf("the copy does not execute %s: %s", short(transcript.QuoteCommand(wire[at])), v.Text)
		}
	}
	return nil
}

// inquire waits until the copy is equal to the server.
func (w *changesFeed) inquire(c *transcript.Conn) error {
	if err := w.open(); err != nil {
		return err
	}
	for end := time.Now().Add(equalTimeout); ; {
		for more := true; more; {
			var err error
			if more, err = w.page(c, nil); err != nil {
				return err
			}
		}
		want, err := digests(c)
		if err != nil {
			return err
		}
		got, err := digests(w.conn)
		if err != nil {
			return fmt.Errorf("the copy: %w", unexpected(err))
		}
		if maps.Equal(want, got) {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("the copy has other data:%s", differences(want, got))
		}
		time.Sleep(time.Millisecond)
	}
}

// digests returns digests of all keys of a server that the copy has, with their deadlines, its functions, and the names of
// its indexes.
func digests(c *transcript.Conn) (map[string]string, error) {
	all := map[string]string{}
	for db := range databases {
		if _, err := ask(c, []string{"SELECT", strconv.Itoa(db)}); err != nil {
			return nil, err
		}
		keys, err := scan(c)
		if err != nil {
			return nil, err
		}
		keys = slices.DeleteFunc(keys, active)
		for part := range slices.Chunk(keys, chunk) {
			if err := digestKeys(c, db, part, all); err != nil {
				return nil, err
			}
		}
	}
	replies, err := ask(c, []string{"SELECT", "0"}, []string{"FUNCTION", "DUMP"}, []string{"FT._LIST"})
	if err != nil {
		return nil, err
	}
	all["functions"] = replies[1].Text
	indexes := texts(replies[2])
	slices.Sort(indexes)
	all["indexes"] = strings.Join(indexes, " ")
	return all, nil
}

// estimates are the commands whose replies are compared in place of a digest, without the key. A snapshot has such values in
// the form of Redis, which does not have all of their state.
var estimates = map[string][]string{topKind: {"TOPK.LIST"}, digestKind: {"TDIGEST.RANK", "1e300"}}

// digestKeys adds digests of keys of the database that c uses.
func digestKeys(c *transcript.Conn, db int, keys []string, all map[string]string) error {
	commands := [][]string{slices.Concat([]string{"DEBUG", "DIGEST-VALUE"}, keys)}
	for _, key := range keys {
		commands = append(commands, []string{"TYPE", key}, []string{"PEXPIRETIME", key})
	}
	replies, err := ask(c, commands...)
	if err != nil {
		return err
	}
	for i, key := range keys {
		digest, kind := replies[0].Elems[i].Text, replies[1+2*i].Text
		if command := estimates[kind]; command != nil {
			estimate, err := do(c, slices.Insert(slices.Clone(command), 1, key)) // it may have expired
			if err != nil {
				return err
			}
			digest = fmt.Sprint(estimate)
		}
		all[place{db, key}.String()] = kind + " " + digest + " until " + replies[2+2*i].Text
	}
	return nil
}

// texts are the elements of a reply.
func texts(v transcript.Value) []string {
	all := make([]string, len(v.Elems))
	for i, e := range v.Elems {
		all[i] = e.Text
	}
	return all
}

func (w *changesFeed) settle(*snapshot, ending) (int, error) {
	n := w.read
	w.read = 0
	return n, nil
}
