package skein_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"unicode/utf16"
)

// model is a simple model of an application: a map, which is sorted when needed, and containers.
type model struct {
	app        string
	now        int64
	pairs      map[string]pair
	next       map[string]int // of services
	containers map[string]*modelContainer
	events     []string
}

type pair struct{ value, owner string } // owner is "" if there is none

type modelContainer struct {
	service  string
	instance int
	state    string
	start    int64
	finish   int64
	ttl      int64 // 0 if there is no lease
	deadline int64
	message  string
}

func newModel(app string, now int64) *model {
	return &model{app: app, now: now, pairs: map[string]pair{}, next: map[string]int{}, containers: map[string]*modelContainer{}}
}

// units is a text whose byte order is that of the UTF-16 code units of s.
func units(s string) string {
	var b strings.Builder
	for _, u := range utf16.Encode([]rune(s)) {
		fmt.Fprintf(&b, "%04x", u)
	}
	return b.String()
}

// within returns the keys of a range in their order.
func (m *model) within(start, end string) []string {
	var found []string
	for k := range m.pairs {
		if (start == "" || start == "\x00" || units(k) >= units(start)) && (end == "" || units(k) < units(end)) {
			found = append(found, k)
		}
	}
	slices.SortFunc(found, func(a, b string) int { return strings.Compare(units(a), units(b)) })
	return found
}

func list(texts []string) string { return "[" + strings.Join(texts, " ") + "]" }

func orNil(s string) string {
	if s == "" {
		return "nil"
	}
	return s
}

func visible(s string) string { return strings.ReplaceAll(s, "\x00", `\0`) }

// listed is the reply of an operation on a range.
func (m *model) listed(found []string, how string) string {
	var texts []string
	for _, k := range found {
		if how == "KEYS" {
			texts = append(texts, visible(k))
		} else {
			texts = append(texts, list([]string{visible(k), m.pairs[k].value, orNil(m.pairs[k].owner)}))
		}
	}
	if how == "NONE" {
		return fmt.Sprint(len(found))
	}
	return list(texts)
}

func (m *model) one(k string) string {
	p, ok := m.pairs[k]
	if !ok {
		return "nil"
	}
	return list([]string{p.value, orNil(p.owner)})
}

func (m *model) event(format string, args ...any) {
	word, rest, _ := strings.Cut(fmt.Sprintf(format, args...), " ")
	m.events = append(m.events, fmt.Sprintf("%s %d %s", word, len(m.events)+1, rest))
}

func netstrings(texts ...string) string {
	var b strings.Builder
	for _, t := range texts {
		fmt.Fprintf(&b, "%d:%s,", len(t), t)
	}
	return b.String()
}

// modelOp is an operation, and its words.
type modelOp struct {
	kind, key, end, how  string
	value                string
	hasValue, keep, prev bool
	owner                string
}

func (o *modelOp) words() []any {
	if o.kind != "PUT" {
		w := []any{o.key, o.end}
		if o.how != "" {
			w = append(w, o.how)
		}
		return w
	}
	w := []any{o.key}
	if o.prev {
		w = append(w, "get")
	}
	if o.owner != "" {
		w = append(w, "OWNER", o.owner)
	}
	if o.hasValue {
		w = append(w, "VALUE", o.value)
	}
	if o.keep {
		w = append(w, "KEEPOWNER")
	}
	return w
}

// refusal returns the error of a refused operation, or "".
func (m *model) refusal(o *modelOp) string {
	if o.kind != "PUT" {
		return ""
	}
	if !o.hasValue && o.keep {
		return "SKEININVALID ignore_value & ignore_owner can't both be true"
	}
	if _, ok := m.pairs[o.key]; !ok && !o.hasValue {
		return "SKEINPRECONDITION ignore_value=True & key isn't already set"
	}
	if o.owner != "" {
		return m.inactive(o.owner)
	}
	return ""
}

// inactive returns the error if a container cannot own keys.
func (m *model) inactive(id string) string {
	if why := m.missing(id); why != "" {
		return why
	}
	if !m.containers[id].active() {
		return "SKEININVALID Container '" + id + "' has already completed"
	}
	return ""
}

func (m *model) missing(id string) string {
	service, instance, _ := strings.Cut(id, "_")
	if _, ok := m.next[service]; !ok {
		return "SKEININVALID Unknown service '" + service + "'"
	}
	if m.containers[id] == nil {
		return "SKEININVALID Service '" + service + "' has no container instance " + instance
	}
	return ""
}

func (c *modelContainer) active() bool {
	return c.state == "WAITING" || c.state == "REQUESTED" || c.state == "RUNNING"
}

// apply does an operation and returns its reply.
func (m *model) apply(o *modelOp) string {
	switch o.kind {
	case "RANGE":
		return m.listed(m.within(o.key, o.end), o.how)
	case "DEL":
		how := o.how
		if how == "" {
			how = "NONE"
		}
		found := m.within(o.key, o.end)
		reply := m.listed(found, how)
		m.remove(found)
		return reply
	}
	reply := "OK"
	if o.prev {
		reply = m.one(o.key)
	}
	p := m.pairs[o.key]
	if o.hasValue {
		p.value = o.value
	}
	if !o.keep {
		p.owner = o.owner
	}
	m.pairs[o.key] = p
	texts := netstrings(o.key, p.value)
	if p.owner != "" {
		texts += netstrings(p.owner)
	}
	m.event("PUT %s", texts)
	return reply
}

func (m *model) remove(found []string) {
	if len(found) == 0 {
		return
	}
	for _, k := range found {
		delete(m.pairs, k)
	}
	m.event("DELETE %s", netstrings(found...))
}

func (m *model) finish(id, state, message string) {
	c := m.containers[id]
	c.state, c.finish, c.ttl, c.message = state, m.now, 0, message
	owned := slices.DeleteFunc(m.within("", ""), func(k string) bool { return m.pairs[k].owner != id })
	m.remove(owned)
}

// forward lets time pass.
func (m *model) forward(ms int64) {
	end := m.now + ms
	for {
		due := ""
		for _, id := range slices.Sorted(maps.Keys(m.containers)) {
			c := m.containers[id]
			if c.ttl > 0 && c.deadline <= end && (due == "" || c.deadline < m.containers[due].deadline) {
				due = id
			}
		}
		if due == "" {
			break
		}
		m.now = max(m.now, m.containers[due].deadline)
		m.finish(due, "FAILED", "The lease has expired.")
	}
	m.now = end
}

// activeOf returns the containers of a service in the order in which they are killed.
func (m *model) activeOf(service string) (ids []string) {
	for _, state := range []string{"WAITING", "REQUESTED", "RUNNING"} {
		for n := range m.next[service] {
			id := fmt.Sprintf("%s_%d", service, n)
			if m.containers[id].state == state {
				ids = append(ids, id)
			}
		}
	}
	return ids
}

func (m *model) request(service string) string {
	n := m.next[service]
	m.next[service]++
	id := fmt.Sprintf("%s_%d", service, n)
	m.containers[id] = &modelContainer{service: service, instance: n, state: "REQUESTED"}
	return id
}

func (m *model) run(id string, ttl int64) {
	c := m.containers[id]
	if c.state != "RUNNING" {
		c.state, c.start = "RUNNING", m.now
	}
	c.ttl, c.deadline = ttl, m.now+ttl
}

func (m *model) described(ids []string) string {
	var texts []string
	for _, id := range ids {
		c := m.containers[id]
		text := container(c.service, c.instance, c.state, c.start, c.finish, c.message)
		if c.ttl > 0 {
			text = strings.Replace(text, "lease -", fmt.Sprintf("lease %d", c.ttl), 1)
		}
		texts = append(texts, text)
	}
	return list(texts)
}

var (
	modelKeys   = []string{"", "a", "ab", "b", "é", "\ud7ff", "\U00010000", "\U0001f600", "\ue000", "\uffff", "a\U0001f600", "a\uffff"}
	modelValues = []string{"", "0", "1", "10", "\x80", "\x7f", "VALUE", "THEN", "PUT"}
	modelStates = []string{"WAITING", "REQUESTED", "RUNNING", "SUCCEEDED", "FAILED", "KILLED"}
)

func pick(r *rand.Rand, of []string) string { return of[r.IntN(len(of))] }

// randomContainer prefers existing containers.
func (m *model) randomContainer(r *rand.Rand) string {
	if r.IntN(8) > 0 && len(m.containers) > 0 {
		active := slices.DeleteFunc(slices.Sorted(maps.Keys(m.containers)), func(id string) bool { return !m.containers[id].active() })
		if len(active) > 0 {
			return pick(r, active)
		}
	}
	return fmt.Sprintf("%s_%d", pick(r, []string{"s", "t", "u"}), r.IntN(6))
}

func (m *model) randomOp(r *rand.Rand) modelOp {
	o := modelOp{kind: pick(r, []string{"PUT", "PUT", "PUT", "RANGE", "DEL"}), key: pick(r, modelKeys)}
	if o.kind != "PUT" {
		o.end, o.how = pick(r, modelKeys), pick(r, []string{"", "ITEMS", "KEYS", "NONE"})
		switch r.IntN(4) {
		case 0:
			o.end = o.key + "\x00"
		case 1:
			o.key = "\x00"
		}
		return o
	}
	o.prev, o.hasValue, o.value = r.IntN(3) == 0, r.IntN(4) > 0, pick(r, modelValues)
	switch r.IntN(4) {
	case 0:
		o.keep = true
	case 1:
	default:
		o.owner = m.randomContainer(r)
	}
	return o
}

// condition returns a condition and whether it holds.
func (m *model) condition(r *rand.Rand) (words []any, holds bool) {
	k := pick(r, modelKeys)
	operator := pick(r, []string{"=", "!=", "<", "<=", ">", ">="})
	p, there := m.pairs[k]
	field, left, right := "VALUE", p.value, pick(r, modelValues)
	signed := func(s string) string {
		return strings.Map(func(c rune) rune { return c ^ 0x80 }, strings.Join(latin(s), ""))
	}
	order := func(s string) string { return signed(s) }
	if r.IntN(2) == 0 {
		field, left, right, there = "OWNER", p.owner, m.randomContainer(r), p.owner != ""
		order = func(id string) string {
			service, instance, _ := strings.Cut(id, "_")
			return fmt.Sprintf("%s %9s", service, instance)
		}
	}
	set := r.IntN(4) > 0
	words = []any{field, k, operator, right}
	if !set {
		words = []any{"NO" + field, k, operator}
	}
	if !set || !there {
		return words, operator == "=" && set == there || operator == "!=" && set != there
	}
	c := strings.Compare(order(left), order(right))
	return words, map[string]bool{"=": c == 0, "!=": c != 0, "<": c < 0, "<=": c <= 0, ">": c > 0, ">=": c >= 0}[operator]
}

// latin returns the bytes of s as characters.
func latin(s string) (chars []string) {
	for _, b := range []byte(s) {
		chars = append(chars, string(rune(b)))
	}
	return chars
}

// random returns a command and its reply. A command that only lets time pass is nil.
func (m *model) random(r *rand.Rand) (words []any, want string) {
	switch n := r.IntN(100); {
	case n < 40:
		o := m.randomOp(r)
		words = append([]any{"SKEIN." + o.kind, m.app}, o.words()...)
		if why := m.refusal(&o); why != "" {
			return words, why
		}
		return words, m.apply(&o)
	case n < 45:
		k := pick(r, modelKeys)
		return []any{"SKEIN.GET", m.app, k}, m.one(k)
	case n < 70:
		return m.randomTransaction(r)
	case n < 75:
		return nil, ""
	}
	return m.randomOfContainers(r)
}

func (m *model) randomTransaction(r *rand.Rand) (words []any, want string) {
	words = []any{"SKEIN.TXN", m.app}
	succeeded := true
	if n := r.IntN(4); n > 0 {
		words = append(words, "IF")
		for range n {
			w, holds := m.condition(r)
			words, succeeded = append(words, w...), succeeded && holds
		}
	}
	var lists [2][]modelOp
	for i, word := range []string{"THEN", "ELSE"} {
		n := r.IntN(4)
		if n == 0 {
			continue
		}
		words = append(words, word)
		for range n {
			o := m.randomOp(r)
			lists[i] = append(lists[i], o)
			words = append(append(words, o.kind), o.words()...)
		}
	}
	chosen, result := lists[0], "1"
	if !succeeded {
		chosen, result = lists[1], "0"
	}
	for i := range chosen {
		if why := m.refusal(&chosen[i]); why != "" {
			return words, why
		}
	}
	// A put without a value may find that an earlier operation has deleted its key: then the transaction has no
	// effect.
	before, events := maps.Clone(m.pairs), len(m.events)
	var replies []string
	for i := range chosen {
		if o := &chosen[i]; o.kind == "PUT" && !o.hasValue {
			if why := m.refusal(o); why != "" {
				m.pairs, m.events = before, m.events[:events]
				return words, why
			}
		}
		replies = append(replies, m.apply(&chosen[i]))
	}
	return words, list([]string{result, list(replies)})
}

func (m *model) randomOfContainers(r *rand.Rand) (words []any, want string) {
	service, id, ttl := pick(r, []string{"s", "t"}), m.randomContainer(r), int64(1+r.IntN(3000))
	command := func(words ...any) []any { return append([]any{"SKEIN.CONTAINER"}, words...) }
	_, known := m.next[service]
	switch n := r.IntN(12); n {
	case 0:
		words = command("ADD", m.app, service)
		if !known {
			return words, "SKEININVALID Unknown service '" + service + "'"
		}
		text := m.described([]string{m.request(service)})
		return words, text[1 : len(text)-1]
	case 1, 2, 3:
		words = command("RUN", m.app, service, "TTL", ttl)
		if r.IntN(4) == 0 {
			words, ttl = words[:4], 0
		}
		active := m.activeOf(service)
		if len(active) == 0 || m.containers[active[0]].state == "RUNNING" {
			active = []string{m.request(service)}
		}
		m.run(active[0], ttl)
		return words, active[0]
	case 4:
		words = command("START", m.app, id, "TTL", ttl)
		switch why := m.inactive(id); {
		case m.containers[id] != nil && m.containers[id].state == "RUNNING":
			return words, "ERR the container runs already"
		case why != "":
			return words, why
		}
		m.run(id, ttl)
		return words, "OK"
	case 5, 6:
		words = command("RENEW", m.app, id)
		c := m.containers[id]
		switch why := m.inactive(id); {
		case why != "":
			return words, why
		case c.state != "RUNNING" || c.ttl == 0:
			return words, "ERR the container has no lease"
		}
		m.run(id, c.ttl)
		return words, "OK"
	case 7:
		words = command("KILL", m.app, id)
		if why := m.missing(id); why != "" {
			return words, why
		}
		if m.containers[id].active() {
			m.finish(id, "KILLED", "Killed by user request.")
		}
		return words, "OK"
	case 8:
		words = command("END", m.app, id, "SUCCEEDED", "MESSAGE", "x y")
		switch why := m.missing(id); {
		case why != "":
			return words, why
		case !m.containers[id].active():
			return words, "0"
		}
		m.finish(id, "SUCCEEDED", "x y")
		return words, "1"
	case 9:
		count := r.IntN(5)
		words = command("SCALE", m.app, service, "COUNT", count)
		if !known {
			return words, "SKEININVALID Unknown service '" + service + "'"
		}
		active := m.activeOf(service)
		var changed []string
		for _, id := range active[:max(len(active)-count, 0)] {
			m.finish(id, "KILLED", "Killed by user request.")
			changed = append(changed, id)
		}
		for range max(count-len(active), 0) {
			changed = append(changed, m.request(service))
		}
		return words, m.described(changed)
	}
	words, states := command("LIST", m.app), modelStates[:3]
	if r.IntN(2) == 0 {
		states = modelStates[r.IntN(5):]
		for _, s := range states {
			words = append(words, "STATE", s)
		}
	}
	var ids []string
	for _, service := range slices.Sorted(maps.Keys(m.next)) {
		for n := range m.next[service] {
			if id := fmt.Sprintf("%s_%d", service, n); slices.Contains(states, m.containers[id].state) {
				ids = append(ids, id)
			}
		}
	}
	return words, m.described(ids)
}
