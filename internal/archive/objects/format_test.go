package objects

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/atomredis/atomredis/internal/testing/testseed"
	"github.com/atomredis/atomredis/persist/disk"
	"github.com/atomredis/atomredis/persist/journal"
)

// encoded returns an object with a content.
func encoded(t require.TestingT, content []byte) []byte {
	var out bytes.Buffer
	w, err := newBlockWriter(&out, header{Kind: "log", Server: "1", Group: true})
	require.NoError(t, err)
	for len(content) > 0 {
		n := min(len(content), 700_000)
		_, err := w.Write(content[:n])
		require.NoError(t, err)
		content = content[n:]
	}
	require.NoError(t, w.end())
	return out.Bytes()
}

// decoded reads an object.
func decoded(b []byte) (content []byte, err error) {
	r, err := newBlockReader("x", bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

func TestObjectsAreReadAsTheyWereWritten(t *testing.T) {
	for _, size := range []int{0, 1, blockSize - 1, blockSize, 2*blockSize + 5} {
		content := bytes.Repeat([]byte("0123456"), size/7+1)[:size]
		b := encoded(t, content)
		got, err := decoded(b)
		require.NoError(t, err)
		require.True(t, bytes.Equal(content, got), size)
		r, err := newBlockReader("x", bytes.NewReader(b))
		require.NoError(t, err)
		require.Equal(t, header{Kind: "log", Server: "1", Group: true}, r.header)
	}
}

// Each changed byte, and each cut, is detected; the error names the object and an offset in it. What precedes is readable.
func TestDamageIsDetected(t *testing.T) {
	testseed.Check(t, func(t *rapid.T) {
		content := rapid.SliceOfN(rapid.Byte(), 0, 3000).Draw(t, "content")
		b := encoded(t, content)
		at := rapid.IntRange(0, len(b)-1).Draw(t, "at")
		if rapid.Bool().Draw(t, "cut") {
			b = b[:at]
		} else {
			b[at] ^= byte(rapid.IntRange(1, 255).Draw(t, "bits"))
		}
		got, err := decoded(b)
		damage := new(DamageError)
		require.True(t, errors.As(err, &damage), "%v", err)
		require.Equal(t, "x", damage.Object)
		require.LessOrEqual(t, damage.Offset, int64(at))
		require.True(t, bytes.HasPrefix(content, got))
	})
	_, err := decoded(append(encoded(t, []byte("a")), 0))
	require.ErrorContains(t, err, "something follows its end")
}

func TestNamesSayWhatObjectsAre(t *testing.T) {
	at := journal.Place{Mark: 0x6a09e667, LSN: 73}
	b, ok := parseBase(Object{Name: baseName("c", at, 1764460800123)})
	require.True(t, ok)
	require.Equal(t, at, b.at)
	require.EqualValues(t, int64(1764460800123), b.time)
	want := piece{from: at, to: journal.Place{Mark: 1, LSN: 74, Within: 12}, first: 1764460800123, through: 1764460801000}
	want.Name = pieceName("c", volumeOf(at), &want)
	got, ok := parsePiece(Object{Name: want.Name})
	require.True(t, ok)
	require.Equal(t, want, got)
	for _, name := range []string{"head", "c/reach", "c/v/x", strings.Replace(want.Name, "_0000", "_0001", 1),
		strings.TrimSuffix(want.Name, suffix), want.Name + "/x"} {
		_, isPiece := parsePiece(Object{Name: name})
		_, isBase := parseBase(Object{Name: name})
		require.False(t, isPiece || isBase, name)
	}
}

// A chain of pieces is followed over overlaps and to gaps, whatever pieces two leaders have written.
func TestPathsOfPieces(t *testing.T) {
	place := func(lsn uint64) journal.Place { return journal.Place{LSN: lsn} }
	piecesOf := func(bounds ...uint64) (list []piece) {
		for i := 0; i < len(bounds); i += 2 {
			list = append(list, piece{from: place(bounds[i]), to: place(bounds[i+1])})
		}
		return list
	}
	for _, test := range []struct {
		pieces, steps []piece
		end, gap      uint64
	}{
		{nil, nil, 5, 0},
		{piecesOf(0, 3, 3, 5), nil, 5, 0},
		{piecesOf(3, 8, 8, 9), piecesOf(3, 8, 8, 9), 9, 0},
		{piecesOf(5, 7, 5, 9, 7, 8, 9, 12), piecesOf(5, 9, 9, 12), 12, 0},
		{piecesOf(5, 7, 8, 9), piecesOf(5, 7), 7, 8},
		{piecesOf(6, 9), nil, 5, 6},
	} {
		steps, end, gap := path(test.pieces, place(5))
		require.Equal(t, test.steps, steps)
		require.Equal(t, place(test.end), end)
		require.Equal(t, test.gap > 0, gap != nil)
		if gap != nil {
			require.Equal(t, place(test.gap), gap.from)
		}
	}
}

// A chain is continued where its pieces end, not at a base before which pieces are missing because the server crashed.
func TestChainsAreContinuedWhereTheirPiecesEnd(t *testing.T) {
	place := func(lsn uint64) journal.Place { return journal.Place{LSN: lsn} }
	for _, test := range []struct {
		bases, pieces []uint64 // a base and a piece are made in the second of their LSN
		at            uint64
		through       int64
	}{
		{bases: []uint64{5}, at: 5, through: 5000},
		{bases: []uint64{5}, pieces: []uint64{5, 8}, at: 8, through: 8000},
		{bases: []uint64{5, 8}, pieces: []uint64{5, 8}, at: 8, through: 8000},
		{bases: []uint64{5, 9}, pieces: []uint64{5, 8}, at: 8, through: 8000},
		{bases: []uint64{5, 9}, at: 5, through: 5000},
		{bases: []uint64{5, 9}, pieces: []uint64{5, 8, 8, 12}, at: 12, through: 12000},
		{bases: []uint64{5, 9}, pieces: []uint64{5, 7, 8, 12}, at: 12, through: 12000},
	} {
		s, err := Open(disk.System, t.TempDir())
		require.NoError(t, err)
		const chain = "20261130T120000Z-6a09e667"
		for _, lsn := range test.bases {
			put(t, s, baseName(chain, place(lsn), int64(lsn)*1000), "")
		}
		for i := 0; i < len(test.pieces); i += 2 {
			from, to := test.pieces[i], test.pieces[i+1]
			p := piece{from: place(from), to: place(to), first: int64(from) * 1000, through: int64(to) * 1000}
			put(t, s, pieceName(chain, volumeOf(place(5)), &p), "")
		}
		got, err := tailOf(t.Context(), s, head{Chain: chain, From: volumeOf(place(5))})
		require.NoError(t, err)
		require.Equal(t, place(test.at), got.at, "%+v", test)
		require.Equal(t, test.through, got.through, "%+v", test)
		require.Equal(t, place(test.bases[len(test.bases)-1]), got.last.at)
	}
}

// records returns the object of a piece, and its name.
func recordsOf(t *testing.T, s Store, chain string, from journal.Place, entries ...journal.Entry) string {
	t.Helper()
	var b []byte
	p := piece{from: from, to: entries[len(entries)-1].After, first: entries[0].Now}
	for i := range entries {
		b = appendRecord(b, &entries[i])
		p.through = max(p.through, entries[i].Now)
	}
	name := pieceName(chain, volumeOf(journal.Place{}), &p)
	put(t, s, name, string(encoded(t, b)))
	return name
}

// Two servers that write different records to one chain are detected.
func TestContradictingPiecesAreRefused(t *testing.T) {
	s, err := Open(disk.System, t.TempDir())
	require.NoError(t, err)
	const chain = "20261130T120000Z-00000001"
	at := func(mark uint32, lsn uint64) journal.Place { return journal.Place{Mark: mark, LSN: lsn} }
	entry := func(mark uint32, lsn uint64, now int64) journal.Entry {
		return journal.Entry{After: at(mark, lsn), Now: now, Commands: []byte("x")}
	}
	put(t, s, baseName(chain, at(1, 10), 1000), string(encoded(t, []byte("base"))))
	recordsOf(t, s, chain, at(1, 10), entry(1, 20, 2000), entry(1, 30, 3000))
	recordsOf(t, s, chain, at(1, 20), entry(1, 30, 3000), entry(1, 40, 4000)) // of another leader
	p, err := Find(t.Context(), s, Latest)
	require.NoError(t, err)
	var times []int64
	do := func(now int64, _ []byte) error {
		times = append(times, now)
		return nil
	}
	require.NoError(t, p.Records(do))
	require.Equal(t, []int64{2000, 3000, 4000}, times)
	recordsOf(t, s, chain, at(2, 40), entry(2, 50, 5000))
	p, err = Find(t.Context(), s, Latest)
	require.NoError(t, err)
	require.ErrorContains(t, p.Records(do), "more than one server has written to the archive")
	chains, err := Check(t.Context(), s, nil)
	require.NoError(t, err)
	require.Len(t, chains[0].Problems, 1)
}
