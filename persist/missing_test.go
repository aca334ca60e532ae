package persist_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/testing/crashfs"
	"github.com/atomredis/atomredis/persist"
	"github.com/atomredis/atomredis/persist/disk"
	"github.com/atomredis/atomredis/persist/store/lsm"
)

// kept is a data directory after a kill or a stop, and its content.
type kept struct {
	fs   *crashfs.FS
	want map[string]string
}

func (k kept) clone(t *testing.T) *crashfs.FS {
	fs := crashfs.Mem()
	copyTree(t, k.fs, fs, "db")
	return fs
}

// segments returns the paths of the journal's segments, the oldest first.
func segments(t *testing.T, fs disk.FS) []string {
	return slices.DeleteFunc(files(t, fs, "db/journal"),
		func(name string) bool { return !strings.HasPrefix(path.Base(name), "journal-") })
}

// keep creates a data directory: life writes to it, and the directory is kept as of life's end, or as of the closing of
// the storage.
func keep(t *testing.T, life func(set func(key, value string), k *keyspace), stop bool, save bool) kept {
	fs := crashfs.New()
	k, err := openKeyspace(fs)
	require.NoError(t, err)
	want := map[string]string{}
	life(func(key, value string) {
		k.set(key, value, k.Now())
		want[key] = value
	}, k)
	k.storage.Commit()
	for k.storage.Durable() < k.storage.Appended() || !noted(t, fs, k.storage.Durable()) {
		k.storage.Kick()
	}
	killed := kept{asItIs(fs), want}
	require.NoError(t, k.close(save))
	if stop {
		return kept{fs, want}
	}
	return killed
}

// asItIs returns a copy of a file system in use: the state after a kill.
func asItIs(fs *crashfs.FS) *crashfs.FS {
	return fs.CrashClone(crashfs.CloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 1))})
}

// noted reports whether the file of positions has a synced position.
func noted(t *testing.T, fs disk.FS, lsn uint64) bool {
	var b [8]byte
	for i := range b {
		b[i] = byte(lsn >> (8 * i))
	}
	return bytes.Contains(readFile(t, fs, "db/positions"), b[:])
}

func fresh(set func(key, value string), _ *keyspace) {
	for i := range 20 {
		set(fmt.Sprint("key", i), strings.Repeat("x", i*20))
	}
}

func checkpointed(set func(key, value string), k *keyspace) {
	fresh(set, k)
	if err := k.storage.Save(); err != nil {
		panic(err)
	}
	for i := range 20 {
		set(fmt.Sprint("key", i+10), strings.Repeat("y", i*20))
	}
}

func justCheckpointed(set func(key, value string), k *keyspace) {
	fresh(set, k)
	if err := k.storage.Save(); err != nil {
		panic(err)
	}
}

// change replaces the content of a file.
func change(t *testing.T, fs disk.FS, name string, f func(b []byte) []byte) {
	b := f(readFile(t, fs, name))
	require.NoError(t, fs.Remove(name))
	writeFile(t, fs, name, b)
}

// used returns the length of a segment without the zeros written ahead.
func used(b []byte) int { return len(bytes.TrimRight(b, "\x00")) }

// Whatever synced part of a journal is gone or replaced, the start refuses and Check reports it. Repair accepts the
// loss.
func TestWhatIsMissingIsSeen(t *testing.T) {
	states := map[string]kept{
		"fresh, killed":               keep(t, fresh, false, false),
		"fresh, stopped":              keep(t, fresh, true, false),
		"checkpointed, killed":        keep(t, checkpointed, false, false),
		"checkpointed, stopped":       keep(t, checkpointed, true, false),
		"checkpoint at stop":          keep(t, checkpointed, true, true),
		"just checkpointed, killed":   keep(t, justCheckpointed, false, false),
		"nothing written, killed":     keep(t, func(func(string, string), *keyspace) {}, false, false),
		"nothing written, restarted":  restarted(t, keep(t, func(func(string, string), *keyspace) {}, true, false)),
		"checkpointed, killed, again": restarted(t, keep(t, checkpointed, false, false)),
	}
	last := func(t *testing.T, fs disk.FS) string {
		all := segments(t, fs)
		return all[len(all)-1]
	}
	other := keep(t, checkpointed, false, false)
	accidents := map[string]func(t *testing.T, fs *crashfs.FS){
		"the last segment is removed": func(t *testing.T, fs *crashfs.FS) { require.NoError(t, fs.Remove(last(t, fs))) },
		"the last segment is renamed": func(t *testing.T, fs *crashfs.FS) {
			require.NoError(t, fs.Rename(last(t, fs), "db/journal/journal-00000000000fffff"))
		},
		"the last segment has no header": func(t *testing.T, fs *crashfs.FS) { writeFile(t, fs, last(t, fs), nil) },
		"the journal's folder is removed": func(t *testing.T,
			fs *crashfs.FS) {
			require.NoError(t, fs.RemoveAll("db/journal"))
		},
		"the journal's folder is emptied": func(t *testing.T, fs *crashfs.FS) { emptyDir(t, fs, "db/journal") },
		"the file of positions is removed": func(t *testing.T,
			fs *crashfs.FS) {
			require.NoError(t, fs.Remove("db/positions"))
		},
		"the file of positions is emptied": func(t *testing.T, fs *crashfs.FS) { writeFile(t, fs, "db/positions", nil) },
		"the file of positions is zeros": func(t *testing.T,
			fs *crashfs.FS) {
			writeFile(t, fs, "db/positions", make([]byte, 9000))
		},
		"everything of the journal is gone": func(t *testing.T, fs *crashfs.FS) {
			require.NoError(t, errors.Join(fs.RemoveAll("db/journal"), fs.Remove("db/positions")))
		},
		"another journal lies there": func(t *testing.T, fs *crashfs.FS) {
			require.NoError(t, fs.RemoveAll("db/journal"))
			copyTree(t, other.fs, fs, "db/journal")
		},
		"another journal and its positions lie there": func(t *testing.T, fs *crashfs.FS) {
			require.NoError(t, fs.RemoveAll("db/journal"))
			copyTree(t, other.fs, fs, "db/journal")
			writeFile(t, fs, "db/positions", readFile(t, other.fs, "db/positions"))
		},
	}
	for name, accident := range accidents {
		for state, k := range states {
			t.Run(name+"/"+state, func(t *testing.T) {
				fs := k.clone(t)
				accident(t, fs)
				refused(t, fs, k.want)
			})
		}
	}
	// Losses that need synced data.
	losses := map[string]func(b []byte) []byte{
		"the last segment is cut in its last record": func(b []byte) []byte { return b[:used(b)-3] },
		"the last segment is cut to half":            func(b []byte) []byte { return b[:used(b)/2] },
		"the last segment is cut to its header":      func(b []byte) []byte { return b[:32] },
		"the last segment ends in zeros":             func(b []byte) []byte { clear(b[used(b)/2:]); return b },
		"the last segment has zeros in the middle":   func(b []byte) []byte { clear(b[used(b)/2 : used(b)*2/3]); return b },
		"the last segment has zeros from its head on": func(b []byte) []byte {
			clear(b[32:])
			return b
		},
	}
	for name, lose := range losses {
		for state, k := range states {
			if b := readFile(t, k.fs, last(t, k.fs)); used(b) < 100 {
				continue
			}
			t.Run(name+"/"+state, func(t *testing.T) {
				fs := k.clone(t)
				change(t, fs, last(t, fs), lose)
				refused(t, fs, k.want)
			})
		}
	}
}

// restarted opens a directory again, and kills the storage.
func restarted(t *testing.T, k kept) kept {
	fs := crashfs.New()
	copyTree(t, k.fs, fs, "db")
	ks, err := openKeyspace(fs)
	require.NoError(t, err)
	killed := kept{asItIs(fs), k.want}
	require.NoError(t, ks.close(false))
	return killed
}

func emptyDir(t *testing.T, fs disk.FS, dir string) {
	for _, name := range files(t, fs, dir) {
		require.NoError(t, fs.Remove(name))
	}
}

// refused requires that a directory is not opened, that Check says the same, and that after Repair it opens with an
// earlier state.
func refused(t *testing.T, fs *crashfs.FS, want map[string]string) {
	t.Helper()
	_, err := openKeyspace(fs)
	require.Error(t, err)
	require.Regexp(t, `db/`, err.Error(), "it names the file")
	require.Positive(t, persist.Size(fs, "db"))
	var report bytes.Buffer
	say := func(line string) { fmt.Fprintln(&report, line) }
	require.Error(t, persist.Check(fs, "db", say, nil))
	require.NoError(t, persist.Repair(fs, "db", say), report.String())
	require.NoError(t, persist.Check(fs, "db", say, nil), report.String())
	k, err := openKeyspace(fs)
	require.NoError(t, err, report.String())
	for key := range want {
		_, err := k.get(key)
		require.NoError(t, err)
	}
	k.set("new", "value", k.Now())
	require.NoError(t, k.close(false))
	require.NoError(t, persist.Check(fs, "db", say, nil), report.String())
}

// An older store with a newer journal, and a newer store with an older journal, do not belong together.
func TestStoreAndJournalOfDifferentTimes(t *testing.T) {
	fs := crashfs.Mem()
	k, err := openKeyspace(fs)
	require.NoError(t, err)
	var times []*crashfs.FS
	for i := range 3 {
		for j := range 10 {
			k.set(fmt.Sprint("key", j), fmt.Sprint(i), k.Now())
		}
		require.NoError(t, k.storage.Save())
		k.set("after", fmt.Sprint(i), k.Now())
		for k.storage.Durable() < k.storage.Appended() {
			k.storage.Kick()
		}
		copied := crashfs.Mem()
		copyTree(t, fs, copied, "db")
		times = append(times, copied)
	}
	require.NoError(t, k.close(false))
	for store, from := range times {
		for log, logFrom := range times {
			mixed := crashfs.Mem()
			copyTree(t, logFrom, mixed, "db")
			require.NoError(t, mixed.RemoveAll("db/data"))
			copyTree(t, from, mixed, "db/data")
			if store == log {
				k, err := openKeyspace(mixed)
				require.NoError(t, err)
				require.NoError(t, k.close(false))
				continue
			}
			refused(t, mixed, nil)
		}
	}
}

// Whichever file of the store is removed, the directory is refused or everything is unchanged.
func TestRemovedFileOfTheStoreIsSeen(t *testing.T) {
	for _, noJournal := range []bool{false, true} {
		k := keep(t, checkpointed, true, true)
		if noJournal {
			require.NoError(t, k.fs.RemoveAll("db/journal"))
			require.NoError(t, k.fs.Remove("db/positions"))
			require.NoError(t, persist.Repair(k.fs, "db", func(string) {}))
			require.NoError(t, k.fs.RemoveAll("db/journal"))
			require.NoError(t, k.fs.Remove("db/positions"))
		}
		var seen, harmless []string
		check := func(name string, fs *crashfs.FS) {
			opened, err := openKeyspace(fs)
			if err != nil {
				seen = append(seen, name)
				require.Regexp(t, `db/`, err.Error(), name)
				require.Error(t, persist.Check(fs, "db", func(string) {}, nil), name)
				return
			}
			harmless = append(harmless, name)
			for key, value := range k.want {
				got, err := opened.get(key)
				require.NoError(t, err, name)
				require.Equal(t, value, got, name)
			}
			require.NoError(t, opened.close(false))
		}
		for _, name := range files(t, k.fs, "db") {
			fs := k.clone(t)
			require.NoError(t, fs.Remove(name))
			check(name, fs)
		}
		fs := k.clone(t)
		emptyDir(t, fs, "db/data")
		check("all of db/data", fs)
		fs = k.clone(t)
		require.NoError(t, fs.RemoveAll("db/data"))
		check("db/data", fs)
		t.Logf("seen: %q", seen)
		t.Logf("harmless: %q", harmless)
		require.Contains(t, seen, "all of db/data")
		require.Contains(t, seen, "db/data")
		require.GreaterOrEqual(t, len(seen), 5)
	}
}

// A directory of the previous version has neither a file of positions nor a store that names a segment.
func TestOpenOfAnOlderDirectory(t *testing.T) {
	for state, k := range map[string]kept{"killed": keep(t, checkpointed, false, false),
		"stopped": keep(t, checkpointed, true, false)} {
		fs := k.clone(t)
		older(t, fs)
		for range 2 {
			opened, err := openKeyspace(fs)
			require.NoError(t, err, state)
			for key, value := range k.want {
				got, err := opened.get(key)
				require.NoError(t, err)
				require.Equal(t, value, got)
			}
			require.NoError(t, opened.close(false))
		}
		require.NoError(t, fs.RemoveAll("db/journal"))
		refused(t, fs, k.want)
	}
}

// older converts a directory to the previous version's form, which only had segments of version 1.
func older(t *testing.T, fs *crashfs.FS) {
	require.NoError(t, lsm.ForgetJournal(fs, "db"))
	require.NoError(t, fs.Remove("db/positions"))
	for _, name := range segments(t, fs) {
		change(t, fs, name, olderSegment)
	}
}

// olderSegment gives a segment the header of version 1, and its records the resulting checksums.
func olderSegment(b []byte) []byte {
	table := crc32.MakeTable(crc32.Castagnoli)
	before := binary.LittleEndian.Uint32(b[28:])
	binary.LittleEndian.PutUint32(b[8:], 1)
	seed := crc32.Checksum(b[:28], table)
	binary.LittleEndian.PutUint32(b[28:], seed)
	for rest := b[32:]; len(rest) > 12 && binary.LittleEndian.Uint32(rest[4:]) != 0; {
		n := 12 + binary.LittleEndian.Uint32(rest[4:])&^(1<<31)
		binary.LittleEndian.PutUint32(rest[8:], binary.LittleEndian.Uint32(rest[8:])^before^seed)
		binary.LittleEndian.PutUint32(rest, crc32.Update(seed, table, rest[4:n]))
		rest = rest[n:]
	}
	return b
}
