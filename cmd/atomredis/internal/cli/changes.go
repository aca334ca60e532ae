package cli

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"
)

// changesBlock is how long one read waits for a change, in ms. It must be less than the timeout of the connection.
const changesBlock = 1000

// changeJSON is a line of "changes".
type changeJSON struct {
	Position string        `json:"position"`
	Time     int64         `json:"time"` // ms since 1970
	Commands []changedJSON `json:"commands"`
}

type changedJSON struct {
	DB   int64    `json:"db"`
	Args []string `json:"args"`
}

func (a *app) changes() *cobra.Command {
	var from string
	var match, types []string
	var keys, follow bool
	c := &cobra.Command{Use: "changes", Short: "write what happens to the data, as lines of JSON",
		Long: `Writes each change of the data as a line of JSON, in order: its position, its time, and the commands that repeat its
effect. With a position of an earlier line as --from it goes on after that line, also after a restart of the server. From 0 on,
the commands that make the present data come first. Bytes that are not UTF-8 are replaced.`,
		Example: `  atomredis changes --keys
  atomredis changes --from 0 --match 'user:*' --follow=false > users.jsonl`,
		Args: Arguments(0, 0),
		RunE: func(c *cobra.Command, _ []string) error {
			for {
				args := []any{"CHANGES", "READ", "FROM", from}
				// The first reply comes when the snapshot is complete, which may take longer than the connection waits.
				waits := follow || from == "0" || strings.HasPrefix(from, "s")
				if waits {
					args = append(args, "BLOCK", changesBlock)
				}
				for _, p := range match {
					args = append(args, "MATCH", p)
				}
				for _, t := range types {
					args = append(args, "TYPE", t)
				}
				if keys {
					args = append(args, "KEYS")
				}
				reply, err := a.client.Do(c.Context(), args...).Slice()
				if err != nil {
					return ended(c.Context(), err)
				}
				next, list, err := changesIn(reply)
				if err != nil {
					return err
				}
				for _, change := range list {
					if err := a.printJSON(change); err != nil {
						return err
					}
				}
				if !waits && len(list) == 0 {
					return nil
				}
				from = next
			}
		}}
	c.Flags().StringVar(&from, "from", "$", "the position to begin after; $ is now, 0 is before everything")
	c.Flags().StringArrayVar(&match, "match", nil, "only commands for a key that matches a pattern")
	c.Flags().StringArrayVar(&types, "type", nil, "only commands for values of a type, or of any type")
	c.Flags().BoolVar(&keys, "keys", false, "only the names of commands and their keys")
	c.Flags().BoolVar(&follow, "follow", true, "wait for further changes")
	return c
}

var errChanges = errors.New("the server's reply to CHANGES READ has an unknown form")

// changesIn reads a reply to CHANGES READ.
func changesIn(reply []any) (next string, list []changeJSON, err error) {
	if len(reply) != 2 {
		return "", nil, errChanges
	}
	next, ok := reply[0].(string)
	all, isList := reply[1].([]any)
	if !ok || !isList {
		return "", nil, errChanges
	}
	for _, v := range all {
		parts, _ := v.([]any)
		if len(parts) != 3 {
			return "", nil, errChanges
		}
		var c changeJSON
		c.Position, _ = parts[0].(string)
		c.Time, _ = parts[1].(int64)
		commands, _ := parts[2].([]any)
		for _, v := range commands {
			words, _ := v.([]any)
			if len(words) < 2 {
				return "", nil, errChanges
			}
			var one changedJSON
			one.DB, _ = words[0].(int64)
			for _, w := range words[1:] {
				text, _ := w.(string)
				one.Args = append(one.Args, text)
			}
			c.Commands = append(c.Commands, one)
		}
		list = append(list, c)
	}
	return next, list, nil
}
