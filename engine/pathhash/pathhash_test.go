package pathhash

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/atomredis/atomredis/engine/delta"
	"github.com/atomredis/atomredis/engine/hashes"
	"github.com/atomredis/atomredis/internal/testing/testseed"
)

// model has the fields by path.
type model map[string]map[string]string

func (m model) paths() []string { return slices.Sorted(maps.Keys(m)) }

// requireSame fails unless a path hash has the paths and fields of a model, and counts its memory right.
func requireSame(t require.TestingT, want model, tree *Tree) {
	require.Equal(t, len(want), tree.Len())
	got := model{}
	var order []string
	for path, fields := range tree.Ascend(nil) {
		order = append(order, string(path))
		got[string(path)] = map[string]string{}
		for field, value := range fields.All() {
			got[string(path)][string(field)] = string(value)
		}
	}
	require.Equal(t, want, got)
	require.Equal(t, want.paths(), order)
	memory := 0
	var walk func(n *node, root bool)
	walk = func(n *node, root bool) {
		require.True(t, root || n.entry != nil || len(n.kids) > 1, "a node without use")
		if n.entry != nil {
			memory += n.entry.size()
		}
		memory += n.size()
		for i, k := range n.kids {
			require.True(t, i == 0 || n.kids[i-1].label[0] < k.label[0])
			walk(k, false)
		}
	}
	walk(&tree.root, true)
	require.Equal(t, memory-nodeSize, tree.memory)
}

func TestBehavesLikeAMap(t *testing.T) {
	testseed.Check(t, func(t *rapid.T) {
		want, tree := model{}, New()
		path := rapid.StringMatching("[ab\\x00]{0,6}")
		field := rapid.StringMatching("[fg]{1,2}")
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			p, f := path.Draw(t, "path"), field.Draw(t, "field")
			switch rapid.IntRange(0, 6).Draw(t, "step") {
			case 0, 1, 2:
				if want[p] == nil {
					want[p] = map[string]string{}
				}
				want[p][f] = p + f
				tree.Set([]byte(p), []byte(f), []byte(p+f))
			case 3:
				_, is := want[p][f]
				require.Equal(t, is, tree.DeleteField([]byte(p), []byte(f)))
				if delete(want[p], f); len(want[p]) == 0 {
					delete(want, p)
				}
			case 4:
				require.Equal(t, want[p] != nil, tree.Delete([]byte(p)))
				delete(want, p)
			case 5:
				n := len(want)
				maps.DeleteFunc(want, func(path string, _ map[string]string) bool { return strings.HasPrefix(path, p) })
				require.Equal(t, n-len(want), tree.DeletePrefix([]byte(p)))
			default:
				var prefixes, found, after []string
				for _, q := range want.paths() {
					if strings.HasPrefix(p, q) {
						prefixes = append(prefixes, q)
					}
					if q >= p {
						after = append(after, q)
					}
				}
				tree.Prefixes([]byte(p), func(n int, fields *hashes.Hash) bool {
					found = append(found, p[:n])
					require.Same(t, tree.Get([]byte(p[:n])), fields)
					return true
				})
				require.Equal(t, prefixes, found)
				found = nil
				for q := range tree.Ascend([]byte(p)) {
					found = append(found, string(q))
				}
				require.Equal(t, after, found)
			}
		}
		requireSame(t, want, tree)
		requireSame(t, want, tree.Clone())
		again, err := DecodeBlob(tree.AppendBlob(nil))
		require.NoError(t, err)
		requireSame(t, want, again)
	})
}

// Changed parts are recorded, and a copy keeps the old ones.
func TestChangedPartsAreRecorded(t *testing.T) {
	tree := New()
	for _, path := range []string{"", "a", "ab", "abc", "b"} {
		tree.Set([]byte(path), []byte("f"), []byte(path))
	}
	epochs := &delta.Epochs{Current: 1}
	log := delta.NewLog(1, epochs)
	tree.Track(log)
	epochs.Current++
	require.Len(t, log.Frozen().Sorted(), 6)
	log.Done()
	before := tree.AppendBlob(nil)
	epochs.Current++
	log.Frozen()
	copied := log.BeginCopy()
	tree.Set([]byte("ab"), []byte("g"), []byte("new"))
	tree.Set([]byte("c"), []byte("f"), []byte("new"))
	require.Equal(t, 1, tree.DeletePrefix([]byte("abc")))
	require.True(t, tree.Delete(nil))
	parts := map[string][]byte{}
	log.EndCopy(copied, func(name string, data []byte) { parts[name] = data })
	for c, more := (delta.Cursor{}), true; more; {
		c, more = tree.Walk(c, 2, func(name string) {
			if _, touched := parts[name]; !touched && name != "pc" {
				parts[name], _ = tree.AppendPart(nil, name)
			}
		})
	}
	l := NewLoader()
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		require.NoError(t, l.Add([]byte(name), parts[name]))
	}
	old, err := l.Finish(nil)
	require.NoError(t, err)
	require.Equal(t, before, old.AppendBlob(nil))
	epochs.Current++
	require.Equal(t, []string{"p", "pab", "pabc", "pc"}, log.Frozen().Sorted())
}

func TestDamagedFormsAreErrors(t *testing.T) {
	tree := New()
	tree.Set([]byte("path"), []byte("f"), []byte("v"))
	blob := tree.AppendBlob(nil)
	for n := range len(blob) {
		if tree, err := DecodeBlob(blob[:n]); err == nil {
			require.Zero(t, tree.Len(), n)
		}
	}
	for name, parts := range map[string][]string{
		"no head": {"px", "\x01f\x01v"}, "unknown head": {"a", "\x02"}, "no fields": {"a", "\x01", "px", ""},
		"a field twice": {"a", "\x01", "px", "\x01f\x01v\x01f\x01w"}, "out of order": {"a", "\x01", "px", "\x01f\x01v", "pa", "\x01f\x01v"},
		"another part": {"a", "\x01", "q", ""},
	} {
		l, err := NewLoader(), error(nil)
		for i := 0; i < len(parts) && err == nil; i += 2 {
			err = l.Add([]byte(parts[i]), []byte(parts[i+1]))
		}
		require.Error(t, err, name)
	}
	_, err := NewLoader().Finish(nil)
	require.Error(t, err)
}
