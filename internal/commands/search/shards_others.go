package search

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/search/catalog"
	"github.com/atomredis/atomredis/internal/search/fanout"
	"github.com/atomredis/atomredis/internal/search/spell"
	"github.com/atomredis/atomredis/internal/search/value"
	"github.com/atomredis/atomredis/internal/wire/peer"
)

// This file has the commands to all shards whose answers have one part: FT.TAGVALS, FT.SPELLCHECK, FT.INFO, FT.GET
// and FT.MGET.

// each asks all shards, calls add with each part, and then reply.
func (f *fan) each(what string, add func(part []byte) error, reply func()) {
	f.whole(what, nil, func(answers []fanout.Answer) error {
		parts, err := only(answers)
		if err != nil {
			return err
		}
		for _, part := range parts {
			if err := add(part); err != nil {
				return err
			}
		}
		reply()
		return nil
	})
}

// decoded returns the values of a part, at least n.
func decoded(part []byte, n int) ([]value.Value, error) {
	v, rest, err := value.Decode(part)
	if err != nil || len(rest) > 0 || v.Kind() != value.Array || v.Len() < n {
		return nil, peer.ErrFrame
	}
	return v.Items(), nil
}

// tags replies to FT.TAGVALS.
func (f *fan) tags() {
	all := map[string]bool{}
	f.each(askTags, func(part []byte) error {
		list, err := decoded(part, 0)
		for _, tag := range list {
			all[tag.Text()] = true
		}
		return err
	}, func() { writeTags(f.c, slices.Sorted(maps.Keys(all))) })
}

// tagsPart returns the tags of this shard.
func tagsPart(c *command.Ctx, x *catalog.Index) ([]byte, error) {
	if len(c.Args) < 3 {
		return nil, peer.ErrFrame
	}
	field, ok := x.Definition().Lookup(string(c.Args[2]))
	if !ok {
		return nil, peer.ErrFrame
	}
	return value.Strings(x.Tags(field.Name, hidden(c.Host))).Append(nil), nil
}

// spelling replies to FT.SPELLCHECK.
func (f *fan) spelling(o spell.Options) {
	var lists [][]spell.Word
	total := 0
	f.each(askSpelling, func(part []byte) error {
		values, err := decoded(part, 1)
		if err != nil {
			return err
		}
		total += int(values[0].Float())
		var list []spell.Word
		for _, v := range values[1:] {
			of := v.Items()
			if len(of) < 2 || len(of)%2 != 0 {
				return peer.ErrFrame
			}
			word := spell.Word{Text: of[0].Text(), Known: of[1].Float() == isKnown, Excluded: of[1].Float() == isExcluded}
			for of = of[2:]; len(of) > 0; of = of[2:] {
				word.Suggestions = append(word.Suggestions, spell.Suggestion{Term: of[0].Text(), Score: of[1].Float()})
			}
			list = append(list, word)
		}
		lists = append(lists, list)
		return nil
	}, func() { writeWords(f.c, spell.Merge(lists, total, o), o.Full, total) })
}

// Markers for a word in a shard's answer, in place of suggestions.
const (
	isUnknown = iota
	isKnown
	isExcluded
)

// spellingPart returns this shard's part: the number of its documents, and a list for each word.
func spellingPart(c *command.Ctx, x *catalog.Index) ([]byte, error) {
	if len(c.Args) < 3 {
		return nil, peer.ErrFrame
	}
	o, err := spell.ParseOptions(words(c.Args[3:]))
	if err != nil {
		return nil, err
	}
	if o.Dialect == 0 {
		o.Dialect = int(integer(c.Host, "search-default-dialect"))
	}
	list, total, err := spellings(c, x, o)
	if err != nil {
		return nil, err
	}
	values := []value.Value{value.Num(float64(total))}
	for _, word := range list {
		state := isUnknown
		switch {
		case word.Known:
			state = isKnown
		case word.Excluded:
			state = isExcluded
		}
		of := []value.Value{value.Str(word.Text), value.Num(float64(state))}
		for _, s := range word.Suggestions {
			of = append(of, value.Str(s.Term), value.Num(s.Score))
		}
		values = append(values, value.List(of))
	}
	return value.List(values).Append(nil), nil
}

// info replies to FT.INFO with the sums of all shards.
func (f *fan) info(x *catalog.Index) {
	var all *figures
	progress, shards := 0.0, 0
	f.each(askInfo, func(part []byte) error {
		one := new(figures)
		if err := json.Unmarshal(part, one); err != nil {
			return peer.ErrFrame
		}
		progress += one.Progress
		shards++
		if all == nil {
			all = one
			return nil
		}
		all.Add(&one.Stats)
		all.Filling = all.Filling || one.Filling
		all.Cursors += one.Cursors
		all.AllCursors += one.AllCursors
		all.Capacity += one.Capacity
		for d, is := range one.UsedDialects {
			all.UsedDialects[d] = all.UsedDialects[d] || is
		}
		return nil
	}, func() {
		all.Progress = progress / float64(shards)
		writeInfo(f.c, x, all)
	})
}

// documents replies to FT.GET and FT.MGET: each document is on one shard.
func (f *fan) documents(several bool) {
	keys := len(f.c.Args) - 2
	found := make([][]field, keys)
	f.each(askDocuments, func(part []byte) error {
		list, err := decoded(part, keys)
		if err != nil {
			return err
		}
		for i := range found {
			of := list[i].Items()
			if list[i].Kind() != value.Array || len(of)%2 != 0 {
				continue
			}
			found[i] = []field{}
			for ; len(of) > 0; of = of[2:] {
				found[i] = append(found[i], field{of[0].Text(), of[1]})
			}
		}
		return nil
	}, func() {
		if several {
			f.c.W.Array(keys)
		}
		for _, fields := range found {
			writeDocument(f.c, fields)
		}
	})
}

// documentsPart returns the requested documents; null for those that this shard does not have.
func documentsPart(c *command.Ctx, x *catalog.Index) []byte {
	var list []value.Value
	for _, fields := range documentsOf(c, x) {
		if fields == nil {
			list = append(list, value.Nil)
			continue
		}
		of := []value.Value{}
		for _, f := range fields {
			of = append(of, value.Str(f.name), f.value)
		}
		list = append(list, value.List(of))
	}
	return value.List(list).Append(nil)
}
