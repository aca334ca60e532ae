// Package reference has what Redis says of its commands, and compares ours with it.
package reference

import (
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/atomredis/atomredis/internal/command"
)

// redis has the release and its date in the first line, and then one row for each command.
//
//go:embed redis.tsv
var redis string

// unknown stands for a fact that the reference does not have.
const unknown = "?"

// Row is what the reference says of a command. Facts may be unknown.
type Row struct {
	Name                            string
	Since, Arity, Flags, Categories string
	Keys, Tips                      string
}

// Release returns the name of the release that the reference is of, and its date.
func Release() string {
	first, _, _ := strings.Cut(redis, "\n")
	return strings.TrimPrefix(first, "# ")
}

// Rows returns the commands of the reference.
func Rows() []Row {
	var rows []Row
	for line := range strings.Lines(redis) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		rows = append(rows, Row{f[0], f[1], f[2], f[3], f[4], f[5], f[6]})
	}
	return rows
}

// NotServed are the commands of the reference that do not exist here, with the reason.
var NotServed = map[string]string{
	"ft.safeadd": "HSET replaces it since RediSearch 2",
}

const readHere = "a command that reads, which followers send to their leader"

// different are the facts of commands that differ from those of the reference, with the reason.
var different = map[string]string{
	"cf.compact arity":      "Redis takes any arguments",
	"cf.compact flags":      "it changes the filter",
	"cf.compact categories": "it changes the filter",
	"cms.initbydim arity":   "CELL_SIZE is of Redis 8.12",
	"cms.initbyprob arity":  "CELL_SIZE is of Redis 8.12",
	"cms.merge flags":       "its key specs name the sources too",
	"ts.read flags":         "it blocks",
	"backup|abort flags":    "it waits",
	"bless|get flags":       readHere,
	"bless|get categories":  readHere,
	"bless|scan flags":      readHere,
	"bless|scan categories": readHere,
	"backup|seal flags":     "it waits",
	"json.debug flags":      "a container, whose subcommands have the keys",
	"client|pause release":  "2.9.50 in Redis 7",
}

// Compare returns a sentence for each difference between the table and the reference that NotServed and different do not
// explain, and for each row of these two that explains nothing. tips returns the tips of a command.
func Compare(t *command.Table, tips func(name string) []string) (differences []string) {
	differ := func(format string, args ...any) { differences = append(differences, fmt.Sprintf(format, args...)) }
	unused, stale := maps.Clone(different), maps.Clone(NotServed)
	for _, row := range Rows() {
		cmd := t.ByName[row.Name]
		delete(stale, row.Name)
		switch _, listed := NotServed[row.Name]; {
		case cmd == nil && !listed:
			differ("%s is missing", row.Name)
		case cmd != nil && listed:
			differ("%s is served, but listed as not served", row.Name)
		}
		if cmd == nil {
			continue
		}
		same := func(fact, want, got string) {
			if want == unknown || want == got {
				return
			}
			if _, ok := different[row.Name+" "+fact]; ok {
				delete(unused, row.Name+" "+fact)
				return
			}
			differ("%s: the %s is %q, not %q", row.Name, fact, got, want)
		}
		// COMMAND does not show these flags, neither in Redis nor here.
		const unlisted = command.Protected | command.MayReplicate | command.TouchesArbitraryKeys
		same("release", row.Since, cmd.Since)
		same("arity", row.Arity, strconv.Itoa(cmd.Arity))
		same("flags", sorted(row.Flags, ","), words((cmd.Flags&^unlisted).Names(), ","))
		same("categories", sorted(row.Categories, ","), words(cmd.ACL.Names(), ","))
		same("tips", sorted(row.Tips, " "), words(tips(row.Name), " "))
		if row.Keys != unknown {
			same("keys", keys(command.Keys(row.Keys)), keys(cmd.Keys))
		}
	}
	for _, fact := range slices.Sorted(maps.Keys(unused)) {
		differ("%s is as in the reference, but listed as different", fact)
	}
	for _, name := range slices.Sorted(maps.Keys(stale)) {
		differ("%s is listed as not served, but is not in the reference", name)
	}
	return differences
}

// words joins the words of a list in order.
func words(list []string, by string) string {
	return strings.Join(slices.Sorted(slices.Values(list)), by)
}

// sorted sorts the words of a list in one string.
func sorted(list, by string) string { return words(strings.Split(list, by), by) }

// keys describes specs with sorted flags, without fields that Redis does not have.
func keys(specs []command.KeySpec) string {
	var plain []command.KeySpec
	for _, s := range specs {
		s.Flags = slices.Sorted(slices.Values(s.Flags))
		s.Notes, s.Find = "", nil
		plain = append(plain, s)
	}
	return fmt.Sprintf("%+v", plain)
}
