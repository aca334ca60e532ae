package server

import (
	"cmp"
	"strconv"
	"time"

	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/resp"
)

func init() { command.Register([]*command.Command{backupCommand}) }

// backupCommand makes a backup in parts.
var backupCommand = &command.Command{Name: "backup", Group: "server", Since: "8.10.0", Arity: 2,
	Summary: "Groups the commands about backups", Complexity: "That of the sub-command",
	Subs: []*command.Command{
		{Name: "backup|abort", Group: "server", Since: "8.10.0", Arity: 2,
			Flags:   command.Admin | command.NoScript | command.NoMulti,
			Summary: "Gives up the backup that is being made", Complexity: "O(1)", Do: backupAbort},
		{Name: "backup|cleanup", Group: "server", Since: "8.10.0", Arity: 2, Flags: command.Admin | command.NoScript,
			Summary: "Removes the files of a sealed backup", Complexity: "O(1)", Do: backupCleanup},
		{Name: "backup|help", Group: "server", Since: "8.10.0", Arity: 2, Flags: command.Loading | command.Stale,
			Summary: "Lists the subcommands", Complexity: "O(1)", Do: backupHelp},
		{Name: "backup|list", Group: "server", Since: "8.10.0", Arity: 2, Flags: command.Admin | command.Stale,
			Summary: "Lists the files of the backup that are complete", Complexity: "O(1)", Do: backupList},
		{Name: "backup|seal", Group: "server", Since: "8.10.0", Arity: 2,
			Flags:      command.Admin | command.NoScript | command.NoMulti,
			Summary:    "Ends the backup: it has all changes until now",
			Complexity: "O(N), where N is the size of what is not written yet", Do: backupSeal},
		{Name: "backup|start", Group: "server", Since: "8.10.0", Arity: 2, Flags: command.Admin | command.NoScript,
			Summary:    "Begins a backup in the directory backupdirname",
			Complexity: "O(N) in the background, where N is the number of keys", Do: backupStart},
		{Name: "backup|status", Group: "server", Since: "8.10.0", Arity: 2, Flags: command.Admin | command.Stale,
			Summary: "Tells how far the backup is", Complexity: "O(1)", Do: backupStatus},
	}}

func failedBackup(err error) string { return "ERR " + command.OneLine(err.Error()) }

func backupStart(c *command.Ctx) {
	if err := hostOf(c).Backups().Start(); err != nil {
		c.Err(command.Error(failedBackup(err)))
		return
	}
	c.W.OK()
}

func backupSeal(c *command.Ctx)  { awaitBackup(c, hostOf(c).Backups().Seal) }
func backupAbort(c *command.Ctx) { awaitBackup(c, hostOf(c).Backups().Abort) }

// awaitBackup makes the client wait for the end of a backup.
func awaitBackup(c *command.Ctx, end func() (wait func() error, err error)) {
	wait, err := end()
	if err != nil {
		c.Err(command.Error(failedBackup(err)))
		return
	}
	finish := c.Await(0, (*resp.Writer).OK)
	go func() {
		err := wait()
		finish(func(w *resp.Writer) {
			if err != nil {
				w.Error(failedBackup(err))
			} else {
				w.OK()
			}
		})
	}()
}

func backupCleanup(c *command.Ctx) {
	if err := hostOf(c).Backups().Clean(); err != nil {
		c.Err(command.Error(failedBackup(err)))
		return
	}
	c.W.OK()
}

func backupList(c *command.Ctx) {
	files := hostOf(c).Backups().Status().Files
	c.W.Array(len(files))
	for _, name := range files {
		c.W.BulkString(name)
	}
}

func backupStatus(c *command.Ctx) {
	b := hostOf(c).Backups().Status()
	seconds := func(t time.Time) string {
		if t.IsZero() {
			return "0"
		}
		return strconv.FormatInt(t.Unix(), 10)
	}
	c.W.Map(4)
	for _, text := range []string{"state", cmp.Or(b.State, "idle"), "error", b.Problem, "start_time", seconds(b.Began),
		"end_time", seconds(b.Sealed)} {
		c.W.BulkString(text)
	}
}

func backupHelp(c *command.Ctx) {
	command.HelpReply(c,
		"BACKUP <subcommand>. Subcommands are:",
		"START", "    Begin a backup: an RDB file of this moment, and then the commands that change data.",
		"SEAL", "    End it. Its files do not change any more.",
		"STATUS", "    Tell how far it is.",
		"LIST", "    List its files that are complete.",
		"ABORT", "    Give it up.",
		"CLEANUP", "    Remove its files.",
		"HELP", "    Print this help.")
}
