package server

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/atomredis/atomredis/internal/command"
	"github.com/stretchr/testify/require"
)

// The entry of a command describes its special properties. Only handlers may check by which command they are called.
func TestNobodyAsksForTheNameOfACommand(t *testing.T) {
	known := map[string]bool{}
	for cmd := range command.NewTable().All {
		known[cmd.Name], known[cmd.Group] = true, true
	}
	root := ".."
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		require.NoError(t, err)
		rel, err := filepath.Rel(root, name)
		require.NoError(t, err)
		rel = filepath.ToSlash(rel)
		switch {
		case d.IsDir() && (rel == "commands" || rel == "bench" || rel == "conformance" || rel == ".git"):
			return fs.SkipDir
		case d.IsDir() || path.Ext(rel) != ".go" || strings.HasSuffix(rel, "_test.go"),
			path.Dir(rel) == "server" && strings.HasPrefix(d.Name(), "cmd_"):
			return nil
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		eachNameAsked(file, func(at token.Pos, literal string) {
			if known[literal] {
				t.Errorf("%s:%d compares the name or group of a command with %q", rel, set.Position(at).Line, literal)
			}
		})
		return nil
	})
	require.NoError(t, err)
}

// eachNameAsked calls fn with each string literal that a field Name or Group is compared with.
func eachNameAsked(file *ast.File, fn func(at token.Pos, literal string)) {
	named := func(e ast.Expr) bool {
		selector, ok := e.(*ast.SelectorExpr)
		return ok && (selector.Sel.Name == "Name" || selector.Sel.Name == "Group")
	}
	literal := func(e ast.Expr) {
		if lit, ok := e.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			text, _ := strconv.Unquote(lit.Value)
			fn(lit.Pos(), text)
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			if n.Op == token.EQL || n.Op == token.NEQ {
				if named(n.X) {
					literal(n.Y)
				}
				if named(n.Y) {
					literal(n.X)
				}
			}
		case *ast.SwitchStmt:
			if n.Tag != nil && named(n.Tag) {
				for _, clause := range n.Body.List {
					for _, e := range clause.(*ast.CaseClause).List {
						literal(e)
					}
				}
			}
		}
		return true
	})
}

func TestComparisonsWithNamesAreFound(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "", `package p
		func f(cmd, c *Command) bool {
			switch c.Cmd.Name {
			case "a", "b":
			}
			return cmd.Group == "c" || "d" != cmd.Name || cmd.Arity == 1 || cmd.Other == "e"
		}`, 0)
	require.NoError(t, err)
	var found []string
	eachNameAsked(file, func(_ token.Pos, literal string) { found = append(found, literal) })
	require.Equal(t, []string{"a", "b", "c", "d"}, found)
}
