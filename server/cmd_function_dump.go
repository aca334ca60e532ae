package server

import (
	"encoding/binary"
	"errors"
	"hash/crc64"
	"strings"

	"github.com/atomredis/atomredis/scripting"
)

// The payload of FUNCTION DUMP and RESTORE has Redis's form: for each library the opcode FUNCTION2 of an RDB file and the source as an RDB
// string; then the version of RDB in two bytes and the CRC-64 of everything before in eight, both little-endian.
const (
	opcodeFunction2   = 245
	opcodeFunctionOld = 246 // of release candidates of Redis 7.0
	payloadVersion    = 10  // that of Redis 7.0
	newestPayload     = 12  // up to here the form of libraries has not changed
	payloadFooter     = 2 + 8
)

const (
	errPayload       Error = "ERR DUMP payload version or checksum are wrong"
	errPayloadType   Error = "ERR given type is not a function"
	errPayloadOld    Error = "ERR Pre-GA function format not supported"
	errPayloadBroken Error = "ERR failed loading the given functions payload"
)

// jonesTable is of the polynomial that Redis uses, in reversed order of bits.
var jonesTable = crc64.MakeTable(0x95ac9329ac4bc9b5)

// payloadChecksum returns Redis's CRC-64: unlike that of the standard library it begins with zero and is not inverted at the end.
func payloadChecksum(b []byte) uint64 { return ^crc64.Update(^uint64(0), jonesTable, b) }

// storedFunctions returns what a checkpoint keeps of the libraries: nothing if there are none.
func (srv *Server) storedFunctions() []byte {
	libraries := srv.scripts.functions.Libraries()
	if len(libraries) == 0 {
		return nil
	}
	return dumpFunctions(libraries)
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

// dumpFunctions returns libraries as FUNCTION DUMP does.
func dumpFunctions(libraries []*scripting.Library) []byte {
	var b []byte
	for _, l := range libraries {
		b = append(b, opcodeFunction2)
		b = append(appendRDBLength(b, len(l.Code)), l.Code...)
	}
	b = binary.LittleEndian.AppendUint16(b, payloadVersion)
	return binary.LittleEndian.AppendUint64(b, payloadChecksum(b))
}

// restoredFunctions returns the sources of the libraries in a payload.
func restoredFunctions(b []byte) (codes []string, e Error) {
	end := len(b) - payloadFooter
	if end < 0 || binary.LittleEndian.Uint16(b[end:]) > newestPayload || binary.LittleEndian.Uint64(b[end+2:]) != payloadChecksum(b[:end+2]) {
		return nil, errPayload
	}
	for b = b[:end]; len(b) > 0; {
		switch b[0] {
		case opcodeFunction2:
		case opcodeFunctionOld:
			return nil, errPayloadOld
		default:
			return nil, errPayloadType
		}
		code, rest, ok := readRDBString(b[1:])
		if !ok {
			return nil, errPayloadBroken
		}
		codes, b = append(codes, string(code)), rest
	}
	return codes, ""
}

// appendRDBLength appends a length as RDB files write it: in 6, 14, 32 or 64 bits, big-endian.
func appendRDBLength(dst []byte, n int) []byte {
	switch {
	case n < 1<<6:
		return append(dst, byte(n))
	case n < 1<<14:
		return append(dst, 0x40|byte(n>>8), byte(n))
	case n < 1<<32:
		return binary.BigEndian.AppendUint32(append(dst, 0x80), uint32(n))
	}
	return binary.BigEndian.AppendUint64(append(dst, 0x81), uint64(n))
}

// lzfString is what an RDB string begins with that is compressed: its length then, and that of the text, follow.
const lzfString = 0xc3

// readRDBLength reads what appendRDBLength wrote.
func readRDBLength(b []byte) (n int, rest []byte, ok bool) {
	switch {
	case len(b) >= 1 && b[0]>>6 == 0:
		return int(b[0]), b[1:], true
	case len(b) >= 2 && b[0]>>6 == 1:
		return int(b[0]&0x3f)<<8 | int(b[1]), b[2:], true
	case len(b) >= 5 && b[0] == 0x80:
		return int(binary.BigEndian.Uint32(b[1:])), b[5:], true
	case len(b) >= 9 && b[0] == 0x81 && b[1] == 0:
		return int(binary.BigEndian.Uint64(b[1:])), b[9:], true
	}
	return 0, nil, false
}

// readRDBString reads a string of an RDB file. Those that are numbers are no source of a library.
func readRDBString(b []byte) (s, rest []byte, ok bool) {
	compressed := len(b) > 0 && b[0] == lzfString
	if compressed {
		b = b[1:]
	}
	n, b, ok := readRDBLength(b)
	size := n
	if compressed && ok {
		size, b, ok = readRDBLength(b)
	}
	if !ok || n > len(b) {
		return nil, nil, false
	}
	s, rest = b[:n], b[n:]
	if compressed {
		s, ok = decompressLZF(s, size)
	}
	return s, rest, ok
}

// maxLZFRatio bounds how many bytes one byte of compressed text can stand for: three bytes stand for at most 264.
const maxLZFRatio = 264

// decompressLZF returns the size bytes that LZF has compressed to b: runs of up to 32 bytes as they are, and references of up to
// 264 bytes to what came up to 8 KiB before.
func decompressLZF(b []byte, size int) (out []byte, ok bool) {
	if size > maxLZFRatio*len(b) {
		return nil, false
	}
	out = make([]byte, 0, size)
	for len(b) > 0 {
		control := int(b[0])
		b = b[1:]
		if control < 32 {
			if n := control + 1; n <= len(b) {
				out, b = append(out, b[:n]...), b[n:]
				continue
			}
			return nil, false
		}
		length := control >> 5
		if length == 7 {
			if len(b) == 0 {
				return nil, false
			}
			length += int(b[0])
			b = b[1:]
		}
		if len(b) == 0 {
			return nil, false
		}
		from := len(out) - (control&0x1f)<<8 - int(b[0]) - 1
		b = b[1:]
		if from < 0 || len(out)+length+2 > size {
			return nil, false
		}
		for i := range length + 2 { // byte by byte: it may refer to what it appends
			out = append(out, out[from+i])
		}
	}
	return out, len(out) == size
}
