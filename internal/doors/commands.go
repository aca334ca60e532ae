package doors

import (
	"slices"

	"github.com/atomredis/atomredis/doors/door"
	"github.com/atomredis/atomredis/internal/command"
)

// Commands returns the commands that only doors have. Their indices follow all that the table can have.
func Commands(t *command.Table) (list []*command.Command) {
	next := t.Count + command.MaxCustom
	add := func(name string, categories []string, parent *command.Command) *command.Command {
		cmd := &command.Command{Name: name, Arity: -1, Parent: parent, Index: next}
		for i, category := range command.CategoryNames {
			if slices.Contains(categories, category) {
				cmd.ACL |= 1 << i
			}
		}
		next++
		return cmd
	}
	for _, k := range door.Kinds() {
		for _, c := range k.Commands {
			cmd := add(c.Name, c.Categories, nil)
			for _, sub := range c.Subs {
				cmd.Subs = append(cmd.Subs, add(c.Name+"|"+sub, c.Categories, cmd))
			}
			list = append(list, cmd)
		}
	}
	return list
}
