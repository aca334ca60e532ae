package catalog

import (
	"maps"
	"slices"

	"github.com/atomredis/atomredis/internal/search/text"
)

// Each calls do with the arguments of the commands that make the catalog again, in their order. All shards are held.
func (c *Catalog) Each(do func(args ...[]byte)) {
	for _, x := range c.List() {
		do(x.args...)
		groups := map[string][]string{}
		for word, of := range x.Synonyms().All {
			for _, group := range of {
				groups[group] = append(groups[group], word)
			}
		}
		for _, group := range slices.Sorted(maps.Keys(groups)) {
			args := [][]byte{synonymsWord, []byte(x.Name), []byte(group[len(text.Group):])}
			slices.Sort(groups[group])
			do(append(args, bytesOf(groups[group])...)...)
		}
		for _, alias := range c.Aliases(x) {
			do(aliasWord, []byte(alias), []byte(x.Name))
		}
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	for _, name := range slices.Sorted(maps.Keys(c.dicts)) {
		do(append([][]byte{dictionaryWord, []byte(name)}, bytesOf(c.dicts[name].Words())...)...)
	}
}

// The names of the commands.
var (
	synonymsWord   = []byte("FT.SYNUPDATE")
	aliasWord      = []byte("FT._ALIASADDIFNX")
	dictionaryWord = []byte("FT.DICTADD")
)

func bytesOf(texts []string) [][]byte {
	list := make([][]byte, len(texts))
	for i, t := range texts {
		list[i] = []byte(t)
	}
	return list
}
