package lsm

import (
	"github.com/atomredis/atomredis/persist/disk"
	"github.com/atomredis/atomredis/persist/store"
)

func init() { store.Register(engineOfStores{}) }

// engineOfStores is the package's store.Engine.
type engineOfStores struct{}

func (engineOfStores) Open(o store.Options) (store.Store, error) {
	s, err := Open(Options{FS: o.FS, Dir: o.Dir, Log: o.Log})
	if err != nil {
		return nil, err
	}
	return s, nil
}

func (engineOfStores) Verify(fs disk.FS, dir string, report func(string)) (store.Meta, error) {
	return Verify(fs, dir, report)
}

func (engineOfStores) Salvage(fs disk.FS, dir string, report func(string)) error {
	return Salvage(fs, dir, report)
}

func (engineOfStores) ForgetJournal(fs disk.FS, dir string) error { return ForgetJournal(fs, dir) }
