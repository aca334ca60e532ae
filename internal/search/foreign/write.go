package foreign

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/atomredis/atomredis/internal/search/query"
	"github.com/atomredis/atomredis/internal/search/schema"
	"github.com/atomredis/atomredis/persist/rdb"
	"github.com/atomredis/atomredis/resp"
)

// Definitions are indexes and dictionaries to write in the module's format.
type Definitions struct {
	indexes      []*definition
	dictionaries [][]string // name and words
}

// definition is an index with its aliases and synonyms.
type definition struct {
	*schema.Definition
	aliases []string
	groups  map[string][]string // of synonyms, by word
}

// Parse reads the commands that make indexes and dictionaries, as RESP arrays. Others are left out.
func Parse(commands []byte) (d Definitions, err error) {
	for p := (&resp.Parser{MaxBulk: resp.AnyBulk}); len(commands) > 0; {
		args, n, err := p.Next(commands, nil)
		if err != nil || len(args) == 0 {
			return d, errors.New("the stored definitions of indexes are damaged")
		}
		if err := d.add(args); err != nil {
			return d, fmt.Errorf("%s: %w", args[0], err)
		}
		commands = commands[n:]
	}
	return d, nil
}

// add adds the result of a command.
func (d *Definitions) add(args [][]byte) error {
	words := make([]string, len(args))
	for i, a := range args {
		words[i] = string(a)
	}
	switch name := words[0]; {
	case name == "FT._CREATEIFNX" && len(words) > 2:
		def, err := schema.Parse(words[1], args[2:], schema.Checks{})
		if err != nil {
			return err
		}
		d.indexes = append(d.indexes, &definition{Definition: def, groups: map[string][]string{}})
	case name == "FT._ALIASADDIFNX" && len(words) == 3:
		if x := d.index(words[2]); x != nil {
			x.aliases = append(x.aliases, words[1])
		}
	case name == "FT.SYNUPDATE" && len(words) > 3:
		if x := d.index(words[1]); x != nil {
			for _, word := range words[3:] {
				x.groups[word] = append(x.groups[word], words[2])
			}
		}
	case name == "FT.DICTADD" && len(words) > 2:
		d.dictionaries = append(d.dictionaries, words[1:])
	}
	return nil
}

func (d *Definitions) index(name string) *definition {
	for _, x := range d.indexes {
		if x.Name == name {
			return x
		}
	}
	return nil
}

// BeforeKeys writes the part before the keys of a file.
func (d *Definitions) BeforeKeys(e *rdb.Encoder) {
	if len(d.indexes) == 0 {
		return
	}
	w := writer{e.Module(indexType, d.version(), false), d.version()}
	w.Uint(uint64(len(d.indexes)))
	for _, x := range d.indexes {
		w.index(x)
	}
	w.End()
}

// AfterKeys writes the part after the keys.
func (d *Definitions) AfterKeys(e *rdb.Encoder) {
	if len(d.dictionaries) == 0 {
		return
	}
	w := writer{e.Module(dictionaryType, newestDictionary, true), newestDictionary}
	w.Uint(uint64(len(d.dictionaries)))
	for _, words := range d.dictionaries {
		w.text(words[0])
		w.Uint(uint64(len(words) - 1))
		for _, word := range words[1:] {
			w.text(word)
			w.Double(1)
		}
	}
	w.End()
}

// usualEpsilon is the default of EPSILON.
const usualEpsilon = 0.01

// version returns the first version that can represent the indexes: that of 8.0, or of 8.2.
func (d *Definitions) version() uint64 {
	for _, x := range d.indexes {
		for _, f := range x.Fields {
			if v := f.Vector; v != nil && (v.Algorithm == schema.SVS || v.Algorithm == schema.HNSW && v.Epsilon != usualEpsilon) {
				return versionSVS
			}
		}
	}
	return versionIndexAll
}

// writer writes data in the form of a version.
type writer struct {
	rdb.ModuleWriter
	version uint64
}

// text writes a zero-terminated text.
func (w writer) text(s string) { w.Text(s + "\x00") }

// flag writes a boolean.
func (w writer) flag(is bool) { w.Uint(bits(is, 1)) }

// optional writes a text that may be missing.
func (w writer) optional(s string) {
	if w.flag(s != ""); s != "" {
		w.text(s)
	}
}

// texts writes a number, and so many texts.
func (w writer) texts(list []string) {
	w.Uint(uint64(len(list)))
	for _, s := range list {
		w.text(s)
	}
}

// bits returns bits if is is set, otherwise 0.
func bits(is bool, bits uint64) uint64 {
	if is {
		return bits
	}
	return 0
}

// index writes an index.
func (w writer) index(x *definition) {
	w.text(x.Name)
	w.Uint(x.flags(), uint64(len(x.Fields)))
	texts, sorted := uint64(0), uint64(0)
	for _, f := range x.Fields {
		w.field(x, f, &texts, &sorted)
	}
	w.text(x.Source.String())
	if len(x.Prefixes) == 0 {
		w.texts([]string{""})
	} else {
		w.texts(x.Prefixes)
	}
	for _, s := range []string{x.Filter, x.LanguageField, x.ScoreField, x.PayloadField} {
		w.optional(s)
	}
	w.Double(x.Score)
	w.Uint(uint64(max(slices.Index(languages, x.Language.String()), 0)))
	w.flag(x.IndexAll)
	if x.CustomStopwords {
		list := x.Stopwords.Words()
		w.Uint(uint64(len(list)))
		for _, word := range list {
			w.Text(word)
		}
	}
	if len(x.groups) > 0 {
		w.Uint(uint64(len(x.groups)))
		for _, word := range slices.Sorted(maps.Keys(x.groups)) {
			w.text(word)
			w.texts(x.groups[word])
		}
	}
	w.Uint(uint64(min(x.Temporary, math.MaxInt64/milliseconds)) * milliseconds)
	w.texts(x.aliases)
}

// flags returns the flags of an index, including those that follow from its fields.
func (x *definition) flags() uint64 {
	flags := bits(!x.NoOffsets, storesOffsets) | bits(!x.NoHighlight, storesByteOffsets) | bits(!x.NoFields, storesFields) |
		bits(!x.NoFreqs, storesFrequencies) | bits(x.CustomStopwords, hasStopwords) | bits(len(x.groups) > 0, hasSynonyms) |
		bits(x.Temporary > 0, isTemporary)
	texts := 0
	for _, f := range x.Fields {
		isText := f.Kind == query.TextKind
		if isText {
			texts++
		}
		flags |= bits(f.Phonetic, hasPhonetics) | bits(f.Path != f.Name, hasAliases) | bits(f.Kind == query.VectorKind, hasVectors) |
			bits(isText && f.Suffixes, hasSuffixes) | bits(f.Kind == query.GeoShapeKind, hasShapes) |
			bits((isText || f.Kind == query.TagKind) && !f.IndexEmpty, hasNonEmpty) | bits(x.Source == schema.JSON && unordered(f.Path), hasUnordered)
	}
	return flags | bits(x.MaxTextFields || texts > fewTextFields, hasManyTextFields)
}

// unordered reports whether the values under a JSONPath are in no order.
func unordered(path string) bool {
	return strings.Contains(path, "..") || strings.ContainsAny(path, "*?")
}

// field writes a field. texts and sorted count those before it that have texts to be searched and sort values.
func (w writer) field(x *definition, f *schema.Field, texts, sorted *uint64) {
	w.text(f.Name)
	if w.flag(f.Path != f.Name); f.Path != f.Name {
		w.text(f.Path)
	}
	place := uint64(math.MaxUint64) // -1
	if f.Sortable {
		place = *sorted
		*sorted++
	}
	kind := kinds[f.Kind]
	w.Uint(kind, bits(f.Sortable, sortable)|bits(f.NoStem, noStem)|bits(f.NoIndex, noIndex)|bits(f.Phonetic, phonetic)|
		bits(f.Unfolded, unfolded)|bits(f.Suffixes, suffixes)|bits(x.Source == schema.JSON && unordered(f.Path), hasNoOrder)|
		bits(f.IndexEmpty, indexesEmpty)|bits(f.IndexMissing, indexesMissing), place)
	switch kind {
	case text:
		number := uint64(math.MaxUint16) // of none
		if !f.NoIndex {
			number = *texts
			*texts++
		}
		w.Uint(number)
		w.Double(f.Weight)
	case tag:
		w.Uint(usualTagFlags | bits(f.CaseSensitive, caseSensitive))
		w.Text(string([]byte{f.Separator}))
	case vector:
		w.vector(f.Vector, x.Source == schema.JSON && (unordered(f.Path) || strings.ContainsAny(f.Path, ",:")))
	case shape:
		w.flag(!f.Flat)
	}
}

// kinds are the types of fields.
var kinds = map[query.Kind]uint64{query.TextKind: text, query.NumericKind: numeric, query.GeoKind: geo, query.TagKind: tag,
	query.VectorKind: vector, query.GeoShapeKind: shape}

// vector writes the options of a vector index. many says that a document may have several vectors.
func (w writer) vector(v *schema.Vector, many bool) {
	w.Uint(uint64(v.Bytes()))
	basics := func() {
		w.Uint(uint64(slices.Index(vectorTypes, v.Type.String())), uint64(v.Dim), uint64(slices.Index(vectorMetrics, v.Metric.String())))
		w.flag(many)
		if w.version < versionSVS {
			w.Uint(uint64(cmp.Or(v.InitialCap, usualSize)))
		}
	}
	switch v.Algorithm {
	case schema.Flat:
		w.Uint(flat)
		basics()
		if w.version < versionSVS {
			w.Uint(uint64(v.BlockSize))
		}
	case schema.HNSW:
		w.Uint(tiered, hnsw, usualSize)
		basics()
		w.Uint(uint64(v.M), uint64(v.EfConstruction), uint64(v.EfRuntime))
	case schema.SVS:
		w.Uint(tiered, svs, uint64(v.TrainingThreshold))
		basics()
		w.Uint(compressionBits(v.Compression), uint64(v.GraphMaxDegree), uint64(v.ConstructionWidth), uint64(v.Reduce), uint64(v.SearchWidth))
	}
	if v.Algorithm != schema.Flat && w.version >= versionSVS {
		w.Double(v.Epsilon)
	}
}

// compressionBits returns the bits of a compression, 0 for none.
func compressionBits(name string) uint64 {
	for n, of := range compressions {
		if of == name && n != 1 {
			return n
		}
	}
	return 0
}
