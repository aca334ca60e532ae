package house

import (
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A program can name every type in the API of a public package.
func TestPublicPackagesShowNoInternalTypes(t *testing.T) {
	exports := exported(t)
	imp := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	checked := 0
	for path := range exports {
		if name, ours := nameOf(path); !ours || public[name] == 0 {
			continue
		}
		p, err := imp.Import(path)
		require.NoError(t, err)
		scope := p.Scope()
		for _, name := range scope.Names() {
			if o := scope.Lookup(name); o.Exported() {
				checked++
				for _, hidden := range hiddenTypes(o) {
					t.Errorf("%s.%s shows %s, which programs cannot import", path, name, hidden)
				}
			}
		}
	}
	require.Greater(t, checked, 100)
}

// exported returns the files with the export data of the public packages and all their imports.
func exported(t *testing.T) map[string]string {
	args := []string{"list", "-pgo=off", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}"}
	for folder := range public {
		args = append(args, "./"+folder)
	}
	cmd := exec.Command("go", args...)
	cmd.Dir = "../.."
	out, err := cmd.Output()
	require.NoError(t, err)
	files := map[string]string{}
	for line := range strings.Lines(string(out)) {
		if path, file, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			files[path] = file
		}
	}
	return files
}

// hiddenTypes returns the types of internal packages that an exported name exposes: as its type, in parameters and
// results, and in exported fields and methods.
func hiddenTypes(o types.Object) (hidden []string) {
	seen := map[types.Type]bool{}
	var visit func(t types.Type)
	tuple := func(list *types.Tuple) {
		for v := range list.Variables() {
			visit(v.Type())
		}
	}
	visit = func(t types.Type) {
		if seen[t] {
			return
		}
		seen[t] = true
		switch t := t.(type) {
		case *types.Alias:
			visit(t.Rhs())
		case *types.Named:
			if p := t.Obj().Pkg(); p != nil && strings.HasPrefix(p.Path(), module+"/") && strings.Contains(p.Path(), "/internal/") {
				hidden = append(hidden, t.String())
				return
			}
			if t.Obj() != o {
				return // checked where it is declared
			}
			for m := range t.Methods() {
				if m.Exported() {
					visit(m.Type())
				}
			}
			visit(t.Underlying())
		case *types.Struct:
			for f := range t.Fields() {
				if f.Exported() {
					visit(f.Type())
				}
			}
		case *types.Interface:
			for m := range t.Methods() {
				if m.Exported() {
					visit(m.Type())
				}
			}
		case *types.Signature:
			tuple(t.Params())
			tuple(t.Results())
		case *types.Pointer:
			visit(t.Elem())
		case *types.Slice:
			visit(t.Elem())
		case *types.Array:
			visit(t.Elem())
		case *types.Chan:
			visit(t.Elem())
		case *types.Map:
			visit(t.Key())
			visit(t.Elem())
		}
	}
	visit(o.Type())
	return hidden
}

// Reply and Error are aliases in the root package, for which go doc shows no methods: their comments list them.
func TestTheRootListsTheMethodsOfReplies(t *testing.T) {
	listed := map[string]bool{}
	line := regexp.MustCompile(`^//\t(func \(\w (?:Reply|Error)\) .*?) +// `)
	root, err := os.ReadFile("../../atomredis.go")
	require.NoError(t, err)
	for l := range strings.Lines(string(root)) {
		if m := line.FindStringSubmatch(strings.TrimSpace(l)); m != nil {
			listed[m[1]] = true
		}
	}

	methods := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func \(\w (?:Reply|Error)\) [A-Z].*?(?: \{)`)
	files, err := filepath.Glob("../../resp/*.go")
	require.NoError(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, m := range declared.FindAllString(string(text), -1) {
			methods[strings.TrimSuffix(m, " {")] = true
		}
	}
	require.Equal(t, methods, listed)
}
