package scripts

import (
	"errors"
	"strings"

	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/persist/rdb"
	"github.com/atomredis/atomredis/scripting"
)

// This file has FUNCTION DUMP and RESTORE, and the form of libraries in checkpoints: payloads as in Redis.

const (
	errPayloadType   command.Error = "ERR given type is not a function"
	errPayloadOld    command.Error = "ERR Pre-GA function format not supported"
	errPayloadBroken command.Error = "ERR failed loading the given functions payload"
)

// Stored returns the libraries for a checkpoint, nil if there are none.
func (s *Scripts) Stored() []byte {
	codes := s.Libraries()
	if len(codes) == 0 {
		return nil
	}
	return rdb.DumpFunctions(codes)
}

// Recover loads what Stored returned.
func (s *Scripts) Recover(b []byte) error {
	codes, e := restoredFunctions(b)
	if e == "" {
		e = s.Restore(codes, true, false)
	}
	if e != "" {
		return errors.New("functions: " + strings.TrimPrefix(string(e), "ERR "))
	}
	return nil
}

// Libraries returns the sources of all libraries of functions.
func (s *Scripts) Libraries() []string {
	var codes []string
	for _, l := range s.functions.Libraries() {
		codes = append(codes, l.Code)
	}
	return codes
}

// restoredFunctions returns the sources of the libraries in a payload.
func restoredFunctions(payload []byte) (codes []string, e command.Error) {
	codes, err := rdb.RestoreFunctions(payload)
	switch {
	case err == nil:
		return codes, ""
	case errors.Is(err, rdb.ErrChecksum):
		return nil, command.ErrPayload
	case errors.Is(err, rdb.ErrNotFunction):
		return nil, errPayloadType
	case errors.Is(err, rdb.ErrUnsupported):
		return nil, errPayloadOld
	}
	return nil, errPayloadBroken
}

// Restore adds libraries, given by their sources, to the present ones. With flush it removes all present libraries
// first, with replace it replaces those of the same names. On an error it adds none; flushed libraries stay removed.
func (s *Scripts) Restore(codes []string, flush, replace bool) command.Error {
	fresh := scripting.NewFunctions(s.options())
	for _, code := range codes {
		if _, err := fresh.Load(code, false); err != nil {
			return command.Error(err.Error())
		}
	}
	functions := s.functions
	if flush {
		functions.Flush()
	}
	added := map[string]bool{}
	for _, l := range fresh.Libraries() {
		added[l.Name] = true
	}
	all := codes
	for _, l := range functions.Libraries() {
		switch {
		case !added[l.Name]:
			all = append(all[:len(all):len(all)], l.Code)
		case !replace:
			return command.Error("ERR Library " + l.Name + " already exists")
		}
	}
	if err := functions.Replace(all); err != nil {
		return command.Error(err.Error())
	}
	return ""
}
