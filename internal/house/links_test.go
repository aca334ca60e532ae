package house

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// public are the packages that programs import, by folder, each with its largest number of other modules.
var public = map[string]int{".": 50, "atom": 8, "atomredistest": 14, "doors/door": 4, "doors/http": 13, "doors/perper-grpc": 10,
	"doors/perper-ignite": 4, "doors/sentinel": 4, "doors/skein": 10, "doors/spiderq": 4, "memory": 14, "pressure": 6, "search": 5}

// links is the folder with a file for each public package: what a program on Linux links if it imports the package.
const links = "docs/links"

// docs/links lists what the public packages link, so a library that is added unnoticed fails this test.
func TestPublicPackagesLinkWhatIsListed(t *testing.T) {
	listed, err := os.ReadDir("../../" + links)
	require.NoError(t, err)
	for _, f := range listed {
		folder := strings.ReplaceAll(strings.TrimSuffix(f.Name(), ".txt"), "+", "/")
		if folder == "root" {
			folder = "."
		}
		require.Contains(t, public, folder, "%s/%s is of no public package", links, f.Name())
	}
	for folder, most := range public {
		found, modules := linked(t, folder)
		require.LessOrEqual(t, len(modules), most, "%s needs more modules than it should: %v", folder, modules)
		name := folder
		if folder == "." {
			name = "root"
		}
		file := path.Join(links, strings.ReplaceAll(name, "/", "+")+".txt")
		if *update {
			require.NoError(t, os.WriteFile("../../"+file, []byte(found), 0o644))
			continue
		}
		want, err := os.ReadFile("../../" + file)
		require.NoError(t, err, "go test ./internal/house -update writes it")
		require.Equal(t, string(want), found, "%s is not what %s links: go test ./internal/house -update", file, folder)
	}
}

// The binary is built without the trace pages of gRPC. Their templates call methods by name, which forces the linker
// to keep all methods of all types: a quarter of the binary.
func TestTheBinaryIsBuiltWithoutTraces(t *testing.T) {
	const tag = "-tags grpcnotrace"
	for _, file := range []string{"Makefile", "packaging/Dockerfile", "packaging/build.sh"} {
		text, err := os.ReadFile("../../" + file)
		require.NoError(t, err)
		require.Contains(t, string(text), tag, file)
	}
	cmd := exec.Command("go", append([]string{"list", "-pgo=off", "-deps"}, append(strings.Fields(tag), "./cmd/atomredis")...)...)
	cmd.Dir = "../.."
	out, err := cmd.Output()
	require.NoError(t, err)
	require.NotContains(t, strings.Fields(string(out)), "golang.org/x/net/trace")
}

// linked returns what a program links if it imports a package: modules, and their packages indented below them. It
// leaves out this module's packages, which docs/architecture.md has; of the standard library it has packages that
// are imported from outside of it.
func linked(t *testing.T, folder string) (text string, modules []string) {
	cmd := exec.Command("go", "list", "-pgo=off", "-deps",
		"-f", `{{with .Module}}{{.Path}} {{$.ImportPath}} {{join $.Imports " "}}{{end}}`, "./"+folder)
	cmd.Dir = "../.."
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0")
	out, err := cmd.Output()
	require.NoError(t, err)
	packages := map[string][]string{}
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue // of the standard library
		}
		if words[0] != module {
			packages[words[0]] = append(packages[words[0]], strings.TrimPrefix(strings.TrimPrefix(words[1], words[0]), "/"))
		}
		for _, imported := range words[2:] {
			if first, _, _ := strings.Cut(imported, "/"); !strings.Contains(first, ".") {
				packages["std"] = append(packages["std"], imported)
			}
		}
	}
	b := new(strings.Builder)
	for _, of := range slices.Sorted(maps.Keys(packages)) {
		if of != "std" {
			modules = append(modules, of)
		}
		slices.Sort(packages[of])
		fmt.Fprintln(b, of)
		for _, name := range slices.Compact(packages[of]) {
			fmt.Fprintf(b, "\t%s\n", cmp.Or(name, "."))
		}
	}
	return b.String(), modules
}
