package cli

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"
	"github.com/vmihailenco/msgpack/v5"

	"github.com/atomredis/atomredis/atom"
)

func (a *app) atomRead() *cobra.Command {
	var count int
	var follow bool
	c := &cobra.Command{Use: "read ELEMENT STREAM",
		Short: "show the newest entries of a stream, in order", Args: Arguments(2, 2),
		Example: "  atomredis atom read camera frames --count 1\n  atomredis atom read sensor temperature --follow",
		RunE: func(c *cobra.Command, args []string) error {
			if args[1] == "" {
				return Usagef("a stream needs a name")
			}
			return a.entries(c, args[0], args[1], count, follow, a.entry)
		}}
	c.Flags().IntVar(&count, "count", 10, "how many existing entries")
	c.Flags().BoolVar(&follow, "follow", false, "continue with new entries, until interrupted")
	return c
}

// entries passes the newest entries of a stream to show, and with follow also new ones.
func (a *app) entries(c *cobra.Command, element, stream string, count int, follow bool,
	show func(atom.Entry) error) error {
	if count < 0 {
		return Usagef("invalid count %d", count)
	}
	return a.withElement(c, func(ctx context.Context, e *atom.Element) error {
		newest, err := e.EntryReadN(ctx, element, stream, max(count, 1), atom.Decoding{})
		if err != nil {
			return err
		}
		after := "0"
		if len(newest) > 0 {
			after = newest[0].ID
		}
		newest = newest[:min(count, len(newest))]
		slices.Reverse(newest)
		for _, entry := range newest {
			if err := show(entry); err != nil {
				return err
			}
		}
		if !follow {
			return nil
		}
		for entry, err := range e.Entries(ctx, element, stream, atom.ReadOptions{After: after}) {
			if err == nil {
				err = show(entry)
			}
			if err != nil {
				return ended(ctx, err)
			}
		}
		return nil
	})
}

// entry writes an entry of a stream as one line.
func (a *app) entry(entry atom.Entry) error {
	if a.json {
		fields := map[string]any{}
		for name, value := range entry.Fields {
			fields[name] = jsonValue(value)
		}
		return a.printJSON(map[string]any{"id": entry.ID, "fields": fields})
	}
	line := []string{entry.ID}
	names := make([]string, 0, len(entry.Fields))
	for name := range entry.Fields {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		line = append(line, cells([]string{name})[0]+"="+cells([]string{text(entry.Fields[name])})[0])
	}
	return a.printed(strings.Join(line, " "))
}

func (a *app) atomWrite() *cobra.Command {
	var ser string
	var maxLen int64
	c := &cobra.Command{Use: "write ELEMENT STREAM FIELD=VALUE...",
		Short: "write an entry to a stream, and write its ID", Args: Arguments(3, -1),
		Long:    "Writes an entry to a stream in the name of the element. With --ser msgpack values are JSON.",
		Example: "  atomredis atom write sensor temperature celsius=21.5",
		RunE: func(c *cobra.Command, args []string) error {
			if args[0] == "" || args[1] == "" {
				return Usagef("element and stream need names")
			}
			var fields []any
			for _, arg := range args[2:] {
				name, value, ok := strings.Cut(arg, "=")
				if !ok || name == "" || name == "ser" {
					return Usagef("%q is not of the form FIELD=VALUE", arg)
				}
				data, err := parseValue([]byte(value), ser)
				if err == nil && ser == atom.Msgpack {
					data, err = msgpack.Marshal(data)
				}
				if err != nil {
					return err
				}
				fields = append(fields, name, data)
			}
			// Without an element of that name: closing it would remove the stream.
			id, err := a.client.XAdd(c.Context(), &redis.XAddArgs{Stream: "stream:" + args[0] + ":" + args[1], MaxLen: maxLen,
				Approx: maxLen > 0,
				Values: append(fields, "ser", ser)}).Result()
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(id)
			}
			return a.printed(id)
		}}
	c.Flags().StringVar(&ser, "ser", atom.None, "serialization of the values, none or msgpack")
	c.Flags().Int64Var(&maxLen, "maxlen", atom.DefaultMaxLen, "least number of entries that the stream keeps (0: all)")
	return c
}

// levels has the names of the log's levels by their numbers.
var levels = []string{"emergency", "alert", "critical", "error", "warning", "notice", "info", "debug"}

func (a *app) atomLog() *cobra.Command {
	var count int
	var follow bool
	c := &cobra.Command{Use: "log", Short: "write the newest messages of the log that all elements share",
		Args:    Arguments(0, 0),
		Example: "  atomredis atom log --follow\n  atomredis atom log write warning 'the battery is low'",
		RunE: func(c *cobra.Command, _ []string) error {
			return a.entries(c, "", "log", count, follow, a.logEntry)
		}}
	c.Flags().IntVar(&count, "count", 10, "how many existing messages")
	c.Flags().BoolVar(&follow, "follow", false, "continue with new messages, until interrupted")
	c.AddCommand(a.atomLogWrite())
	return c
}

func (a *app) logEntry(entry atom.Entry) error {
	field := func(name string) string { return entry.Fields[name].String() }
	level := field("level")
	if n, err := strconv.Atoi(level); err == nil && n >= 0 && n < len(levels) {
		level = levels[n]
	}
	at, _, _ := strings.Cut(entry.ID, "-")
	ms, err := strconv.ParseInt(at, 10, 64)
	if err != nil {
		return fmt.Errorf("the log has an entry with the ID %q", entry.ID)
	}
	when := time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z07:00")
	if a.json {
		return a.printJSON(map[string]string{"time": when, "level": level, "element": field("element"),
			"host": field("host"), "msg": field("msg")})
	}
	return a.printed(strings.Join(cells([]string{when, level, field("element"), field("host"), field("msg")}), "\t"))
}

func (a *app) atomLogWrite() *cobra.Command {
	var element string
	c := &cobra.Command{Use: "write LEVEL MESSAGE", Short: "write a message to the log", Args: Arguments(2, 2),
		Long:    "Writes a message to the log. LEVEL is one of " + strings.Join(levels, ", ") + ", or its number.",
		Example: "  atomredis atom log write warning 'the battery is low' --element arm",
		RunE: func(c *cobra.Command, args []string) error {
			level := slices.Index(levels, args[0])
			if n, err := strconv.Atoi(args[0]); err == nil && n >= 0 && n < len(levels) {
				level = n
			}
			if level < 0 {
				return Usagef("%q is not a level: %s", args[0], strings.Join(levels, ", "))
			}
			host, err := os.Hostname()
			if err != nil {
				return err
			}
			return a.client.XAdd(c.Context(), &redis.XAddArgs{Stream: "log", MaxLen: atom.DefaultMaxLen, Approx: true,
				Values: []any{"level", level, "element", element, "msg", args[1], "host", host}}).Err()
		}}
	c.Flags().StringVar(&element, "element", "atomredis", "the element that the message is from")
	return c
}
