package search

import (
	"encoding"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The types of fields, in the words of FT.CREATE and FT.INFO. A field that is only stored has no type.
const (
	textType     = "TEXT"
	tagType      = "TAG"
	numericType  = "NUMERIC"
	geoType      = "GEO"
	geoShapeType = "GEOSHAPE"
	vectorType   = "VECTOR"
)

// wholeTag is the separator for strings, which are a single tag each.
const wholeTag = "\x1f"

// field is a field of the struct that is stored.
type field struct {
	name      string
	typ       string // "" is stored and not indexed
	at        []int  // for reflect.Value.FieldByIndex
	goType    reflect.Type
	pointer   bool // goType is the type that it points to
	omitEmpty bool

	weight        float64
	phonetic      string
	separator     string
	flags         []string // flags of FT.CREATE in its order: SORTABLE and those after it come last
	algorithm     string
	element       string // type of a vector's elements, as in FT.CREATE
	dim           int
	metric        string
	vectorOptions []string // names and values, in the order of the tag
}

// schema describes the documents of a struct.
type schema struct {
	fields []*field
	byName map[string]*field
	json   bool
}

var (
	pointType       = reflect.TypeFor[Point]()
	timeType        = reflect.TypeFor[time.Time]()
	textMarshaler   = reflect.TypeFor[encoding.TextMarshaler]()
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// schemaOf reads the tags of a struct.
func schemaOf(t reflect.Type, json bool) (*schema, error) {
	if t.Kind() != reflect.Struct {
		return nil, fmt.Errorf("search: %s is not a struct", t)
	}
	s := &schema{byName: map[string]*field{}, json: json}
	for _, sf := range reflect.VisibleFields(t) {
		tag, ok := sf.Tag.Lookup("search")
		if !ok || tag == "-" {
			continue
		}
		f, err := s.parse(t, sf, tag)
		if err != nil {
			return nil, fmt.Errorf("search: field %s of %s: %w", sf.Name, t, err)
		}
		if s.byName[f.name] != nil {
			return nil, fmt.Errorf("search: field %s of %s: there are two fields %q", sf.Name, t, f.name)
		}
		s.fields = append(s.fields, f)
		s.byName[f.name] = f
	}
	return s, nil
}

// parse reads the tag of a field.
func (s *schema) parse(t reflect.Type, sf reflect.StructField, tag string) (*field, error) {
	if !sf.IsExported() {
		return nil, errors.New("it is not exported")
	}
	for n := 1; n < len(sf.Index); n++ {
		if t.FieldByIndex(sf.Index[:n]).Type.Kind() == reflect.Pointer {
			return nil, errors.New("it is embedded with a pointer")
		}
	}
	parts := strings.Split(tag, ",")
	f := &field{name: parts[0], at: sf.Index, goType: sf.Type, weight: 1}
	if f.name == "" {
		f.name = sf.Name
	}
	if strings.IndexFunc(f.name, func(r rune) bool { return r < ' ' || r == 0x7f }) >= 0 {
		return nil, fmt.Errorf("the name %q has control characters", f.name)
	}
	if f.goType.Kind() == reflect.Pointer {
		f.goType, f.pointer = f.goType.Elem(), true
	}
	options := parts[1:]
	if len(options) > 0 && types[options[0]] != "" {
		f.typ = types[options[0]]
		options = options[1:]
	}
	if err := f.checkType(s.json); err != nil {
		return nil, err
	}
	last := map[string]bool{"sortable": false, "unf": false, "noindex": false}
	for _, option := range options {
		name, value, _ := strings.Cut(option, "=")
		if _, ok := last[option]; ok && (option != "unf" || f.typ == textType || f.typ == tagType) && f.sorts() {
			last[option] = true
			continue
		}
		if err := f.option(name, value, option); err != nil {
			return nil, err
		}
	}
	if last["unf"] && !last["sortable"] {
		return nil, errors.New("unf needs the option sortable")
	}
	for _, word := range []string{"sortable", "unf", "noindex"} {
		if last[word] {
			f.flags = append(f.flags, strings.ToUpper(word))
		}
	}
	if f.typ == vectorType && f.dim == 0 {
		return nil, errors.New("a vector needs its dimension: dim=128")
	}
	return f, nil
}

// types has the types of fields by their names in tags.
var types = map[string]string{"text": textType, "tag": tagType, "numeric": numericType, "geo": geoType, "geoshape": geoShapeType,
	"vector": vectorType}

// sorts reports whether values of the field can be sorted.
func (f *field) sorts() bool {
	return f.typ != "" && f.typ != vectorType && f.typ != geoShapeType
}

// checkType refuses fields whose Go type does not fit their type in the index, and sets the properties that follow from
// it.
func (f *field) checkType(json bool) error {
	kind := f.goType.Kind()
	list := kind == reflect.Slice
	element := kind
	if list {
		element = f.goType.Elem().Kind()
	}
	if list && f.pointer {
		return errors.New("pointers to slices are not supported")
	}
	number := reflect.Int <= element && element <= reflect.Float64 && element != reflect.Uintptr
	ok := true
	switch f.typ {
	case textType:
		ok = element == reflect.String && (json || !list)
	case tagType:
		ok = element == reflect.String || !list && (element == reflect.Bool || number && element < reflect.Float32)
		if !json {
			if f.separator = wholeTag; list {
				f.separator = ","
			}
		}
	case numericType:
		ok = f.goType == timeType || !list && number
	case geoType:
		ok = f.goType == pointType
	case geoShapeType:
		ok = kind == reflect.String
	case vectorType:
		f.algorithm, f.metric = "HNSW", "COSINE"
		f.element = map[reflect.Kind]string{reflect.Float32: "FLOAT32", reflect.Float64: "FLOAT64", reflect.Int8: "INT8",
			reflect.Uint8: "UINT8"}[element]
		ok = list && f.element != ""
	case "":
		ok = json || f.plain()
	}
	if !ok {
		return fmt.Errorf("%s cannot be stored as %s", f.goType, strings.ToLower(f.typ+map[bool]string{true: "a field of a hash"}[f.typ == ""]))
	}
	return nil
}

// plain reports whether a hash can store the values of a field that is not indexed.
func (f *field) plain() bool {
	if f.goType == pointType || f.marshals() {
		return true
	}
	switch kind := f.goType.Kind(); kind {
	case reflect.String, reflect.Bool:
		return true
	case reflect.Slice:
		return f.goType.Elem().Kind() == reflect.Uint8
	default:
		return reflect.Int <= kind && kind <= reflect.Float64 && kind != reflect.Uintptr
	}
}

// marshals reports whether the field's type implements encoding.TextMarshaler and TextUnmarshaler.
func (f *field) marshals() bool {
	return f.goType.Implements(textMarshaler) && reflect.PointerTo(f.goType).Implements(textUnmarshaler)
}

// words has the options that are words of FT.CREATE.
var words = map[string]struct {
	word string
	of   string // the types that have it
}{
	"nostem": {"NOSTEM", textType}, "casesensitive": {"CASESENSITIVE", tagType}, "suffixes": {"WITHSUFFIXTRIE", textType + tagType},
	"empty": {"INDEXEMPTY", textType + tagType}, "missing": {"INDEXMISSING", textType + tagType + numericType + geoType + geoShapeType + vectorType},
	"flat": {"FLAT", geoShapeType},
}

// option sets an option other than sortable, unf and noindex.
func (f *field) option(name, value, all string) error {
	if all == "omitempty" {
		f.omitEmpty = true
		return nil
	}
	unknown := fmt.Errorf("unknown option %q", all)
	if f.typ == "" {
		return unknown
	}
	if w, ok := words[all]; ok && strings.Contains(w.of, f.typ) {
		f.flags = append(f.flags, w.word)
		return nil
	}
	var err error
	switch {
	case f.typ == textType && name == "weight":
		f.weight, err = strconv.ParseFloat(value, 64)
	case f.typ == textType && name == "phonetic" && value != "":
		f.phonetic = value
	case f.typ == tagType && name == "separator" && len(value) == 1 && value[0] >= ' ' && value[0] < 0x7f:
		f.separator = value
	case f.typ == vectorType:
		return f.vectorOption(name, value, unknown)
	default:
		return unknown
	}
	if err != nil {
		return unknown
	}
	return nil
}

// vectorOption sets an option of a vector.
func (f *field) vectorOption(name, value string, unknown error) error {
	switch name {
	case "hnsw", "flat":
		if value != "" {
			return unknown
		}
		f.algorithm = strings.ToUpper(name)
	case "dim":
		n, err := strconv.ParseUint(value, 10, 31)
		if err != nil || n == 0 {
			return unknown
		}
		f.dim = int(n)
	case "metric":
		if f.metric = strings.ToUpper(value); !slices.Contains([]string{"L2", "IP", "COSINE"}, f.metric) {
			return unknown
		}
	case "m", "efconstruction", "efruntime", "epsilon":
		key := map[string]string{"m": "M", "efconstruction": "EF_CONSTRUCTION", "efruntime": "EF_RUNTIME", "epsilon": "EPSILON"}[name]
		if _, err := strconv.ParseFloat(value, 64); err != nil {
			return unknown
		}
		f.vectorOptions = append(f.vectorOptions, key, value)
	default:
		return unknown
	}
	return nil
}

// identifier returns the name or the path at which the index finds the field.
func (f *field) identifier(json bool) string {
	if !json {
		return f.name
	}
	return "$[" + strconv.Quote(f.name) + "]"
}

// args appends the field's arguments of FT.CREATE and FT.ALTER.
func (f *field) args(args []any, json bool) []any {
	args = append(args, f.identifier(json))
	if json {
		args = append(args, "AS", f.name)
	}
	args = append(args, f.typ)
	switch f.typ {
	case textType:
		args = append(args, "WEIGHT", number(f.weight))
		if f.phonetic != "" {
			args = append(args, "PHONETIC", f.phonetic)
		}
	case tagType:
		if f.separator != "" {
			args = append(args, "SEPARATOR", f.separator)
		}
	case vectorType:
		args = append(args, f.algorithm, 6+len(f.vectorOptions), "TYPE", f.element, "DIM", f.dim, "DISTANCE_METRIC", f.metric)
		for _, o := range f.vectorOptions {
			args = append(args, o)
		}
	}
	for _, flag := range f.flags {
		args = append(args, flag)
	}
	return args
}

// number returns the shortest text of the number.
func number(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }

// indexed yields the fields that are in the index.
func (s *schema) indexed(yield func(*field) bool) {
	for _, f := range s.fields {
		if f.typ != "" && !yield(f) {
			return
		}
	}
}
