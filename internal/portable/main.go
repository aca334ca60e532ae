// Portable checks that packages and their tests compile for other systems. Its arguments are GOOS/GOARCH pairs, "--"
// and packages. It only checks types, and only the declarations of imported packages, which takes seconds where
// compiling everything takes minutes.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	i := slices.Index(os.Args, "--")
	if i < 0 {
		fmt.Fprintln(os.Stderr, "usage: portable GOOS/GOARCH... -- PACKAGE...")
		os.Exit(2)
	}
	failed := false
	for _, system := range os.Args[1:i] {
		if err := check(system, os.Args[i+1:]); err != nil {
			fmt.Fprintf(os.Stderr, "%s:\n%v\n", system, err)
			failed = true
		}
	}
	if failed {
		os.Exit(1)
	}
}

// listed is the output of go list for a package.
type listed struct {
	ImportPath, Dir string
	GoFiles         []string
	ImportMap       map[string]string
	DepOnly         bool
	Standard        bool
	Module          *struct{ GoVersion string }
	Error           *struct{ Err string }
}

// check checks the packages for one system.
func check(system string, patterns []string) error {
	goos, goarch, _ := strings.Cut(system, "/")
	list := exec.Command("go", append([]string{"list", "-e", "-deps", "-test", "-pgo=off",
		"-json=ImportPath,Dir,GoFiles,ImportMap,DepOnly,Standard,Module,Error"}, patterns...)...)
	list.Env = append(os.Environ(), "GOOS="+goos, "GOARCH="+goarch, "CGO_ENABLED=0")
	list.Stderr = os.Stderr
	out, err := list.StdoutPipe()
	if err == nil {
		err = list.Start()
	}
	if err != nil {
		return err
	}
	c := &checker{sizes: types.SizesFor("gc", goarch), done: map[string]*types.Package{"unsafe": types.Unsafe}}
	for d := json.NewDecoder(out); ; {
		var p listed
		if err := d.Decode(&p); err == io.EOF {
			break
		} else if err != nil {
			return err
		}
		c.add(&p)
	}
	return errors.Join(append(c.errs, list.Wait())...)
}

// checker has the packages checked so far; imports are checked before their importers.
type checker struct {
	sizes types.Sizes
	done  map[string]*types.Package
	errs  []error
}

func (c *checker) add(p *listed) {
	if p.ImportPath == "unsafe" || strings.HasSuffix(p.ImportPath, ".test") { // test mains are generated
		return
	}
	if p.Error != nil {
		c.errs = append(c.errs, errors.New(p.Error.Err))
		return
	}
	files, fset := []*ast.File{}, token.NewFileSet()
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			c.errs = append(c.errs, err)
			return
		}
		files = append(files, f)
	}
	conf := types.Config{Sizes: c.sizes, IgnoreFuncBodies: p.DepOnly, FakeImportC: true,
		Importer: importer{c.done, p.ImportMap},
		Error: func(err error) {
			if !p.DepOnly { // imported packages may use what only the compiler accepts
				c.errs = append(c.errs, err)
			}
		}}
	if p.Module != nil {
		conf.GoVersion = "go" + p.Module.GoVersion
	}
	path, _, _ := strings.Cut(p.ImportPath, " ") // a package compiled for a test has a suffix
	c.done[p.ImportPath], _ = conf.Check(path, fset, files, nil)
}

// importer finds packages that were checked before.
type importer struct {
	done map[string]*types.Package
	as   map[string]string
}

// Import implements types.Importer.
func (i importer) Import(path string) (*types.Package, error) {
	if as, ok := i.as[path]; ok {
		path = as
	}
	if p := i.done[path]; p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("no package %s", path)
}
