package raft

import (
	"encoding/binary"
	"errors"

	consensus "github.com/hashicorp/raft"

	"github.com/atomredis/atomredis/persist/journal"
)

// state is the group's state in a checkpoint: the last entry that it has, the members then, and the place from which
// the log must be read.
type state struct {
	index, term uint64
	configIndex uint64
	config      consensus.Configuration
	start       journal.Start
}

const stateFormat = 1

var errState = errors.New("the stored state of the group is damaged, or of a later version")

// appendTo appends the stored form: the format, numbers, and the configuration as Raft encodes it.
func (s *state) appendTo(dst []byte) []byte {
	dst = append(dst, stateFormat)
	for _, n := range []uint64{s.index, s.term, s.configIndex, s.start.LSN, uint64(s.start.Seed)} {
		dst = binary.AppendUvarint(dst, n)
	}
	return append(dst, consensus.EncodeConfiguration(s.config)...)
}

// decodeState decodes the result of appendTo. Without a group it is empty.
func decodeState(b []byte) (s state, err error) {
	if b == nil {
		return s, nil
	}
	if len(b) == 0 || b[0] != stateFormat {
		return s, errState
	}
	b = b[1:]
	var seed uint64
	for _, n := range []*uint64{&s.index, &s.term, &s.configIndex, &s.start.LSN, &seed} {
		v, size := binary.Uvarint(b)
		if size <= 0 {
			return s, errState
		}
		*n, b = v, b[size:]
	}
	s.start.Seed = uint32(seed)
	s.config, err = decodeConfiguration(b)
	return s, err
}

// decodeConfiguration decodes a configuration of Raft.
func decodeConfiguration(b []byte) (c consensus.Configuration, err error) {
	defer func() {
		if recover() != nil { // DecodeConfiguration panics on invalid input
			err = errState
		}
	}()
	return consensus.DecodeConfiguration(b), nil
}
