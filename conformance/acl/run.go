// Package acl compares the decisions of access control with Redis's. It makes random users from random rules in both
// servers, and asks for each user whether it may execute random commands, by ACL DRYRUN and by executing them. It also
// compares the categories of commands.
package acl

import (
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/atomredis/atomredis/internal/testing/transcript"
)

// Options configure a check.
type Options struct {
	// A is the address of the reference, B that of the server under test.
	A, B string
	// Seed is the seed of users and commands.
	Seed uint64
	// Users is the number of users, and Commands the number of commands checked for each.
	Users, Commands int
	// KeepGoing is the number of differences after which the check ends.
	KeepGoing int
	// Log receives the report.
	Log io.Writer
}

const (
	// timeout is the most time that a server may take for a batch.
	timeout = 20 * time.Second
	// batch is the number of commands sent before the replies are read.
	batch = 200
	// executed is the number of commands that each user executes.
	executed = 100
	// userName is the name of the user; only one exists at a time.
	userName = "acl-check"
)

// pair are the reference and the server under test.
type pair struct {
	Options
	conns    [2]*transcript.Conn
	commands []commandInfo // those that both servers have
	found    int
}

// commandInfo is what the check knows about a command.
type commandInfo struct {
	words []string // its name, and its sub-command's
	arity int
}

// Check makes random users in both servers and returns the number of decisions that differed. It deletes their data.
func Check(o Options) (int, error) {
	p := pair{Options: o}
	for i, addr := range []string{o.A, o.B} {
		nc, err := transcript.Dial(addr)
		if err != nil {
			return 0, err
		}
		p.conns[i] = transcript.NewConn(nc)
		defer p.conns[i].Close()
	}
	if err := p.prepare(); err != nil {
		return p.found, err
	}
	start := time.Now()
	rnd := rand.New(rand.NewPCG(o.Seed, 0x61636c))
	g := newGenerator(rnd, p.commands)
	commands := g.commands(o.Commands, o.Seed)
	decisions := 0
	for n := 0; n < o.Users && p.found < o.KeepGoing; n++ {
		rules := g.rules()
		made, err := p.makeUser(rules)
		if err != nil {
			return p.found, err
		}
		if !made {
			continue
		}
		if err := p.dryrun(rules, commands); err != nil {
			return p.found, err
		}
		run := make([][]string, 0, executed)
		for len(run) < executed {
			if cmd := commands[rnd.IntN(len(commands))]; harmless(cmd) {
				run = append(run, cmd)
			}
		}
		if err := p.execute(rules, run); err != nil {
			return p.found, err
		}
		decisions += len(commands) + len(run)
	}
	for _, cmd := range []string{"ACL DELUSER " + userName, "ACL LOG RESET", "FLUSHALL"} {
		if _, err := p.do(strings.Fields(cmd)...); err != nil {
			return p.found, err
		}
	}
	fmt.Fprintf(o.Log, "%d users, %d commands, %d decisions from seed %d, %.0f decisions/s, %d differences\n",
		o.Users, len(commands), decisions, o.Seed, float64(decisions)/time.Since(start).Seconds(), p.found)
	return p.found, nil
}

// differ reports a difference.
func (p *pair) differ(what string, a, b any) {
	p.found++
	fmt.Fprintf(p.Log, "%s\n  A: %v\n  B: %v\n", what, a, b)
}

// do sends a command to both servers.
func (p *pair) do(args ...string) (replies [2]transcript.Value, err error) {
	for i, c := range p.conns {
		if replies[i], err = c.Do(timeout, args...); err != nil {
			return replies, err
		}
	}
	return replies, nil
}

// doAll sends commands to both servers and calls fn with the replies.
func doAll(conns [2]*transcript.Conn, commands [][]string, fn func(i int, a, b transcript.Value)) error {
	for start := 0; start < len(commands); start += batch {
		part := commands[start:min(start+batch, len(commands))]
		for _, c := range conns {
			for _, cmd := range part {
				c.Append(cmd...)
			}
			if err := c.Flush(); err != nil {
				return err
			}
		}
		for i := range part {
			var replies [2]transcript.Value
			for j, c := range conns {
				v, err := c.Read(timeout)
				if err == nil && v.Kind == transcript.Closed {
					err = io.ErrUnexpectedEOF
				}
				if err != nil {
					return fmt.Errorf("%c, %q: %w", 'A'+j, part[i], err)
				}
				replies[j] = v
			}
			fn(start+i, replies[0], replies[1])
		}
	}
	return nil
}

// newCategories are the categories that Redis has had since 8.0 for its new types and the query engine, and Valkey for path hashes.
var newCategories = map[string]bool{"bloom": true, "cuckoo": true, "cms": true, "topk": true, "tdigest": true, "json": true,
	"timeseries": true, "array": true, "search": true, "pathhash": true}

// prepare finds the commands that both servers have, and compares their categories.
func (p *pair) prepare() error {
	if _, err := p.do("FLUSHALL"); err != nil {
		return err
	}
	replies, err := p.do("COMMAND")
	if err != nil {
		return err
	}
	var arity [2]map[string]int
	for i, v := range replies {
		arity[i] = map[string]int{}
		addArities(arity[i], v)
	}
	for _, a := range arity {
		delete(a, "wait") // in another category since Redis 7.2
	}
	for name, n := range arity[0] {
		if m, ok := arity[1][name]; ok && n == m {
			p.commands = append(p.commands, commandInfo{strings.Split(name, "|"), n})
		}
	}
	slices.SortFunc(p.commands, func(a, b commandInfo) int { return slices.Compare(a.words, b.words) })
	if replies, err = p.do("ACL", "CAT"); err != nil {
		return err
	}
	var has [2]map[string]bool
	for i, reply := range replies {
		has[i] = map[string]bool{}
		for _, category := range reply.Elems {
			has[i][category.Text] = true
		}
	}
	for name := range has[0] {
		if !has[1][name] {
			p.differ("ACL CAT, "+name, true, false)
		}
	}
	for name := range has[1] {
		if !has[0][name] && !newCategories[name] {
			p.differ("ACL CAT, "+name, false, true)
		}
	}
	for _, category := range replies[0].Elems {
		lists, err := p.do("ACL", "CAT", category.Text)
		if err != nil {
			return err
		}
		var common [2]map[string]bool
		for i, list := range lists {
			common[i] = map[string]bool{}
			for _, name := range list.Elems {
				_, here := arity[0][name.Text]
				_, there := arity[1][name.Text]
				if here && there {
					common[i][name.Text] = true
				}
			}
		}
		for name := range arity[0] {
			if common[0][name] != common[1][name] {
				p.differ("ACL CAT "+category.Text+", "+name, common[0][name], common[1][name])
			}
		}
	}
	return nil
}

// addArities reads a reply to COMMAND.
func addArities(arity map[string]int, reply transcript.Value) {
	for _, info := range reply.Elems {
		n := 0
		fmt.Sscan(info.Elems[1].Text, &n)
		arity[info.Elems[0].Text] = n
		if len(info.Elems) > 9 {
			addArities(arity, info.Elems[9])
		}
	}
}

// makeUser makes the user from rules, and compares the servers' descriptions of it. It reports whether they accept the
// rules.
func (p *pair) makeUser(rules []string) (bool, error) {
	made, err := p.do(append([]string{"ACL", "SETUSER", userName, "reset", "on", "nopass"}, rules...)...)
	if err != nil {
		return false, err
	}
	if !made[0].Equal(made[1]) {
		p.differ(fmt.Sprintf("ACL SETUSER %q", rules), made[0], made[1])
	}
	if made[0].Kind == transcript.Error || made[1].Kind == transcript.Error {
		return false, nil
	}
	users, err := p.do("ACL", "GETUSER", userName)
	if err != nil {
		return false, err
	}
	if a, b := withoutCommands(users[0]), withoutCommands(users[1]); !a.Equal(b) {
		p.differ(fmt.Sprintf("ACL GETUSER of %q", rules), users[0], users[1])
	}
	return true, nil
}

// withoutCommands leaves out the rules for commands: they depend on which commands a server has, and their order is
// random. It also leaves out what follows from a pattern for all keys, such as "%RW~*".
func withoutCommands(v transcript.Value) transcript.Value {
	elems := slices.Clone(v.Elems)
	for i := range elems {
		switch {
		case i == 0:
		case elems[i-1].Text == "commands":
			elems[i] = transcript.Value{}
			continue
		case elems[i-1].Text == "keys" && slices.Contains(strings.Fields(elems[i].Text), "~*"):
			elems[i].Text = "~*"
			continue
		}
		elems[i] = withoutCommands(elems[i])
	}
	v.Elems = elems
	return v
}

// dryrun asks whether the user may execute commands.
func (p *pair) dryrun(rules []string, commands [][]string) error {
	asked := make([][]string, len(commands))
	for i, cmd := range commands {
		asked[i] = append([]string{"ACL", "DRYRUN", userName}, cmd...)
	}
	return doAll(p.conns, asked, func(i int, a, b transcript.Value) {
		a.Text, b.Text = older.Replace(a.Text), older.Replace(b.Text)
		if !a.Equal(b) && p.found < p.KeepGoing {
			p.differ(fmt.Sprintf("%q of a user %q", asked[i], rules), a, b)
		}
	})
}

// older replaces the words with which later releases refuse commands by those of Redis 7.0.
var older = strings.NewReplacer(
	"NOPERM User "+userName+" has", "NOPERM this user has",
	"User "+userName+" has", "This user has",
	"NOPERM No permissions to access a key", "NOPERM this user has no permissions to access one of the keys used as arguments",
	"NOPERM No permissions to access a channel",
	"NOPERM this user has no permissions to access one of the channels used as arguments")

// execute executes commands as the user.
func (p *pair) execute(rules []string, commands [][]string) error {
	var conns [2]*transcript.Conn
	for i, addr := range []string{p.A, p.B} {
		nc, err := transcript.Dial(addr)
		if err != nil {
			return err
		}
		conns[i] = transcript.NewConn(nc)
		defer conns[i].Close()
	}
	commands = slices.Concat([][]string{{"AUTH", userName, "x"}}, commands)
	return doAll(conns, commands, func(i int, a, b transcript.Value) {
		if x, y := denial(a), denial(b); x != y && p.found < p.KeepGoing {
			p.differ(fmt.Sprintf("%q by a user %q", commands[i], rules), a, b)
		}
	})
}

// denial returns the text of a reply that refuses a command, and "" for any other reply.
func denial(v transcript.Value) string {
	if v.Kind == transcript.Error && (strings.HasPrefix(v.Text, "NOPERM ") || strings.HasPrefix(v.Text, "WRONGPASS ")) {
		return older.Replace(v.Text)
	}
	return ""
}
