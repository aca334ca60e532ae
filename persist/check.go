package persist

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/atomredis/atomredis/persist/disk"
	"github.com/atomredis/atomredis/persist/journal"
	"github.com/atomredis/atomredis/persist/store"
)

// Check reads everything in a directory, which no process may have open, without changing it. report gets a line for
// each finding. If the data belongs to a group, member reads the group's journal, whose directory and state it gets.
// Check returns the first damage; the torn end of a journal after a crash is no damage.
func Check(fs disk.FS, dir string, report func(string), member MemberFunc) error {
	meta, err := store.Registered().Verify(fs, dir, report)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, store.ErrInUse) {
		return stopFirst(err)
	}
	report(fmt.Sprintf("store: %d keys, journal from position %d", meta.Keys, meta.Journal))
	if ok, e := isMember(fs, dir, meta); e != nil || ok {
		if ok {
			e = member(fs, fs.PathJoin(dir, groupDir), meta.Group)
		}
		err = errors.Join(err, e)
	}
	found, journalErr := journal.Verify(fs, journalDir(fs, dir), journalStart(meta), nil)
	if journalErr == nil && found.Segments == 0 { // a group has a journal of its own
		report("journal: none")
		return err
	}
	report(fmt.Sprintf("journal: %d segments, %d bytes, %d records", found.Segments, found.Bytes, found.Records))
	if journalErr != nil {
		report(journalErr.Error())
	}
	if c := found.Cut; c.Bytes > 0 {
		what := "an unfinished end, which the next start cuts off"
		if journalErr != nil {
			what = "what a repair would cut off"
		}
		report(fmt.Sprintf("journal: %s: %d bytes with %d records, from offset %d of %s on", what, c.Bytes, c.Records,
			c.Offset, c.File))
	}
	return errors.Join(err, journalErr)
}

// Size returns the size in bytes of the files that Check reads. Unreadable files are left out.
func Size(fs disk.FS, dir string) int64 {
	data, _ := store.Size(fs, dir)
	journal, _ := journalSize(fs, journalDir(fs, dir))
	return data + journal
}

// stopFirst adds what to do to the error about a directory in use.
func stopFirst(err error) error {
	if !errors.Is(err, store.ErrInUse) {
		return err
	}
	return fmt.Errorf("nothing was done, because a server runs on these data and must be stopped first: %w", err)
}

// Repair makes the data in a directory, which no process may have open, usable again: it keeps the sound data, moves
// the rest aside, and reports what it dropped. It does nothing if Check finds no damage.
func Repair(fs disk.FS, dir string, report func(string)) error {
	log := slog.New(slog.NewTextHandler(reportWriter{report}, nil))
	meta, err := store.Registered().Verify(fs, dir, func(string) {})
	if err != nil {
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, store.ErrInUse) {
			return stopFirst(err)
		}
		// Keys that the journal changes may be missing now: commands that cannot be repeated must not prevent the
		// server's start.
		if err := writeMarker(fs, dir); err != nil {
			return err
		}
		if err := store.Registered().Salvage(fs, dir, report); err != nil {
			return err
		}
		if meta, err = store.Registered().Verify(fs, dir, func(string) {}); err != nil {
			return fmt.Errorf("after the repair: %w", err)
		}
	}
	found, named, err := journal.Repair(fs, journalDir(fs, dir), journalStart(meta), log)
	if err != nil {
		return err
	}
	if meta.JournalSeed != 0 && !named {
		if err := store.Registered().ForgetJournal(fs, dir); err != nil {
			return err
		}
	}
	if found.Missing > 0 {
		report(fmt.Sprintf("journal: gave up %d bytes that had been synced and are missing", found.Missing))
	}
	if found.Cut.Bytes > 0 {
		report(fmt.Sprintf("journal: dropped %d bytes with %d records, from offset %d of %s on", found.Cut.Bytes,
			found.Cut.Records,
			found.Cut.Offset, found.Cut.File))
	}
	return nil
}

// reportWriter passes on the lines of a log.
type reportWriter struct{ report func(string) }

func (w reportWriter) Write(line []byte) (int, error) {
	n := len(line)
	if n > 0 && line[n-1] == '\n' {
		line = line[:n-1]
	}
	w.report(string(line))
	return n, nil
}

// markerName is a file that says that the store was repaired, and that no checkpoint has been made since.
const markerName = "repaired"

func writeMarker(fs disk.FS, dir string) error {
	f, err := fs.Create(fs.PathJoin(dir, markerName))
	if err != nil {
		return err
	}
	_, err = io.WriteString(f, "what cannot be repeated of the journal is skipped at the next start\n")
	return errors.Join(err, f.Sync(), f.Close())
}

func hasMarker(fs disk.FS, dir string) (bool, error) {
	_, err := fs.Stat(fs.PathJoin(dir, markerName))
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

func removeMarker(fs disk.FS, dir string) error {
	err := fs.Remove(fs.PathJoin(dir, markerName))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// Exists reports whether there is data in a directory.
func Exists(fs disk.FS, dir string) bool { return store.Exists(fs, dir) }
