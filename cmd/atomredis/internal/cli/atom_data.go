package cli

import (
	"context"
	"fmt"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/atomredis/atomredis/atom"
)

func (a *app) atomParam() *cobra.Command {
	return group("param", "parameters", a.paramGet(), a.paramSet(), a.paramList(), a.paramDelete())
}

func (a *app) paramGet() *cobra.Command {
	return &cobra.Command{Use: "get KEY [FIELD...]", Short: "write the fields of a parameter", Args: Arguments(1, -1),
		Example: "  atomredis atom param get limits speed",
		RunE: func(c *cobra.Command, args []string) error {
			return a.withElement(c, func(ctx context.Context, e *atom.Element) error {
				fields, err := e.ParameterRead(ctx, args[0], atom.Decoding{}, args[1:]...)
				if err != nil {
					return err
				}
				if a.json {
					values := map[string]any{}
					for name, v := range fields {
						values[name] = jsonValue(v)
					}
					return a.printJSON(values)
				}
				var rows [][]string
				for name, v := range fields {
					rows = append(rows, []string{name, text(v)})
				}
				sort.Slice(rows, func(i, j int) bool { return rows[i][0] < rows[j][0] })
				return a.table([]string{"field", "value"}, rows)
			})
		}}
}

func (a *app) paramSet() *cobra.Command {
	var ser string
	var o atom.ParameterOptions
	c := &cobra.Command{Use: "set KEY FIELD=VALUE...", Short: "set fields of a parameter", Args: Arguments(2, -1),
		Example: "  atomredis atom param set limits speed=1.5 --no-override",
		RunE: func(c *cobra.Command, args []string) error {
			data := map[string]any{}
			for _, arg := range args[1:] {
				name, value, ok := strings.Cut(arg, "=")
				if !ok || name == "" {
					return Usagef("%q is not of the form FIELD=VALUE", arg)
				}
				var err error
				if data[name], err = parseValue([]byte(value), ser); err != nil {
					return err
				}
			}
			o.Serialization = ser
			return a.withElement(c, func(ctx context.Context, e *atom.Element) error {
				_, err := e.ParameterWrite(ctx, args[0], data, o)
				return err
			})
		}}
	c.Flags().StringVar(&ser, "ser", atom.None, "serialization of the values, none or msgpack; with msgpack they are JSON")
	c.Flags().BoolVar(&o.NoOverride, "no-override", false, "do not allow later changes of the fields")
	c.Flags().DurationVar(&o.Timeout, "timeout", 0, "how long the parameter lives (0: unchanged)")
	return c
}

func (a *app) paramList() *cobra.Command {
	return &cobra.Command{Use: "list [PATTERN]", Short: "list the parameters", Args: Arguments(0, 1),
		Example: "  atomredis atom param list 'lim*'",
		RunE: func(c *cobra.Command, args []string) error {
			return a.withElement(c, func(ctx context.Context, e *atom.Element) error {
				keys, err := e.ParameterList(ctx, strings.Join(args, ""))
				if err != nil {
					return err
				}
				return a.names("parameter", keys)
			})
		}}
}

func (a *app) paramDelete() *cobra.Command {
	return &cobra.Command{Use: "delete KEY", Short: "delete a parameter", Args: Arguments(1, 1),
		Example: "  atomredis atom param delete limits",
		RunE: func(c *cobra.Command, args []string) error {
			return a.withElement(c, func(ctx context.Context, e *atom.Element) error { return e.ParameterDelete(ctx, args[0]) })
		}}
}

func (a *app) atomRef() *cobra.Command {
	return group("ref", "references", a.refCreate(), a.refGet(), a.refDelete())
}

func (a *app) refCreate() *cobra.Command {
	var ser, key string
	var timeout time.Duration
	c := &cobra.Command{Use: "create DATA|-", Short: "store data and write the reference to it", Args: Arguments(1, 1),
		Example: "  atomredis atom ref create - --timeout 1m < picture.jpeg",
		RunE: func(c *cobra.Command, args []string) error {
			data, err := a.argument(args[0])
			if err != nil {
				return err
			}
			value, err := parseValue(data, ser)
			if err != nil {
				return err
			}
			o := atom.ReferenceOptions{Serialization: ser, Timeout: timeout}
			if key != "" {
				o.Keys = []string{key}
			}
			if timeout == 0 {
				o.Timeout = atom.NoTimeout
			}
			return a.withElement(c, func(ctx context.Context, e *atom.Element) error {
				refs, err := e.ReferenceCreate(ctx, []any{value}, o)
				if err != nil {
					return err
				}
				if a.json {
					return a.printJSON(refs[0])
				}
				return a.printed(refs[0])
			})
		}}
	c.Flags().StringVar(&ser, "ser", atom.None, "serialization of the data, none or msgpack; with msgpack it is JSON")
	c.Flags().StringVar(&key, "key", "", "name of the reference (default: a UUID)")
	c.Flags().DurationVar(&timeout, "timeout", atom.DefaultReferenceTimeout,
		"how long the reference lives (0: until it is deleted)")
	return c
}

func (a *app) refGet() *cobra.Command {
	return &cobra.Command{Use: "get REFERENCE...", Short: "write the data that references refer to",
		Args:    Arguments(1, -1),
		Example: "  atomredis atom ref get \"$reference\"",
		RunE: func(c *cobra.Command, args []string) error {
			return a.withElement(c, func(ctx context.Context, e *atom.Element) error {
				values, err := e.ReferenceGet(ctx, args, atom.Decoding{})
				if err != nil {
					return err
				}
				for i, v := range values {
					if !v.Exists() {
						return fmt.Errorf("%s: %w", args[i], atom.ErrNotFound)
					}
					if a.json {
						err = a.printJSON(jsonValue(v))
					} else {
						err = a.printed(text(v))
					}
					if err != nil {
						return err
					}
				}
				return nil
			})
		}}
}

func (a *app) refDelete() *cobra.Command {
	return &cobra.Command{Use: "delete REFERENCE...", Short: "delete references", Args: Arguments(1, -1),
		Example: "  atomredis atom ref delete \"$reference\"",
		RunE: func(c *cobra.Command, args []string) error {
			return a.withElement(c, func(ctx context.Context, e *atom.Element) error { return e.ReferenceDelete(ctx, args...) })
		}}
}

func (a *app) atomCounter() *cobra.Command {
	return group("counter", "counters",
		a.counter("get KEY", "write the value of a counter", "  atomredis atom counter get laps",
			func(ctx context.Context, e *atom.Element, key string, _ int64) (int64, error) {
				return e.CounterGet(ctx, key)
			}),
		a.counter("set KEY VALUE", "set a counter", "  atomredis atom counter set laps 10",
			func(ctx context.Context, e *atom.Element, key string, n int64) (int64, error) {
				return e.CounterSet(ctx, key, n)
			}),
		a.counter("add KEY CHANGE", "add to a counter and write its new value; a negative number needs -- before it",
			"  atomredis atom counter add laps -- -3",
			func(ctx context.Context, e *atom.Element, key string, n int64) (int64, error) {
				return e.CounterUpdate(ctx, key, n)
			}))
}

// counter returns a command that changes or reads a counter and writes its value.
func (a *app) counter(use, short, example string,
	do func(ctx context.Context, e *atom.Element, key string, n int64) (int64, error)) *cobra.Command {
	n := len(strings.Fields(use)) - 1
	return &cobra.Command{Use: use, Short: short, Args: Arguments(n, n), Example: example,
		RunE: func(c *cobra.Command, args []string) error {
			var number int64
			if len(args) == 2 {
				var err error
				if number, err = strconv.ParseInt(args[1], 10, 64); err != nil {
					return Usagef("%q is not a number", args[1])
				}
			}
			return a.withElement(c, func(ctx context.Context, e *atom.Element) error {
				value, err := do(ctx, e, args[0], number)
				if err != nil {
					return err
				}
				return a.printed(strconv.FormatInt(value, 10))
			})
		}}
}
