package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/atomredis/atomredis/cmd/atomredis/internal/cli"
	"github.com/atomredis/atomredis/cmd/atomredis/internal/progress"
	"github.com/atomredis/atomredis/engine/clock"
	"github.com/atomredis/atomredis/internal/archive/objects"
	"github.com/atomredis/atomredis/persist/disk"
	"github.com/atomredis/atomredis/server"
)

// The sub-commands that read archives.

// restoreCommand fills an empty data directory with the data of a past second.
func restoreCommand(stdout, stderr io.Writer) *cobra.Command {
	return &cobra.Command{
		Use:   "restore --from ARCHIVE --to TIME [redis.conf] [--dir DIR] [--directive value ...]",
		Short: "bring back the data of a past second from an archive",
		Long: `Fills the directory that the directive dir names, which must be empty, with the data as it was at a time: from the
archive that the server's directive archive names, a directory or the URL of a bucket. TIME is in the form of RFC 3339
(2026-11-30T16:25:39Z), a number of seconds since 1970, or the word latest. Changes of exactly that time are included. If
it fails, nothing is stored.`,
		Example: `  atomredis restore --from /var/backups/archive --to 2026-11-30T16:25:39Z --dir ./restored
  atomredis restore --from 's3://bucket/db?region=eu-west-1' --to latest --dir ./restored`,
		DisableFlagParsing: true, ValidArgsFunction: cli.CompleteDirectives,
		RunE: func(c *cobra.Command, args []string) error {
			if cli.AsksForHelp(args) {
				return c.Help()
			}
			args, from := valueOf(args, "--from")
			args, text := valueOf(args, "--to")
			if from == "" || text == "" {
				return cli.Usagef("usage: %s", c.UseLine())
			}
			to, err := parseInstant(text)
			if err != nil {
				return cli.Usagef("%w", err)
			}
			return restore(from, to, args, stdout, stderr)
		}}
}

// valueOf takes an option with its value from arguments; value is "" if it is not there.
func valueOf(args []string, name string) (rest []string, value string) {
	i := slices.Index(args, name)
	if i < 0 || i+1 >= len(args) {
		return args, ""
	}
	return slices.Concat(args[:i], args[i+2:]), args[i+1]
}

// latest is the word for the last instant of an archive.
const latest = "latest"

// parseInstant reads a time.
func parseInstant(text string) (time.Time, error) {
	if text == latest {
		return objects.Latest, nil
	}
	if t, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return t, nil
	}
	if seconds, err := strconv.ParseFloat(text, 64); err == nil && seconds >= 0 && seconds < math.MaxInt32*1000 {
		return time.UnixMilli(int64(math.Round(seconds * 1000))), nil
	}
	return time.Time{}, fmt.Errorf("%q is no time: it is written like 2026-11-30T16:25:39Z, as a number of seconds since 1970, or as %s",
		text, latest)
}

// restoring is what a server begins with. Its clock shows the time of the data: so nothing expires that has not expired then.
type restoring struct {
	*objects.Point
	clock *clock.Manual
}

// Records implements archive.Source.
func (r restoring) Records(do func(now int64, commands []byte) error) error {
	err := r.Point.Records(do)
	r.clock.Advance(time.UnixMilli(r.Reached).Sub(r.clock.Now()))
	return err
}

// restore restores from the last base that is not damaged: the records behind an earlier one lead to the same data.
func restore(from string, to time.Time, options []string, stdout, stderr io.Writer) error {
	bar := progress.New(stderr)
	defer bar.Done()
	store, err := objects.Open(disk.System, from)
	if err != nil {
		return err
	}
	var damaged []string
	var found error
	for {
		point, err := objects.Find(context.Background(), store, to, damaged...)
		if err != nil {
			return errors.Join(found, err)
		}
		err = restorePoint(point, to, options, bar, stdout, stderr)
		damage, ok := errors.AsType[*objects.DamageError](err)
		if !ok || damage.Object != point.BaseName() {
			return err
		}
		fmt.Fprintf(bar.Around(stderr), "the base %v; the one before it is used\n", damage)
		damaged, found = append(damaged, damage.Object), err
	}
}

func restorePoint(point *objects.Point, to time.Time, options []string, bar *progress.Bar, stdout, stderr io.Writer) error {
	out := bar.Around(stdout)
	point.Progress = func(done, total int64) { bar.Show("restoring", "B", done, total) }
	srv, set, err := offline(options, stderr, bar, source{restore: &restoring{point, clock.NewManual(point.BaseTime())}})
	if err != nil {
		return err
	}
	err = srv.Start()
	if errors.Is(err, server.ErrNotEmpty) {
		err = fmt.Errorf("there is data in %s already", set.Files.Dir)
	}
	if err = errors.Join(err, srv.Close()); err != nil {
		return err
	}
	fmt.Fprintf(out, "the base of %s: %s\n", showTime(point.BaseTime()), point.Name())
	fmt.Fprintf(out, "%d records after it, until %s\n", point.Count, showTime(time.UnixMilli(point.Reached)))
	if to == objects.Latest {
		_, err = fmt.Fprintf(out, "%s has the latest data of the archive\n", set.Files.Dir)
	} else {
		_, err = fmt.Fprintf(out, "%s has the data as it was at %s\n", set.Files.Dir, showTime(to))
	}
	return err
}

func showTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.999Z07:00") }

// archiveCommand has the sub-commands that read an archive and change nothing.
func archiveCommand(stdout, stderr io.Writer) *cobra.Command {
	c := &cobra.Command{Use: "archive COMMAND", Short: "verify an archive, or show what it has", Args: cli.Arguments(0, 0),
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() }}
	check := &cobra.Command{Use: "check ARCHIVE", Short: "verify an archive",
		Long: `Reads a whole archive: each checksum, and whether each piece of the journal continues the one before it. For each part
without a gap it writes from when to when the data of each second can be restored. The exit code is 1 if something is
damaged or missing.`,
		Example: "  atomredis archive check /var/backups/archive", Args: cli.Arguments(1, 1), ValidArgsFunction: completeDirs,
		RunE: func(c *cobra.Command, args []string) error { return checkArchive(c.Context(), args[0], stdout, stderr) }}
	list := &cobra.Command{Use: "list ARCHIVE", Short: "show what an archive has",
		Long: `Writes for each part of an archive without a gap from when to when the data of each second can be restored, and its
bases. It reads the names of the objects only.`,
		Example: "  atomredis archive list 's3://bucket/db?region=eu-west-1'", Args: cli.Arguments(1, 1), ValidArgsFunction: completeDirs,
		RunE: func(c *cobra.Command, args []string) error { return listArchive(c.Context(), args[0], stdout) }}
	c.AddCommand(check, list)
	return c
}

var errNoArchive = errors.New("there is no archive")

func checkArchive(ctx context.Context, name string, stdout, stderr io.Writer) error {
	bar := progress.New(stderr)
	defer bar.Done()
	out := bar.Around(stdout)
	store, err := objects.Open(disk.System, name)
	if err != nil {
		return err
	}
	chains, err := objects.Check(ctx, store, func(done, total int64) { bar.Show("checking", "B", done, total) })
	if err == nil && len(chains) == 0 {
		err = fmt.Errorf("%w in %s", errNoArchive, store)
	}
	if err != nil {
		return err
	}
	problems := 0
	for i := range chains {
		describeChain(out, &chains[i])
		for _, problem := range chains[i].Problems {
			fmt.Fprintf(out, "  %v\n", problem)
			problems++
		}
	}
	if problems > 0 {
		return fmt.Errorf("the archive is damaged: %d problems", problems)
	}
	_, err = fmt.Fprintln(out, "ok")
	return err
}

func listArchive(ctx context.Context, name string, stdout io.Writer) error {
	store, err := objects.Open(disk.System, name)
	if err != nil {
		return err
	}
	chains, err := objects.List(ctx, store)
	if err == nil && len(chains) == 0 {
		err = fmt.Errorf("%w in %s", errNoArchive, store)
	}
	if err != nil {
		return err
	}
	for i := range chains {
		describeChain(stdout, &chains[i])
		for _, b := range chains[i].Bases {
			fmt.Fprintf(stdout, "  base of %s, %d bytes\n", showTime(time.UnixMilli(b.Time)), b.Size)
		}
	}
	return nil
}

// describeChain writes a line about a chain.
func describeChain(out io.Writer, c *objects.Chain) {
	if c.Leftover {
		fmt.Fprintf(out, "%s: no complete base, so nothing can be restored of it\n", c.Name)
		return
	}
	fmt.Fprintf(out, "%s: each second from %s to %s, %d bases, %d pieces, %d bytes\n", c.Name, showTime(time.UnixMilli(c.From)),
		showTime(time.UnixMilli(c.To)), len(c.Bases), c.Pieces, c.Bytes)
}
