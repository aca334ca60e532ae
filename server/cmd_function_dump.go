package server

import (
	"errors"
	"strings"

	"github.com/atomredis/atomredis/command"
	"github.com/atomredis/atomredis/persist/rdb"
)

// FUNCTION DUMP and RESTORE, and what a checkpoint keeps of libraries: payloads as Redis has them.

const (
	errPayloadType   command.Error = "ERR given type is not a function"
	errPayloadOld    command.Error = "ERR Pre-GA function format not supported"
	errPayloadBroken command.Error = "ERR failed loading the given functions payload"
)

// storedFunctions returns what a checkpoint keeps of the libraries: nothing if there are none.
func (srv *Server) storedFunctions() []byte {
	codes := srv.functionSources()
	if len(codes) == 0 {
		return nil
	}
	return rdb.DumpFunctions(codes)
}

// recoverFunctions loads what storedFunctions returned.
func (srv *Server) recoverFunctions(b []byte) error {
	codes, e := restoredFunctions(b)
	if e == "" {
		e = srv.restoreFunctions(codes, true, false)
	}
	if e != "" {
		return errors.New("functions: " + strings.TrimPrefix(string(e), "ERR "))
	}
	return nil
}

// functionSources returns the sources of all libraries.
func (srv *Server) functionSources() []string {
	var codes []string
	for _, l := range srv.scripts.functions.Libraries() {
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
