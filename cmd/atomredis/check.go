package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/atomredis/atomredis/cmd/atomredis/internal/cli"
	"github.com/atomredis/atomredis/cmd/atomredis/internal/progress"
	"github.com/atomredis/atomredis/persist"
	"github.com/atomredis/atomredis/persist/disk"
)

// checkCommand verifies, and on demand repairs, the data of a server that is not running. The exit code is 0 if
// everything is sound (or is now), 1 if there is damage, 2 if it was not used rightly.
func checkCommand(stdout, stderr io.Writer) *cobra.Command {
	var repair bool
	c := &cobra.Command{Use: "check [--repair] DIR", Short: "verify the data that a server has stored",
		Long: `Verifies the data that a server has stored in a directory. The server must not run. With --repair what is
sound is kept, and the rest set aside.`,
		Example: "  atomredis check --repair ./data",
		Args:    cli.Arguments(1, 1), DisableFlagsInUseLine: true, ValidArgsFunction: completeDirs,
		RunE: func(_ *cobra.Command, args []string) error { return check(args[0], repair, stdout, stderr) }}
	c.Flags().BoolVar(&repair, "repair", false, "keep what is sound and set the rest aside")
	return c
}

// completeDirs completes the names of directories.
func completeDirs(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveFilterDirs
}

func check(dir string, repair bool, stdout, stderr io.Writer) error {
	if _, err := os.Stat(dir); err != nil {
		return cli.ExitError{Code: cli.ExitUsage, Err: err}
	}
	bar := progress.New(stderr)
	defer bar.Done()
	out := bar.Around(stdout)
	report := func(line string) { fmt.Fprintln(out, line) }
	// A step reads everything so many times.
	files := func(step string, times int64) disk.FS {
		bar.Done()
		return progress.Files(disk.System, times*persist.Size(disk.System, dir), bar, step)
	}
	err := persist.Check(files("checking", 1), dir, report)
	if err != nil && repair && !errors.Is(err, os.ErrNotExist) {
		if err = persist.Repair(files("repairing", 3), dir, report); err == nil {
			err = persist.Check(files("checking again", 1), dir, report)
		}
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, "ok")
	return err
}
