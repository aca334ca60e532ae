package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/atomredis/atomredis/atom"
)

func (a *app) atom() *cobra.Command {
	c := group("atom", "atom elements, their commands, streams and data",
		a.atomElements(), a.atomStreams(), a.atomInfo(), a.atomHealth(), a.atomCall(), a.atomRead(), a.atomWrite(),
		a.atomLog(),
		a.atomParam(), a.atomRef(), a.atomCounter())
	c.Example = `  atomredis atom elements
  atomredis atom call arm move '{"x": 1}' --ser msgpack -h robot`
	return c
}

// withElement calls do with an element that it closes afterwards. The element's name is unique to this process: an
// element with the name of another would share its commands, and remove its streams when it is closed.
func (a *app) withElement(c *cobra.Command, do func(ctx context.Context, e *atom.Element) error) error {
	ctx := c.Context()
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	e, err := atom.New(ctx, a.client, fmt.Sprintf("atomredis_%s_pid%d_%d", host, os.Getpid(), time.Now().UnixNano()),
		atom.Options{})
	if err != nil {
		return err
	}
	err = do(ctx, e)
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	return errors.Join(err, e.Close(closing))
}

func (a *app) atomElements() *cobra.Command {
	return &cobra.Command{Use: "elements", Short: "list the elements", Args: Arguments(0, 0),
		Example: "  atomredis atom elements",
		RunE: func(c *cobra.Command, _ []string) error {
			return a.withElement(c, func(ctx context.Context, e *atom.Element) error {
				names, err := e.Elements(ctx)
				if err != nil {
					return err
				}
				var others []string
				for _, name := range names {
					if name != e.Name() {
						others = append(others, name)
					}
				}
				return a.names("element", others)
			})
		}}
}

func (a *app) atomStreams() *cobra.Command {
	return &cobra.Command{Use: "streams [ELEMENT]", Short: "list the data streams of an element, or of all",
		Args:    Arguments(0, 1),
		Example: "  atomredis atom streams camera",
		RunE: func(c *cobra.Command, args []string) error {
			return a.withElement(c, func(ctx context.Context, e *atom.Element) error {
				names, err := e.Streams(ctx, strings.Join(args, ""))
				if err != nil {
					return err
				}
				if a.json {
					type stream struct {
						Element string `json:"element"`
						Stream  string `json:"stream"`
					}
					list := []stream{}
					for _, n := range names {
						list = append(list, stream(n))
					}
					return a.printJSON(list)
				}
				rows := make([][]string, len(names))
				for i, n := range names {
					rows[i] = []string{n.Element, n.Stream}
				}
				return a.table([]string{"element", "stream"}, rows)
			})
		}}
}

func (a *app) atomHealth() *cobra.Command {
	return &cobra.Command{Use: "health ELEMENT...", Short: "ask elements whether they are healthy", Args: Arguments(1, -1),
		Example: "  atomredis atom health camera arm",
		RunE: func(c *cobra.Command, args []string) error {
			return a.withElement(c, func(ctx context.Context, e *atom.Element) error {
				type health struct {
					Element string `json:"element"`
					Healthy bool   `json:"healthy"`
					Reason  string `json:"reason,omitempty"`
				}
				all, rows, ill := []health{}, [][]string{}, 0
				for _, name := range args {
					h := health{Element: name, Healthy: true}
					state := "healthy"
					if err := e.Healthcheck(ctx, name); err != nil {
						ill++
						h.Healthy, h.Reason, state = false, err.Error(), "not healthy"
					}
					all, rows = append(all, h), append(rows, []string{name, state, h.Reason})
				}
				var err error
				if a.json {
					err = a.printJSON(all)
				} else {
					err = a.table([]string{"element", "state", "reason"}, rows)
				}
				if err == nil && ill > 0 {
					err = fmt.Errorf("%d of %d elements are not healthy", ill, len(args))
				}
				return err
			})
		}}
}

func (a *app) atomCall() *cobra.Command {
	var ser string
	var timeout time.Duration
	c := &cobra.Command{Use: "call ELEMENT COMMAND [DATA|-]",
		Short: "send a command to an element and write its response", Args: Arguments(2, 3),
		Long: "Sends a command to an element and writes the data of its response. " +
			"With DATA - it reads the data from standard input. With --ser msgpack DATA is JSON.\n" +
			"A response that names its serialization is written as JSON, any other unchanged.",
		Example: "  atomredis atom call arm move '{\"x\": 1}' --ser msgpack",
		RunE: func(c *cobra.Command, args []string) error {
			var data any
			if len(args) == 3 {
				text, err := a.argument(args[2])
				if err != nil {
					return err
				}
				if data, err = parseValue(text, ser); err != nil {
					return err
				}
			}
			return a.withElement(c, func(ctx context.Context, e *atom.Element) error {
				r, err := e.CommandSend(ctx, args[0], args[1], data, atom.SendOptions{Serialization: ser, AckTimeout: timeout})
				if r == nil {
					return err
				}
				if a.json {
					if err := a.printJSON(struct {
						ID   string `json:"cmd_id"`
						Code int    `json:"err_code"`
						Text string `json:"err_str"`
						Data any    `json:"data"`
					}{r.ID, int(r.Code), r.Message, jsonValue(r.Data)}); err != nil {
						return err
					}
				} else if len(r.Data.Bytes) > 0 {
					if err := a.printed(text(r.Data)); err != nil {
						return err
					}
				}
				return err
			})
		}}
	c.Flags().StringVar(&ser, "ser", atom.None, "serialization of the data, none or msgpack")
	c.Flags().DurationVar(&timeout, "timeout", atom.DefaultAckTimeout, "how long to wait for the acknowledgement")
	return c
}

// argument returns an argument, or the content of standard input for "-".
func (a *app) argument(arg string) ([]byte, error) {
	if arg != "-" {
		return []byte(arg), nil
	}
	return io.ReadAll(a.in)
}

// parseValue converts an argument into a value: for the serialization none the text itself, for others the JSON in it.
func parseValue(text []byte, ser string) (any, error) {
	switch ser {
	case atom.None:
		return text, nil
	case atom.Msgpack:
		var value any
		d := json.NewDecoder(strings.NewReader(string(text)))
		d.UseNumber()
		if err := d.Decode(&value); err != nil || d.More() {
			return nil, Usagef("%q is not JSON, which --ser %s takes", text, ser)
		}
		return numbers(value), nil
	}
	return nil, Usagef("unknown serialization %q", ser)
}

// numbers replaces each json.Number in a value by an int64 or a float64.
func numbers(value any) any {
	switch v := value.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		f, _ := v.Float64()
		return f
	case []any:
		for i := range v {
			v[i] = numbers(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = numbers(v[k])
		}
	}
	return value
}

// jsonValue returns a value in a form that can be encoded as JSON.
func jsonValue(v atom.Value) any {
	if !v.Exists() {
		return nil
	}
	value, err := v.Any()
	if err != nil { // an unknown serialization, or malformed data
		return v.String()
	}
	return plain(value)
}

func plain(value any) any {
	switch v := value.(type) {
	case []byte:
		return string(v)
	case []any:
		for i := range v {
			v[i] = plain(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = plain(v[k])
		}
	case map[any]any:
		m := make(map[string]any, len(v))
		for k, element := range v {
			m[fmt.Sprint(plain(k))] = plain(element)
		}
		return m
	}
	return value
}

// text returns a value for people: unchanged without a serialization, as JSON with one.
func text(v atom.Value) string {
	if v.Serialization == atom.None {
		return v.String()
	}
	value, err := v.Any()
	if err != nil {
		return v.String()
	}
	if s, ok := plain(value).(string); ok {
		return s
	}
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(plain(value)); err != nil {
		return v.String()
	}
	return strings.TrimSuffix(b.String(), "\n")
}
