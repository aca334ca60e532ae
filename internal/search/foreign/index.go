package foreign

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// The flags of an index. Those from hasPhonetics on follow from its fields.
const (
	storesOffsets     = 1 << 0
	storesFields      = 1 << 1
	hasStopwords      = 1 << 3
	storesFrequencies = 1 << 4
	storesByteOffsets = 1 << 6
	hasManyTextFields = 1 << 7
	hasSynonyms       = 1 << 8
	isTemporary       = 1 << 9
	hasPhonetics      = 1 << 10
	hasAliases        = 1 << 14
	hasVectors        = 1 << 15
	hasSuffixes       = 1 << 16
	hasUnordered      = 1 << 17
	hasShapes         = 1 << 18
	hasNonEmpty       = 1 << 19
)

const (
	milliseconds  = 1000 // of a second
	fewTextFields = 32   // above which hasManyTextFields is set
)

// languages are the module's languages, by number.
var languages = []string{"english", "arabic", "basque", "catalan", "chinese", "danish", "dutch", "finnish", "french", "german", "greek",
	"hindi", "hungarian", "italian", "indonesian", "irish", "lithuanian", "nepali", "norwegian", "portuguese", "romanian", "russian",
	"spanish", "swedish", "tamil", "turkish", "armenian", "serbian", "yiddish", "tagalog", "malay"}

// index reads an index. It returns the commands that make it, or an error if it cannot be made.
func (r *reader) index() (commands [][]string, refused error) {
	r.name = r.text()
	flags := r.Uint()
	fields := r.fields()
	options, score, language := r.rule()
	if score != 1 {
		options = append(options, "SCORE", number(score))
	}
	if language != languages[0] {
		options = append(options, "LANGUAGE", language)
	}
	if r.Version >= versionIndexAll && r.Uint() != 0 {
		options = append(options, "INDEXALL", "ENABLE")
	}
	if flags&hasStopwords != 0 {
		words := r.list(r.Text)
		options = append(append(options, "STOPWORDS", strconv.Itoa(len(words))), words...)
	}
	var groups map[string][]string
	if flags&hasSynonyms != 0 {
		groups = r.synonyms()
	}
	timeout := r.Uint()
	aliases := r.list(r.text)
	if r.Err() != nil || r.refused != nil {
		return nil, r.refused
	}
	for _, o := range []struct {
		has    bool
		option string
	}{
		{flags&hasManyTextFields != 0, "MAXTEXTFIELDS"},
		{flags&storesOffsets == 0, "NOOFFSETS"},
		{flags&storesOffsets != 0 && flags&storesByteOffsets == 0, "NOHL"},
		{flags&storesFields == 0, "NOFIELDS"},
		{flags&storesFrequencies == 0, "NOFREQS"},
		{len(groups) > 0, "SKIPINITIALSCAN"}, // the index is filled when it has its synonyms
	} {
		if o.has {
			options = append(options, o.option)
		}
	}
	if flags&isTemporary != 0 {
		options = append(options, "TEMPORARY", strconv.FormatUint(timeout/milliseconds, 10))
	}
	create := append([]string{"FT._CREATEIFNX", r.name}, options...)
	commands = append(commands, append(append(create, "SCHEMA"), fields...))
	names := slices.Sorted(maps.Keys(groups))
	for i, group := range names {
		command := []string{"FT.SYNUPDATE", r.name, group}
		if i < len(names)-1 {
			command = append(command, "SKIPINITIALSCAN")
		}
		slices.Sort(groups[group])
		commands = append(commands, append(command, groups[group]...))
	}
	for _, alias := range aliases {
		commands = append(commands, []string{"FT._ALIASADDIFNX", alias, r.name})
	}
	return commands, nil
}

// rule reads the keys of the index, as options, with its score and language.
func (r *reader) rule() (options []string, score float64, language string) {
	options = []string{"ON", strings.ToUpper(r.text())}
	if prefixes := r.list(r.text); len(prefixes) > 1 || len(prefixes) == 1 && prefixes[0] != "" {
		options = append(append(options, "PREFIX", strconv.Itoa(len(prefixes))), prefixes...)
	}
	for _, option := range []string{"FILTER", "LANGUAGE_FIELD", "SCORE_FIELD", "PAYLOAD_FIELD"} {
		options = append(options, r.optional(option)...)
	}
	score = r.Double()
	if i := r.Uint(); i < uint64(len(languages)) {
		language = languages[i]
	} else {
		r.refuse("the language %d is not known", i)
	}
	return options, score, language
}

// list reads a number, and so many texts.
func (r *reader) list(text func() string) (list []string) {
	for n := r.Uint(); n > 0 && r.Err() == nil; n-- {
		list = append(list, text())
	}
	return list
}

// synonyms reads the words that mean the same, by group.
func (r *reader) synonyms() map[string][]string {
	groups := map[string][]string{}
	for n := r.Uint(); n > 0 && r.Err() == nil; n-- {
		word := r.text()
		for _, group := range r.list(r.text) {
			groups[group] = append(groups[group], word)
		}
	}
	return groups
}

// number returns a number as an argument.
func number(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }
