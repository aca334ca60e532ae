package crash

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/atomredis/atomredis/engine/roaring"
	"github.com/atomredis/atomredis/internal/testing/transcript"
	"github.com/atomredis/atomredis/persist/rdb"
)

// newest changes compressed bitmaps and path hashes. A value of the kind bitmap has its bits in text. One of the kind
// pathhash has its values in elems, by the path, a line break and the field.
type newest struct {
	noObserver
	label string
	n     int
}

const (
	bitmapKind   = "bitmap"
	pathHashKind = "pathhash"
	manyBits     = 1 << 20
)

func (g *newest) restart(model) {}

func (g *newest) next(r *rand.Rand) *op {
	g.n++
	bits := func() string { return g.label + ":bits" + strconv.Itoa(r.IntN(3)) }
	paths := g.label + ":paths" + strconv.Itoa(r.IntN(2))
	path := fmt.Sprintf("/%d/%d", r.IntN(20), r.IntN(100))
	field, value := "f"+strconv.Itoa(r.IntN(3)), "v"+strconv.Itoa(g.n)
	switch r.IntN(16) {
	case 0:
		return plain("RESTORE", bits(), "0", restored[len(restored)-1].payload, "REPLACE")
	case 1:
		return plain("BITOP", "XOR", g.label+":bits3", bits(), bits())
	case 2, 3, 4, 5, 6, 7:
		return plain("SETBIT", bits(), strconv.Itoa(r.IntN(manyBits)), strconv.Itoa(r.IntN(2)))
	case 8:
		return plain("PHDEL", paths, path)
	case 9:
		return plain("PHDEL", paths, path, field)
	case 10:
		return plain("PHDELPREFIX", paths, path)
	case 11:
		return transaction(command{args: []string{"PHSET", paths, path, "FIELDS", "1", field, value}},
			command{args: []string{"SETBIT", bits(), strconv.Itoa(r.IntN(100)), "1"}})
	}
	return plain("PHSET", paths, path, "FIELDS", "1", field, value)
}

func phset(m model, c *call) {
	v := m.open(c.place(1), pathHashKind)
	v.elems[c.args[2]+"\n"+c.args[5]] = c.args[6]
}

// phremove removes the fields of which keep returns false.
func phremove(m model, c *call, keep func(path, field string) bool) {
	if v := m[c.place(1)]; v != nil {
		maps.DeleteFunc(v.elems, func(name, _ string) bool {
			path, field, _ := strings.Cut(name, "\n")
			return !keep(path, field)
		})
	}
}

func phdel(m model, c *call) {
	phremove(m, c, func(path, field string) bool { return path != c.args[2] || len(c.args) > 3 && field != c.args[3] })
}

func phdelprefix(m model, c *call) {
	phremove(m, c, func(path, _ string) bool { return !strings.HasPrefix(path, c.args[2]) })
}

// readBitmap reads a compressed bitmap from the reply to DUMP.
func (v *value) readBitmap(reply transcript.Value) error {
	restored, err := rdb.Restore([]byte(reply.Text), &rdb.Limits{})
	if err != nil {
		return err
	}
	r, ok := restored.(*roaring.Bitmap)
	if !ok {
		return fmt.Errorf("a %T", restored)
	}
	v.text = string(r.AppendBytes(nil, r.Len()))
	return nil
}

// readPaths reads a path hash from the reply to PHSCAN.
func (v *value) readPaths(reply transcript.Value) {
	for _, e := range reply.Elems[1].Elems {
		fields := e.Elems[1].Elems
		for i := 0; i+1 < len(fields); i += 2 {
			v.elems[e.Elems[0].Text+"\n"+fields[i].Text] = fields[i+1].Text
		}
	}
}

func init() {
	maps.Copy(effects, map[string]func(model, *call){"PHSET": phset, "PHDEL": phdel, "PHDELPREFIX": phdelprefix})
	maps.Copy(readCommands, map[string][]string{bitmapKind: {"DUMP"}, pathHashKind: {"PHSCAN", "0", "COUNT", "1000000", "WITHVALUES"}})
	one := roaring.FromBytes([]byte{0x80})
	payload := append([]byte{33, 1, byte(len(one.AppendPortable(nil)))}, one.AppendPortable(nil)...)
	restored = append(restored, struct {
		payload string
		value   value
	}{string(rdb.Seal(payload)), value{kind: bitmapKind, text: "\x80"}})
}
