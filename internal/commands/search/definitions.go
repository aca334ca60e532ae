package search

import (
	"bytes"
	"cmp"
	"crypto/sha1"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/search/catalog"
	"github.com/atomredis/atomredis/internal/search/fanout"
	"github.com/atomredis/atomredis/internal/search/schema"
	"github.com/atomredis/atomredis/internal/search/spell"
	"github.com/atomredis/atomredis/internal/wire/peer"
	"github.com/atomredis/atomredis/resp"
)

// All shards of a cluster have the same definitions. An index with its fields and synonyms is one item, and so are
// an alias and a dictionary. Each item has a stamp: a count that is higher than all that the shard knew, and the
// shard that changed the item. Of two versions of an item the one with the later stamp counts on all shards. A
// dropped item keeps its stamp, so it does not come back from a shard that missed the drop.
//
// The shard where a client changes a definition sends the item to all others before the client gets its reply. A
// shard that was unreachable catches up by itself: shards exchange a digest of their items when they ask each other
// for news, and fetch the items if digests differ. A new shard that meets the cluster does the same.
//
// Stamps are stored and journalled as commands, FT._STAMP. Servers without shards have none.

// stamp is the version of an item. The zero value belongs to items from before there were shards.
type stamp struct {
	Count   uint64
	Shard   string
	Gone    bool // the item was dropped
	Deletes bool // with its documents
}

// item is an item as shards send it.
type item struct {
	catalog.Item
	stamp
	// Commands make the item; none if it was dropped.
	Commands [][][]byte `json:",omitempty"`
}

// maxGone is how many dropped items are remembered: the latest ones.
const maxGone = 10_000

// definitions has the stamps of a server's items.
type definitions struct {
	mu     sync.Mutex
	stamps map[catalog.Item]stamp
	count  uint64 // the highest
	gone   int    // number of dropped items in stamps

	// noted are the items that the present command has changed. All shards of the keyspace are held.
	noted []catalog.Item
	// fetching are the shards whose items are being fetched.
	fetching map[string]bool
}

// get returns the stamp of an item.
func (d *definitions) get(k catalog.Item) (st stamp, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	st, ok = d.stamps[k]
	return st, ok
}

// next returns the count for a new change.
func (d *definitions) next() uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.count + 1
}

// set gives an item a stamp. It forgets old dropped items.
func (d *definitions) set(k catalog.Item, st stamp) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stamps == nil {
		d.stamps = map[catalog.Item]stamp{}
	}
	if d.stamps[k].Gone {
		d.gone--
	}
	d.stamps[k] = st
	d.count = max(d.count, st.Count)
	if !st.Gone {
		return
	}
	if d.gone++; d.gone > maxGone {
		delete(d.stamps, d.oldestGone())
		d.gone--
	}
}

// oldestGone returns the dropped item with the earliest stamp. mu is locked.
func (d *definitions) oldestGone() (oldest catalog.Item) {
	var least stamp
	found := false
	for k, st := range d.stamps {
		if st.Gone && (!found || earlier(k, st, oldest, least)) {
			oldest, least, found = k, st, true
		}
	}
	return oldest
}

// earlier orders stamps; stamps of one change are ordered by item.
func earlier(a catalog.Item, as stamp, b catalog.Item, bs stamp) bool {
	return cmp.Or(cmp.Compare(as.Count, bs.Count), cmp.Compare(as.Shard, bs.Shard), cmp.Compare(a.Kind, b.Kind),
		cmp.Compare(a.Name, b.Name)) < 0
}

// forgotten reports whether a dropped item is too old to be remembered.
func (d *definitions) forgotten(k catalog.Item, st stamp) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.gone < maxGone {
		return false
	}
	oldest := d.oldestGone()
	return earlier(k, st, oldest, d.stamps[oldest])
}

// reset drops all stamps.
func (d *definitions) reset() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stamps, d.count, d.gone = nil, 0, 0
}

// all returns a copy of the stamps.
func (d *definitions) all() map[catalog.Item]stamp {
	d.mu.Lock()
	defer d.mu.Unlock()
	return maps.Clone(d.stamps)
}

// each calls do with all stamps in the order of their items.
func (d *definitions) each(do func(k catalog.Item, st stamp)) {
	all := d.all()
	for _, k := range slices.SortedFunc(maps.Keys(all), func(a, b catalog.Item) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	}) {
		do(k, all[k])
	}
}

// used identifies the definition that a query uses: if two shards have equal ones, they mean the same index.
type used struct {
	Name         string
	Index, Alias stamp
}

// stampOf returns the definition that a name stands for.
func (s *service) stampOf(name []byte) (u used) {
	if x := s.Lookup(string(name)); x != nil {
		u.Name = x.Name
		u.Index, _ = s.defs.get(catalog.Item{Kind: catalog.IndexItem, Name: x.Name})
		if x.Name != string(name) {
			u.Alias, _ = s.defs.get(catalog.Item{Kind: catalog.AliasItem, Name: string(name)})
		}
	}
	return u
}

var (
	stampWord   = []byte("FT._STAMP")
	dictAddWord = []byte("FT.DICTADD")
	dictDelWord = []byte("FT.DICTDEL")
)

// stampArgs returns the command that sets a stamp.
func stampArgs(k catalog.Item, st stamp) [][]byte {
	return [][]byte{stampWord, []byte(k.Kind), []byte(k.Name), strconv.AppendUint(nil, st.Count, 10), []byte(st.Shard),
		strconv.AppendInt(nil, boolInt(st.Gone), 10), strconv.AppendInt(nil, boolInt(st.Deletes), 10)}
}

// setStamp executes FT._STAMP.
func (s *service) setStamp(args [][]byte) error {
	if len(args) == 7 {
		if n, err := strconv.ParseUint(string(args[3]), 10, 64); err == nil {
			s.defs.set(catalog.Item{Kind: string(args[1]), Name: string(args[2])},
				stamp{n, string(args[4]), string(args[5]) == "1", string(args[6]) == "1"})
			return nil
		}
	}
	return errors.New("a stamp is damaged")
}

// stampCommand is FT._STAMP, which occurs only in journals.
func stampCommand(c *command.Ctx) {
	if !c.Origin.In(command.Accepted) {
		c.Err("ERR FT._STAMP is only allowed in journals")
		return
	}
	if err := c.Host.Service(serviceID).(*service).setStamp(c.Args); err != nil {
		fail(c, err)
		return
	}
	c.Journal(c.Args...)
	c.W.OK()
}

// defining returns the handler of a command that changes definitions: the other shards get the changes of do before
// the client gets its reply.
func defining(do func(c *command.Ctx)) func(c *command.Ctx) {
	return func(c *command.Ctx) {
		s := c.Host.Service(serviceID).(*service)
		s.defs.noted = nil
		if c.Client == nil || c.Origin.In(command.Accepted) || !s.others() {
			do(c)
			return
		}
		if c.NoBlock {
			c.Err(cannotBlock(c))
			return
		}
		start := len(c.W.Buf)
		do(c)
		if len(s.defs.noted) == 0 {
			return
		}
		changed := s.items(s.defs.noted)
		own := &command.Ctx{W: &resp.Writer{Buf: bytes.Clone(c.W.Buf[start:]), Proto: c.W.Proto}, Cmd: c.Cmd}
		c.W.Truncate(start)
		s.await(c, own, func() {
			if err := s.push(changed); err != nil {
				own.W.Truncate(0)
				own.W.Error(err.Error())
			}
		})
	}
}

// note gives an item the next stamp, after a command has changed it.
func note(c *command.Ctx, kind, name string, gone, deletes bool) {
	s := c.Host.Service(serviceID).(*service)
	if sh := shardsOf(s.host); sh != nil && !c.Origin.In(command.Accepted) {
		c.Journal(s.noteIn(kind, name, gone, deletes)...)
	}
}

// noteIn is note without a command. It returns the command to journal.
func (s *service) noteIn(kind, name string, gone, deletes bool) [][]byte {
	k := catalog.Item{Kind: kind, Name: name}
	st := stamp{s.defs.next(), shardsOf(s.host).Now().ID, gone, deletes}
	s.defs.set(k, st)
	s.defs.noted = append(s.defs.noted, k)
	return stampArgs(k, st)
}

// emptied stamps all items as dropped, because all keys are gone and the indexes with them. Servers that repeat the
// command give the same stamps.
func (s *service) emptied() {
	sh := shardsOf(s.host)
	if sh == nil {
		return
	}
	st := stamp{Count: s.defs.next(), Shard: sh.Now().ID, Gone: true}
	for k, old := range s.defs.all() {
		if !old.Gone {
			s.defs.set(k, st)
		}
	}
	for _, it := range s.items(nil) {
		if !it.Gone {
			s.defs.set(it.Item, st)
		}
	}
}

// items returns the named items, or all items without names, indexes first.
func (s *service) items(only []catalog.Item) []item {
	stamps := s.defs.all()
	var list []item
	has := map[catalog.Item]bool{}
	s.Items(func(k catalog.Item, commands [][][]byte) {
		has[k] = true
		if only == nil || slices.Contains(only, k) {
			list = append(list, item{k, stamps[k], commands})
		}
	})
	for k, st := range stamps {
		if !has[k] && (only == nil || slices.Contains(only, k)) {
			st.Gone = true
			list = append(list, item{Item: k, stamp: st})
		}
	}
	rank := map[string]int{catalog.IndexItem: 0, catalog.AliasItem: 1, catalog.DictItem: 2}
	slices.SortFunc(list, func(a, b item) int {
		return cmp.Or(cmp.Compare(rank[a.Kind], rank[b.Kind]), strings.Compare(a.Name, b.Name))
	})
	return list
}

// Definitions returns a digest of a server's definitions. Equal definitions have equal digests.
func Definitions(h command.Host) string {
	list := h.Service(serviceID).(*service).items(nil)
	if len(list) == 0 {
		return ""
	}
	sum := sha1.New()
	for _, it := range list {
		if it.Count > 0 {
			it.Commands = nil // the stamp identifies them
		}
		text, _ := json.Marshal(it)
		sum.Write(text)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// Heard receives the digest of another shard's definitions. If the server leads and its own digest differs, it
// fetches them.
func Heard(h command.Host, shard, digest string) {
	s := h.Service(serviceID).(*service)
	sh := shardsOf(h)
	if digest == "" || sh == nil || !sh.Leads() || digest == Definitions(h) {
		return
	}
	s.defs.mu.Lock()
	busy := s.defs.fetching[shard]
	if s.defs.fetching == nil {
		s.defs.fetching = map[string]bool{}
	}
	s.defs.fetching[shard] = true
	s.defs.mu.Unlock()
	if busy {
		return
	}
	s.asking.Go(func() {
		if err := s.fetch(shard); err != nil {
			h.Log().Warn("the definitions of search indexes of another shard cannot be fetched", "shard", shard, "error", err.Error())
		}
		s.defs.mu.Lock()
		delete(s.defs.fetching, shard)
		s.defs.mu.Unlock()
	})
}

// defineTimeout is how long another shard may take to agree on definitions.
const defineTimeout = 5 * time.Second

// fetch gets and adopts the definitions of another shard.
func (s *service) fetch(shard string) error {
	a, err := s.caller().Ask(shard, &fanout.Question{What: askItems}, time.Now().Add(defineTimeout))
	if err != nil {
		return err
	}
	defer a.Close()
	part, _, err := a.Part()
	if err != nil {
		return err
	}
	var list []item
	if err := json.Unmarshal(part, &list); err != nil {
		return err
	}
	return s.adopt(list)
}

// giveItems answers askItems.
func (s *service) giveItems() (fanout.Answer, error) {
	text, err := json.Marshal(s.items(nil))
	return &given{fanout.View{Shard: shardsOf(s.host).Now().ID}, text}, err
}

// takeItems answers askDefine.
func (s *service) takeItems(q *fanout.Question) (fanout.Answer, error) {
	var list []item
	if err := json.Unmarshal(q.Body, &list); err != nil {
		return nil, err
	}
	if err := s.adopt(list); err != nil {
		return nil, err
	}
	return &given{fanout.View{Shard: shardsOf(s.host).Now().ID}, nil}, nil
}

// push sends items to all other shards. The error names the first shard that did not take them.
func (s *service) push(list []item) error {
	text, err := json.Marshal(list)
	if err != nil {
		return err
	}
	q := &fanout.Question{What: askDefine, Body: text}
	others := shardsOf(s.host).Now().Record.Others
	failed := make([]error, len(others))
	var pushing sync.WaitGroup
	for i, o := range others {
		pushing.Go(func() {
			a, err := s.caller().Ask(o.ID, q, time.Now().Add(defineTimeout))
			if err == nil {
				_, _, err = a.Part()
				a.Close()
			}
			failed[i] = err
		})
	}
	pushing.Wait()
	for i, err := range failed {
		if err != nil {
			return fmt.Errorf("CLUSTERDOWN The definition is changed here, and shard %s will have it when it answers: %s", others[i].ID,
				strings.ReplaceAll(reason(err).Error(), "\n", ": "))
		}
	}
	return nil
}

// reason returns why a shard does not answer.
func reason(err error) error {
	var u *fanout.Unreachable
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// later reports whether an item must replace the version old.
func (it *item) later(old *item) bool {
	if c := cmp.Or(cmp.Compare(it.Count, old.Count), cmp.Compare(it.Shard, old.Shard), cmp.Compare(boolInt(it.Gone), boolInt(old.Gone))); c != 0 {
		return c > 0
	}
	if it.Count > 0 || it.Gone {
		return false
	}
	return slices.CompareFunc(it.Commands, old.Commands, func(a, b [][]byte) int { return slices.CompareFunc(a, b, bytes.Compare) }) > 0
}

// adopt installs those items of another shard that are later than the server's own.
func (s *service) adopt(list []item) error {
	ks := s.host.Keyspace()
	var g engine.Guard
	g.Lock(ks, engine.AllShards, ks.Now())
	defer g.Unlock()
	if !shardsOf(s.host).Leads() {
		return notLeading
	}
	own := map[catalog.Item]*item{}
	for _, it := range s.items(nil) {
		own[it.Item] = &it
	}
	var failed []error
	for i := range list {
		it := &list[i]
		k := it.Item
		if old := own[k]; old != nil && !it.later(old) || old == nil && it.Gone && s.defs.forgotten(k, it.stamp) {
			continue
		}
		if err := s.install(&g, it); err != nil {
			failed = append(failed, fmt.Errorf("%s %s: %w", it.Kind, it.Name, err))
			continue
		}
		if it.Count > 0 || it.Gone {
			s.defs.set(k, it.stamp)
			g.Log(0, stampArgs(k, it.stamp))
		}
	}
	return errors.Join(failed...)
}

// install makes or drops an item, and journals that.
func (s *service) install(g *engine.Guard, it *item) error {
	if !it.Gone && (len(it.Commands) == 0 || len(it.Commands[0]) < 3) {
		return peer.ErrFrame
	}
	switch it.Kind {
	case catalog.IndexItem:
		return s.installIndex(g, it)
	case catalog.AliasItem:
		if it.Gone {
			s.SetAlias(it.Name, nil)
			g.Log(0, [][]byte{aliasDelWord, []byte(it.Name)})
			return nil
		}
		of := it.Commands[0][2]
		x := s.Named(string(of))
		if x == nil {
			return errors.New(string(noSuchIndex(of)))
		}
		s.SetAlias(it.Name, x)
		g.Log(0, [][]byte{aliasUpdateWord, []byte(it.Name), of})
	case catalog.DictItem:
		s.installDictionary(g, it)
	}
	return nil
}

// installDictionary gives a dictionary the words of an item.
func (s *service) installDictionary(g *engine.Guard, it *item) {
	var want []string
	if !it.Gone {
		want = words(it.Commands[0][2:])
	}
	name := []byte(it.Name)
	var old []string
	s.Dictionary(it.Name, func(d *spell.Dict) { old = d.Words() })
	if len(old) > 0 {
		s.RemoveFromDictionary(it.Name, old)
		g.Log(0, append([][]byte{dictDelWord, name}, catalog.Bytes(old)...))
	}
	if len(want) > 0 {
		s.AddToDictionary(it.Name, want)
		g.Log(0, append([][]byte{dictAddWord, name}, catalog.Bytes(want)...))
	}
}

// installIndex makes an index equal to that of another shard. If only fields are missing, it adds them; otherwise it
// makes the index again, with its aliases.
func (s *service) installIndex(g *engine.Guard, it *item) error {
	x := s.Named(it.Name)
	if it.Gone {
		if x != nil {
			s.logDrop(g, x)
			dropIndex(g, s.Catalog, x, it.Deletes)
		}
		return nil
	}
	args := it.Commands[0]
	def, err := schema.Parse(it.Name, args[2:], checks)
	if err != nil {
		return err
	}
	switch old := s.argsOf(x); {
	case x != nil && len(args) == len(old) && hasPrefix(args, old):
	case x != nil && hasPrefix(args, old):
		fields := args[len(old):]
		if def, err = x.Definition().ParseFields(fields, checks); err != nil {
			return err
		}
		s.Alter(x, def, fields)
		s.Fill(g, x)
		g.Log(0, append([][]byte{alterWord, []byte(x.Name), []byte("SCHEMA"), []byte("ADD")}, fields...))
	default:
		var aliases []string
		if x != nil {
			aliases = s.Aliases(x)
			s.logDrop(g, x)
			s.Drop(x)
		}
		if x, err = s.define(def, args); err != nil {
			return err
		}
		if !def.SkipScan {
			s.Fill(g, x)
		}
		g.Log(0, args)
		for _, alias := range aliases {
			s.SetAlias(alias, x)
			g.Log(0, [][]byte{aliasAddWord, []byte(alias), []byte(x.Name)})
		}
	}
	for _, synonyms := range it.Commands[1:] {
		if len(synonyms) < 4 {
			return peer.ErrFrame
		}
		if refused := x.UpdateSynonyms(string(synonyms[2]), words(synonyms[3:])); refused != "" {
			return errors.New(refused)
		}
		s.Fill(g, x)
		g.Log(0, synonyms)
	}
	return nil
}

// logDrop journals that an index is dropped.
func (s *service) logDrop(g *engine.Guard, x *catalog.Index) {
	g.Log(0, [][]byte{dropWord, []byte(x.Name), []byte("_FORCEKEEPDOCS")})
}

// argsOf returns the command that makes an index.
func (s *service) argsOf(x *catalog.Index) [][]byte {
	if x == nil {
		return nil
	}
	return s.Args(x)
}

// hasPrefix reports whether arguments begin with others.
func hasPrefix(args, prefix [][]byte) bool {
	return len(args) >= len(prefix) && slices.EqualFunc(args[:len(prefix)], prefix, bytes.Equal)
}
