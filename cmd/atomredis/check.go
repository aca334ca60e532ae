package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/atomredis/atomredis/cmd/atomredis/internal/cli"
	"github.com/atomredis/atomredis/cmd/atomredis/internal/progress"
	"github.com/atomredis/atomredis/internal/replication/quorum"
	"github.com/atomredis/atomredis/persist"
	"github.com/atomredis/atomredis/persist/disk"
)

// checkCommand verifies, and with --repair repairs, the data of a server that is not running. The exit code is 0 if the
// data is sound, also after a repair, 1 if there is damage, and 2 for wrong arguments.
func checkCommand(stdout, stderr io.Writer) *cobra.Command {
	var repair bool
	c := &cobra.Command{Use: "check [--repair] DIR", Short: "verify the data in a directory",
		Long: `Verifies the data that a server has stored in a directory. The server must not run. With --repair it keeps
the sound data and sets the rest aside.`,
		Example: "  atomredis check --repair ./data",
		Args:    cli.Arguments(1, 1), DisableFlagsInUseLine: true, ValidArgsFunction: completeDirs,
		RunE: func(_ *cobra.Command, args []string) error { return check(args[0], repair, stdout, stderr) }}
	c.Flags().BoolVar(&repair, "repair", false, "keep the sound data and set the rest aside")
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
	// files returns the file system of a step that reads all data so many times.
	files := func(step string, times int64) disk.FS {
		bar.Done()
		return progress.Files(disk.System, times*persist.Size(disk.System, dir), bar, step)
	}
	member := func(fs disk.FS, dir string, state []byte) error { return checkMember(fs, dir, state, report) }
	err := persist.Check(files("checking", 1), dir, report, member)
	if err != nil && repair && !errors.Is(err, os.ErrNotExist) {
		if err = persist.Repair(files("repairing", 3), dir, report); err == nil {
			err = persist.Check(files("checking again", 1), dir, report, member)
		}
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, "ok")
	return err
}

// checkMember reads what a server has of its group.
func checkMember(fs disk.FS, dir string, state []byte, report func(string)) error {
	found, err := quorum.Stopped{FS: fs, Dir: dir, State: state}.Read(nil)
	report(fmt.Sprintf("group: %d segments, %d bytes", found.Segments, found.Bytes))
	if err != nil {
		return fmt.Errorf("%w: give the server an empty directory, and it copies everything from its group", err)
	}
	for _, line := range cli.DescribeMember(found) {
		report("group: " + line)
	}
	return nil
}
