// Package house tests the rules about imports: it compares the table of packages in docs/architecture.md with the
// code.
package house

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	module = "github.com/atomredis/atomredis"
	doc    = "docs/architecture.md"
)

var update = flag.Bool("update", false, "write the numbers of lines that are far off into the table")

// row is a line of the table. A package is named by its folder; "." is the root.
type row struct {
	what  string
	lines int
	may   []string // patterns of path.Match for packages, ours and those of libraries
}

// pkg is a package of the code.
type pkg struct {
	ImportPath, Dir string
	Imports         []string
	GoFiles         []string
	IgnoredGoFiles  []string // for other systems
}

// No package imports what the table forbids, every package is in the table, and the numbers of lines are about
// right.
func TestPackagesImportOnlyWhatTheyMay(t *testing.T) {
	table := readTable(t)
	found := map[string]bool{}
	lines := map[string]int{}
	imports := map[string][]string{}
	for _, p := range packages(t) {
		name, _ := nameOf(p.ImportPath)
		imports[name] = p.Imports
		r, ok := table[name]
		require.True(t, ok, "package %s is not in the table of %s", name, doc)
		found[name] = true
		for _, imported := range p.Imports {
			require.True(t, r.allows(imported), "%s must not import %s: see the table of %s", name, imported, doc)
		}
		for _, file := range append(p.GoFiles, p.IgnoredGoFiles...) {
			lines[name] += linesOf(t, p, file)
		}
	}
	for name, r := range table {
		require.True(t, found[name], "there is no package %s", name)
		for _, pattern := range r.may {
			used := slices.ContainsFunc(imports[name], func(imported string) bool { return matches(pattern, imported) })
			require.True(t, used, "%s does not import %s, which the table of %s allows", name, pattern, doc)
		}
	}
	if *update {
		writeLines(t, lines)
		return
	}
	for name, r := range table {
		require.False(t, farOff(r.lines, lines[name]),
			"the table of %s is outdated for %s: go test ./internal/house -update", doc, name)
	}
}

// The root has few folders, so that newcomers find the packages that programs may import.
func TestTheRootHasFewFolders(t *testing.T) {
	cmd := exec.Command("git", "ls-files")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		t.Skip("not a checkout of git")
	}
	folders := map[string]bool{}
	for file := range strings.Lines(string(out)) {
		if folder, _, ok := strings.Cut(file, "/"); ok {
			folders[folder] = true
		}
	}
	require.LessOrEqual(t, len(folders), 24, folders)
}

// Examples are short, and their page lists all of them.
func TestExamplesAreListed(t *testing.T) {
	mains, err := filepath.Glob("../../examples/*/main.go")
	require.NoError(t, err)
	require.NotEmpty(t, mains)
	page, err := os.ReadFile("../../docs/examples.md")
	require.NoError(t, err)
	for _, main := range mains {
		name := filepath.Base(filepath.Dir(main))
		require.FileExists(t, "../../examples/"+name+"/main_test.go")
		require.Contains(t, string(page), "](../examples/"+name+"/", name)
		content, err := os.ReadFile(main)
		require.NoError(t, err)
		require.LessOrEqual(t, bytes.Count(content, []byte("\n")), 190, name)
		require.Contains(t, string(content), "//\tgo run ./examples/"+name+" ", "the comment says how to run it")
	}
}

// Packages stay small enough to understand. The server only composes, starts and stops: long parts of it become
// packages of their own.
func TestPackagesAreNotTooLarge(t *testing.T) {
	for _, p := range packages(t) {
		name, _ := nameOf(p.ImportPath)
		if strings.HasPrefix(name, "internal/wire/") {
			continue // generated
		}
		limit, limitOfFile := 8000, math.MaxInt
		if name == "server" {
			limit, limitOfFile = 4000, 500
		}
		lines := 0
		for _, file := range append(p.GoFiles, p.IgnoredGoFiles...) {
			n := linesOf(t, p, file)
			require.LessOrEqual(t, n, limitOfFile, "%s/%s", name, file)
			lines += n
		}
		require.LessOrEqual(t, lines, limit, p.ImportPath)
	}
}

// The files that the map and the glossary name exist.
func TestTheMapNamesFilesThatExist(t *testing.T) {
	for _, page := range []string{doc, "docs/glossary.md"} {
		content, err := os.ReadFile("../../" + page)
		require.NoError(t, err)
		for i, text := range strings.Split(string(content), "`") {
			if i%2 == 1 && strings.Contains(text, "/") && strings.HasSuffix(text, ".go") {
				require.FileExists(t, "../../"+text, page)
			}
		}
	}
}

// linesOf counts the lines of a file; test files have 0.
func linesOf(t *testing.T, p pkg, file string) int {
	if strings.HasSuffix(file, "_test.go") {
		return 0
	}
	content, err := os.ReadFile(path.Join(p.Dir, file))
	require.NoError(t, err)
	return bytes.Count(content, []byte("\n"))
}

// A program that embeds the server links only the doors that it imports, and their libraries only with them.
func TestDoorsAreInProgramsThatImportThem(t *testing.T) {
	cmd := exec.Command("go", "list", "-deps", ".", "./memory", "./atomredistest", "./atom", "./pressure")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	require.NoError(t, err)
	for name := range strings.Lines(string(out)) {
		switch strings.TrimSpace(name) {
		case module + "/doors/door": // the common code of doors and of the Go API
			continue
		case module + "/internal/wire/peer", module + "/internal/wire/peer/old": // the framing between servers
			continue
		}
		for _, of := range []string{module + "/doors/", module + "/internal/wire/", "google.golang.org/grpc", "go.opentelemetry.io/",
			"github.com/ergochat/", "github.com/spf13/"} {
			require.False(t, strings.HasPrefix(name, of), name)
		}
	}
}

// nameOf returns the folder of a package of this module, and the path of any other.
func nameOf(importPath string) (name string, ours bool) {
	name, ours = strings.CutPrefix(importPath, module)
	if name = strings.TrimPrefix(name, "/"); ours && name == "" {
		name = "."
	}
	return name, ours
}

// allows reports whether a package may be imported.
func (r row) allows(imported string) bool {
	if first, _, _ := strings.Cut(imported, "/"); !strings.Contains(first, ".") {
		return true // the standard library
	}
	return slices.ContainsFunc(r.may, func(pattern string) bool { return matches(pattern, imported) })
}

// matches reports whether a pattern matches a package. A library's pattern matches a part of its path.
func matches(pattern, importPath string) bool {
	name, ours := nameOf(importPath)
	if !ours {
		return slices.Contains(strings.Split(name, "/"), pattern)
	}
	ok, _ := path.Match(pattern, name)
	return ok
}

// packages returns the packages of the module.
func packages(t *testing.T) (all []pkg) {
	cmd := exec.Command("go", "list", "-pgo=off", "-json=ImportPath,Dir,Imports,GoFiles,IgnoredGoFiles", "./...")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	require.NoError(t, err)
	d := json.NewDecoder(bytes.NewReader(out))
	for {
		var p pkg
		err := d.Decode(&p)
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err)
		all = append(all, p)
	}
}

// readTable reads the rows "| `name` | what it is | lines | imports |".
func readTable(t *testing.T) map[string]row {
	content, err := os.ReadFile("../../" + doc)
	require.NoError(t, err)
	table := map[string]row{}
	for _, line := range strings.Split(string(content), "\n") {
		cells, ok := cellsOf(line)
		if !ok {
			continue
		}
		r := row{what: cells[1]}
		r.lines, err = strconv.Atoi(strings.ReplaceAll(cells[2], ",", ""))
		require.NoError(t, err, line)
		r.may = strings.Fields(strings.NewReplacer(",", " ", "`", "").Replace(cells[3]))
		name := strings.Trim(cells[0], "`")
		require.NotContains(t, table, name, "%s has two rows for %s", doc, name)
		table[name] = r
	}
	require.NotEmpty(t, table)
	return table
}

// cellsOf returns the four cells of a row that begins with a name in backticks.
func cellsOf(line string) (cells []string, ok bool) {
	if !strings.HasPrefix(line, "| `") {
		return nil, false
	}
	cells = strings.Split(strings.Trim(line, "|"), "|")
	for i := range cells {
		cells[i] = strings.TrimSpace(cells[i])
	}
	return cells, len(cells) == 4
}

// farOff reports whether a number of lines in the table is too far from the real one.
func farOff(said, lines int) bool {
	return math.Abs(float64(said-lines)) > 100+float64(lines)/4
}

// writeLines corrects the numbers of lines in the table that are far off. Correcting others would only cause merge
// conflicts between unrelated changes.
func writeLines(t *testing.T, lines map[string]int) {
	content, err := os.ReadFile("../../" + doc)
	require.NoError(t, err)
	rows := strings.Split(string(content), "\n")
	for i, line := range rows {
		if cells, ok := cellsOf(line); ok {
			n := lines[strings.Trim(cells[0], "`")]
			if said, err := strconv.Atoi(cells[2]); err == nil && !farOff(said, n) {
				continue
			}
			rows[i] = fmt.Sprintf("| %s | %s | %d | %s |", cells[0], cells[1], n, cells[3])
		}
	}
	require.NoError(t, os.WriteFile("../../"+doc, []byte(strings.Join(rows, "\n")), 0o644))
}
