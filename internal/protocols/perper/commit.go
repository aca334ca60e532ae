package perper

import (
	"bytes"

	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/protocols/perper/binary"
)

// PERPER.COMMIT changes several caches in one step, if values are as expected. The door for thin clients commits
// transactions with it.

func init() {
	command.Register([]*command.Command{
		entry("commit", -4, adds, commitKeysOf, "Changes several caches at once, if values are as expected",
			commitSyntax+" ["+commitSyntax+" ...] [RAW]",
			"O(N*log(M)), where N is the number of steps and M is the number of keys in a cache", commit),
	})
}

// commitSyntax is the syntax of a step.
const commitSyntax = "<PUT cache key value [EXPIRY created updated accessed] | REMOVE cache key | IF cache key value | IFMISSING cache key>"

// commitStep is a change, or a condition for all changes.
type commitStep struct {
	word   string // of the grammar, in lower case
	cache  *cache
	object [][]byte // the key, and the value of a step that has one
	expiry *binary.Expiry
}

// stepObjects are the words of the grammar with the number of their objects.
var stepObjects = []struct {
	word    string
	objects int
}{{"put", 2}, {"remove", 1}, {"if", 2}, {"ifmissing", 1}}

// stepArgs are the arguments of a step.
type stepArgs struct {
	word            string
	cache           []byte
	objects, expiry [][]byte
}

// splitSteps splits arguments into steps. rest begins with the first argument that is not part of one.
func splitSteps(args [][]byte) (steps []stepArgs, rest [][]byte) {
	for {
		s, n := nextStep(args)
		if n == 0 {
			return steps, args
		}
		steps, args = append(steps, s), args[n:]
	}
}

// nextStep reads the first n arguments as a step. Without a step n is 0.
func nextStep(args [][]byte) (s stepArgs, n int) {
	for _, known := range stepObjects {
		if len(args) < 2+known.objects || !command.EqualFold(args[0], known.word) {
			continue
		}
		n = 2 + known.objects
		s = stepArgs{word: known.word, cache: args[1], objects: args[2:n]}
		if known.word == "put" && len(args) > n+3 && command.EqualFold(args[n], "expiry") {
			s.expiry = args[n+1 : n+4]
			n += 4
		}
		return s, n
	}
	return s, 0
}

// commitKeysOf is keysOf for all caches of the steps.
func commitKeysOf(args [][]byte, fn func(key []byte)) {
	seen := map[string]bool{}
	steps, _ := splitSteps(args[1:])
	for _, s := range steps {
		if !seen[string(s.cache)] {
			seen[string(s.cache)] = true
			keysOf([][]byte{nil, s.cache}, fn)
		}
	}
}

// commit replies with 1, or with 0 if a condition does not hold; then nothing has changed.
func commit(c *command.Ctx) {
	steps, ok := commitSteps(c)
	if !ok {
		return
	}
	for _, s := range steps {
		if !s.holds() {
			c.W.Int(0)
			return
		}
	}
	for _, s := range steps {
		s.apply()
	}
	c.W.Int(1)
}

// commitSteps reads the steps, and checks that their caches exist. On an error it writes the reply and ok is false.
func commitSteps(c *command.Ctx) (steps []commitStep, ok bool) {
	split, rest := splitSteps(c.Args[1:])
	a := arguments{raw: len(rest) == 1 && command.EqualFold(rest[0], rawWord)}
	if len(split) == 0 || len(rest) > 0 && !a.raw {
		c.Err(command.ErrSyntax)
		return nil, false
	}
	caches := map[string]*cache{}
	for _, args := range split {
		s := commitStep{word: args.word, cache: caches[string(args.cache)]}
		if s.cache == nil {
			s.cache = cacheOf(c, args.cache)
			caches[string(args.cache)] = s.cache
		}
		if !s.read(c, &a, args) {
			return nil, false
		}
		steps = append(steps, s)
	}
	for _, ca := range caches {
		if !ca.check() {
			return nil, false
		}
	}
	return steps, true
}

// read reads the objects and the durations of a step. On an error it writes the reply and returns false.
func (s *commitStep) read(c *command.Ctx, a *arguments, args stepArgs) bool {
	for _, arg := range args.objects {
		object, ok := a.object(arg)
		switch {
		case !ok:
			c.Err(errObject)
			return false
		case binary.Code(object[0]) == binary.Null:
			c.Err(errNullKey)
			return false
		}
		s.object = append(s.object, object)
	}
	if args.expiry == nil {
		return true
	}
	e, ok := expiryOption(c, args.expiry)
	s.expiry = &e
	return ok
}

// holds reports whether a condition holds. Changes have none.
func (s *commitStep) holds() bool {
	if s.word != "if" && s.word != "ifmissing" {
		return true
	}
	v, has := s.cache.get(s.object[0])
	if s.word == "ifmissing" {
		return !has
	}
	return has && bytes.Equal(v, s.object[1])
}

// apply makes a change. Conditions make none.
func (s *commitStep) apply() {
	switch s.word {
	case "put":
		s.cache.expiry = s.expiry
		s.cache.put(s.object[0], s.object[1])
	case "remove":
		s.cache.remove(s.object[0])
	}
}
