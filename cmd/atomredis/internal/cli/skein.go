package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/atomredis/atomredis/doors/skein"
	"github.com/atomredis/atomredis/internal/files"
	"github.com/atomredis/atomredis/internal/protocols/skein/event"
	"github.com/atomredis/atomredis/internal/protocols/skein/keys"
)

// skeinApp has the name of the application, a flag of all commands.
type skeinApp struct{ name string }

func (a *app) skein() *cobra.Command {
	s := &skeinApp{}
	c := group("skein", "the key-value store and the containers of a Skein application, by the port for redis-cli",
		a.skeinGet(s), a.skeinPut(s), a.skeinDel(s), a.skeinRange(s), a.skeinWatch(s), a.skeinTxn(s), a.skeinContainers(s),
		a.skeinCredentials())
	c.Example = `  atomredis skein put address 172.18.0.2:8787
  atomredis skein watch --prefix address`
	c.PersistentFlags().StringVar(&s.name, "app", "skein", "name of the application")
	return c
}

// skeinDo executes a command, and returns its errors in the words of Skein.
func (a *app) skeinDo(ctx context.Context, args ...any) (any, error) {
	reply, err := a.client.Do(ctx, args...).Result()
	if err != nil {
		for _, word := range []string{keys.Invalid, keys.Precondition} {
			if text, ok := strings.CutPrefix(err.Error(), word); ok {
				return nil, errors.New(text)
			}
		}
	}
	return reply, err
}

func (a *app) skeinGet(s *skeinApp) *cobra.Command {
	return &cobra.Command{Use: "get KEY", Short: "write the value of a key", Args: Arguments(1, 1),
		Example: "  atomredis skein get address",
		RunE: func(c *cobra.Command, args []string) error {
			reply, err := a.skeinDo(c.Context(), "SKEIN.GET", s.name, args[0])
			if errors.Is(err, redis.Nil) {
				return fmt.Errorf("there is no key '%s'", args[0])
			}
			if err != nil {
				return err
			}
			value, owner := elements(reply, 2)[0], elements(reply, 2)[1]
			if a.json {
				return a.printJSON(keyJSON(args[0], value, owner))
			}
			return a.printed(textOf(value))
		}}
}

func (a *app) skeinPut(s *skeinApp) *cobra.Command {
	var owner string
	var none bool
	c := &cobra.Command{Use: "put KEY [VALUE]", Short: "set the value of a key, its owner, or both; VALUE can be - for the input",
		Args:    Arguments(1, 2),
		Example: "  atomredis skein put address 172.18.0.2:8787 --owner worker_3",
		RunE: func(c *cobra.Command, args []string) error {
			command := []any{"SKEIN.PUT", s.name, args[0]}
			if len(args) == 2 {
				value := []byte(args[1])
				if args[1] == "-" {
					var err error
					if value, err = io.ReadAll(a.in); err != nil {
						return err
					}
				}
				command = append(command, "VALUE", value)
			}
			owned := c.Flags().Changed("owner")
			switch {
			case owned && none:
				return Usagef("--owner and --no-owner contradict each other")
			case owned:
				command = append(command, "OWNER", owner)
			case !none && len(args) == 1:
				return Usagef("nothing to set: give a value, --owner or --no-owner")
			case !none:
				command = append(command, "KEEPOWNER")
			}
			_, err := a.skeinDo(c.Context(), command...)
			return err
		}}
	c.Flags().StringVar(&owner, "owner", "", "container that owns the key (default: the owner does not change)")
	c.Flags().BoolVar(&none, "no-owner", false, "remove the owner of the key")
	return c
}

// rangeFlags select a range of keys.
type rangeFlags struct{ prefix, start, end string }

func (f *rangeFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.prefix, "prefix", "", "keys that begin with this")
	c.Flags().StringVar(&f.start, "start", "", "keys from this one on")
	c.Flags().StringVar(&f.end, "end", "", "keys before this one")
}

// bounds returns the range of the key in args, or without one that of the flags.
func (f *rangeFlags) bounds(args []string) (start, end string, err error) {
	chosen := f.start != "" || f.end != ""
	switch {
	case len(args) > 0 && (chosen || f.prefix != "") || chosen && f.prefix != "":
		return "", "", Usagef("a key, --prefix, and --start and --end exclude each other")
	case len(args) > 0:
		return args[0], args[0] + "\x00", nil
	case f.prefix != "":
		return f.prefix, prefixEnd(f.prefix), nil
	}
	return f.start, f.end, nil
}

// prefixEnd returns the first key after all keys with a prefix, in the order of UTF-16 code units; "" if there is none.
func prefixEnd(prefix string) string {
	for prefix != "" {
		r, size := utf8.DecodeLastRuneInString(prefix)
		prefix = prefix[:len(prefix)-size]
		switch r {
		case 0xd7ff: // the surrogates come next
			return prefix + "\U00010000"
		case utf8.MaxRune:
			return prefix + "\ue000"
		case 0xffff:
			continue // the last code point
		}
		return prefix + string(r+1)
	}
	return ""
}

func (a *app) skeinDel(s *skeinApp) *cobra.Command {
	var f rangeFlags
	var all bool
	c := &cobra.Command{Use: "del [KEY]", Short: "remove a key or a range of keys, and write how many were removed",
		Args:    Arguments(0, 1),
		Example: "  atomredis skein del --prefix workers/",
		RunE: func(c *cobra.Command, args []string) error {
			start, end, err := f.bounds(args)
			if err != nil {
				return err
			}
			if start == "" && end == "" && !all {
				return Usagef("nothing is chosen: give a key, --prefix, --start, --end, or --all")
			}
			n, err := a.skeinDo(c.Context(), "SKEIN.DEL", s.name, start, end)
			if err != nil {
				return err
			}
			return a.printed(fmt.Sprint(n))
		}}
	f.add(c)
	c.Flags().BoolVar(&all, "all", false, "all keys")
	return c
}

func (a *app) skeinRange(s *skeinApp) *cobra.Command {
	var f rangeFlags
	var onlyKeys, count bool
	c := &cobra.Command{Use: "range", Short: "list keys with their values and owners", Args: Arguments(0, 0),
		Example: "  atomredis skein range --start a --end c",
		RunE: func(c *cobra.Command, args []string) error {
			start, end, err := f.bounds(nil)
			if err != nil {
				return err
			}
			results := "ITEMS"
			switch {
			case count:
				results = "NONE"
			case onlyKeys:
				results = "KEYS"
			}
			reply, err := a.skeinDo(c.Context(), "SKEIN.RANGE", s.name, start, end, results)
			if err != nil {
				return err
			}
			if count {
				return a.printed(fmt.Sprint(reply))
			}
			list, _ := reply.([]any)
			if onlyKeys {
				names := make([]string, len(list))
				for i, key := range list {
					names[i] = textOf(key)
				}
				return a.names("key", names)
			}
			return a.skeinKeys(list)
		}}
	f.add(c)
	c.Flags().BoolVar(&onlyKeys, "keys", false, "only the keys")
	c.Flags().BoolVar(&count, "count", false, "only their number")
	return c
}

// skeinKeys writes keys with values and owners.
func (a *app) skeinKeys(list []any) error {
	rows, objects := make([][]string, len(list)), make([]any, len(list))
	for i, one := range list {
		e := elements(one, 3)
		rows[i] = []string{textOf(e[0]), textOf(e[1]), ownerOf(textOf(e[2]))}
		objects[i] = keyJSON(rows[i][0], e[1], e[2])
	}
	if a.json {
		return a.printJSON(objects)
	}
	return a.table([]string{"key", "value", "owner"}, rows)
}

// ownerOf returns an owner, or the absence of one, as text for people.
func ownerOf(owner string) string {
	if owner == "" {
		return "-"
	}
	return owner
}

// keyJSON returns a key in the form for JSON.
func keyJSON(key string, value, owner any) any {
	return struct {
		Key   string `json:"key"`
		Value string `json:"value"`
		Owner any    `json:"owner"`
	}{key, textOf(value), owner}
}

func (a *app) skeinWatch(s *skeinApp) *cobra.Command {
	var f rangeFlags
	var count int
	c := &cobra.Command{Use: "watch [KEY]", Short: "write the events of keys, until interrupted", Args: Arguments(0, 1),
		Example: "  atomredis skein watch --prefix workers/",
		RunE: func(c *cobra.Command, args []string) error {
			start, end, err := f.bounds(args)
			if err != nil {
				return err
			}
			if c.Flags().Changed("count") && count < 1 {
				return Usagef("invalid count %d", count)
			}
			sub := a.client.Subscribe(c.Context(), keys.Channel(s.name, a.server.db))
			defer sub.Close()
			for n := 0; count == 0 || n < count; {
				m, err := sub.ReceiveMessage(c.Context())
				if err != nil {
					return ended(c.Context(), err)
				}
				e, err := event.Decode([]byte(m.Payload))
				if err != nil || e.Type == event.Finish {
					continue
				}
				for _, key := range e.Keys {
					if keys.Contains(start, end, key) && (count == 0 || n < count) {
						n++
						if err := a.skeinEvent(&e, string(key)); err != nil {
							return err
						}
					}
				}
			}
			return nil
		}}
	f.add(c)
	c.Flags().IntVar(&count, "count", 0, "end after so many events")
	return c
}

// skeinEvent writes one event of a key.
func (a *app) skeinEvent(e *event.Event, key string) error {
	if a.json {
		var owner any
		if e.Owner != nil {
			owner = string(e.Owner)
		}
		return a.printJSON(struct {
			Event string `json:"event"`
			Key   string `json:"key"`
			Value string `json:"value"`
			Owner any    `json:"owner"`
		}{e.Type.String(), key, string(e.Value), owner})
	}
	row := []string{e.Type.String(), key}
	if e.Type == event.Put {
		row = append(row, string(e.Value), ownerOf(string(e.Owner)))
	}
	return a.printed(strings.Join(cells(row), "\t"))
}

func (a *app) skeinTxn(s *skeinApp) *cobra.Command {
	return &cobra.Command{Use: "txn [IF CONDITION...] [THEN OPERATION...] [ELSE OPERATION...]",
		Short: "execute operations if conditions hold; docs/skein.md describes them (SKEIN.TXN)", Args: Arguments(1, -1),
		Example: "  atomredis skein txn IF NOVALUE lock = THEN PUT lock VALUE me ELSE RANGE lock ''",
		RunE: func(c *cobra.Command, args []string) error {
			command := []any{"SKEIN.TXN", s.name}
			for _, arg := range args {
				command = append(command, arg)
			}
			reply, err := a.skeinDo(c.Context(), command...)
			if err != nil {
				return err
			}
			parts := elements(reply, 2)
			succeeded := parts[0] == int64(1)
			if a.json {
				return a.printJSON(map[string]any{"succeeded": succeeded, "results": parts[1]})
			}
			lines := []string{"failed"}
			if succeeded {
				lines[0] = "succeeded"
			}
			results, _ := parts[1].([]any)
			for _, result := range results {
				lines = append(lines, described(result))
			}
			return a.printed(lines...)
		}}
}

// described returns the reply of an operation in one line.
func described(reply any) string {
	list, ok := reply.([]any)
	if !ok {
		return textOf(reply)
	}
	all := make([]string, len(list))
	for i, one := range list {
		switch one := one.(type) {
		case []any:
			all[i] = described(one)
		case string:
			all[i] = strconv.Quote(one)
		case nil:
			all[i] = "null"
		default:
			all[i] = textOf(one)
		}
	}
	return "[" + strings.Join(all, " ") + "]"
}

func (a *app) skeinContainers(s *skeinApp) *cobra.Command {
	var states, services []string
	c := &cobra.Command{Use: "containers", Short: "list containers; without --state those that have not ended",
		Args:    Arguments(0, 0),
		Example: "  atomredis skein containers --state failed --state killed",
		RunE: func(c *cobra.Command, _ []string) error {
			command := []any{"SKEIN.CONTAINER", "LIST", s.name}
			for _, state := range states {
				command = append(command, "STATE", state)
			}
			for _, service := range services {
				command = append(command, "SERVICE", service)
			}
			reply, err := a.skeinDo(c.Context(), command...)
			if err != nil {
				return err
			}
			list, _ := reply.([]any)
			rows, objects := make([][]string, len(list)), make([]any, len(list))
			for i, one := range list {
				fields, _ := one.(map[any]any)
				object := make(map[string]any, len(fields))
				for name, value := range fields {
					object[textOf(name)] = value
				}
				objects[i] = object
				rows[i] = []string{textOf(object["id"]), textOf(object["state"]), moment(object["start"]), moment(object["finish"]),
					textOf(object["lease"]), textOf(object["message"])}
			}
			if a.json {
				return a.printJSON(objects)
			}
			return a.table([]string{"container", "state", "start", "finish", "lease", "message"}, rows)
		}}
	c.Flags().StringArrayVar(&states, "state", nil, "containers in this state (may be given several times)")
	c.Flags().StringArrayVar(&services, "service", nil, "containers of this service (may be given several times)")
	return c
}

// moment returns a time in ms since 1970 as text; 0 means none.
func moment(v any) string {
	ms, _ := v.(int64)
	if ms == 0 {
		return "-"
	}
	return time.UnixMilli(ms).UTC().Format(time.RFC3339)
}

func (a *app) skeinCredentials() *cobra.Command {
	var force bool
	c := &cobra.Command{Use: "credentials [DIR]", Args: Arguments(0, 1),
		Short:   "make the certificate that server and clients share: skein.crt and skein.pem in DIR (default: $SKEIN_CONFIG or ~/.skein)",
		Example: "  atomredis skein credentials /etc/atomredis",
		RunE: func(_ *cobra.Command, args []string) error {
			dir := os.Getenv("SKEIN_CONFIG")
			switch {
			case len(args) > 0:
				dir = args[0]
			case dir == "":
				home, err := os.UserHomeDir()
				if err != nil {
					return err
				}
				dir = filepath.Join(home, ".skein")
			}
			cert, key, err := skein.NewCredentials()
			if err != nil {
				return err
			}
			if err := os.MkdirAll(dir, 0o700); err != nil {
				return err
			}
			made := map[string][]byte{filepath.Join(dir, "skein.crt"): cert, filepath.Join(dir, "skein.pem"): key}
			for name := range made {
				if _, err := os.Lstat(name); err == nil && !force {
					return fmt.Errorf("%s exists; --force replaces it", name)
				}
			}
			for name, content := range made {
				err := files.Replace(name, func(w io.Writer) error {
					_, err := w.Write(content)
					return err
				})
				if err != nil {
					return err
				}
			}
			return nil
		}}
	c.Flags().BoolVar(&force, "force", false, "replace files that exist")
	return c
}

// elements returns the elements of a reply, as many as there must be.
func elements(reply any, n int) []any {
	list, _ := reply.([]any)
	return append(list[:min(len(list), n):min(len(list), n)], make([]any, n-min(len(list), n))...)
}

// textOf returns a reply as text; null is "".
func textOf(v any) string {
	if v == nil {
		return ""
	}
	return fmt.Sprint(v)
}
