package sentinel

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/atomredis/atomredis/engine/glob"
	"github.com/atomredis/atomredis/internal/version"
	"github.com/atomredis/atomredis/resp"
)

// handler answers a command, whose name is args[0], and reports whether the connection continues.
type handler func(p *peer, args []string) bool

// command is an entry of the tables of commands.
type command struct {
	least, most int  // number of arguments including the name; most is 0 without a limit
	open        bool // allowed to all, or checked by the server
	subscribed  bool // allowed to peers with subscriptions in RESP2
	do          handler
}

// The commands, and the subcommands of SENTINEL, by their names.
var commands, subcommands map[string]command

// subcommandNames returns the names of the subcommands of SENTINEL.
func subcommandNames() []string {
	var names []string
	for name := range subcommands {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func fillTables() {
	asked := handler((*peer).ask)
	commands = map[string]command{
		"acl":          {least: 2, open: true, do: asked},
		"auth":         {least: 2, open: true, do: asked},
		"client":       {least: 2, open: true, do: (*peer).client},
		"command":      {least: 1, open: true, do: asked},
		"hello":        {least: 1, open: true, do: (*peer).hello},
		"info":         {least: 1, do: (*peer).info},
		"ping":         {least: 1, most: 2, subscribed: true, do: (*peer).ping},
		"psubscribe":   {least: 2, subscribed: true, do: subscribe("psubscribe", (*peer).patternSet)},
		"publish":      {least: 3, most: 3, do: (*peer).publish},
		"punsubscribe": {least: 1, subscribed: true, do: unsubscribe("punsubscribe", (*peer).patternSet)},
		"quit":         {least: 1, open: true, subscribed: true, do: (*peer).quit},
		"role":         {least: 1, most: 1, do: (*peer).role},
		"sentinel":     {least: 2, do: (*peer).sentinel},
		"shutdown":     {least: 1, do: refuse("ERR The sentinel port is part of the server: SHUTDOWN is for the server's own port")},
		"subscribe":    {least: 2, subscribed: true, do: subscribe("subscribe", (*peer).channelSet)},
		"unsubscribe":  {least: 1, subscribed: true, do: unsubscribe("unsubscribe", (*peer).channelSet)},
	}
	subcommands = map[string]command{
		"ckquorum":                {least: 3, most: 3, do: named((*peer).checkQuorum)},
		"config":                  {least: 3, do: (*peer).config},
		"debug":                   {least: 2, do: (*peer).debug},
		"failover":                {least: 3, most: 3, do: named((*peer).failover)},
		"flushconfig":             {least: 2, most: 2, do: (*peer).ok},
		"get-master-addr-by-name": {least: 3, most: 3, do: (*peer).masterAddr},
		"help":                    {least: 2, most: 2, do: (*peer).help},
		"info-cache":              {least: 3, do: (*peer).infoCache},
		"is-master-down-by-addr":  {least: 6, most: 6, do: (*peer).isMasterDown},
		"master": {least: 3, most: 3, do: named(func(p *peer, s *state, _ []string) bool {
			return p.reply1(func(w *resp.Writer) { writePairs(w, s.describeMaster(p.d.name(), p.host, time.Now())) })
		})},
		"masters":          {least: 2, most: 2, do: (*peer).masters},
		"monitor":          {least: 6, most: 6, do: (*peer).monitor},
		"myid":             {least: 2, most: 2, do: (*peer).myID},
		"pending-scripts":  {least: 2, most: 2, do: (*peer).nothing},
		"remove":           {least: 3, most: 3, do: named(refuseNamed("ERR The server watches its own group, and nothing else: that cannot be removed"))},
		"replicas":         {least: 3, most: 3, do: named((*peer).replicas)},
		"reset":            {least: 3, most: 3, do: (*peer).reset},
		"sentinels":        {least: 3, most: 3, do: named((*peer).sentinels)},
		"set":              {least: 5, do: named((*peer).set)},
		"simulate-failure": {least: 3, do: (*peer).simulate},
		"slaves":           {least: 3, most: 3, do: named((*peer).replicas)},
	}
}

const (
	errNoMaster  = "ERR No such master with that name"
	errNoReplica = "NOGOODSLAVE No suitable replica to promote"
)

// reply1 is reply for use as the result of a handler.
func (p *peer) reply1(write func(w *resp.Writer)) bool {
	p.reply(write)
	return true
}

func (p *peer) fail(text string) bool { return p.reply1(func(w *resp.Writer) { w.Error(text) }) }

func (p *peer) ok([]string) bool { return p.reply1((*resp.Writer).OK) }

func (p *peer) nothing([]string) bool { return p.reply1(func(w *resp.Writer) { w.Array(0) }) }

// refuse answers a command with an error.
func refuse(text string) handler { return func(p *peer, _ []string) bool { return p.fail(text) } }

func refuseNamed(text string) func(p *peer, _ *state, _ []string) bool {
	return func(p *peer, _ *state, _ []string) bool { return p.fail(text) }
}

// named returns the handler of a subcommand whose first argument is the name of the master.
func named(do func(p *peer, s *state, args []string) bool) handler {
	return func(p *peer, args []string) bool {
		s := p.d.state.Load()
		if !s.known || args[2] != p.d.name() {
			return p.fail(errNoMaster)
		}
		return do(p, s, args)
	}
}

// fits reports whether the number of arguments is right.
func (c command) fits(args []string) bool {
	return len(args) >= c.least && (c.most == 0 || len(args) <= c.most)
}

func errArity(name string) string {
	return fmt.Sprintf("ERR wrong number of arguments for '%s' command", name)
}

// execute answers a command, and reports whether the connection continues.
func (p *peer) execute(args []string) bool {
	name := strings.ToLower(args[0])
	c, ok := commands[name]
	switch {
	case !ok:
		return p.fail(unknown(args))
	case !c.fits(args):
		return p.fail(errArity(name))
	case !c.subscribed && p.confined():
		return p.fail(fmt.Sprintf("ERR Can't execute '%s': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET "+
			"are allowed in this context", name))
	}
	if !c.open {
		if err := p.conn.Client.Permitted(args); err != nil {
			return p.failed(err)
		}
	}
	return c.do(p, args)
}

// unknown returns the error for an unknown command.
func unknown(args []string) string {
	var b strings.Builder
	for _, a := range args[1:] {
		if b.Len() >= 128 {
			break
		}
		fmt.Fprintf(&b, "'%.*s' ", 128-b.Len(), a)
	}
	return fmt.Sprintf("ERR unknown command '%.128s', with args beginning with: %s", args[0], b.String())
}

// failed answers with the error of a command that the server has executed.
func (p *peer) failed(err error) bool {
	var refused resp.Error
	if !errors.As(err, &refused) {
		return false
	}
	return p.fail(string(refused))
}

// confined reports whether the peer may only send commands of subscriptions.
func (p *peer) confined() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.w.Proto == 2 && len(p.channels)+len(p.patterns) > 0
}

// ask sends a command to the server and passes on the reply.
func (p *peer) ask(args []string) bool {
	list := make([]any, len(args))
	for i, a := range args {
		list[i] = a
	}
	r, err := p.conn.Client.Control(p.conn.Context(), list...)
	if err != nil {
		return p.failed(err)
	}
	return p.reply1(func(w *resp.Writer) { w.Reply(r) })
}

// clientCommands has the subcommands of CLIENT that do not change replies.
var clientCommands = map[string]bool{"setname": true, "getname": true, "setinfo": true, "id": true, "info": true, "list": true,
	"kill": true, "no-evict": true, "no-touch": true, "help": true}

func (p *peer) client(args []string) bool {
	if !clientCommands[strings.ToLower(args[1])] {
		return p.fail(fmt.Sprintf("ERR unknown subcommand '%.128s'. Try CLIENT HELP.", args[1]))
	}
	return p.ask(args)
}

func (p *peer) hello(args []string) bool {
	p.mu.Lock()
	proto := p.w.Proto
	p.mu.Unlock()
	if len(args) > 1 {
		n, ok := resp.ParseInt([]byte(args[1]))
		switch {
		case !ok:
			return p.fail("ERR Protocol version is not an integer or out of range")
		case n != 2 && n != 3:
			return p.fail("NOPROTO unsupported protocol version")
		}
		proto = int(n)
	}
	ctx, client := p.conn.Context(), p.conn.Client
	for rest := args[min(2, len(args)):]; len(rest) > 0; {
		var err error
		switch option := strings.ToLower(rest[0]); {
		case option == "auth" && len(rest) >= 3:
			err, rest = client.Auth(ctx, rest[1], rest[2]), rest[3:]
		case option == "setname" && len(rest) >= 2:
			err, rest = client.SetName(ctx, rest[1]), rest[2:]
		default:
			return p.fail(fmt.Sprintf("ERR Syntax error in HELLO option '%.128s'", rest[0]))
		}
		if err != nil {
			return p.failed(err)
		}
	}
	r, err := client.Control(ctx, "CLIENT", "ID")
	if err != nil {
		return p.failed(err)
	}
	id, _ := r.Int()
	return p.reply1(func(w *resp.Writer) {
		w.Proto = proto
		w.Map(6)
		w.BulkString("server")
		w.BulkString("redis")
		w.BulkString("version")
		w.BulkString(version.Redis)
		w.BulkString("proto")
		w.Int(int64(proto))
		w.BulkString("id")
		w.Int(id)
		w.BulkString("mode")
		w.BulkString("sentinel")
		w.BulkString("modules")
		w.Array(0)
	})
}

func (p *peer) ping(args []string) bool {
	said, confined := "", p.confined()
	if len(args) > 1 {
		said = args[1]
	}
	return p.reply1(func(w *resp.Writer) {
		switch {
		case confined:
			w.Array(2)
			w.BulkString("pong")
			w.BulkString(said)
		case len(args) > 1:
			w.BulkString(said)
		default:
			w.Simple("PONG")
		}
	})
}

func (p *peer) quit([]string) bool {
	p.reply((*resp.Writer).OK)
	return false
}

func (p *peer) role([]string) bool {
	return p.reply1(func(w *resp.Writer) {
		w.Array(2)
		w.BulkString("sentinel")
		w.Array(1)
		w.BulkString(p.d.name())
	})
}

// publish accepts the announcements of other Sentinels, and ignores them.
func (p *peer) publish(args []string) bool {
	if args[1] != "__sentinel__:hello" {
		return p.fail("ERR Only HELLO messages are accepted by Sentinel instances.")
	}
	return p.reply1(func(w *resp.Writer) { w.Int(1) })
}

func (p *peer) channelSet() map[string]struct{} { return p.channels }
func (p *peer) patternSet() map[string]struct{} { return p.patterns }

// confirm writes the confirmation of a subscription's begin or end.
func (p *peer) confirm(w *resp.Writer, what, name string) {
	w.Push(3)
	w.BulkString(what)
	w.BulkString(name)
	w.Int(int64(len(p.channels) + len(p.patterns)))
}

func subscribe(what string, set func(p *peer) map[string]struct{}) handler {
	return func(p *peer, args []string) bool {
		p.mu.Lock()
		tooMany := len(p.channels)+len(p.patterns)+len(args)-1 > maxSubscriptions
		p.mu.Unlock()
		if tooMany {
			return p.fail("ERR too many subscriptions")
		}
		return p.reply1(func(w *resp.Writer) {
			for _, name := range args[1:] {
				set(p)[name] = struct{}{}
				p.confirm(w, what, name)
			}
		})
	}
}

func unsubscribe(what string, set func(p *peer) map[string]struct{}) handler {
	return func(p *peer, args []string) bool {
		return p.reply1(func(w *resp.Writer) {
			names := args[1:]
			if len(names) == 0 {
				for name := range set(p) {
					names = append(names, name)
				}
			}
			for _, name := range names {
				delete(set(p), name)
				p.confirm(w, what, name)
			}
			if len(names) == 0 {
				w.Push(3)
				w.BulkString(what)
				w.Null()
				w.Int(int64(len(p.channels) + len(p.patterns)))
			}
		})
	}
}

// serverSections are the sections of INFO that come from the server.
var serverSections = []string{"server", "clients", "stats", "cpu"}

func (p *peer) info(args []string) bool {
	wanted := map[string]bool{}
	for _, a := range args[1:] {
		wanted[strings.ToLower(a)] = true
	}
	all := len(args) == 1 || wanted["all"] || wanted["default"] || wanted["everything"]
	ask := []any{"INFO"}
	for _, name := range serverSections {
		if all || wanted[name] {
			ask = append(ask, name)
		}
	}
	text := ""
	if len(ask) > 1 {
		r, err := p.conn.Client.Do(p.conn.Context(), ask...)
		if err == nil {
			text, err = r.Text()
		}
		if err != nil {
			return p.failed(err)
		}
		text = replaceLine(replaceLine(text, "redis_mode:", "sentinel"), "tcp_port:", p.port())
	}
	if all || wanted["sentinel"] {
		if text != "" {
			text += "\r\n"
		}
		text += p.infoSentinel()
	}
	return p.reply1(func(w *resp.Writer) { w.Verbatim("txt", text) })
}

// port returns the port at which the peer has reached the door.
func (p *peer) port() string {
	_, port, _ := net.SplitHostPort(p.conn.LocalAddr().String())
	return port
}

// replaceLine replaces the value of a field of INFO.
func replaceLine(text, field, value string) string {
	at := strings.Index(text, "\n"+field)
	if at < 0 {
		return text
	}
	at += 1 + len(field)
	end := at + max(strings.IndexByte(text[at:], '\r'), 0)
	return text[:at] + value + text[end:]
}

// infoSentinel returns the section of INFO that only Sentinels have.
func (p *peer) infoSentinel() string {
	s := p.d.state.Load()
	masters, line := 0, ""
	if s.known {
		masters = 1
		line = fmt.Sprintf("master0:name=%s,status=%s,address=%s,slaves=%d,sentinels=%d\r\n", p.d.name(), s.status(),
			net.JoinHostPort(split(s.master.Addr, p.host)), len(s.replicas), len(s.sentinels)+1)
	}
	return fmt.Sprintf("# Sentinel\r\nsentinel_masters:%d\r\nsentinel_tilt:0\r\nsentinel_tilt_since_seconds:-1\r\n"+
		"sentinel_running_scripts:0\r\nsentinel_scripts_queue_length:0\r\nsentinel_simulate_failure_flags:0\r\n%s", masters, line)
}

// sentinel answers SENTINEL.
func (p *peer) sentinel(args []string) bool {
	name := strings.ToLower(args[1])
	c, ok := subcommands[name]
	switch {
	case !ok:
		return p.fail(fmt.Sprintf("ERR unknown subcommand '%.128s'. Try SENTINEL HELP.", args[1]))
	case !c.fits(args):
		return p.fail(errArity("sentinel|" + name))
	}
	return c.do(p, args)
}

func writePairs(w *resp.Writer, p pairs) {
	w.Map(len(p) / 2)
	for _, word := range p {
		w.BulkString(word)
	}
}

// masterAddr answers with the present master. In a group that is a leader that is known to lead now: a client that gets none
// asks another Sentinel.
func (p *peer) masterAddr(args []string) bool {
	s := p.d.look(time.Now())
	return p.reply1(func(w *resp.Writer) {
		if !s.known || args[2] != p.d.name() || s.InGroup && s.sdown {
			w.NullArray()
			return
		}
		ip, port := split(s.master.Addr, p.host)
		w.Array(2)
		w.BulkString(ip)
		w.BulkString(port)
	})
}

func (p *peer) masters([]string) bool {
	s := p.d.state.Load()
	return p.reply1(func(w *resp.Writer) {
		if !s.known {
			w.Array(0)
			return
		}
		w.Array(1)
		writePairs(w, s.describeMaster(p.d.name(), p.host, time.Now()))
	})
}

func (p *peer) replicas(s *state, _ []string) bool {
	return p.reply1(func(w *resp.Writer) {
		w.Array(len(s.replicas))
		for _, m := range s.replicas {
			writePairs(w, s.describeReplica(m, p.host, time.Now()))
		}
	})
}

func (p *peer) sentinels(s *state, _ []string) bool {
	return p.reply1(func(w *resp.Writer) {
		w.Array(len(s.sentinels))
		for _, m := range s.sentinels {
			writePairs(w, s.describeSentinel(m, p.host, time.Now()))
		}
	})
}

func (p *peer) checkQuorum(s *state, _ []string) bool {
	switch {
	case !s.InGroup:
		return p.fail("NOQUORUM The server belongs to no group, and nothing takes the place of a master that is down")
	case s.usable < s.quorum:
		return p.fail(fmt.Sprintf("NOQUORUM %d usable Sentinels. Not enough available Sentinels to reach the specified quorum "+
			"for this master. Not enough available Sentinels to reach the majority and authorize a failover", s.usable))
	}
	return p.reply1(func(w *resp.Writer) {
		w.Simple(fmt.Sprintf("OK %d usable Sentinels. Quorum and failover authorization can be reached", s.usable))
	})
}

func (p *peer) myID([]string) bool {
	s := p.d.state.Load()
	return p.reply1(func(w *resp.Writer) { w.BulkString(s.Members[0].ID) })
}

func (p *peer) isMasterDown(args []string) bool {
	for _, number := range []string{args[3], args[4]} {
		if _, ok := resp.ParseInt([]byte(number)); !ok {
			return p.fail("ERR value is not an integer or out of range")
		}
	}
	s := p.d.state.Load()
	down := int64(0)
	if ip, port := split(s.master.Addr, p.host); s.sdown && ip == args[2] && port == args[3] {
		down = 1
	}
	return p.reply1(func(w *resp.Writer) { // never votes: the group elects its leader
		w.Array(3)
		w.Int(down)
		w.BulkString("*")
		w.Int(0)
	})
}

// infoCache answers with INFO of this server only; that of other servers is unknown here.
func (p *peer) infoCache(args []string) bool {
	found := 0
	for _, name := range args[2:] {
		if name == p.d.name() {
			found = 1
		}
	}
	if found == 0 {
		return p.nothing(args)
	}
	r, err := p.conn.Client.Do(p.conn.Context(), "INFO")
	if err != nil {
		return p.failed(err)
	}
	text, _ := r.Text()
	return p.reply1(func(w *resp.Writer) {
		w.Map(1)
		w.BulkString(p.d.name())
		w.Array(1)
		w.Array(2)
		w.Int(0)
		w.BulkString(text)
	})
}

func (p *peer) config(args []string) bool {
	switch verb := strings.ToLower(args[2]); {
	case verb == "get" && len(args) == 4:
	case verb == "set" && len(args) == 5:
		return p.fail(fmt.Sprintf("ERR Invalid argument '%.128s' to SENTINEL CONFIG SET", args[3]))
	default:
		return p.fail("ERR Only SENTINEL CONFIG GET <option> / SET <option> <value> are supported.")
	}
	ip, port := split(p.d.state.Load().Members[0].Sentinel, "")
	var found pairs
	for _, o := range [][2]string{{"resolve-hostnames", "yes"}, {"announce-hostnames", "yes"}, {"announce-ip", ip},
		{"announce-port", port}, {"sentinel-user", ""}, {"sentinel-pass", ""}} {
		if glob.Match([]byte(args[3]), []byte(o[0]), true) {
			found.add(o[0], o[1])
		}
	}
	return p.reply1(func(w *resp.Writer) { writePairs(w, found) })
}

func (p *peer) debug(args []string) bool {
	if len(args) > 2 {
		return p.fail(fmt.Sprintf("ERR Unknown option or number of arguments for SENTINEL DEBUG '%.128s'", args[2]))
	}
	var list pairs
	list.ms("INFO-PERIOD", period)
	list.ms("PING-PERIOD", period)
	list.ms("DEFAULT-DOWN-AFTER", p.d.state.Load().Timeout)
	list.ms("DEFAULT-FAILOVER-TIMEOUT", 2*p.d.state.Load().Timeout)
	return p.reply1(func(w *resp.Writer) { writePairs(w, list) })
}

// failover makes another server the leader.
func (p *peer) failover(s *state, _ []string) bool {
	if !s.InGroup || s.usable < 2 {
		return p.fail(errNoReplica)
	}
	if _, err := p.conn.Client.Do(p.conn.Context(), "RAFT.TRANSFER"); err != nil {
		return p.failed(err)
	}
	return p.ok(nil)
}

func (p *peer) monitor(args []string) bool {
	quorum, ok := resp.ParseInt([]byte(args[5]))
	switch {
	case !ok:
		return p.fail("ERR Invalid quorum")
	case quorum <= 0:
		return p.fail("ERR Quorum must be 1 or greater.")
	case args[2] == p.d.name():
		return p.fail("ERR Duplicate master name.")
	}
	return p.fail("ERR The server watches its own group, and nothing else")
}

func (p *peer) reset(args []string) bool {
	s, name := p.d.state.Load(), p.d.name()
	if !s.known || !glob.Match([]byte(args[2]), []byte(name), true) {
		return p.reply1(func(w *resp.Writer) { w.Int(0) })
	}
	p.d.tell(func(host string) []event {
		ip, port := split(s.master.Addr, host)
		return []event{{"+reset-master", words("master", name, ip, port)}}
	})
	return p.reply1(func(w *resp.Writer) { w.Int(1) })
}

// tuning has the options of SENTINEL SET that are accepted and ignored: the group's own directives set how long a
// leader may be silent. The value says whether the option must be a number.
var tuning = map[string]bool{"down-after-milliseconds": true, "failover-timeout": true, "parallel-syncs": true, "quorum": true,
	"auth-pass": false, "auth-user": false, "master-reboot-down-after-period": true}

func (p *peer) set(_ *state, args []string) bool {
	for o := args[3:]; len(o) > 0; o = o[2:] {
		numeric, ok := tuning[strings.ToLower(o[0])]
		if !ok || len(o) < 2 {
			return p.fail(fmt.Sprintf("ERR Unknown option or number of arguments for SENTINEL SET '%.128s'", o[0]))
		}
		if n, ok := resp.ParseInt([]byte(o[1])); numeric && (!ok || n < 0) {
			return p.fail(fmt.Sprintf("ERR Invalid argument '%.128s' for SENTINEL SET '%.128s'", o[1], o[0]))
		}
	}
	return p.ok(nil)
}

func (p *peer) simulate(args []string) bool {
	known := []string{"crash-after-election", "crash-after-promotion"}
	switch mode := strings.ToLower(args[2]); mode {
	case "help":
		return p.reply1(func(w *resp.Writer) {
			w.Array(len(known))
			for _, name := range known {
				w.BulkString(name)
			}
		})
	case known[0], known[1]:
		return p.fail("ERR No failures are simulated here")
	}
	return p.fail("ERR Unknown failure simulation specified")
}

func (p *peer) help([]string) bool {
	lines := []string{"SENTINEL <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
		"CKQUORUM <master-name>", "    Say whether enough servers are there to have another one lead.",
		"FAILOVER <master-name>", "    Have another server lead.",
		"GET-MASTER-ADDR-BY-NAME <master-name>", "    Return the host and the port of who leads.",
		"MASTER <master-name>", "    Describe who leads.",
		"MASTERS", "    Describe who leads, in a list.",
		"MYID", "    Return the ID of this server.",
		"REPLICAS <master-name>", "    Describe who follows.",
		"SENTINELS <master-name>", "    Describe the other servers with a sentinel-port.",
		"HELP", "    Print this help.",
	}
	return p.reply1(func(w *resp.Writer) {
		w.Array(len(lines))
		for _, l := range lines {
			w.Simple(l)
		}
	})
}
