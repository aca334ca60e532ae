package search

import (
	"strings"

	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/search/index"
	"github.com/atomredis/atomredis/internal/search/query"
	"github.com/atomredis/atomredis/internal/search/request"
)

// explained returns the tree of a query as text. On an error it writes the reply and returns false.
func explained(c *command.Ctx) (tree string, ok bool) {
	x := find(c, c.Args[1])
	if x == nil {
		return "", false
	}
	q, err := request.Search(words(c.Args[2:]), settingsOf(c.Host))
	if err != nil {
		fail(c, err)
		return "", false
	}
	synonyms := x.Synonyms()
	x.View(func(v index.View) {
		var root query.Node
		if root, err = treeOf(q, v.Definition(), synonyms, v.Lookup); err == nil {
			tree = query.Explain(root)
		}
	})
	if err != nil {
		fail(c, err)
		return "", false
	}
	return tree, true
}

// explain is FT.EXPLAIN.
func explain(c *command.Ctx) {
	if tree, ok := explained(c); ok {
		c.W.BulkString(tree)
	}
}

// explainLines is FT.EXPLAINCLI. The text ends with a line break, so the last line is empty.
func explainLines(c *command.Ctx) {
	if tree, ok := explained(c); ok {
		lines := strings.Split(tree, "\n")
		c.W.Array(len(lines))
		for _, line := range lines {
			c.W.Simple(line)
		}
	}
}
