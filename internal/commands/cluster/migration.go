package cluster

import (
	"fmt"
	"strings"
	"time"

	"github.com/atomredis/atomredis/internal/cluster"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/resp"
)

const (
	errMigration command.Error = "ERR unknown argument"
	errOwnSlots  command.Error = "ERR this node is already the owner of the slot range"
)

// migration is CLUSTER MIGRATION: it moves slots with their keys here, and shows such tasks.
func migration(c *command.Ctx) {
	switch what := c.Args[2]; {
	case command.EqualFold(what, "import"):
		migrationImport(c)
	case command.EqualFold(what, "status"):
		if id, ok := taskArg(c); ok {
			migrationStatus(c, id)
		}
	case command.EqualFold(what, "cancel"):
		if id, ok := taskArg(c); ok {
			n := 0
			if h := shardsOf(c); h != nil {
				n = h.CancelTasks(id)
			}
			c.W.Int(int64(n))
		}
	default:
		c.Err(errMigration)
	}
}

// taskArg reads the name of a task, "" for all; if the arguments are invalid, it writes an error and ok is false.
func taskArg(c *command.Ctx) (id string, ok bool) {
	byID, all := command.EqualFold(c.Args[3], "id"), command.EqualFold(c.Args[3], "all")
	switch {
	case len(c.Args) > 5 || byID && len(c.Args) != 5 || all && len(c.Args) != 4:
		c.Err(command.WrongArity(c.Cmd))
	case byID:
		return string(c.Args[4]), true
	case all:
		return "", true
	default:
		c.Err(errMigration)
	}
	return "", false
}

func migrationImport(c *command.Ctx) {
	set, ok := rangeArgs(c, 3, nil)
	if !ok {
		return
	}
	h := shardsOf(c)
	if h == nil {
		c.Err(errOwnSlots)
		return
	}
	laterReply(c, func() (command.Reply, error) {
		id, err := h.Import(set)
		return func(w *resp.Writer) { w.BulkString(id) }, err
	})
}

func migrationStatus(c *command.Ctx, id string) {
	var list []cluster.MigrationTask
	if h := shardsOf(c); h != nil {
		for _, t := range h.Tasks() {
			if id == "" || t.ID == id {
				list = append(list, t)
			}
		}
	}
	c.W.Array(len(list))
	for i := range list {
		writeTask(c.W, &list[i])
	}
}

func writeTask(w *resp.Writer, t *cluster.MigrationTask) {
	f := fieldWriter{w: w, mark: w.Defer()}
	f.text("id", t.ID)
	f.text("slots", rangesText(t.Slots))
	f.text("source", t.Source)
	f.text("dest", t.Dest)
	f.text("operation", t.Operation)
	f.text("state", t.State)
	f.text("last_error", t.LastError)
	f.number("retries", 0) // failed tasks are not retried
	f.number("create_time", millis(t.Created))
	f.number("start_time", millis(t.Started))
	f.number("end_time", millis(t.Ended))
	f.number("write_pause_ms", t.Paused.Milliseconds())
	f.number("keys", t.Keys) // not in Redis
	f.end()
}

// millis is a time in ms since 1970, 0 for none.
func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func rangesText(list []cluster.Range) string {
	var text []string
	for _, r := range list {
		text = append(text, fmt.Sprintf("%d-%d", r.First, r.Last))
	}
	return strings.Join(text, " ")
}
