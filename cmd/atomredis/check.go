package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/atomredis/atomredis/persist"
	"github.com/atomredis/atomredis/persist/disk"
)

// check is the sub-command that verifies, and on demand repairs, the data of a server that is not running. It returns
// the exit code: 0 if everything is sound (or is now), 1 if there is damage, 2 if it was not used rightly.
func check(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("atomredis check", flag.ContinueOnError)
	flags.SetOutput(stderr)
	repair := flags.Bool("repair", false, "keep what is sound and set the rest aside")
	flags.Usage = func() {
		fmt.Fprintln(stderr, "Usage: atomredis check [--repair] DIR")
		flags.PrintDefaults()
	}
	// The flag may stand before the directory or after it.
	if err := flags.Parse(args); err != nil {
		return 2
	}
	var dirs []string
	for rest := flags.Args(); len(rest) > 0; rest = flags.Args() {
		dirs = append(dirs, rest[0])
		if err := flags.Parse(rest[1:]); err != nil {
			return 2
		}
	}
	if len(dirs) != 1 {
		flags.Usage()
		return 2
	}
	dir := dirs[0]
	if _, err := os.Stat(dir); err != nil {
		fmt.Fprintln(stderr, "atomredis check:", err)
		return 2
	}
	report := func(line string) { fmt.Fprintln(stdout, line) }
	err := persist.Check(disk.FS, dir, report)
	if err != nil && *repair && !errors.Is(err, os.ErrNotExist) {
		if err = persist.Repair(disk.FS, dir, report); err == nil {
			err = persist.Check(disk.FS, dir, report)
		}
	}
	if err != nil {
		fmt.Fprintln(stderr, "atomredis check:", err)
		return 1
	}
	fmt.Fprintln(stdout, "ok")
	return 0
}
