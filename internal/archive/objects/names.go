package objects

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/atomredis/atomredis/persist/journal"
)

const (
	headName    = "head"
	reachName   = "reach"
	basePrefix  = "base_"
	piecePrefix = "log_"
	suffix      = ".zst"
	chainTime   = "20060102T150405Z"
	nameTime    = "20060102T150405.000Z"
)

// order compares places of the same history.
func order(a, b journal.Place) int {
	return cmp.Or(cmp.Compare(a.LSN, b.LSN), cmp.Compare(within(a), within(b)))
}

// within makes the places within an entry of a group's log sort before the one after it.
func within(p journal.Place) uint32 {
	if p.Within == 0 {
		return math.MaxUint32
	}
	return p.Within
}

// base is the name of a base.
type base struct {
	Object
	chain string
	at    journal.Place
	time  int64 // in ms since 1970
}

// piece is the name of a piece.
type piece struct {
	Object
	from, to       journal.Place
	first, through int64 // in ms since 1970
}

func stamp(ms int64) string { return time.UnixMilli(ms).UTC().Format(nameTime) }

func parseStamp(text string) (ms int64, ok bool) {
	t, err := time.Parse(nameTime, text)
	return t.UnixMilli(), err == nil
}

// volumeOf returns the name of the volume that begins with a base at a place.
func volumeOf(at journal.Place) string { return fmt.Sprintf("%020d", at.LSN) }

func baseName(chain string, at journal.Place, ms int64) string {
	return fmt.Sprintf("%s/%s/%s%s_%s%s", chain, volumeOf(at), basePrefix, at, stamp(ms), suffix)
}

func pieceName(chain, volume string, p *piece) string {
	return fmt.Sprintf("%s/%s/%s%020d_%s_%s_%s_%s%s", chain, volume, piecePrefix, p.from.LSN, p.from, p.to, stamp(p.first),
		stamp(p.through), suffix)
}

// parseBase reads the name of a base.
func parseBase(o Object) (b base, ok bool) {
	folders := strings.Split(o.Name, "/")
	if len(folders) != 3 {
		return b, false
	}
	fields, ok := fieldsOf(folders[2], basePrefix, 2)
	if !ok {
		return b, false
	}
	b = base{Object: o, chain: folders[0]}
	var valid [2]bool
	b.at, valid[0] = journal.ParsePlace(fields[0])
	b.time, valid[1] = parseStamp(fields[1])
	return b, !slices.Contains(valid[:], false)
}

// parsePiece reads the name of a piece.
func parsePiece(o Object) (p piece, ok bool) {
	folders := strings.Split(o.Name, "/")
	if len(folders) != 3 {
		return p, false
	}
	fields, ok := fieldsOf(folders[2], piecePrefix, 5)
	if !ok {
		return p, false
	}
	p = piece{Object: o}
	var valid [5]bool
	lsn, err := strconv.ParseUint(fields[0], 10, 64)
	p.from, valid[0] = journal.ParsePlace(fields[1])
	p.to, valid[1] = journal.ParsePlace(fields[2])
	p.first, valid[2] = parseStamp(fields[3])
	p.through, valid[3] = parseStamp(fields[4])
	valid[4] = err == nil && lsn == p.from.LSN && order(p.from, p.to) < 0
	return p, !slices.Contains(valid[:], false)
}

// fieldsOf returns the n fields of a name between a prefix and the suffix.
func fieldsOf(name, prefix string, n int) (fields []string, ok bool) {
	name, ok = strings.CutPrefix(name, prefix)
	if !ok {
		return nil, false
	}
	name, ok = strings.CutSuffix(name, suffix)
	fields = strings.Split(name, "_")
	return fields, ok && len(fields) == n
}
