package memory

import (
	"context"
	"iter"
	"time"
)

// Change is one change of the data: what a command, a transaction or a script has done at once.
type Change struct {
	// Position is the place after the change: DB.Changes with it goes on from there, also after a restart.
	Position string
	// Time is when it happened; of a snapshot, its instant.
	Time time.Time
	// Commands repeat the effect, independently of time and chance. They belong together.
	Commands []Changed
}

// Changed is a command of a Change: its database, and its name and arguments.
type Changed struct {
	DB   int
	Args []string
}

// Changes returns an iterator over the changes of all databases after a position, in their order (CHANGES READ). It waits for
// further changes, until the loop or ctx ends. From "$" on it has later changes, and from "0" on first the commands that make
// the present data. It needs Options.Dir.
//
// An error is the last step: that of ctx, ErrClosed, or an Error with the code CHANGESGONE if the changes after the position
// are not kept any more (directive changes-retention), or the position belongs to another history. Then begin with "0".
func (db *DB) Changes(ctx context.Context, from string) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		for at := from; ; {
			reply, err := db.Do(ctx, "CHANGES", "READ", "FROM", at, "BLOCK", 0)
			var changes []Change
			if err == nil {
				at, changes, err = changesOf(reply)
			}
			if err == nil {
				err = ctx.Err()
			}
			if err != nil {
				yield(Change{}, err)
				return
			}
			for _, c := range changes {
				if !yield(c, nil) {
					return
				}
			}
		}
	}
}

// changesOf reads the reply to CHANGES READ.
func changesOf(reply Reply) (next string, changes []Change, err error) {
	page, err := reply.Slice()
	if err != nil {
		return "", nil, err
	}
	if next, err = page[0].Text(); err != nil {
		return "", nil, err
	}
	list, err := page[1].Slice()
	for i := 0; err == nil && i < len(list); i++ {
		var c Change
		c, err = changeOf(list[i])
		changes = append(changes, c)
	}
	return next, changes, err
}

func changeOf(reply Reply) (c Change, err error) {
	parts, err := reply.Slice()
	if err != nil {
		return c, err
	}
	var ms int64
	if c.Position, err = parts[0].Text(); err == nil {
		ms, err = parts[1].Int()
	}
	if err != nil {
		return c, err
	}
	c.Time = time.UnixMilli(ms)
	commands, err := parts[2].Slice()
	for i := 0; err == nil && i < len(commands); i++ {
		var words []Reply
		if words, err = commands[i].Slice(); err != nil {
			break
		}
		var db int64
		if db, err = words[0].Int(); err != nil {
			break
		}
		one := Changed{DB: int(db), Args: make([]string, len(words)-1)}
		for k, w := range words[1:] {
			if one.Args[k], err = w.Text(); err != nil {
				return c, err
			}
		}
		c.Commands = append(c.Commands, one)
	}
	return c, err
}
