package command

// The grammar of a command's arguments: Command.Syntax, as users read it, becomes the tree that COMMAND DOCS returns.
//
//	key value [NX | XX] [EX seconds | PX milliseconds] [GET]
//
// Words in lower case are arguments, others are literal tokens. A token takes the arguments after it. […] is
// optional, <…> is not, | separates choices, and "x [x ...]" repeats x, which may be several words.

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Argument is a node of the tree.
type Argument struct {
	Name, Kind    string
	Token         string // "" = none
	Optional      bool
	Multiple      bool // may be repeated,
	MultipleToken bool // each time with its token
	KeySpec       int  // of Command.Keys, for keys
	Args          []*Argument

	Since, Deprecated string // see argumentNote
}

// The kinds of arguments, as COMMAND DOCS names them.
const (
	ArgKey       = "key"
	argString    = "string"
	argInteger   = "integer"
	argDouble    = "double"
	argPattern   = "pattern"
	argUnixTime  = "unix-time"
	ArgPureToken = "pure-token"
	ArgOneOf     = "oneof"
	ArgBlock     = "block"
)

// Arguments returns the tree of the command's arguments, with the notes on them.
func (cmd *Command) Arguments() ([]*Argument, error) {
	p := syntaxParser{cmd: cmd, words: syntaxWords(cmd.Syntax)}
	args, err := p.sequence()
	if err == nil && len(p.words) > 0 {
		err = fmt.Errorf("unexpected %q", p.words[0])
	}
	if err != nil {
		return nil, fmt.Errorf("syntax of %s: %w", cmd.Name, err)
	}
	keys := 0
	cmd.numberKeys(args, &keys)
	annotate(args, argumentNotes()[cmd.Name])
	return args, nil
}

// numberKeys finds the key spec of each key argument: the first belongs to the first spec, and so on; the remaining
// ones belong to the last.
func (cmd *Command) numberKeys(args []*Argument, next *int) {
	for _, a := range args {
		if a.Kind == ArgKey {
			for *next < len(cmd.Keys) && cmd.Keys[*next].Hidden() {
				*next++
			}
			a.KeySpec = min(*next, len(cmd.Keys)-1)
			*next++
		}
		cmd.numberKeys(a.Args, next)
	}
}

// syntaxWords splits a grammar into words and brackets. Brackets touch what they enclose, unlike the tokens < and >.
func syntaxWords(s string) []string {
	var b strings.Builder
	for i := range len(s) {
		space := func(j int) bool { return j < 0 || j >= len(s) || s[j] == ' ' }
		switch c := s[i]; {
		case c == '[' || c == ']':
			b.WriteString(" " + string(c) + " ")
		case c == '<' && !space(i+1):
			b.WriteString(" (")
			b.WriteByte(' ')
		case c == '>' && !space(i-1):
			b.WriteString(" ) ")
		default:
			b.WriteByte(c)
		}
	}
	return strings.Fields(b.String())
}

type syntaxParser struct {
	cmd   *Command
	words []string // what is left
}

func (p *syntaxParser) peek() string {
	if len(p.words) == 0 {
		return ""
	}
	return p.words[0]
}

func (p *syntaxParser) next() string {
	word := p.words[0]
	p.words = p.words[1:]
	return word
}

// sequence parses up to a closing bracket, a '|' or the end.
func (p *syntaxParser) sequence() ([]*Argument, error) {
	var seq []*Argument
	for {
		switch word := p.peek(); {
		case word == "" || word == "|" || word == "]" || word == ")":
			return seq, nil
		case word == "...":
			return nil, errors.New("'...' outside of a repetition")
		case p.repetition(&seq):
		case word == "[" || word == "(":
			a, err := p.group()
			if err != nil {
				return nil, err
			}
			seq = append(seq, a)
		case isToken(word):
			a, err := p.withToken()
			if err != nil {
				return nil, err
			}
			seq = append(seq, a)
		default:
			seq = append(seq, p.plain())
		}
	}
}

// plain parses an argument without a token.
func (p *syntaxParser) plain() *Argument {
	name := p.next()
	return &Argument{Name: name, Kind: argumentKind(p.cmd, name)}
}

// withToken parses a token and the arguments that it takes.
func (p *syntaxParser) withToken() (*Argument, error) {
	token := p.next()
	if p.peek() == "(" {
		a, err := p.group()
		if err == nil {
			a.Token = token
		}
		return a, err
	}
	var taken []*Argument
	for {
		if p.repetition(&taken) {
			continue
		}
		if word := p.peek(); word == "" || isToken(word) || strings.Contains("[]()|...", word) {
			break
		}
		taken = append(taken, p.plain())
	}
	if len(taken) == 0 {
		return &Argument{Name: tokenName(token), Kind: ArgPureToken, Token: token}, nil
	}
	a := block(taken)
	a.Token = token
	return a, nil
}

// group parses a bracket and its choices.
func (p *syntaxParser) group() (*Argument, error) {
	open := p.next()
	closing := map[string]string{"[": "]", "(": ")"}[open]
	var choices []*Argument
	for {
		seq, err := p.sequence()
		if err != nil {
			return nil, err
		}
		if len(seq) == 0 {
			return nil, errors.New("empty choice")
		}
		choices = append(choices, block(seq))
		if p.peek() != "|" {
			break
		}
		p.next()
	}
	if p.peek() != closing {
		return nil, fmt.Errorf("missing %q", closing)
	}
	p.next()
	a := choices[0]
	if len(choices) > 1 {
		a = &Argument{Name: joinNames(choices), Kind: ArgOneOf, Args: choices}
	}
	if open == "[" {
		a.Optional = true
	}
	return a, nil
}

// repetition parses "[x ...]" if the sequence ends with x, and marks x as repeatable.
func (p *syntaxParser) repetition(seq *[]*Argument) bool {
	if p.peek() != "[" {
		return false
	}
	end, depth := 0, 0
	for i, word := range p.words {
		if word == "[" {
			depth++
		} else if word == "]" {
			if depth--; depth == 0 {
				end = i
				break
			}
		}
	}
	if end == 0 || p.words[end-1] != "..." {
		return false
	}
	inner := syntaxParser{cmd: p.cmd, words: p.words[1 : end-1]}
	again, err := inner.sequence()
	n := len(*seq) - len(again)
	if err != nil || len(inner.words) > 0 || len(again) == 0 || n < 0 ||
		!slices.EqualFunc((*seq)[n:], again, sameArgument) {
		return false
	}
	a := block((*seq)[n:])
	a.Multiple = true
	a.MultipleToken = a.Token != ""
	*seq = append((*seq)[:n:n], a)
	p.words = p.words[end+1:]
	return true
}

func sameArgument(a, b *Argument) bool {
	return a.Name == b.Name && a.Kind == b.Kind && a.Token == b.Token && slices.EqualFunc(a.Args, b.Args, sameArgument)
}

// block makes one argument of a sequence.
func block(seq []*Argument) *Argument {
	if len(seq) == 1 {
		return seq[0]
	}
	return &Argument{Name: joinNames(seq), Kind: ArgBlock, Args: slices.Clone(seq)}
}

func joinNames(args []*Argument) string {
	var names []string
	for _, a := range args {
		names = append(names, a.Name)
	}
	return strings.Join(names, "_")
}

// isToken reports whether a word is a literal token.
func isToken(word string) bool {
	return !strings.Contains("[]()|...", word) &&
		!strings.ContainsFunc(word, func(r rune) bool { return r >= 'a' && r <= 'z' })
}

func tokenName(token string) string {
	switch token {
	case "*":
		return "auto"
	case "$":
		return "last"
	case ">":
		return "new"
	case "=":
		return "equal"
	case "~":
		return "approximately"
	}
	return strings.ToLower(token)
}

// argumentKind returns the kind of an argument, which follows from its name.
func argumentKind(cmd *Command, name string) string {
	switch name {
	case "key", "key1", "key2", "newkey", "source", "destination", "src", "dst", "destkey", "sourcekey",
		"source-key", "destination-key", "sourceKey", "destKey":
		if len(cmd.Keys) > 0 {
			return ArgKey
		}
	case "pattern":
		return argPattern
	case "score", "weight", "longitude", "latitude", "radius", "width", "height":
		return argDouble
	case "increment":
		if cmd.ACL&CatSortedSet != 0 || strings.HasSuffix(cmd.Name, "byfloat") {
			return argDouble
		}
		return argInteger
	case "timeout":
		if cmd.Flags&Blocking != 0 && cmd.ACL&CatConnection == 0 {
			return argDouble
		}
		return argInteger
	case "start", "stop", "end":
		if cmd.ACL&(CatString|CatList|CatBitmap) != 0 || strings.HasSuffix(cmd.Name, "byrank") {
			return argInteger
		}
	case "count", "cursor", "db", "decrement", "destination-db", "entries_added", "entries_read", "index", "index1",
		"index2",
		"bit", "bits", "cluster_bus_port", "config-epoch", "end-slot", "frequency", "port", "slot", "start-slot", "ttl",
		"len", "limit", "maxage", "milliseconds", "min-idle-time", "ms", "num-matches", "numfields", "numkeys", "numlocal",
		"numreplicas", "offset", "protover", "rank", "rows", "columns", "seconds", "client-id", "version":
		return argInteger
	}
	if strings.HasPrefix(name, "unix-time-") {
		return argUnixTime
	}
	return argString
}
