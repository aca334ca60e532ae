package foreign_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/search/foreign"
	"github.com/atomredis/atomredis/persist/rdb"
)

// read returns what the modules of a file have stored, as lines of commands.
func read(file []byte) (commands []string, leftOut []error, err error) {
	r := rdb.NewReader(bytes.NewReader(file), rdb.Limits{SkipChecksum: true})
	for {
		item, err := r.Next()
		if err != nil {
			if err == io.EOF {
				err = nil
			}
			return commands, leftOut, err
		}
		if m, ok := item.(*rdb.Module); ok {
			made, left, err := foreign.Read(m)
			for _, words := range made {
				commands = append(commands, strings.Join(words, " "))
			}
			leftOut = append(leftOut, left...)
			if err != nil {
				return commands, leftOut, err
			}
		}
	}
}

// Redis 8.6.3 with RediSearch 8.0.2 wrote the file after these commands.
func TestAFileOfTheModuleBecomesItsCommands(t *testing.T) {
	file, err := os.ReadFile("testdata/redisearch-8.0.rdb")
	require.NoError(t, err)
	commands, leftOut, err := read(file)
	require.NoError(t, err)
	require.Empty(t, leftOut)
	require.ElementsMatch(t, []string{
		"FT._CREATEIFNX opts ON HASH INDEXALL ENABLE STOPWORDS 0 MAXTEXTFIELDS NOOFFSETS NOFREQS SCHEMA a TEXT b TAG SEPARATOR ,",
		"FT._CREATEIFNX temp ON HASH PREFIX 1 doc: TEMPORARY 100000 SCHEMA a TEXT NOINDEX",
		"FT._CREATEIFNX nohl ON HASH NOHL NOFIELDS SCHEMA a TEXT SORTABLE UNF c NUMERIC",
		"FT._CREATEIFNX vec ON HASH PREFIX 1 doc: SCHEMA " +
			"f VECTOR FLAT 10 TYPE FLOAT32 DIM 2 DISTANCE_METRIC L2 INITIAL_CAP 10 BLOCK_SIZE 12 " +
			"h AS hh VECTOR HNSW 12 TYPE FLOAT64 DIM 2 DISTANCE_METRIC COSINE M 8 EF_CONSTRUCTION 100 EF_RUNTIME 20 " +
			"b VECTOR FLAT 6 TYPE BFLOAT16 DIM 3 DISTANCE_METRIC IP " +
			"g VECTOR HNSW 12 TYPE FLOAT16 DIM 4 DISTANCE_METRIC L2 M 16 EF_CONSTRUCTION 200 EF_RUNTIME 10 INDEXMISSING " +
			"i VECTOR FLAT 6 TYPE INT8 DIM 5 DISTANCE_METRIC L2 " +
			"u VECTOR HNSW 12 TYPE UINT8 DIM 5 DISTANCE_METRIC IP M 16 EF_CONSTRUCTION 200 EF_RUNTIME 10",
		"FT._CREATEIFNX all ON HASH PREFIX 2 doc: item: FILTER @price > 0 LANGUAGE_FIELD lang SCORE_FIELD rank PAYLOAD_FIELD pay " +
			"SCORE 0.5 LANGUAGE french STOPWORDS 2 la le SKIPINITIALSCAN SCHEMA " +
			"title AS t TEXT NOSTEM WEIGHT 2.5 PHONETIC dm:en WITHSUFFIXTRIE INDEXEMPTY INDEXMISSING SORTABLE body TEXT " +
			"tags TAG SEPARATOR ; CASESENSITIVE WITHSUFFIXTRIE INDEXEMPTY INDEXMISSING SORTABLE UNF kind TAG SEPARATOR , SORTABLE UNF " +
			"price NUMERIC INDEXMISSING SORTABLE stock NUMERIC SORTABLE NOINDEX place GEO SORTABLE " +
			"flat GEOSHAPE FLAT INDEXMISSING round GEOSHAPE SPHERICAL",
		"FT.SYNUPDATE all g1 SKIPINITIALSCAN boy child",
		"FT.SYNUPDATE all g2 child enfant",
		"FT._ALIASADDIFNX everything all",
		"FT._ALIASADDIFNX tout all",
		"FT.DICTADD words alpha beta gamma",
		"FT.DICTADD autres deux un",
	}, commands)
}

// file is what a module of a Redis stores, as an RDB file.
type file []byte

const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

// newFile begins one with data of a module's type.
func newFile(module string, version uint64, when uint64) file {
	id := uint64(0)
	for _, c := range module {
		id = id<<6 | uint64(strings.IndexRune(letters, c))
	}
	return append(append(file("REDIS0012"), 247), file(nil).long(id<<10|version)...).uint(when)
}

func (f file) long(n uint64) file { return binary.BigEndian.AppendUint64(append(f, 0x81), n) }

func (f file) uint(list ...uint64) file {
	for _, n := range list {
		f = append(f, 2).long(n)
	}
	return f
}

func (f file) text(list ...string) file {
	for _, s := range list {
		f = append(append(f, 5).long(uint64(len(s))), s...)
	}
	return f
}

func (f file) double(d float64) file {
	return binary.LittleEndian.AppendUint64(append(f, 4), math.Float64bits(d))
}

func (f file) end() file { return append(append(f, 0, 255), make([]byte, 8)...) }

// field begins a field without a path of its own.
func (f file) field(name string, kind, options uint64) file {
	return f.text(name+"\x00").uint(0, kind, options, math.MaxUint64)
}

// rule ends an index over all keys of a kind, without anything special.
func (f file) rule(kind string, language uint64, indexAll ...uint64) file {
	return f.text(kind+"\x00").uint(1).text("\x00").uint(0, 0, 0, 0).double(1).uint(language).uint(indexAll...).uint(0, 0)
}

// plain are the flags of an index without special ones.
const plain = 1 | 1<<1 | 1<<4 | 1<<6

func TestFormsOfAllVersions(t *testing.T) {
	index := func(version uint64, name string, fields uint64) file {
		return newFile("ft_index0", version, 1).uint(1).text(name+"\x00").uint(plain, fields)
	}
	for _, c := range []struct {
		name string
		file file
		want string
		left string
	}{
		{"2.0", newFile("ft_index0", 17, 1).uint(1).text("i\x00").uint(plain, 1).text("n\x00").uint(2, 0x20, 0).rule("HASH", 0),
			"FT._CREATEIFNX i ON HASH SCHEMA n NUMERIC", ""},
		{"2.4 with vectors", index(20, "i", 1).field("v", 16, 0).uint(8, 1, 0, 2, 0, 7, 16, 200, 10).rule("HASH", 0),
			"FT._CREATEIFNX i ON HASH SCHEMA v VECTOR HNSW 14 TYPE FLOAT32 DIM 2 DISTANCE_METRIC L2 INITIAL_CAP 7 M 16 EF_CONSTRUCTION 200 EF_RUNTIME 10", ""},
		{"2.8", index(22, "i", 1).field("v", 16, 0).uint(8, 2, 1, 1024, 0, 2, 0, 0, 0, 16, 200, 10).rule("HASH", 0),
			"FT._CREATEIFNX i ON HASH SCHEMA v VECTOR HNSW 12 TYPE FLOAT32 DIM 2 DISTANCE_METRIC L2 M 16 EF_CONSTRUCTION 200 EF_RUNTIME 10", ""},
		{"JSON", index(24, "i", 1).text("a\x00").uint(1).text("$.a\x00").uint(8, 0, 0, 0).text("\x00").rule("JSON", 9, 0),
			"FT._CREATEIFNX i ON JSON LANGUAGE german SCHEMA $.a AS a TAG", ""},
		{"8.2 with SVS", index(25, "i", 1).field("v", 16, 0).uint(8, 2, 3, 10240, 3, 8, 2, 0, 4|8<<8|1<<16, 32, 200, 4, 10).double(0.01).rule("HASH", 0, 0),
			"FT._CREATEIFNX i ON HASH SCHEMA v VECTOR SVS-VAMANA 20 TYPE FLOAT16 DIM 8 DISTANCE_METRIC COSINE GRAPH_MAX_DEGREE 32 " +
				"CONSTRUCTION_WINDOW_SIZE 200 SEARCH_WINDOW_SIZE 10 EPSILON 0.01 COMPRESSION LeanVec4x8 TRAINING_THRESHOLD 10240 REDUCE 4", ""},
		{"8.4", index(26, "i", 1).field("v", 16, 0).uint(8, 0, 0, 2, 1, 0).rule("HASH", 0, 0),
			"FT._CREATEIFNX i ON HASH SCHEMA v VECTOR FLAT 6 TYPE FLOAT32 DIM 2 DISTANCE_METRIC IP", ""},
		{"8.10", index(27, "i", 1).field("v", 16, 0x200).uint(8, 2, 1, 1024, 0, 2, 0, 0, 16, 200, 10).double(0.5).uint(1).rule("HASH", 0, 0),
			"FT._CREATEIFNX i ON HASH SCHEMA v VECTOR HNSW 14 TYPE FLOAT32 DIM 2 DISTANCE_METRIC L2 M 16 EF_CONSTRUCTION 200 EF_RUNTIME 10 EPSILON 0.5 INDEXMISSING", ""},
		{"a later version", newFile("ft_index0", 28, 1).uint(1, 2, 3).text("x").double(1), "", `data of the module type "ft_index0", version 28: not known`},
		{"another module", newFile("scan-9_Zz", 3, 2).text("x"), "", `data of the module type "scan-9_Zz", version 3: not known`},
		{"an unknown language", index(24, "i", 1).field("n", 2, 0).rule("HASH", 99, 0), "", `index "i": the language 99 is not known`},
		{"an unknown type", index(24, "i", 1).field("n", 64, 0).rule("HASH", 0, 0), "", `index "i": field "n" has the type 64`},
		{"unknown vectors", index(24, "i", 1).field("v", 16, 0).uint(8, 0, 7, 2, 0, 0, 0, 1024).rule("HASH", 0, 0), "", `index "i": field "v" has vectors of the type 7 and the metric 0`},
		{"dictionaries before the keys", newFile("scdtype00", 1, 1), "", ""},
		{"dictionaries", newFile("scdtype00", 1, 2).uint(1).text("d\x00").uint(1).text("w\x00").double(1), "FT.DICTADD d w", ""},
	} {
		commands, leftOut, err := read(c.file.end())
		require.NoError(t, err, c.name)
		require.Equal(t, c.want, strings.Join(commands, "\n"), c.name)
		if c.left == "" {
			require.Empty(t, leftOut, c.name)
		} else {
			require.EqualError(t, errors.Join(leftOut...), c.left, c.name)
		}
	}
}

// write returns the file of the definitions that commands make.
func write(t *testing.T, commands [][]string) []byte {
	var r engine.Record
	for _, words := range commands {
		var args [][]byte
		for _, word := range words {
			if words[0] != "FT.SYNUPDATE" || word != "SKIPINITIALSCAN" { // a server does not store it
				args = append(args, []byte(word))
			}
		}
		r.Add(args...)
	}
	d, err := foreign.Parse(r.Bytes())
	require.NoError(t, err)
	var b bytes.Buffer
	e := rdb.NewEncoder(&b)
	e.Begin(rdb.Version)
	d.BeforeKeys(e)
	d.AfterKeys(e)
	require.NoError(t, e.End())
	return b.Bytes()
}

// modules returns the data of modules in a file.
func modules(t *testing.T, file []byte, each func(m *rdb.Module)) {
	for r := rdb.NewReader(bytes.NewReader(file), rdb.Limits{}); ; {
		item, err := r.Next()
		if err == io.EOF {
			return
		}
		require.NoError(t, err)
		if m, ok := item.(*rdb.Module); ok {
			each(m)
		}
	}
}

// The written data equals that of the module, which can load such files.
func TestDefinitionsAreWrittenAsTheModuleDoes(t *testing.T) {
	file, err := os.ReadFile("testdata/redisearch-8.0.rdb")
	require.NoError(t, err)
	for name, c := range map[string]struct {
		commands [][]string
		version  uint64
	}{
		"a file of the module": {nil, 24},
		"JSON": {[][]string{strings.Fields("FT._CREATEIFNX i ON JSON LANGUAGE german SCHEMA $.a[*] AS a TAG $.b AS b TEXT SORTABLE UNF " +
			"$.v[0:2] AS v VECTOR FLAT 6 TYPE INT8 DIM 2 DISTANCE_METRIC IP")}, 24},
		"SVS": {[][]string{strings.Fields("FT._CREATEIFNX i ON HASH SCHEMA v VECTOR SVS-VAMANA 20 TYPE FLOAT16 DIM 8 DISTANCE_METRIC COSINE " +
			"GRAPH_MAX_DEGREE 32 CONSTRUCTION_WINDOW_SIZE 200 SEARCH_WINDOW_SIZE 10 EPSILON 0.01 COMPRESSION LeanVec4x8 TRAINING_THRESHOLD 10240 REDUCE 4"),
			strings.Fields("FT.DICTADD d w")}, 25},
		"EPSILON": {[][]string{strings.Fields("FT._CREATEIFNX i ON HASH SCHEMA v VECTOR HNSW 14 TYPE FLOAT32 DIM 2 DISTANCE_METRIC L2 M 16 " +
			"EF_CONSTRUCTION 200 EF_RUNTIME 10 EPSILON 0.5")}, 25},
		"nothing": {[][]string{{"PING"}}, 0},
	} {
		commands := c.commands
		if commands == nil {
			modules(t, file, func(m *rdb.Module) {
				made, _, err := foreign.Read(m)
				require.NoError(t, err)
				commands = append(commands, made...)
			})
		}
		written, version := [][]string(nil), uint64(0)
		modules(t, write(t, commands), func(m *rdb.Module) {
			if m.Name == "ft_index0" {
				version = m.Version
			}
			made, leftOut, err := foreign.Read(m)
			require.NoError(t, err)
			require.Empty(t, leftOut)
			written = append(written, made...)
		})
		if version == 0 {
			commands = nil
		}
		require.Equal(t, commands, written, name)
		require.Equal(t, c.version, version, name)
	}
	_, err = foreign.Parse([]byte("*1\r\n$3\r\nFT"))
	require.Error(t, err)
	_, err = foreign.Parse([]byte("*3\r\n$14\r\nFT._CREATEIFNX\r\n$1\r\ni\r\n$1\r\nx\r\n"))
	require.Error(t, err)
}

func TestDamagedDataIsAnError(t *testing.T) {
	for name, f := range map[string]file{
		"the end in place of a name":      newFile("ft_index0", 24, 1).uint(1).end(),
		"a text in place of a number":     newFile("ft_index0", 24, 1).text("x").end(),
		"a name without its last byte":    newFile("ft_index0", 24, 1).uint(1).text("x").end(),
		"too many fields":                 newFile("ft_index0", 24, 1).uint(1).text("x\x00").uint(plain, 1<<40).end(),
		"an unknown algorithm":            newFile("ft_index0", 24, 1).uint(1).text("x\x00").uint(plain, 1).field("v", 16, 0).uint(8, 9).end(),
		"an unknown graph":                newFile("ft_index0", 24, 1).uint(1).text("x\x00").uint(plain, 1).field("v", 16, 0).uint(8, 2, 9, 0, 0, 0, 0, 0, 0).end(),
		"an unknown kind that is skipped": append(newFile("unknown-0", 1, 1), 9).end(),
		"a cut file":                      newFile("scdtype00", 1, 2).uint(1 << 60).text("d\x00").uint(1 << 60),
	} {
		_, _, err := read(f)
		require.Error(t, err, name)
	}
}

func FuzzRead(f *testing.F) {
	const head = "REDIS0013"
	seed, err := os.ReadFile("testdata/redisearch-8.0.rdb")
	require.NoError(f, err)
	f.Add(seed[len(head):])
	f.Add([]byte(newFile("ft_index0", 25, 1).uint(1).text("i\x00").uint(plain, 1).field("v", 16, 0).uint(8, 2, 3, 0, 3, 8, 2, 0, 4, 32, 200, 4, 10).double(1).rule("HASH", 0, 0).end())[len(head):])
	f.Fuzz(func(t *testing.T, b []byte) {
		commands, _, _ := read(append([]byte(head), b...))
		size := 0
		for _, c := range commands {
			size += len(c)
		}
		if size > 64<<10+512*len(b) {
			t.Fatalf("%d bytes of commands from %d bytes", size, len(b))
		}
	})
}
