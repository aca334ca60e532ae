// The text format of transcripts: parsing it, and writing it without losing anything that the author wrote.

package transcript

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Transcript is a parsed file.
type Transcript struct {
	Name  string
	Steps []*Step
	// Since is the first release with the features of the transcript: "@since 7.4" as its first step.
	Since Release
	// tail is the blank lines and comments after the last step.
	tail []string
}

// Step is one line of action with the replies that it expects.
type Step struct {
	Line int
	// Source is the line as the author wrote it.
	Source string
	Action Action
	// Conn names the connection; the unnamed one is "".
	Conn string
	// Args are the words of a Send, in which ${name} stands for a captured text.
	Args []Arg
	// Raw is the bytes of a SendRaw.
	Raw string
	// Wait is how long a Sleep lasts.
	Wait time.Duration
	Replies
	// Later has the replies of newer servers, in the order of their releases: "since 7.2 -ERR syntax error".
	Later []LaterReplies
	// from is the release that a From names.
	from Release
	// lead is the blank lines and comments before the step.
	lead []string
}

// Replies are the replies that a step expects.
type Replies struct {
	// Pending means that no reply comes yet.
	Pending bool
	Want    []Pattern
}

// LaterReplies are the replies that a step expects of a release and later ones.
type LaterReplies struct {
	Since Release
	Replies
}

// Release is a server's version without the patch number.
type Release struct{ Major, Minor int }

// before reports whether r is older.
func (r Release) before(o Release) bool {
	return r.Major < o.Major || r.Major == o.Major && r.Minor < o.Minor
}

func (r Release) String() string { return fmt.Sprintf("%d.%d", r.Major, r.Minor) }

// Newest returns the replies of the newest release.
func (s *Step) Newest() []Pattern {
	if n := len(s.Later); n > 0 {
		return s.Later[n-1].Want
	}
	return s.Want
}

// repliesOf returns the replies that the step expects of a server.
func (s *Step) repliesOf(server Release) *Replies {
	replies := &s.Replies
	for i := range s.Later {
		if !server.before(s.Later[i].Since) {
			replies = &s.Later[i].Replies
		}
	}
	return replies
}

// Arg is a word of a command. Only a word without quotes can refer to captured texts.
type Arg struct {
	Text   string
	Quoted bool
}

// Action is the action of a step.
type Action int

// The actions.
const (
	// Send sends a command: "> PING", "b> PING".
	Send Action = iota
	// SendRaw sends bytes: `>> "PING\r\n"`.
	SendRaw
	// Receive waits for replies to earlier commands: "b<".
	Receive
	// Sleep waits: "@sleep 20ms".
	Sleep
	// Hangup closes a connection from the client's side: "@close b".
	Hangup
	// Fresh empties the server and starts with new connections: "@fresh".
	Fresh
	// From names the first release to which the transcript applies: "@since 7.4".
	From
)

var (
	actionLine = regexp.MustCompile(`^([a-z][a-z0-9]*)?(>>|>|<)(?: (.*))?$`)
	reference  = regexp.MustCompile(`\$\{([a-z0-9]+)\}`)
	// laterLine matches the beginning of a newer server's replies, and laterLines finds it within the replies of a
	// step.
	laterLine  = regexp.MustCompile(`^since ([0-9]+\.[0-9]+) `)
	laterLines = regexp.MustCompile(`(?m)^since [0-9]`)
)

// pendingMark replaces replies that have not come yet.
const pendingMark = "..."

// ParseFile reads a transcript from a file.
func ParseFile(path string) (*Transcript, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return Parse(path, string(text))
}

// Parse reads a transcript.
func Parse(name, text string) (*Transcript, error) {
	t := &Transcript{Name: name}
	var lead, replies []string
	finish := func() error {
		if len(t.Steps) == 0 {
			if len(replies) > 0 {
				return fmt.Errorf("%s: reply before the first command: %s", name, replies[0])
			}
			return nil
		}
		step := t.Steps[len(t.Steps)-1]
		if err := step.parseReplies(strings.Join(replies, "\n")); err != nil {
			return fmt.Errorf("%s:%d: %w", name, step.Line, err)
		}
		replies = nil
		return nil
	}
	for i, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		if trimmed := strings.TrimSpace(line); trimmed == "" || line[0] == '#' {
			lead = append(lead, line)
			continue
		}
		step, err := parseStep(line)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, i+1, err)
		}
		if step == nil {
			if len(lead) > 0 && len(replies) == 0 && len(t.Steps) > 0 {
				return nil, fmt.Errorf("%s:%d: reply apart from its command", name, i+1)
			}
			replies = append(replies, line)
			continue
		}
		if err := finish(); err != nil {
			return nil, err
		}
		step.Line, step.lead = i+1, lead
		lead = nil
		if step.Action == From {
			if len(t.Steps) > 0 {
				return nil, fmt.Errorf("%s:%d: @since is for the whole transcript: it comes first", name, i+1)
			}
			t.Since = step.from
		}
		t.Steps = append(t.Steps, step)
	}
	t.tail = lead
	return t, finish()
}

// parseStep parses a line of action; nil means that the line belongs to a reply.
func parseStep(line string) (*Step, error) {
	step := &Step{Source: line}
	if strings.HasPrefix(line, "@") {
		words := strings.Fields(line)
		var err error
		switch {
		case words[0] == "@fresh" && len(words) == 1:
			step.Action = Fresh
		case words[0] == "@since" && len(words) == 2:
			step.Action = From
			step.from, err = ParseRelease(words[1])
		case words[0] == "@close" && len(words) <= 2:
			step.Action = Hangup
			step.Conn = strings.Join(words[1:], "")
		case words[0] == "@sleep" && len(words) == 2:
			step.Action = Sleep
			step.Wait, err = time.ParseDuration(words[1])
		default:
			err = fmt.Errorf("unknown directive %s", line)
		}
		return step, err
	}
	m := actionLine.FindStringSubmatch(line)
	if m == nil {
		return nil, nil
	}
	step.Conn = m[1]
	args, err := splitArgs(m[3])
	if err != nil {
		return nil, err
	}
	switch m[2] {
	case ">":
		step.Action, step.Args = Send, args
		if len(args) == 0 {
			return nil, errors.New("no command")
		}
	case ">>":
		step.Action = SendRaw
		for _, a := range args {
			step.Raw += a.Text
		}
	case "<":
		step.Action = Receive
		if len(args) != 0 {
			return nil, errors.New("replies stand on lines of their own")
		}
	}
	return step, nil
}

// since returns the replies of a release, and adds an entry if there is none.
func (s *Step) since(r Release) *Replies {
	i, found := slices.BinarySearchFunc(s.Later, r, func(l LaterReplies, r Release) int {
		return cmp.Or(cmp.Compare(l.Since.Major, r.Major), cmp.Compare(l.Since.Minor, r.Minor))
	})
	if !found {
		s.Later = slices.Insert(s.Later, i, LaterReplies{Since: r})
	}
	return &s.Later[i].Replies
}

// words are the step's arguments with captured texts put in.
func (s *Step) words(vars map[string]string) []string {
	out := make([]string, len(s.Args))
	for i, a := range s.Args {
		out[i] = a.Text
		if !a.Quoted {
			out[i] = reference.ReplaceAllStringFunc(a.Text, func(ref string) string { return vars[ref[2:len(ref)-1]] })
		}
	}
	return out
}

// String renders the transcript as text again.
func (t *Transcript) String() string {
	var b strings.Builder
	for _, s := range t.Steps {
		for _, line := range s.lead {
			b.WriteString(line + "\n")
		}
		b.WriteString(s.Source + "\n")
		s.Replies.write(&b)
		for _, l := range s.Later {
			b.WriteString("since " + l.Since.String() + " ")
			l.Replies.write(&b)
		}
	}
	for _, line := range t.tail {
		b.WriteString(line + "\n")
	}
	return b.String()
}

func (r *Replies) write(b *strings.Builder) {
	if r.Pending {
		b.WriteString(pendingMark + "\n")
	}
	for _, p := range r.Want {
		b.WriteString(p.String() + "\n")
	}
}

// Exchanges counts the commands and raw messages.
func (t *Transcript) Exchanges() int {
	n := 0
	for _, s := range t.Steps {
		if s.Action == Send || s.Action == SendRaw {
			n++
		}
	}
	return n
}

// splitArgs splits a command line into words like redis-cli: bare words, 'literal', "with escapes", and a
// repetition "x"*500.
func splitArgs(s string) ([]Arg, error) {
	in := &scanner{s: s}
	var args []Arg
	for {
		in.skipSpace()
		if in.done() {
			return args, nil
		}
		switch in.peek() {
		case '"':
			text, err := in.quoted()
			if err != nil {
				return nil, err
			}
			args = append(args, Arg{text, true})
		case '\'':
			end := strings.IndexByte(in.s[in.i+1:], '\'')
			if end < 0 {
				return nil, errors.New("missing closing quote")
			}
			args = append(args, Arg{in.s[in.i+1 : in.i+1+end], true})
			in.i += end + 2
		default:
			args = append(args, Arg{in.word(" \t"), false})
		}
		if !in.done() && in.peek() != ' ' && in.peek() != '\t' {
			return nil, fmt.Errorf("no space after a closing quote: %s", in.s[in.i:])
		}
	}
}

// parseReplies parses the lines below a step.
func (s *Step) parseReplies(text string) error {
	if text != "" && s.Action > Receive {
		return errors.New("a directive has no replies")
	}
	starts := laterLines.FindAllStringIndex(text, -1)
	first := len(text)
	if len(starts) > 0 {
		first = starts[0][0]
	}
	if err := s.Replies.parse(text[:first]); err != nil {
		return err
	}
	for i, start := range starts {
		end := len(text)
		if i+1 < len(starts) {
			end = starts[i+1][0]
		}
		if err := s.parseLater(text[start[0]:end]); err != nil {
			return err
		}
	}
	return nil
}

// parseLater parses the replies of newer servers, from the word since on.
func (s *Step) parseLater(text string) error {
	m := laterLine.FindStringSubmatch(text)
	if m == nil {
		return fmt.Errorf("replies of newer servers begin as in since 7.2 +OK: %s", text)
	}
	since, err := ParseRelease(m[1])
	if err != nil {
		return err
	}
	if n := len(s.Later); n > 0 && !s.Later[n-1].Since.before(since) {
		return errors.New("the newest releases come last")
	}
	later := LaterReplies{Since: since}
	err = later.Replies.parse(text[len(m[0]):])
	s.Later = append(s.Later, later)
	return err
}

func (r *Replies) parse(text string) error {
	if strings.TrimSpace(text) == pendingMark {
		r.Pending = true
		return nil
	}
	in := &scanner{s: text}
	for in.skipSpace(); !in.done(); in.skipSpace() {
		p, err := in.pattern(true)
		if err != nil {
			return err
		}
		r.Want = append(r.Want, p)
	}
	return nil
}

// ParseRelease parses the first two numbers of a version.
func ParseRelease(text string) (Release, error) {
	var r Release
	_, err := fmt.Sscanf(text, "%d.%d", &r.Major, &r.Minor)
	return r, err
}

// scanner reads the notation of replies.
type scanner struct {
	s string
	i int
}

func (in *scanner) done() bool { return in.i >= len(in.s) }
func (in *scanner) peek() byte { return in.s[in.i] }

func (in *scanner) skipSpace() {
	for !in.done() && strings.IndexByte(" \t\n", in.peek()) >= 0 {
		in.i++
	}
}

// word reads up to one of the stop characters.
func (in *scanner) word(stop string) string {
	rest := in.s[in.i:]
	n := strings.IndexAny(rest, stop)
	if n < 0 {
		n = len(rest)
	}
	in.i += n
	return rest[:n]
}

// take skips the literal if it is next.
func (in *scanner) take(literal string) bool {
	if strings.HasPrefix(in.s[in.i:], literal) {
		in.i += len(literal)
		return true
	}
	return false
}

// quoted reads a string in double quotes and a repetition after it.
func (in *scanner) quoted() (string, error) {
	var b strings.Builder
	for in.i++; ; in.i++ {
		if in.done() {
			return "", errors.New("missing closing quote")
		}
		c := in.peek()
		if c == '"' {
			in.i++
			break
		}
		if c != '\\' {
			b.WriteByte(c)
			continue
		}
		in.i++
		if in.done() {
			return "", errors.New("missing closing quote")
		}
		switch c = in.peek(); c {
		case 'n':
			c = '\n'
		case 'r':
			c = '\r'
		case 't':
			c = '\t'
		case 'x':
			if in.i+2 >= len(in.s) {
				return "", errors.New(`\x wants two digits`)
			}
			n, err := strconv.ParseUint(in.s[in.i+1:in.i+3], 16, 8)
			if err != nil {
				return "", errors.New(`\x wants two hexadecimal digits`)
			}
			c = byte(n)
			in.i += 2
		}
		b.WriteByte(c)
	}
	if !in.take("*") {
		return b.String(), nil
	}
	n, err := strconv.Atoi(in.word(" \t\n]"))
	if err != nil || n < 0 || n*b.Len() > 64<<20 {
		return "", errors.New("bad repetition")
	}
	return strings.Repeat(b.String(), n), nil
}

// slashed reads a regular expression between slashes.
func (in *scanner) slashed() (*regexp.Regexp, error) {
	var b strings.Builder
	for in.i++; ; in.i++ {
		if in.done() {
			return nil, errors.New("missing closing slash")
		}
		if in.take(`\/`) {
			b.WriteByte('/')
			in.i--
			continue
		}
		if in.peek() == '/' {
			in.i++
			return regexp.Compile(b.String())
		}
		b.WriteByte(in.peek())
	}
}

// pattern reads one expected reply. At the top level a status or an error takes the rest of its line.
func (in *scanner) pattern(top bool) (Pattern, error) {
	var p Pattern
	if in.peek() == '$' {
		in.i++
		name := in.word("= \t\n]")
		if !in.take("=") {
			return Pattern{Ref: name}, nil
		}
		p, err := in.pattern(false)
		p.Capture = name
		return p, err
	}
	for {
		switch {
		case in.take("unordered "):
			p.Order = Unordered
			continue
		case in.take("pairs "):
			p.Order = Pairs
			continue
		}
		break
	}
	if in.done() {
		return p, errors.New("a marker without a reply")
	}
	for kind, word := range aggregateWords {
		if in.take(word + "[") {
			p.Kind = kind
			return p, in.elements(&p)
		}
	}
	var err error
	switch c := in.peek(); {
	case c == '"':
		p.Kind = Bulk
		p.Text, err = in.quoted()
	case c == '/':
		p.Kind = Bulk
		p.Match, err = in.slashed()
	case c == '*':
		in.i++
		p.Any = true
	case c == ',' || c == '(':
		in.i++
		p.Kind = c
		err = in.number(&p)
	case c == ':':
		in.i++
		p.Kind = Integer
		if in.done() || in.peek() != '/' {
			return p, errors.New("a colon is for a pattern: write integers plainly")
		}
		p.Match, err = in.slashed()
	case c >= '0' && c <= '9', c == '-' && in.i+1 < len(in.s) && in.s[in.i+1] >= '0' && in.s[in.i+1] <= '9':
		p.Kind = Integer
		err = in.number(&p)
	case c == '+' || c == '-' || c == '=' || c == '!':
		in.i++
		p.Kind = c
		switch {
		case !in.done() && in.peek() == '"':
			p.Text, err = in.quoted()
		case !in.done() && in.peek() == '/':
			p.Match, err = in.slashed()
		case top:
			p.Text = in.word("\n")
		default:
			p.Text = in.word(" \t\n]")
		}
	default:
		err = in.keyword(&p)
	}
	return p, err
}

func (in *scanner) elements(p *Pattern) error {
	p.Elems = []Pattern{}
	for {
		in.skipSpace()
		if in.done() {
			return errors.New("missing closing bracket")
		}
		if in.take("]") {
			return nil
		}
		e, err := in.pattern(false)
		if err != nil {
			return err
		}
		p.Elems = append(p.Elems, e)
	}
}

func (in *scanner) number(p *Pattern) error {
	text, tolerance, ok := strings.Cut(in.word(" \t\n]"), "~")
	p.Text = text
	if _, err := strconv.ParseFloat(text, 64); err != nil && p.Kind != BigInt {
		return fmt.Errorf("bad number %q", text)
	}
	if !ok {
		return nil
	}
	var err error
	p.Tolerance, err = strconv.ParseFloat(tolerance, 64)
	return err
}

func (in *scanner) keyword(p *Pattern) error {
	if in.take("nil[]") {
		p.Kind, p.Null = Array, true
		return nil
	}
	switch word := in.word(" \t\n]"); word {
	case "nil":
		p.Kind, p.Null = Bulk, true
	case "null":
		p.Kind = Null
	case "true", "false":
		p.Kind, p.Text = Boolean, word[:1]
	case "closed":
		p.Kind = Closed
	default:
		return fmt.Errorf("bad reply %q", word)
	}
	return nil
}
