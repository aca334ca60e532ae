package lsm

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/cockroachdb/pebble/v2"

	"github.com/atomredis/atomredis/engine"
)

// snapshot is the store at one instant.
type snapshot struct {
	store *Store
	db    *database
	data  *pebble.Snapshot
}

// Snapshot implements engine.Source. It must be closed before the store is.
func (s *Store) Snapshot() (engine.SourceSnapshot, error) {
	db, err := s.use()
	if err != nil {
		return nil, err
	}
	defer db.users.Done()
	return &snapshot{s, db, db.NewSnapshot()}, nil
}

var errReopened = errors.New("the store has been opened anew since")

// use is Store.use for the snapshot's database.
func (s *snapshot) use() error {
	db, err := s.store.use()
	if err == nil && db != s.db {
		db.users.Done()
		err = errReopened
	}
	return err
}

// Head implements engine.SourceSnapshot.
func (s *snapshot) Head(space uint32, key string) (h engine.Head, ok bool, err error) {
	if err := s.use(); err != nil {
		return engine.Head{}, false, err
	}
	defer s.db.users.Done()
	return head(s.data, space, key)
}

// Blob implements engine.SourceSnapshot.
func (s *snapshot) Blob(space uint32, key string) ([]byte, error) {
	err := s.use()
	if err != nil {
		return nil, err
	}
	defer s.db.users.Done()
	b, ok, err := get(s.data, append(appendSpaceKey(nil, prefixBlob, space), key...))
	if err == nil && !ok {
		err = errMissing
	}
	if err != nil {
		return nil, fmt.Errorf("value of key %s: %w", strconv.Quote(key), located(err))
	}
	return b, nil
}

// Parts implements engine.SourceSnapshot.
func (s *snapshot) Parts(id uint64, fn func(name, data []byte) error) error {
	if err := s.use(); err != nil {
		return err
	}
	defer s.db.users.Done()
	return parts(s.data, id, fn)
}

// Close implements engine.SourceSnapshot. A database replaced meanwhile has already closed the snapshot.
func (s *snapshot) Close() error {
	if err := s.use(); err != nil {
		return nil
	}
	defer s.db.users.Done()
	return s.data.Close()
}
