package objects

import (
	"math"
	"slices"
)

// prune deletes what no second within the retention needs: the newest base before the retention's beginning is the first that is
// kept. Bases go first: pieces before the first base of a chain mean nothing, so a deletion that is cut short leaves a valid
// archive. Older chains whose first base was never completed are deleted whatever the retention is.
func (a *archiver) prune(c *chain) error {
	from := int64(math.MinInt64)
	if a.set.Retention > 0 {
		from = a.now().Add(-a.set.Retention).UnixMilli()
	}
	names, err := chainsOf(a.req, a.store)
	if err != nil {
		return err
	}
	deleted := 0
	for _, name := range names {
		if begin, _ := isChain(name); name > c.name || begin.UnixMilli() > from && a.hasBase(name) {
			continue
		}
		all, err := read(a.req, a.store, name, "", nil)
		if err != nil {
			return err
		}
		for _, object := range unneeded(&all, from, name != c.name) {
			if err := a.store.Delete(a.req, object); err != nil {
				return err
			}
			deleted++
		}
		if name != c.name && len(all.bases)+len(all.pieces) == 0 {
			if err := a.store.Delete(a.req, name+"/"+reachName); err != nil {
				return err
			}
		}
	}
	if deleted > 0 {
		a.o.Log.Info("objects of the archive that the retention does not need are deleted", "archive", a.store.String(), "objects", deleted)
	}
	return nil
}

// hasBase reports whether a chain has a base, or cannot be read.
func (a *archiver) hasBase(chain string) bool {
	volumes, err := a.store.Folders(a.req, chain)
	if err != nil {
		return true
	}
	for _, volume := range volumes {
		for range a.store.List(a.req, chain+"/"+volume+"/"+basePrefix, "") {
			return true
		}
	}
	return false
}

// unneeded returns the names of a chain's objects that no time from `from` on needs, in the order of deletion. A chain that has
// ended may be unneeded as a whole.
func unneeded(c *contents, from int64, ended bool) (names []string) {
	last := c.reach.time
	for _, b := range c.bases {
		last = max(last, b.time)
	}
	for _, p := range c.pieces {
		last = max(last, p.through)
	}
	whole := ended && (last < from || len(c.bases) == 0)
	keep := len(c.bases) - 1 // the first base that is needed
	for keep > 0 && c.bases[keep].time > from {
		keep--
	}
	if whole {
		keep = len(c.bases)
	}
	for i := range keep {
		names = append(names, c.bases[i].Name)
	}
	for _, p := range c.pieces {
		if whole || keep >= 0 && keep < len(c.bases) && order(p.to, c.bases[keep].at) <= 0 {
			names = append(names, p.Name)
		}
	}
	return slices.Clip(names)
}
