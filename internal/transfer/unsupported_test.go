package transfer

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/persist/rdb"
)

// foreignValue is a module's value as in a file after its key, with a datum of each kind.
func foreignValue(name string, version uint64) []byte {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	id := uint64(0)
	for i := range name {
		id = id<<6 | uint64(strings.IndexByte(alphabet, name[i]))
	}
	b := binary.BigEndian.AppendUint64([]byte{0x81}, id<<10|version)
	b = append(b, 1, 5, 2, 0x41, 0, 3, 1, 2, 3, 4, 4, 1, 2, 3, 4, 5, 6, 7, 8, 5, 3)
	return append(b, "abc\x00"...)
}

// withForeign returns an RDB file with further keys of modules: "key=type version".
func withForeign(file []byte, keys ...string) []byte {
	file = bytes.Clone(file[:len(file)-9])
	for _, key := range keys {
		var name string
		var version uint64
		key, typ, _ := strings.Cut(key, "=")
		fmt.Sscan(typ, &name, &version)
		file = append(file, 7, byte(len(key)))
		file = append(append(file, key...), foreignValue(name, version)...)
	}
	return append(file, "\xff\x00\x00\x00\x00\x00\x00\x00\x00"...) // without a checksum
}

// exported returns an RDB file with keys.
func exported(t *testing.T, pairs ...string) []byte {
	from := newHost(t)
	from.set(pairs...)
	var file bytes.Buffer
	require.NoError(t, from.exporter().RDB(&file))
	return file.Bytes()
}

const refusal = "3 keys have values of types that do not exist here (2 of graphdata (version 8), 1 of ReJSON-RL (version 99)): " +
	"import-skip-unsupported yes leaves them out"

func TestAFileWithValuesOfUnknownTypesIsRefusedWithTheirNumbers(t *testing.T) {
	h := newHost(t)
	h.put("/x.rdb", string(withForeign(exported(t, "a=1"), "g1=graphdata 8", "j=ReJSON-RL 99", "g2=graphdata 8")))
	im := h.importer()
	err := im.Import("/x.rdb")
	require.EqualError(t, err, "import of /x.rdb: "+refusal)
	var unsupported *UnsupportedError
	require.ErrorAs(t, err, &unsupported)
	require.Equal(t, 3, unsupported.Keys)
	require.ErrorContains(t, im.Replace(t.Context(), bytes.NewReader([]byte(h.content("/x.rdb"))), h,
		func(rdb.Aux) error { return nil }, nil), `key "g1" in database 0: unsupported data`)
}

func TestValuesOfUnknownTypesAreLeftOut(t *testing.T) {
	h := newHost(t, "import-skip-unsupported=yes")
	h.put("/x.rdb", string(withForeign(exported(t, "a=1", "b=2"), "g\n=graphdata 8", "j=ReJSON-RL 99")))
	im := h.importer()
	require.NoError(t, im.Import("/x.rdb"))
	require.Equal(t, []string{"0 a=1", "0 b=2"}, h.all("a", "b", "g\n", "j"))
	want := Unsupported{2, map[string]int{"graphdata (version 8)": 1, "ReJSON-RL (version 99)": 1}, "/db/import-report.tsv"}
	require.Equal(t, want, *im.Unsupported())
	require.Equal(t, "database\ttype\tkey\n0\tgraphdata (version 8)\t\"g\\n\"\n0\tReJSON-RL (version 99)\t\"j\"\n",
		h.content("/db/import-report.tsv"))

	require.NoError(t, h.files.FS.Remove("/db/import-report.tsv"))
	file := []byte(h.content("/x.rdb"))
	require.NoError(t, im.Replace(t.Context(), bytes.NewReader(file), h, func(rdb.Aux) error { return nil }, func() {}))
	require.Equal(t, []string{"0 a=1", "0 b=2"}, h.all("a", "b"))
	require.Contains(t, h.content("/db/import-report.tsv"), "graphdata")
	h.put("/cut.rdb", string(file[:len(file)-9]))
	h.under(func(g *engine.Guard) { g.Flush(-1) })
	require.ErrorIs(t, im.Import("/cut.rdb"), io.ErrUnexpectedEOF)
	require.NotContains(t, h.names("/db"), reportName, "of an import that failed")
}

func TestCommandsOfUnknownTypesAreLeftOut(t *testing.T) {
	payload := string(rdb.Seal(append([]byte{7}, foreignValue("graphdata", 8)...)))
	aof := inFile("SET", "a", "1") + inFile("SELECT", "3") + inFile("GRAPH.QUERY", "g", "x") + inFile("RESTORE", "r", "0", payload) +
		inFile("SET", "b", "2")
	for _, skip := range []string{"yes", "no"} {
		h := newHost(t, "import-skip-unsupported="+skip)
		h.put("/x.aof", aof)
		im := h.importer()
		err := im.Import("/x.aof")
		if skip == "no" {
			require.EqualError(t, err,
				"import of /x.aof: command 3: unknown command GRAPH.QUERY (import-skip-unsupported yes leaves it out)")
			continue
		}
		require.NoError(t, err)
		require.Equal(t, []string{"0 a=1", "3 b=2"}, h.all("a", "b"))
		require.Equal(t, "database\ttype\tkey\n3\tthe command \"GRAPH.QUERY\"\t\"g\"\n3\tgraphdata (version 8)\t\"r\"\n",
			h.content("/db/import-report.tsv"))
	}
	h := newHost(t, "import-skip-unsupported=yes")
	h.put("/x.aof", inFile("NOSUCH", "a")+aof)
	require.EqualError(t, h.importer().Import("/x.aof"), "import of /x.aof: command 1: unknown command NOSUCH")
}

func TestCheckStoresNothing(t *testing.T) {
	h := newHost(t)
	h.put("/x.rdb", string(withForeign(exported(t, "a=1", "b=2"), "g=graphdata 8"))+inFile("SET", "c", "3")+inFile("NOSUCH", "d"))
	var found []string
	checked, err := h.importer().Check("/x.rdb", func(db int, key []byte, typ string) {
		found = append(found, fmt.Sprintf("%d %s %s", db, key, typ))
	})
	require.NoError(t, err)
	require.Equal(t, []string{"0 g graphdata (version 8)", `0 d the command "NOSUCH"`}, found)
	require.Equal(t, Checked{Keys: 2, Commands: 2, Unsupported: Unsupported{Keys: 2,
		ByType: map[string]int{"graphdata (version 8)": 1, `the command "NOSUCH"`: 1}}}, *checked)
	require.Empty(t, h.all("a", "b", "c"))
	h.put("/cut.rdb", h.content("/x.rdb")[:30])
	_, err = h.importer().Check("/cut.rdb", nil)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
}

// inFile returns a command in the form of an append-only file.
func inFile(args ...string) string {
	b := fmt.Sprintf("*%d\r\n", len(args))
	for _, arg := range args {
		b += fmt.Sprintf("$%d\r\n%s\r\n", len(arg), arg)
	}
	return b
}
