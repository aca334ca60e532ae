package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// seeded are the functions of math/rand and math/rand/v2 that take a seed or a seeded source, and the types.
var seeded = []string{"New", "NewPCG", "NewChaCha8", "NewSource", "NewZipf", "Rand", "Source", "PCG", "ChaCha8", "Zipf"}

// Tests take random numbers from their own seed or from internal/testing/testseed, so that `make test` draws no new
// ones. All files of conformance and internal/testing count as tests.
func TestTestsDrawNoNewRandomNumbers(t *testing.T) {
	files, checked := 0, 0
	require.NoError(t, filepath.WalkDir("../..", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && (entry.Name() == "testdata" || entry.Name() == "node_modules" || entry.Name() == "bin") {
			return filepath.SkipDir
		}
		place := filepath.ToSlash(name)
		forTests := strings.HasSuffix(place, "_test.go") || strings.HasPrefix(place, "../../conformance/") ||
			strings.HasPrefix(place, "../../internal/testing/")
		if !forTests || !strings.HasSuffix(place, ".go") || strings.HasPrefix(place, "../../internal/testing/testseed/") {
			return nil
		}
		files++
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		random, rapid := importedAs(file, "math/rand", "math/rand/v2"), importedAs(file, "pgregory.net/rapid")
		ast.Inspect(file, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			x, ok := s.X.(*ast.Ident)
			if !ok {
				return true
			}
			at := set.Position(s.Pos())
			switch {
			case x.Name == random && random != "":
				checked++
				require.True(t, slices.Contains(seeded, s.Sel.Name), "%s: %s.%s has no seed: use internal/testing/testseed", at, x.Name, s.Sel.Name)
			case x.Name == rapid && rapid != "":
				checked++
				require.NotContains(t, []string{"Check", "MakeCheck"}, s.Sel.Name, "%s: use testseed.Check", at)
			}
			return true
		})
		return nil
	}))
	require.Greater(t, files, 300)
	require.Greater(t, checked, 1000)
}

// importedAs returns the name under which a file imports one of some packages, "" if it does not.
func importedAs(file *ast.File, paths ...string) string {
	for _, i := range file.Imports {
		p, _ := strconv.Unquote(i.Path.Value)
		switch {
		case !slices.Contains(paths, p):
		case i.Name != nil:
			return i.Name.Name
		case strings.HasPrefix(p, "math/rand"):
			return "rand"
		default:
			return filepath.Base(p)
		}
	}
	return ""
}
