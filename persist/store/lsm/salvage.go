package lsm

import (
	"errors"
	"fmt"
	"slices"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/persist/disk"
)

// Salvage replaces the data in a directory, which no process has open, by all of it that is sound. It omits keys with
// unreadable data, and data that belongs to no key. report gets what is omitted, and where the old data is kept. After
// an error nothing has been replaced yet, or it will be when the store is opened.
func Salvage(fs disk.FS, dir string, report func(string)) error {
	o := Options{FS: fs, Dir: dir}
	o.setDefaults()
	lock, err := lockDir(o.FS, dir)
	if err != nil {
		return err
	}
	return errors.Join(salvageLocked(o, report), lock.Close())
}

func salvageLocked(o Options, report func(string)) error {
	if err := finishSalvage(o.FS, o.Dir); err != nil {
		return err
	}
	damaged, err := damagedName(o.FS, o.Dir)
	if err != nil {
		return err
	}
	if err := salvage(o, report); err != nil {
		return err
	}
	report("the data as it was is kept in " + damaged)
	return finishSalvage(o.FS, o.Dir)
}

// ForgetJournal makes a store, which no process has open, name no segment of a journal any more.
func ForgetJournal(fs disk.FS, dir string) error {
	s, err := Open(Options{FS: fs, Dir: dir})
	if err != nil {
		return err
	}
	meta, _ := s.Meta()
	meta.JournalSeed = 0
	c, err := s.Begin()
	if err == nil {
		err = c.Commit(meta)
	}
	return errors.Join(err, s.Close())
}

const (
	salvageDir  = "salvage"      // a store being filled
	salvagedDir = "salvaged"     // data that replaces the content of dataDir; complete if it exists
	damagedDir  = "data.damaged" // replaced data; a number may follow
)

// salvage writes the sound data to salvagedDir.
func salvage(o Options, report func(string)) error {
	temporary := o.FS.PathJoin(o.Dir, salvageDir)
	if err := o.FS.RemoveAll(temporary); err != nil {
		return err
	}
	old, err := openReadOnly(o, false)
	if err != nil {
		return fmt.Errorf("nothing can be salvaged: %w", located(err))
	}
	fresh, err := Open(Options{FS: o.FS, Dir: temporary})
	if err != nil {
		return errors.Join(err, old.close())
	}
	err = copySound(old, fresh, report)
	if err = errors.Join(err, fresh.Close(), old.close()); err != nil {
		return err
	}
	if err := o.FS.Rename(o.FS.PathJoin(temporary, dataDir), o.FS.PathJoin(o.Dir, salvagedDir)); err != nil {
		return err
	}
	if err := errors.Join(disk.SyncDir(o.FS, temporary), disk.SyncDir(o.FS, o.Dir)); err != nil {
		return err
	}
	return o.FS.RemoveAll(temporary)
}

// copySound copies the sound data with one checkpoint.
func copySound(old *database, fresh *Store, report func(string)) error {
	meta, ok, err := old.meta()
	if err != nil {
		if copied, copyOK, copyErr := old.metaAt(metaCopyKey); copyErr == nil && copyOK {
			report(fmt.Sprintf("meta record: %v: its copy is used", located(err)))
			meta, ok, err = copied, true, nil
		}
	}
	if err == nil && !ok {
		err = errMissing
	}
	if err != nil {
		return fmt.Errorf("nothing can be salvaged: meta record: %w", located(err))
	}
	c, err := fresh.begin()
	if err != nil {
		return err
	}
	defer c.Abort()
	meta.Keys = 0
	var buf []byte
	var values []uint64
	texts := map[uint64]uint64{} // lengths of strings, by the numbers of their parts
	err = old.walkHeads(func(space uint32, key []byte, h engine.Head) error {
		if err := old.check(space, key, h, &buf); err != nil {
			report(fmt.Sprintf("left out: %v", err))
			return nil
		}
		if h.External {
			var err error
			if h.Blob, _, err = old.get(append(appendSpaceKey(nil, prefixBlob, space), key...)); err != nil {
				return err
			}
		}
		values = append(values, h.AllParts()...)
		if h.Length != 0 {
			texts[h.Parts] = h.Length
		}
		meta.Keys++
		return c.PutHead(space, string(key), h, false, false)
	}, func(err error) { report(fmt.Sprintf("left out: %v", err)) })
	if err != nil {
		return err
	}
	slices.Sort(values)
	for _, id := range slices.Compact(values) {
		put := func(name, data []byte) error { return c.PutPart(id, string(name), data) }
		var err error
		if length := texts[id]; length != 0 {
			at := uint64(0)
			err = engine.ReadText(id, length, old.parts, func(piece []byte) {
				_ = put(engine.PieceName(at), piece) // the checkpoint records errors
				at += uint64(len(piece))
			})
		} else {
			err = old.parts(id, put)
		}
		if err = errors.Join(err, c.err); err != nil {
			return err
		}
	}
	return c.Commit(meta)
}

// finishSalvage puts salvaged data in the place of the old data. It can be interrupted anywhere and called again.
func finishSalvage(fs disk.FS, dir string) error {
	salvaged, data := fs.PathJoin(dir, salvagedDir), fs.PathJoin(dir, dataDir)
	if ok, err := exists(fs, salvaged); err != nil || !ok {
		return err
	}
	ok, err := exists(fs, data)
	if err != nil {
		return err
	}
	if ok {
		damaged, err := damagedName(fs, dir)
		if err != nil {
			return err
		}
		if err := fs.Rename(data, damaged); err != nil {
			return err
		}
		if err := disk.SyncDir(fs, dir); err != nil {
			return err
		}
	}
	if err := fs.Rename(salvaged, data); err != nil {
		return err
	}
	return disk.SyncDir(fs, dir)
}

// damagedName returns where the data replaced next will be kept.
func damagedName(fs disk.FS, dir string) (string, error) {
	for i := 1; ; i++ {
		name := fs.PathJoin(dir, damagedDir)
		if i > 1 {
			name = fmt.Sprintf("%s.%d", name, i)
		}
		if ok, err := exists(fs, name); err != nil || !ok {
			return name, err
		}
	}
}
