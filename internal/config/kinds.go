package config

// This file has directives and the kinds of their values.

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/resp"
)

// directive is one entry of the table.
type directive struct {
	name    string
	aliases []string
	others  []string // names that Redis 7 does not have, hidden from patterns of CONFIG GET
	initial string
	choices []string // the words that the value can be; nil if they cannot be listed
	// startOnly directives cannot be changed while the server runs.
	startOnly bool
	// protected directives can be changed at run time only by clients that enable-protected-configs allows.
	protected bool
	// reread says that the directive names files, which are read again each time it is set.
	reread bool
	// sameAllowed says that a startOnly or protected directive accepts its present value. Directives that Redis does not have do,
	// because programs that know Redis's directives set all others to the value that CONFIG GET shows.
	sameAllowed bool
	// many says that the value may be several words or none; all others are exactly one word.
	many bool
	// accumulates says that in files, and on the command line, a further line adds to the value instead of replacing it.
	accumulates bool
	// hidden directives are shown by CONFIG GET only under their full name.
	hidden bool
	// quiet directives are hidden as long as they have their default: Redis 7 does not know them.
	quiet bool
	// later directives are written into a file only if they do not have their default: Redis 7.0 cannot read them.
	later bool
	// noneLine is the line for the default, written only where an included file may set another value, because Redis
	// could not read the usual line; "" if the default has the usual line.
	noneLine string
	// unused directives have no effect.
	unused bool
	// parse reads the value into s; on an error s is unchanged.
	parse func(s *Settings, words []string) error
	// show returns the value as CONFIG GET shows it.
	show func(s *Settings) string
}

// Errors that do not depend on the value. They follow "ERR CONFIG SET failed (…) - ", or the name of a file and a line.
var (
	ErrUnknownDirective   = errors.New("Bad directive or wrong number of arguments")
	ErrWordCount          = errors.New("wrong number of arguments")
	errImmutable          = errors.New("can't set immutable config")
	errProtected          = errors.New("can't set protected config")
	errDuplicate          = errors.New("duplicate parameter")
	errNotNumber          = errors.New("argument couldn't be parsed into an integer")
	errNotDuration        = errors.New("argument must be a number of seconds, or a number with the unit ms or s")
	errNotMemory          = errors.New("argument must be a memory value")
	errPercentage         = errors.New("percentage argument must be less or equal to 100")
	errNotMemoryOrPercent = errors.New("argument must be a memory or percent value")
	errNotYesNo           = errors.New("argument must be 'yes' or 'no'")
	errNotOctal           = errors.New("argument couldn't be parsed as an octal number")
	errEventClass         = errors.New("Invalid event class character. Use 'Ag$lshzxeKEtmdnocaSTIV'.")
	errShards             = errors.New("argument must be 0 or a power of two up to 64")
	errTooManyBind        = errors.New("Too many bind addresses specified.")
	errSave               = errors.New("Invalid save parameters")
	errOutputWords        = errors.New("Wrong number of arguments in buffer limit configuration.")
	errOutputClass        = errors.New("Invalid client class specified in buffer limit configuration.")
	errReplicaPort        = errors.New("Invalid master port")
	errPercentile         = errors.New("Invalid latency-tracking-info-percentiles parameters")
	errPercentileRange    = errors.New("latency-tracking-info-percentiles parameters should sit between [0.0,100.0]")
	errOutputLimit        = errors.New("Error in hard, soft or soft_seconds setting in buffer limit configuration.")
)

// hiddenFrom reports whether a pattern does not find the directive.
func (d *directive) hiddenFrom(s *Settings) bool {
	return d.hidden || d.quiet && d.hasDefault(s)
}

// unwritten reports whether the value needs no line in a file.
func (d *directive) unwritten(s *Settings) bool {
	return (d.later || d.noneLine != "") && d.hasDefault(s)
}

// hasDefault reports whether the directive has its default.
func (d *directive) hasDefault(s *Settings) bool { return d.show(s) == d.show(defaults()) }

// set parses a value into s.
func (d *directive) set(s *Settings, words []string) error {
	if !d.many && len(words) != 1 {
		return ErrWordCount
	}
	return d.parse(s, words)
}

// words splits a value that is one string.
func (d *directive) words(value string) []string {
	if !d.many {
		return []string{value}
	}
	return strings.Fields(value)
}

// splitWords splits a default of the table.
func splitWords(line string) []string {
	args, _ := resp.SplitArgs([]byte(line), nil)
	words := make([]string, len(args))
	for i, a := range args {
		words[i] = string(a)
	}
	return words
}

// also gives the directive other names.
func (d *directive) also(aliases ...string) *directive {
	d.aliases = append(d.aliases, aliases...)
	return d
}

// foreign gives the directive the names that it has outside Redis 7.
func (d *directive) foreign(names ...string) *directive {
	d.others = append(d.others, names...)
	return d
}

// atStart makes the directive immutable while the server runs.
func (d *directive) atStart() *directive {
	d.startOnly = true
	return d
}

// hide hides the directive from patterns of CONFIG GET.
func (d *directive) hide() *directive {
	d.hidden = true
	return d
}

// unlessSame makes the directive accept its present value.
func (d *directive) unlessSame() *directive {
	d.sameAllowed = true
	return d
}

// protect makes the directive protected.
func (d *directive) protect() *directive {
	d.protected = true
	return d
}

// quietly marks the directive as one that Redis 7 does not have.
func (d *directive) quietly() *directive {
	d.quiet, d.later = true, true
	return d
}

// ours marks the directive as one that Redis 7.0 does not have.
func (d *directive) ours() *directive {
	d.later = true
	return d
}

// number is a directive whose value is an integer between min and max.
func number[T ~int](name, initial string, min, max int64, field func(*Settings) *T) *directive {
	return &directive{name: name, initial: initial,
		parse: func(s *Settings, words []string) error {
			n, err := parseNumber(words[0], min, max)
			if err == nil {
				*field(s) = T(command.AsInt(n))
			}
			return err
		},
		show: func(s *Settings) string { return strconv.Itoa(int(*field(s))) },
	}
}

func parseNumber(word string, min, max int64) (int64, error) {
	n, ok := resp.ParseInt([]byte(word))
	if !ok {
		return 0, errNotNumber
	}
	if n < min || n > max {
		return 0, rangeError(min, max)
	}
	return n, nil
}

// maxSeconds is the largest duration of a directive, in seconds.
const maxSeconds = math.MaxInt32

// duration is a directive whose value is a time: a number of seconds, or a number with the unit ms or s. It shows whole
// seconds without a unit, as other directives do.
func duration(name, initial string, field func(*Settings) *time.Duration) *directive {
	return &directive{name: name, initial: initial,
		parse: func(s *Settings, words []string) error {
			d, err := parseDuration(words[0])
			if err == nil {
				*field(s) = d
			}
			return err
		},
		show: func(s *Settings) string {
			if d := *field(s); d%time.Second != 0 {
				return strconv.FormatInt(d.Milliseconds(), 10) + "ms"
			}
			return strconv.FormatInt(int64(*field(s)/time.Second), 10)
		},
	}
}

// positive makes a duration refuse 0.
func positive(d *directive) *directive {
	return checked(d, func(word string) error {
		if n, err := parseDuration(word); err == nil && n == 0 {
			return errors.New("argument must be greater than 0")
		}
		return nil
	})
}

func parseDuration(word string) (time.Duration, error) {
	digits := strings.TrimRight(word, "msMS")
	unit := time.Second
	switch strings.ToLower(word[len(digits):]) {
	case "", "s":
	case "ms":
		unit = time.Millisecond
	default:
		return 0, errNotDuration
	}
	n, ok := resp.ParseInt([]byte(digits))
	if !ok {
		return 0, errNotDuration
	}
	if n < 0 || n > int64(maxSeconds*time.Second/unit) {
		return 0, fmt.Errorf("argument must be between 0 and %d seconds inclusive", maxSeconds)
	}
	return time.Duration(n) * unit, nil
}

// memory is a directive whose value is a size of at least min bytes, with an optional unit.
func memory(name, initial string, min int64, field func(*Settings) *int) *directive {
	return &directive{name: name, initial: initial,
		parse: func(s *Settings, words []string) error {
			n, err := parseSize(words[0], min, math.MaxInt64)
			if err == nil {
				*field(s) = command.AsInt(n)
			}
			return err
		},
		show: func(s *Settings) string { return strconv.Itoa(*field(s)) },
	}
}

func parseSize(word string, min, max int64) (int64, error) {
	n, ok := ParseMemory(word)
	if !ok {
		if _, err := strconv.ParseUint(word, 10, 64); err == nil {
			return 0, rangeError(min, max)
		}
		return 0, errNotMemory
	}
	if n < min || n > max {
		return 0, rangeError(min, max)
	}
	return n, nil
}

// text is a directive whose value is any string.
func text(name, initial string, field func(*Settings) *string) *directive {
	return &directive{name: name, initial: strconv.Quote(initial),
		parse: func(s *Settings, words []string) error {
			*field(s) = words[0]
			return nil
		},
		show: func(s *Settings) string { return *field(s) },
	}
}

// file is a text that names a file or directory to read.
func file(name string, field func(*Settings) *string) *directive {
	d := text(name, "", field)
	d.reread = true
	return d
}

// fileName is a text that names a file or directory within another directory.
func fileName(name, initial, what string, field func(*Settings) *string) *directive {
	return checked(text(name, initial, field), func(value string) error {
		if strings.ContainsAny(value, `/\\`) {
			return errors.New(name + " can't be a path, " + what)
		}
		return nil
	})
}

// notEmpty makes a directive refuse the empty text.
func notEmpty(d *directive) *directive {
	return checked(d, func(value string) error {
		if value == "" {
			return errors.New(d.name + " can't be empty")
		}
		return nil
	})
}

// checked makes a directive of one word refuse values that fail a check.
func checked(d *directive, check func(word string) error) *directive {
	parse := d.parse
	d.parse = func(s *Settings, words []string) error {
		if err := check(words[0]); err != nil {
			return err
		}
		return parse(s, words)
	}
	return d
}

// access is a directive that says which clients may use a dangerous command.
func access(name string, field func(*Settings) *Access) *directive {
	return choice(name, "no", field, option[Access]{"no", AccessNo}, option[Access]{"yes", AccessYes},
		option[Access]{"local", AccessLocal}).atStart()
}

// yesNo is a directive that is yes or no.
func yesNo(name, initial string, field func(*Settings) *bool) *directive {
	return &directive{name: name, initial: initial, choices: []string{"yes", "no"},
		parse: func(s *Settings, words []string) error {
			yes, err := parseYesNo(words[0])
			if err == nil {
				*field(s) = yes
			}
			return err
		},
		show: func(s *Settings) string {
			if *field(s) {
				return "yes"
			}
			return "no"
		},
	}
}

func parseYesNo(word string) (bool, error) {
	switch strings.ToLower(word) {
	case "yes":
		return true, nil
	case "no":
		return false, nil
	}
	return false, errNotYesNo
}

// option is one value that a choice may have.
type option[T comparable] struct {
	name  string
	value T
}

// choice is a directive whose value is one of several words.
func choice[T comparable](name, initial string, field func(*Settings) *T, options ...option[T]) *directive {
	names := make([]string, len(options))
	for i, o := range options {
		names[i] = o.name
	}
	unknown := unknownWord(names)
	return &directive{name: name, initial: initial, choices: names,
		parse: func(s *Settings, words []string) error {
			for _, o := range options {
				if strings.EqualFold(o.name, words[0]) {
					*field(s) = o.value
					return nil
				}
			}
			return unknown
		},
		show: func(s *Settings) string {
			for _, o := range options {
				if o.value == *field(s) {
					return o.name
				}
			}
			return ""
		},
	}
}

// unknownWord is the error for a word that is not allowed.
func unknownWord(allowed []string) error {
	return errors.New("argument(s) must be one of the following: " + strings.Join(allowed, ", "))
}

func rangeError(min, max int64) error {
	return fmt.Errorf("argument must be between %d and %d inclusive", min, max)
}

// ParseMemory reads a size: a number of bytes, or of the units k m g (powers of 1000) or kb mb gb (powers of 1024).
func ParseMemory(s string) (bytes int64, ok bool) {
	digits := strings.TrimRight(s, "bkmgBKMG")
	unit := int64(1)
	switch strings.ToLower(s[len(digits):]) {
	case "", "b":
	case "k":
		unit = 1000
	case "kb":
		unit = 1 << 10
	case "m":
		unit = 1000 * 1000
	case "mb":
		unit = 1 << 20
	case "g":
		unit = 1000 * 1000 * 1000
	case "gb":
		unit = 1 << 30
	default:
		return 0, false
	}
	if digits == "" {
		return 0, true // as in Redis
	}
	n, err := strconv.ParseUint(digits, 10, 63)
	if err != nil || int64(n) > math.MaxInt64/unit {
		return 0, false
	}
	return int64(n) * unit, true
}
