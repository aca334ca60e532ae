package config

import (
	"errors"
	"fmt"
	"slices"
)

// This file applies changes while the server runs: the owner of a directive registers a function for it.

// applier is a function of Apply and its directives.
type applier struct {
	names []string
	apply func(old, set *Settings) (undo func() error, err error)
}

// follower is a function of Follow and its directives.
type follower struct {
	names  []string
	follow func(set *Settings)
}

// Apply registers a function that puts a change of the named directives into effect and may refuse it. It is called
// while the server runs, when one of the values changes, or when a directive that names files is set. Functions are
// called in the order in which they were registered, one change at a time. A function that fails must have changed
// nothing; the functions called before it are undone, the last one first, and no directive changes. undo may be nil.
// The function must not set directives.
//
// A [ChangeError] has an error for each directive at fault; any other error is attributed to the first named
// directive that changes.
func (c *Config) Apply(apply func(old, set *Settings) (undo func() error, err error), names ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.appliers = append(c.appliers, applier{known(names), apply})
}

// Follow registers a function that puts a change of the named directives into effect and cannot fail. It is called
// in the same cases as functions of Apply, after all of them, when Get returns the new settings: it may wake a goroutine
// that looks at them.
func (c *Config) Follow(follow func(set *Settings), names ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.followers = append(c.followers, follower{known(names), follow})
}

// known returns names, and panics unless each is the main name of a directive.
func known(names []string) []string {
	for _, name := range names {
		if d := directiveNamed(name); d == nil || d.name != name {
			panic(fmt.Sprintf("config: there is no directive %q", name))
		}
	}
	return names
}

// changeOf returns the first of the assignments to one of the named directives.
func changeOf(changes []Assignment, names []string) (a Assignment, ok bool) {
	i := slices.IndexFunc(changes, func(a Assignment) bool { return slices.Contains(names, a.d.name) })
	if i < 0 {
		return Assignment{}, false
	}
	return changes[i], true
}

// effective returns the assignments that change something, or name files that may have changed.
func effective(pairs []Assignment, old, set *Settings) []Assignment {
	return slices.DeleteFunc(slices.Clone(pairs), func(p Assignment) bool { return !p.d.reread && p.d.show(old) == p.d.show(set) })
}

// apply calls the functions of Apply for assignments. If one fails, it returns the directive at fault.
func (c *Config) apply(changes []Assignment, old, set *Settings) (culprit string, err error) {
	var undos []func() error
	for _, a := range c.appliers {
		first, ok := changeOf(changes, a.names)
		if !ok {
			continue
		}
		undo, err := a.apply(old, set)
		if err != nil {
			culprit, err := blame(changes, first, err)
			for _, undo := range slices.Backward(undos) {
				err = errors.Join(err, undo())
			}
			return culprit, err
		}
		if undo != nil {
			undos = append(undos, undo)
		}
	}
	return "", nil
}

// tell calls the functions of Follow for assignments.
func (c *Config) tell(changes []Assignment, set *Settings) {
	for _, f := range c.followers {
		if _, ok := changeOf(changes, f.names); ok {
			f.follow(set)
		}
	}
}

// blame returns the assignment at fault for an error of a function of Apply, and the reason. first is the first
// assignment that the function is registered for.
func blame(changes []Assignment, first Assignment, err error) (culprit string, reason error) {
	var change ChangeError
	if errors.As(err, &change) {
		for _, a := range changes {
			if reason := change[a.d.name]; reason != nil {
				return a.name, reason
			}
		}
	}
	return first.name, err
}
